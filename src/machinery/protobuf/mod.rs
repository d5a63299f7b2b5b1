//! Kubernetes protobuf to and from messages.
//!
//! The rules are those of the published encodings: fields stand in ascending order of their numbers; plain scalars and
//! messages are written also when they are zero; what is absent and empty lists, maps and bytes are left out; the
//! entries of maps are sorted by key; numbers of lists are not packed. An object travels in an [envelope](Unknown).

mod envelope;
mod mask;
mod part;
mod read;
mod write;

pub use envelope::{
    Unknown, begin_envelope, decode_envelope, encode, encode_as, end_envelope, has_envelope, wrap, write_watch_frame,
};
pub use mask::{Mask, read_masked};
pub use part::{field, with_string};
pub use read::{read_message, read_message_within};
pub use write::{tagged_len, write_message, write_tag_bytes, write_tag_len};

#[cfg(test)]
mod tests;
