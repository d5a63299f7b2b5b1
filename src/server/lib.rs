//! The generic API server: listener, filter chain, REST handlers, discovery, health.

pub mod listener;
pub mod tls;
