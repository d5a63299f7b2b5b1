//! Key management services of a program that was built without them: none can be started.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::{Kms, Opened, TransformError, Transformer};

/// What is wrong with a service: there is none.
pub type ServiceError = Infallible;

/// No service.
pub struct Service(Infallible);

impl Service {
    /// # Errors
    /// Always.
    pub fn start(_: &Kms) -> io::Result<Arc<Service>> {
        let why = "this program was built without key management services";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    pub async fn health(&self) -> Result<(), ServiceError> {
        match self.0 {}
    }
}

impl Transformer for Arc<Service> {
    fn open(&self, _: &Bytes, _: &str) -> Result<Opened, TransformError> {
        match self.0 {}
    }

    fn seal(&self, _: &[u8], _: &str) -> Result<Vec<u8>, TransformError> {
        match self.0 {}
    }
}
