//! Clients of the simulated servers, and what goes wrong around them.

pub mod fault_schedule;
pub mod readers;
pub mod watchers;
pub mod writers;
