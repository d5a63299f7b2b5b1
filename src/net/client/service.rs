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

/// Why a service is nowhere, in kube-apiserver's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ServiceError {
    /// There is none of this name.
    #[error("service {0:?} not found")]
    NotFound(String),
    /// It has no such port.
    #[error("no service port {port} found for service {name:?}")]
    NoPort {
        /// The service's.
        name: String,
        /// What was asked for.
        port: u16,
    },
    /// It has no address of its own.
    #[error("cannot route to service with ClusterIP \"None\"")]
    Headless,
    /// Of a type that leads nowhere.
    #[error("unsupported service type {0:?}")]
    Type(String),
    /// There is nobody who knows.
    #[error("{0}")]
    Unknown(&'static str),
    /// Services can't be read; the text says why.
    #[error("{0}")]
    Unread(String),
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
pub type Located<'a> = BoxFuture<'a, Result<(String, u16), ServiceError>>;

/// A service, and who knows where it is.
#[derive(Clone)]
pub(super) struct Route {
    pub service: ServicePort,
    pub services: Arc<dyn Services>,
}

impl Route {
    /// Where a connection to this host and port goes; `None`: there, since it is not the service.
    pub async fn locate(&self, host: &str, port: u16) -> Result<Option<(String, u16)>, ServiceError> {
        match port == self.service.port && host == self.service.host() {
            true => self.services.locate(&self.service).await.map(Some),
            false => Ok(None),
        }
    }
}
