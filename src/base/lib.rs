//! Component base: clock and randomness, the server's name, cooperative scheduling, metric series.

pub mod cooperative;
pub mod env;
pub mod identity;
pub mod metrics;
