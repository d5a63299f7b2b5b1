//! Expressions: what CEL sees of a request, and the conditions under which a configuration means it.

mod access;
mod conditions;
mod environment;
mod evaluation;
mod request;

pub(crate) use conditions::{Conditions, Matched};
pub(crate) use environment::{authorizing, base, checking, compile, compile_any};
pub use evaluation::Mistake;
pub(crate) use evaluation::{Bindings, Compiled, Evaluated, Inputs, OUT_OF_BUDGET, OutOfBudget, Owned, Scope};
