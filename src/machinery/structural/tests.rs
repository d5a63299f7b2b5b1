//! Schemas as data and as tables.

mod pruning;
mod recorded;
