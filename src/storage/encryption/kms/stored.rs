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

/// As Go's library says it.
const NO_MESSAGE: &str = "proto:\u{a0}cannot parse invalid wire-format data";

pub(super) fn decode(stored: &Bytes) -> Result<EncryptedObject, String> {
    let object = EncryptedObject::decode(stored.clone()).map_err(|_| NO_MESSAGE.to_owned())?;
    check(&object)?;
    Ok(object)
}

fn check(object: &EncryptedObject) -> Result<(), String> {
    if object.data.is_empty() {
        return Err("encrypted data is empty".to_owned());
    }
    if ![SOURCE_KEY, SOURCE_SEED].contains(&object.source_type) {
        return Err(format!("unknown encryptedDEKSourceType {}", object.source_type));
    }
    check_source(&object.source)?;
    check_key_id(&object.key_id)?;
    check_annotations(&object.annotations)
}

/// Whether an answer of a service can be stored.
pub(super) fn check_answer(answer: &EncryptResponse) -> Result<(), String> {
    check_source(&answer.ciphertext)?;
    check_key_id(&answer.key_id)?;
    check_annotations(&answer.annotations)
}

fn check_source(source: &[u8]) -> Result<(), String> {
    match source.len() {
        0 => Err("encrypted DEK source is empty".to_owned()),
        1..=SOURCE => Ok(()),
        n => Err(format!(
            "encrypted DEK source is {n} bytes, must not be longer than {SOURCE}"
        )),
    }
}

pub(super) fn check_key_id(key_id: &str) -> Result<(), String> {
    match key_id.len() {
        0 => Err("keyID is empty".to_owned()),
        1..=KEY_ID => Ok(()),
        n => Err(format!("keyID is {n} bytes, must not be longer than {KEY_ID}")),
    }
}

fn check_annotations(annotations: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
    let size: usize = annotations.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > ANNOTATIONS {
        return Err(format!(
            "annotations are {size} bytes, must not be longer than {ANNOTATIONS}"
        ));
    }
    match annotations.keys().find(|name| !is_domain_name(name)) {
        None => Ok(()),
        Some(name) => Err(format!(
            "annotation {name:?}: should be a domain with at least two segments separated by dots"
        )),
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
