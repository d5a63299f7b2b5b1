//! Clients of the simulated servers, and what goes wrong around them.

pub mod readers;
pub mod watchers;
pub mod weather;
pub mod writers;
