//! Encryption under a seed from a key management service: each value has its own AES-256-GCM key, derived from the seed
//! and 32 random bytes that go first (HKDF-SHA-256, expansion only). So a seed serves any number of values.

use bytes::Bytes;
use ring::hkdf::{HKDF_SHA256, Prk};

use super::aes_gcm::AesGcm;
use super::transformer::random;
use super::{Opened, Secret, TransformError, Transformer};

const INFO: usize = 32;
const KEY: usize = 32;

/// Length of a seed.
pub(super) const SEED: usize = 32;

pub(super) struct Seeded {
    seed: Prk,
}

impl Seeded {
    pub fn new(seed: &Secret) -> Seeded {
        Seeded {
            seed: Prk::new_less_safe(HKDF_SHA256, seed.bytes()),
        }
    }

    fn cipher(&self, info: &[u8; INFO]) -> Result<AesGcm, TransformError> {
        let mut key = vec![0; KEY];
        let info: [&[u8]; 1] = [info];
        let expanded = self.seed.expand(&info, HKDF_SHA256);
        let filled = expanded.and_then(|okm| okm.fill(&mut key));
        filled.map_err(|_| TransformError::Failed("deriving a key"))?;
        Ok(AesGcm(Secret::new(key)))
    }
}

impl Transformer for Seeded {
    fn open(&self, stored: &Bytes, key: &str) -> Result<Opened, TransformError> {
        let info = stored.first_chunk::<INFO>().ok_or(TransformError::TooShort)?;
        self.cipher(info)?.open(&stored.slice(INFO..), key)
    }

    fn seal(&self, value: &[u8], key: &str) -> Result<Vec<u8>, TransformError> {
        let mut info = [0; INFO];
        random(&mut info)?;
        let sealed = self.cipher(&info)?.seal(value, key)?;
        Ok([&info[..], &sealed].concat())
    }
}
