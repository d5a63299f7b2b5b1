//! Connections to etcd's members.

use std::path::Path;
use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Identity, TlsOptions};

use crate::{EtcdConfig, StoreError};

/// How long one attempt to reach a member may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A member that is silent for so long is asked for a sign of life (etcd allows one each 5 s) …
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// … and given up if it does not answer within this time.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

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
