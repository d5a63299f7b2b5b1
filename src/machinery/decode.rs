//! Results of decoding beside the object: errors, strict problems and the type that a document names.

use std::fmt;

use crate::field::text::quote;

/// What the error says.
pub(crate) const EXHAUSTED: &str = "the object takes too much memory: it has too many items";

/// Why a document could not be decoded. The texts are those a client of kube-apiserver sees.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON. `offset` counts bytes from 0 and points behind the offending one.
    #[error("{message}")]
    Syntax { message: String, offset: usize },
    /// A value that does not fit its field.
    #[error("{0}")]
    Value(String),
    /// Not YAML, or YAML that JSON can't express.
    #[error("{0}")]
    Yaml(String),
    /// Not protobuf, or not of this message.
    #[error("{0}")]
    Protobuf(String),
    /// More than the decoder's [`Budget`](crate::reflect::budget::Budget).
    #[error("{EXHAUSTED}")]
    TooLarge,
}

/// What a strict decoder objects to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StrictKind {
    UnknownField,
    DuplicateField,
}

/// A field that a lenient decoder passes over. Shows as `unknown field "spec.containers[0].foo"`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StrictProblem {
    pub kind: StrictKind,
    /// From the top, with dots and `[index]`.
    pub path: String,
}

impl fmt::Display for StrictProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            StrictKind::UnknownField => "unknown field ",
            StrictKind::DuplicateField => "duplicate field ",
        };
        f.write_str(kind)?;
        f.write_str(&quote(&self.path))
    }
}

/// `apiVersion` and `kind` of a document; empty where it names none.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TypeMeta {
    pub api_version: String,
    pub kind: String,
}
