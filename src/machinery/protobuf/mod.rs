//! Kubernetes protobuf to and from messages.

pub(crate) mod wire;
