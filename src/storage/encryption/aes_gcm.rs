//! `aesgcm`: AES in Galois/Counter mode; a random nonce goes first, and the value is bound to its key in the store.

use aes::{Aes128, Aes192, Aes256};
use aes_gcm::aead::consts::U12;
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{AesGcm as Gcm, Nonce};
use bytes::Bytes;

use super::transformer::random;
use super::{Opened, Secret, TransformError, Transformer};

const NONCE: usize = 12;

/// One key of 16, 24 or 32 bytes.
pub(super) struct AesGcm(pub Secret);

impl AesGcm {
    /// Calls `work` with the cipher that fits the length of the key.
    fn with<T>(&self, work: impl Fn(&dyn Cipher) -> Result<T, TransformError>) -> Result<T, TransformError> {
        let key = self.0.bytes();
        let unfit = |_| TransformError::Failed("a key of AES has 16, 24 or 32 bytes");
        match key.len() {
            16 => work(&Gcm::<Aes128, U12>::new_from_slice(key).map_err(unfit)?),
            24 => work(&Gcm::<Aes192, U12>::new_from_slice(key).map_err(unfit)?),
            _ => work(&Gcm::<Aes256, U12>::new_from_slice(key).map_err(unfit)?),
        }
    }
}

trait Cipher {
    fn encrypt(&self, nonce: &[u8; NONCE], value: Payload<'_, '_>) -> Option<Vec<u8>>;
    fn decrypt(&self, nonce: &[u8; NONCE], value: Payload<'_, '_>) -> Option<Vec<u8>>;
}

impl<C: Aead<NonceSize = U12>> Cipher for C {
    fn encrypt(&self, nonce: &[u8; NONCE], value: Payload<'_, '_>) -> Option<Vec<u8>> {
        Aead::encrypt(self, &Nonce::<U12>::from(*nonce), value).ok()
    }

    fn decrypt(&self, nonce: &[u8; NONCE], value: Payload<'_, '_>) -> Option<Vec<u8>> {
        Aead::decrypt(self, &Nonce::<U12>::from(*nonce), value).ok()
    }
}

impl Transformer for AesGcm {
    fn open(&self, stored: &Bytes, key: &str) -> Result<Opened, TransformError> {
        let (nonce, msg) = stored.split_first_chunk::<NONCE>().ok_or(TransformError::TooShort)?;
        let aad = key.as_bytes();
        let value = self.with(|cipher| {
            let opened = cipher.decrypt(nonce, Payload { msg, aad });
            opened.ok_or(TransformError::Authentication)
        })?;
        Ok(Opened {
            value: value.into(),
            stale: false,
        })
    }

    fn seal(&self, value: &[u8], key: &str) -> Result<Vec<u8>, TransformError> {
        let mut nonce = [0; NONCE];
        random(&mut nonce)?;
        let (msg, aad) = (value, key.as_bytes());
        let sealed = self.with(|cipher| {
            let sealed = cipher.encrypt(&nonce, Payload { msg, aad });
            sealed.ok_or(TransformError::Failed("the value is too long for AES-GCM"))
        })?;
        Ok([&nonce[..], &sealed].concat())
    }
}
