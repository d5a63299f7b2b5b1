//! Component base: clock and randomness, cooperative scheduling, metric series, configuration files.

pub mod configuration;
pub mod cooperative;
pub mod env;
pub mod metrics;
