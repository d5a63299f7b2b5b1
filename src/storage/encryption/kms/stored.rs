//! The stored form of KMS-encrypted values, and what a service may put into it.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;

use super::message::{EncryptResponse, EncryptedObject, SOURCE_KEY, SOURCE_SEED};

/// The most bytes of a key's name.
const KEY_ID: usize = 1024;
/// The most bytes of an encrypted seed.
const SOURCE: usize = 1024;
/// The most bytes of all annotations.
const ANNOTATIONS: usize = 32 * 1024;

/// What can't be stored, or not be read, in Go's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum StoredError {
    #[error("proto:\u{a0}cannot parse invalid wire-format data")]
    NoMessage,
    #[error("encrypted data is empty")]
    NoData,
    #[error("unknown encryptedDEKSourceType {0}")]
    SourceType(i32),
    #[error("encrypted DEK source is empty")]
    NoSource,
    /// Bytes of it.
    #[error("encrypted DEK source is {0} bytes, must not be longer than {SOURCE}")]
    Source(usize),
    #[error("keyID is empty")]
    NoKeyId,
    /// Bytes of it.
    #[error("keyID is {0} bytes, must not be longer than {KEY_ID}")]
    KeyId(usize),
    /// Bytes of all together.
    #[error("annotations are {0} bytes, must not be longer than {ANNOTATIONS}")]
    Annotations(usize),
    /// The name of one.
    #[error("annotation {0:?}: should be a domain with at least two segments separated by dots")]
    Annotation(String),
}

pub(super) fn decode(stored: &Bytes) -> Result<EncryptedObject, StoredError> {
    let object = EncryptedObject::decode(stored.clone()).map_err(|_| StoredError::NoMessage)?;
    check(&object)?;
    Ok(object)
}

fn check(object: &EncryptedObject) -> Result<(), StoredError> {
    if object.data.is_empty() {
        return Err(StoredError::NoData);
    }
    if ![SOURCE_KEY, SOURCE_SEED].contains(&object.source_type) {
        return Err(StoredError::SourceType(object.source_type));
    }
    check_source(&object.source)?;
    check_key_id(&object.key_id)?;
    check_annotations(&object.annotations)
}

/// Whether an answer of a service can be stored.
pub(super) fn check_answer(answer: &EncryptResponse) -> Result<(), StoredError> {
    check_source(&answer.ciphertext)?;
    check_key_id(&answer.key_id)?;
    check_annotations(&answer.annotations)
}

fn check_source(source: &[u8]) -> Result<(), StoredError> {
    match source.len() {
        0 => Err(StoredError::NoSource),
        1..=SOURCE => Ok(()),
        n => Err(StoredError::Source(n)),
    }
}

pub(super) fn check_key_id(key_id: &str) -> Result<(), StoredError> {
    match key_id.len() {
        0 => Err(StoredError::NoKeyId),
        1..=KEY_ID => Ok(()),
        n => Err(StoredError::KeyId(n)),
    }
}

fn check_annotations(annotations: &BTreeMap<String, Vec<u8>>) -> Result<(), StoredError> {
    let size: usize = annotations.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > ANNOTATIONS {
        return Err(StoredError::Annotations(size));
    }
    match annotations.keys().find(|name| !is_domain_name(name)) {
        None => Ok(()),
        Some(name) => Err(StoredError::Annotation(name.clone())),
    }
}

/// Lower case letters, digits and dashes between dots, of which there is one at least.
fn is_domain_name(name: &str) -> bool {
    let label = |label: &str| {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty() && label.chars().all(fits) && !label.starts_with('-') && !label.ends_with('-')
    };
    name.len() <= 253 && name.contains('.') && name.split('.').all(label)
}
