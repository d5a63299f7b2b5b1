//! A webhook that knows tokens.

use std::path::PathBuf;
use std::time::Duration as Time;

use keelson_access::authn::webhook::ReviewVersion;
use keelson_machinery::time::Duration;
use keelson_net::client::{Backoff, Egress, Webhook};

use super::SECTION;
use crate::{OptionError, values};

/// How long a webhook may take for one answer, as kube-apiserver's.
const TIMEOUT: Time = Time::from_secs(30);

#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = SECTION)]
pub struct TokenWebhook {
    /// A kubeconfig file of the webhook that is asked about tokens that nobody here knows. It gets a TokenReview.
    #[arg(long, value_name = "string")]
    pub authentication_token_webhook_config_file: Option<PathBuf>,

    /// The version of the TokenReview: v1 or v1beta1.
    #[arg(long, value_name = "string", default_value = "v1beta1")]
    pub authentication_token_webhook_version: String,

    /// How long the webhook's answers are remembered. 0: not at all.
    #[arg(long, value_name = "duration", default_value = "2m0s", value_parser = values::duration)]
    pub authentication_token_webhook_cache_ttl: Duration,
}

/// Whom to ask about tokens.
#[derive(Clone)]
pub struct TokenWebhookSettings {
    pub webhook: Webhook,
    pub version: ReviewVersion,
    /// How long answers are remembered, in milliseconds.
    pub remember_ms: u64,
}

impl std::fmt::Debug for TokenWebhookSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenWebhookSettings")
            .field("url", &self.webhook.url())
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl TokenWebhook {
    /// `None`: there is no webhook.
    pub(crate) fn complete(&self, egress: &Egress) -> Result<Option<TokenWebhookSettings>, OptionError> {
        const FLAG: &str = "--authentication-token-webhook-config-file";
        let file = self.authentication_token_webhook_config_file.as_ref();
        let Some(path) = file.filter(|path| !path.as_os_str().is_empty()) else {
            return Ok(None);
        };
        let version = match self.authentication_token_webhook_version.as_str() {
            "v1" => ReviewVersion::V1,
            "v1beta1" => ReviewVersion::V1beta1,
            other => {
                let reason = format!(
                    "unsupported authentication webhook version {other:?}, supported versions are \"v1\", \"v1beta1\""
                );
                return Err(OptionError::flag("--authentication-token-webhook-version", reason));
            }
        };
        let webhook = Webhook::from_kubeconfig(path, &egress.control_plane, TIMEOUT, Backoff::WEBHOOK)
            .map_err(|error| OptionError::flag(FLAG, error.to_string()))?;
        let milliseconds = self.authentication_token_webhook_cache_ttl.as_nanos() / 1_000_000;
        Ok(Some(TokenWebhookSettings {
            webhook,
            version,
            remember_ms: u64::try_from(milliseconds).unwrap_or(0),
        }))
    }
}
