//! Clients of webhooks: the ways to them, and who this server is to each.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use keelson_net::client::{Backoff, Egress, KubeconfigError, Users, Webhook, WebhookAddress, WebhookWays};
use keelson_registry::Registry;
use keelson_server::services::ClusterServices;

use super::configuration::{self, WebhookAdmissionError};
use super::hook::Hook;

/// For a call of a webhook that does not say how long it may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why a webhook has no client.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum ClientError {
    #[error("webhook configuration must have either service or URL")]
    NoAddress,
    #[error("the server has no services")]
    NoServices,
    #[error(transparent)]
    Unusable(#[from] KubeconfigError),
}

/// What calls are made with.
#[derive(Default)]
pub(super) struct Clients {
    egress: Egress,
    users: OnceLock<Users>,
    services: OnceLock<Arc<ClusterServices>>,
}

impl Clients {
    /// On these ways.
    pub fn new(egress: &Egress) -> Clients {
        Clients {
            egress: egress.clone(),
            ..Clients::default()
        }
    }

    /// Takes the configuration of the plug-in.
    ///
    /// # Errors
    /// It has mistakes.
    pub fn configure(&self, configuration: Option<&str>) -> Result<(), WebhookAdmissionError> {
        let users = configuration::users(configuration)?;
        self.users.get_or_init(|| users);
        Ok(())
    }

    /// The services of this server can be called.
    pub fn attach(&self, registry: &Arc<Registry>) {
        self.services.get_or_init(|| Arc::new(ClusterServices::new(registry)));
    }

    /// The client for a webhook; it is made once.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of<'a>(&self, hook: &'a Hook) -> Result<&'a Webhook, ClientError> {
        let made = hook.client.get_or_init(|| self.make(hook));
        made.as_ref().map_err(Clone::clone)
    }

    fn make(&self, hook: &Hook) -> Result<Webhook, ClientError> {
        let address = hook.address.as_ref().ok_or(ClientError::NoAddress)?;
        let services = self.services.get().ok_or(ClientError::NoServices)?.clone();
        let dialer = match &address.address {
            WebhookAddress::Url(_) => self.egress.control_plane.clone(),
            WebhookAddress::Service(..) => self.egress.cluster.clone(),
        };
        let ways = WebhookWays { dialer, services };
        let timeout = hook.timeout.unwrap_or(TIMEOUT);
        let nobody = Users::default();
        let users = self.users.get().unwrap_or(&nobody);
        Ok(address.webhook(&ways, users, timeout, Backoff::ONCE)?)
    }
}
