//! The built programs, started as children and used by real clients: kubectl, the `kube` crate, signals.

#![cfg(test)]

mod audit;
mod authentication;
mod controllers;
mod definitions;
mod encryption;
mod equals;
mod everything;
mod isolation;
mod kube_rs;
mod kubectl;
mod lists;
mod migrate;
mod previous;
mod quotas;
mod shared;
mod startup;
mod stored;
mod support;
mod webhooks;
