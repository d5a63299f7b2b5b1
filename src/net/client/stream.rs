//! Connections of all kinds as one.

use tokio::io::{AsyncRead, AsyncWrite};

/// A way to and from another server.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}
