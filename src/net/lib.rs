//! Connections: the listener with HTTP/1.1, HTTP/2 and TLS, and the client for webhooks and other servers.
//!
//! Nothing here knows kinds or users.

pub mod client;
pub mod listener;
pub mod shutdown;
pub mod tls;
