//! `aescbc`: AES in CBC mode with PKCS #7 padding; the initialization vector goes first. Nothing binds a value to its
//! key or shows that it was changed: kept for data that was written so.

use aes::{Aes128, Aes192, Aes256};
use bytes::Bytes;
use cbc::cipher::block_padding::{NoPadding, Pkcs7};
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use cbc::{Decryptor, Encryptor};

use super::transformer::random;
use super::{Opened, Secret, TransformError, Transformer};

const BLOCK: usize = 16;

/// One key of 16, 24 or 32 bytes.
pub(super) struct AesCbc(pub Secret);

const KEY_LENGTH: TransformError = TransformError::Failed("a key of AES has 16, 24 or 32 bytes");

impl AesCbc {
    fn encrypt(&self, iv: &[u8], value: &[u8]) -> Result<Vec<u8>, TransformError> {
        fn with<C: KeyIvInit + BlockModeEncrypt>(key: &[u8], iv: &[u8], value: &[u8]) -> Option<Vec<u8>> {
            let cipher = C::new_from_slices(key, iv).ok()?;
            Some(cipher.encrypt_padded_vec::<Pkcs7>(value))
        }
        let key = self.0.bytes();
        match key.len() {
            16 => with::<Encryptor<Aes128>>(key, iv, value),
            24 => with::<Encryptor<Aes192>>(key, iv, value),
            32 => with::<Encryptor<Aes256>>(key, iv, value),
            _ => None,
        }
        .ok_or(KEY_LENGTH)
    }

    /// With its padding.
    fn decrypt(&self, iv: &[u8], blocks: &[u8]) -> Result<Vec<u8>, TransformError> {
        fn with<C: KeyIvInit + BlockModeDecrypt>(key: &[u8], iv: &[u8], blocks: &[u8]) -> Option<Vec<u8>> {
            let cipher = C::new_from_slices(key, iv).ok()?;
            cipher.decrypt_padded_vec::<NoPadding>(blocks).ok()
        }
        let key = self.0.bytes();
        match key.len() {
            16 => with::<Decryptor<Aes128>>(key, iv, blocks),
            24 => with::<Decryptor<Aes192>>(key, iv, blocks),
            32 => with::<Decryptor<Aes256>>(key, iv, blocks),
            _ => None,
        }
        .ok_or(KEY_LENGTH)
    }
}

impl Transformer for AesCbc {
    fn open(&self, stored: &Bytes, _key: &str) -> Result<Opened, TransformError> {
        let (iv, blocks) = stored.split_at_checked(BLOCK).ok_or(TransformError::TooShort)?;
        if blocks.len() % BLOCK != 0 {
            return Err(TransformError::NotBlocks);
        }
        let mut value = self.decrypt(iv, blocks)?;
        let padding = value.last().map_or(0, |last| usize::from(*last));
        if padding == 0 || padding > value.len() {
            return Err(TransformError::NotPadded);
        }
        let end = value.len() - padding;
        if value[end..].iter().any(|byte| usize::from(*byte) != padding) {
            return Err(TransformError::Padding);
        }
        value.truncate(end);
        Ok(Opened {
            value: value.into(),
            stale: false,
        })
    }

    fn seal(&self, value: &[u8], _key: &str) -> Result<Vec<u8>, TransformError> {
        let mut iv = [0; BLOCK];
        random(&mut iv)?;
        Ok([&iv[..], &self.encrypt(&iv, value)?].concat())
    }
}
