//! The contract of a provider.

use bytes::Bytes;
use futures_util::future::BoxFuture;

/// What a stored value holds.
#[derive(Clone, PartialEq, Eq)]
pub struct Opened {
    pub value: Bytes,
    /// It would be stored differently today, and should be written anew at the next occasion.
    pub stale: bool,
}

/// Between values as objects have them and as the store keeps them. `key` is the key in the store, to which most
/// providers bind the value, so that it can't be moved to another one.
pub trait Transformer: Send + Sync {
    /// What is to be awaited before [`Transformer::open`], which would hold up its thread until somebody else has
    /// answered. `None`: nothing.
    fn prepare(&self, _stored: &Bytes) -> Option<BoxFuture<'static, ()>> {
        None
    }

    fn open(&self, stored: &Bytes, key: &str) -> Result<Opened, TransformError>;

    fn seal(&self, value: &[u8], key: &str) -> Result<Vec<u8>, TransformError>;
}

/// Why a value can't be read or written. The texts are those of kube-apiserver, which clients see.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TransformError {
    #[error("no matching prefix found")]
    NoPrefix,
    #[error("identity transformer tried to read encrypted data")]
    Encrypted,
    /// "AES" or "Secretbox".
    #[error("no matching key was found for the provided {0} transformer")]
    NoKey(&'static str),
    #[error("the stored data was shorter than the required size")]
    TooShort,
    #[error("the stored data is not a multiple of the block size")]
    NotBlocks,
    #[error("invalid PKCS7 data (empty or not padded)")]
    NotPadded,
    #[error("invalid padding on input")]
    Padding,
    #[error("cipher: message authentication failed")]
    Authentication,
    /// What kube-apiserver says of a secretbox that does not open.
    #[error("output array was not large enough for encryption")]
    Box,
    /// The system gives no random bytes, or a cipher refuses its input.
    #[error("encryption failed: {0}")]
    Failed(&'static str),
    /// A key management service does not do its part.
    #[error("{0}")]
    Kms(String),
    /// Several providers fit, and none could read it.
    #[error("[{}]", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Several(Vec<TransformError>),
}

/// Fills with random bytes of the system.
pub(super) fn random(bytes: &mut [u8]) -> Result<(), TransformError> {
    use ring::rand::{SecureRandom, SystemRandom};
    let filled = SystemRandom::new().fill(bytes);
    filled.map_err(|_| TransformError::Failed("the system gives no random bytes"))
}
