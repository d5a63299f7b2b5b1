//! The generic API server: listener, filter chain, REST handlers, discovery, health.

pub mod discovery;
mod document;
pub mod listener;
pub mod openapi;
pub mod tls;
