//! Values as they are.

use bytes::Bytes;

use super::{Opened, PREFIX, TransformError, Transformer};

pub(super) struct Identity;

impl Transformer for Identity {
    fn open(&self, stored: &Bytes, _key: &str) -> Result<Opened, TransformError> {
        if stored.starts_with(PREFIX) {
            return Err(TransformError::Encrypted);
        }
        Ok(Opened {
            value: stored.clone(),
            stale: false,
        })
    }

    fn seal(&self, value: &[u8], _key: &str) -> Result<Vec<u8>, TransformError> {
        Ok(value.to_vec())
    }
}
