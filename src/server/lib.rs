//! The generic API server: listener, filter chain, REST handlers, discovery, health.
//!
//! A request's way: [`keelson_net::listener`] → [`app`] (filters in their order) → the delegation chain of [`delegate`]
//! → [`rest`] → [`keelson_registry`] → the store.

// The filter chain is one future of many layers.
#![recursion_limit = "256"]

pub mod admission;
pub mod app;
pub mod audit;
mod compress;
mod debug;
pub mod delegate;
pub mod discovery;
mod document;
mod filters;
mod health;
pub mod lifecycle;
pub mod metrics;
pub mod negotiate;
pub mod openapi;
mod pretty;
pub mod request;
pub mod respond;
pub mod rest;
mod root;
mod seat;
pub mod server;
pub mod services;
pub mod settings;
pub mod state;
pub mod version;
mod zpages;
