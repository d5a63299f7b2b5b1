//! The watch cache beside the store's entries: renditions, selectable metadata, indexes.
//!
//! The store shares each version of an object with everyone who reads it, and each version carries what was derived
//! from it ([`derived`]). So an object is decoded and written as JSON or protobuf at most once per version, however
//! many gets, lists and watches show it, and a list is a concatenation. What is derived is bounded by a [`Budget`];
//! what had to go is made again when it is asked for.

mod budget;
mod derived;
mod gzip;
mod index;
mod items;
mod term;

pub use budget::Budget;
pub use derived::{Derived, KindKey, Made, Meta, Rendition, Shape};
pub use gzip::{Block, HEAD as GZIP_HEAD, Joined};
pub(crate) use index::{Found, Indexes, Objects, Source, Wanted};
pub use items::Items;
pub(crate) use term::Term;
