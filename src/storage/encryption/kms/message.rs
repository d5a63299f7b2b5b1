//! Messages of the protocol `v2.KeyManagementService`, and what is stored. Those with secrets don't print.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StatusRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StatusResponse {
    #[prost(string, tag = "1")]
    pub version: String,
    /// "ok", or what is wrong.
    #[prost(string, tag = "2")]
    pub healthz: String,
    /// The key with which the service encrypts now.
    #[prost(string, tag = "3")]
    pub key_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DecryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    pub uid: String,
    #[prost(string, tag = "3")]
    pub key_id: String,
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub annotations: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(super) struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub plaintext: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(super) struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub plaintext: Vec<u8>,
    #[prost(string, tag = "2")]
    pub uid: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    pub key_id: String,
    #[prost(btree_map = "string, bytes", tag = "3")]
    pub annotations: BTreeMap<String, Vec<u8>>,
}

/// What is stored behind the prefix.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EncryptedObject {
    #[prost(bytes = "bytes", tag = "1")]
    pub data: Bytes,
    #[prost(string, tag = "2")]
    pub key_id: String,
    /// The seed (or key), as the service has encrypted it.
    #[prost(bytes = "vec", tag = "3")]
    pub source: Vec<u8>,
    /// What the service wants to be given with it.
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub annotations: BTreeMap<String, Vec<u8>>,
    /// [`SOURCE_KEY`] or [`SOURCE_SEED`].
    #[prost(int32, tag = "5")]
    pub source_type: i32,
}

/// The source is the key of AES-GCM itself, as servers before v1.29 stored.
pub(super) const SOURCE_KEY: i32 = 0;
/// The source is a seed from which the key of each value is derived.
pub(super) const SOURCE_SEED: i32 = 1;

impl fmt::Debug for DecryptResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecryptResponse(***)")
    }
}

impl fmt::Debug for EncryptRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptRequest(***)")
    }
}
