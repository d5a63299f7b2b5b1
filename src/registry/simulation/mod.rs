//! The registry in simulation under one seed: derived state ([`derived`]) and the verb layer ([`verbs`]).

mod derived;
mod slow;
mod verbs;
