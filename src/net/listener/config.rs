//! The configuration of a listener: addresses, certificates, workers, and every limit.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use keelson_machinery::env::Entropy;

use crate::tls::TlsState;

/// Where to listen.
#[derive(Debug)]
pub enum Bind {
    /// An address; port 0 lets the system choose.
    Address(SocketAddr),
    /// A socket bound already, by a supervisor or a test.
    Socket(TcpListener),
}

/// Everything a listener needs besides the application.
#[derive(Debug)]
pub struct ListenerConfig {
    /// Where to listen.
    pub bind: Bind,
    /// Certificates and TLS settings; `None` serves plain HTTP.
    pub tls: Option<Arc<TlsState>>,
    /// Worker threads, at least one. [`ListenerConfig::new`] sets one per core.
    pub workers: usize,
    /// Bounds on what one client and all clients together may use.
    pub limits: Limits,
    /// Sends some HTTP/2 clients away, so that they spread over the servers of a group (`--goaway-chance`).
    pub goaway: Option<Goaway>,
}

impl ListenerConfig {
    /// The defaults for one address: a worker per core, the limits of [`Limits::default`].
    pub fn new(address: SocketAddr, tls: Option<Arc<TlsState>>) -> Self {
        ListenerConfig {
            bind: Bind::Address(address),
            tls,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            limits: Limits::default(),
            goaway: None,
        }
    }
}

/// Bounds on connections and requests. Those with a counterpart in kube-apiserver have its value.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Open connections of all workers, upgraded ones too. At the limit, new ones wait in the kernel's backlog.
    pub max_connections: usize,
    /// Accepted connections that wait for one worker; at the limit, accepting waits.
    pub max_queued_connections: usize,
    /// Bytes of a request's head: request line and headers. Beyond: 431.
    pub max_header_bytes: usize,
    /// Number of headers of an HTTP/1.1 request. Beyond: 431.
    pub max_headers: usize,
    /// Streams a client may have open on one HTTP/2 connection (`--http2-max-streams-per-connection`).
    pub http2_max_streams: u32,
    /// Streams that a client opened and reset before they were looked at; beyond, the connection is closed
    /// (the "rapid reset" flood). Continuation frames are bounded by `max_header_bytes`.
    pub http2_max_pending_resets: usize,
    /// Streams this side had to reset because of the client's errors; beyond, the connection is closed.
    pub http2_max_error_resets: usize,
    /// Bytes of one HTTP/2 stream's request body that may be under way unread.
    pub http2_stream_window: u32,
    /// The same for all streams of a connection.
    pub http2_connection_window: u32,
    /// Bytes of one HTTP/2 stream's answer kept for a slow reader.
    pub http2_max_send_buffer: usize,
    /// How long a TLS handshake may take, and then the first request's head to arrive.
    pub handshake_timeout: Duration,
    /// How long the head of an HTTP/1.1 request may take from its first byte to its last.
    pub head_timeout: Duration,
    /// How long a connection may stay without a request under way.
    pub idle_timeout: Duration,
    /// How long an answer that is not made while it is sent may take to be read
    /// ([`AnswerDeadline`](super::AnswerDeadline) is for the others).
    pub answer_timeout: Duration,
    /// Every so often an HTTP/2 client is pinged; `None`: never.
    pub http2_ping_interval: Option<Duration>,
    /// How long it has to answer.
    pub http2_ping_timeout: Duration,
    /// Idle time after which the kernel probes a TCP connection.
    pub tcp_keepalive: Duration,
    /// After [`Shutdown::begin`], how long requests may go on before their connections are closed.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_connections: 65_536,
            max_queued_connections: 256,
            max_header_bytes: 1 << 20,
            max_headers: 1_000,
            http2_max_streams: 100,
            http2_max_pending_resets: 100,
            http2_max_error_resets: 1_024,
            http2_stream_window: 256 << 10,
            http2_connection_window: 1 << 20,
            http2_max_send_buffer: 400 << 10,
            handshake_timeout: Duration::from_secs(32),
            head_timeout: Duration::from_secs(32),
            idle_timeout: Duration::from_secs(90),
            answer_timeout: Duration::from_secs(60),
            http2_ping_interval: Some(Duration::from_secs(30)),
            http2_ping_timeout: Duration::from_secs(15),
            tcp_keepalive: Duration::from_secs(180),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// With which probability an answer on HTTP/2 is followed by GOAWAY. Requests under way end normally.
#[derive(Clone)]
pub struct Goaway {
    /// From 0 (never) to 1 (each answer).
    pub chance: f64,
    /// Where chance comes from.
    pub entropy: Arc<dyn Entropy>,
}

impl Goaway {
    /// Whether this answer is one of those.
    pub(super) fn decide(&self) -> bool {
        let mut bytes = [0; 4];
        self.entropy.fill(&mut bytes);
        f64::from(u32::from_le_bytes(bytes)) < self.chance * (f64::from(u32::MAX) + 1.0)
    }
}

impl std::fmt::Debug for Goaway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Goaway")
            .field("chance", &self.chance)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Constant(u8);

    impl Entropy for Constant {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    #[test]
    fn chance_zero_never_and_chance_one_always() {
        for (chance, drawn, expected) in [
            (0.0, 0, false),
            (1.0, 255, true),
            (0.5, 0x7f, true),
            (0.5, 0x80, false),
            (0.02, 0, true),
        ] {
            let goaway = Goaway {
                chance,
                entropy: Arc::new(Constant(drawn)),
            };
            assert_eq!(goaway.decide(), expected, "{chance} {drawn}");
        }
    }
}
