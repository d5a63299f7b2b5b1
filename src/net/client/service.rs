//! Services of the cluster as targets of calls: named by their own name, connected to where they are at that moment.

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::BoxFuture;

/// A port of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    pub namespace: String,
    pub name: String,
    pub port: u16,
}

impl ServicePort {
    /// The name for which its certificate has to be.
    pub fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

/// Knows where services are.
pub trait Services: Send + Sync {
    /// The host and the port to connect to.
    ///
    /// # Errors
    /// There is no such service or port, or none that can be called: `service "a" not found`.
    fn locate<'a>(&'a self, service: &'a ServicePort) -> Located<'a>;
}

/// Where a service is, or why it is nowhere.
pub type Located<'a> = BoxFuture<'a, Result<(String, u16), String>>;

/// A service, and who knows where it is.
#[derive(Clone)]
pub(super) struct Route {
    pub service: ServicePort,
    pub services: Arc<dyn Services>,
}

impl Route {
    /// Where a connection to this host and port goes; `None`: there, since it is not the service.
    pub async fn locate(&self, host: &str, port: u16) -> Result<Option<(String, u16)>, String> {
        match port == self.service.port && host == self.service.host() {
            true => self.services.locate(&self.service).await.map(Some),
            false => Ok(None),
        }
    }
}
