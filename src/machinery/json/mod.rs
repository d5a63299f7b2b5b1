//! JSON to and from messages, as kube-apiserver reads and writes it.

pub(crate) mod text;
