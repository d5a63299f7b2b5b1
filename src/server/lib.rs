//! The generic API server: listener, filter chain, REST handlers, discovery, health.
//!
//! A request's way: [`listener`] → [`app`] (filters in their order) → the delegation chain of [`delegate`] → [`rest`] →
//! [`registry`] → the store.

// The filter chain is one future of many layers.
#![recursion_limit = "256"]

pub mod admission;
pub mod app;
pub mod audit;
pub mod authn;
pub mod authz;
pub mod cache;
mod compress;
pub mod configuration;
#[deny(missing_docs)]
pub mod controller;
mod debug;
pub mod delegate;
pub mod discovery;
mod document;
pub mod env;
mod filters;
pub mod flowcontrol;
mod health;
mod impersonation;
pub mod lifecycle;
pub mod listener;
pub mod lister;
pub mod metrics;
pub mod negotiate;
pub mod openapi;
pub mod outgoing;
mod pretty;
#[deny(missing_docs)]
pub mod registry;
pub mod request;
pub mod request_info;
pub mod respond;
pub mod rest;
mod root;
pub mod series;
pub mod server;
pub mod settings;
#[cfg(test)]
mod simulation;
pub mod state;
pub mod tls;
mod turn;
pub mod user;
pub mod version;
