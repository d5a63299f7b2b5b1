//! Connections to etcd's members.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Identity, KvClient, TlsOptions};
use tokio::runtime::{Handle, Id};

use crate::{EtcdConfig, StoreError};

/// How long one attempt to reach a member may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A member that is silent for so long is asked for a sign of life (etcd allows one each 5 s) …
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// … and given up if it does not answer within this time.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// At most so many runtimes have connections of their own; others use those of the first.
const MOST_RUNTIMES: usize = 256;

/// Connections for single requests: one to each member for each runtime that sends any, so that a request and its
/// answer stay on one thread. A thread that has to be woken twice for a request costs more than the request.
#[derive(Clone)]
pub(super) struct Connections {
    config: Arc<EtcdConfig>,
    of_runtimes: Arc<RwLock<Vec<(Id, KvClient)>>>,
    first: KvClient,
}

impl Connections {
    /// Those of `client` are for the runtime that calls this.
    pub fn new(client: &Client, config: &EtcdConfig) -> Connections {
        let first = kv(client);
        let here = Handle::try_current().map(|handle| (handle.id(), first.clone()));
        Connections {
            config: Arc::new(config.clone()),
            of_runtimes: Arc::new(RwLock::new(here.into_iter().collect())),
            first,
        }
    }

    /// A client whose connections belong to the current runtime.
    pub async fn kv(&self) -> KvClient {
        let Ok(here) = Handle::try_current().map(|handle| handle.id()) else {
            return self.first.clone();
        };
        if let Some(known) = self.known(here) {
            return known;
        }
        let made = match client(&self.config).await {
            Ok(client) => kv(&client),
            Err(error) => {
                tracing::warn!(%error, "connections of another thread are used");
                return self.first.clone();
            }
        };
        let mut of_runtimes = self.of_runtimes.write().unwrap_or_else(PoisonError::into_inner);
        // Another request of this runtime may have been faster.
        if let Some(known) = self.find(&of_runtimes, here) {
            return known;
        }
        of_runtimes.push((here, made.clone()));
        made
    }

    fn known(&self, runtime: Id) -> Option<KvClient> {
        self.find(
            &self.of_runtimes.read().unwrap_or_else(PoisonError::into_inner),
            runtime,
        )
    }

    fn find(&self, of_runtimes: &[(Id, KvClient)], runtime: Id) -> Option<KvClient> {
        let own = of_runtimes.iter().find(|(of, _)| *of == runtime);
        let known = own.map(|(_, kv)| kv.clone());
        known.or_else(|| (of_runtimes.len() >= MOST_RUNTIMES).then(|| self.first.clone()))
    }
}

fn kv(client: &Client) -> KvClient {
    client.kv_client().max_decoding_message_size(usize::MAX)
}

/// A client of all endpoints. Reaches none of them yet.
pub(crate) async fn client(config: &EtcdConfig) -> Result<Client, StoreError> {
    let unusable = |what: String| StoreError::Unavailable(format!("etcd: {what}"));
    if config.endpoints.is_empty() {
        return Err(unusable("no endpoints are given".to_owned()));
    }
    let mut options = ConnectOptions::new()
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_keep_alive(KEEP_ALIVE, KEEP_ALIVE_TIMEOUT)
        // etcd closes connections that ask for signs of life while nothing is under way
        .with_keep_alive_while_idle(false)
        .with_require_leader(true);
    if config.endpoints.iter().any(|endpoint| endpoint.starts_with("https://")) {
        options = options.with_tls(tls(config)?);
    }
    let connected = Client::connect(&config.endpoints, Some(options)).await;
    connected.map_err(|error| unusable(format!("{}: {error}", config.endpoints.join(","))))
}

fn tls(config: &EtcdConfig) -> Result<TlsOptions, StoreError> {
    let mut tls = TlsOptions::new();
    if let Some(ca) = &config.ca {
        tls = tls.ca_certificate(Certificate::from_pem(read(ca)?));
    }
    match (&config.cert, &config.key) {
        (Some(cert), Some(key)) => Ok(tls.identity(Identity::from_pem(read(cert)?, read(key)?))),
        (None, None) => Ok(tls),
        _ => Err(StoreError::Unavailable(
            "etcd: a client certificate and its key go together".to_owned(),
        )),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, StoreError> {
    std::fs::read(file).map_err(|error| StoreError::Unavailable(format!("{}: {error}", file.display())))
}
