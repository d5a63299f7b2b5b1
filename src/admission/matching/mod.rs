//! Matching: which requests a configuration means.
//!
//! Rules look at nothing but the kind of a request, so what they say is kept for each kind ([`Index`]). Selectors
//! look at its object and at its namespace.

mod index;
mod rules;
mod selectors;

pub(crate) use index::{Candidate, Candidates, Index, Ruled};
pub(crate) use rules::{Asked, Outcome, Rule, Rules};
pub(crate) use selectors::{ObjectLabels, Selectors};
