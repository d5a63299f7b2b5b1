//! `secretbox`: XSalsa20 and Poly1305 as NaCl joins them. A random nonce goes first, then the mark, then the value.
//! Nothing binds a value to its key in the store.

use bytes::Bytes;
use poly1305::Poly1305;
use poly1305::universal_hash::KeyInit;
use salsa20::XSalsa20;
use salsa20::cipher::{KeyIvInit, StreamCipher};
use subtle::ConstantTimeEq;

use super::transformer::random;
use super::{Opened, Secret, TransformError, Transformer};

const KEY: usize = 32;
const NONCE: usize = 24;
const MARK: usize = 16;

/// One key of 32 bytes.
pub(super) struct Secretbox(pub Secret);

impl Secretbox {
    /// The stream that hides the value, after its first 32 bytes, which are the key of the mark.
    fn stream(&self, nonce: &[u8; NONCE]) -> Result<(XSalsa20, Poly1305), TransformError> {
        let mut stream = XSalsa20::new_from_slices(self.0.bytes(), nonce)
            .map_err(|_| TransformError::Failed("a key of secretbox has 32 bytes"))?;
        let mut key = [0; KEY];
        stream.apply_keystream(&mut key);
        Ok((stream, Poly1305::new(&key.into())))
    }
}

impl Transformer for Secretbox {
    fn open(&self, stored: &Bytes, _key: &str) -> Result<Opened, TransformError> {
        let (nonce, boxed) = stored.split_first_chunk::<NONCE>().ok_or(TransformError::TooShort)?;
        let (mark, hidden) = boxed.split_first_chunk::<MARK>().ok_or(TransformError::Box)?;
        let (mut stream, poly) = self.stream(nonce)?;
        if !bool::from(poly.compute_unpadded(hidden).as_slice().ct_eq(mark)) {
            return Err(TransformError::Box);
        }
        let mut value = hidden.to_vec();
        stream.apply_keystream(&mut value);
        Ok(Opened {
            value: value.into(),
            stale: false,
        })
    }

    fn seal(&self, value: &[u8], _key: &str) -> Result<Vec<u8>, TransformError> {
        let mut nonce = [0; NONCE];
        random(&mut nonce)?;
        let (mut stream, poly) = self.stream(&nonce)?;
        let mut hidden = value.to_vec();
        stream.apply_keystream(&mut hidden);
        let mark = poly.compute_unpadded(&hidden);
        Ok([&nonce[..], mark.as_slice(), &hidden].concat())
    }
}
