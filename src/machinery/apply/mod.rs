//! Server-side apply: several writers share an object, each owning the fields that it says something about.
//!
//! Everything here works on messages through their field tables; what a writer owns is a [`FieldSet`].

mod compare;
mod set;
mod view;

pub use compare::{Comparison, compare};
pub use set::fields_of;
