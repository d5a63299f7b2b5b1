//! The connection layer: from a TCP socket to a request of the actix-web application, and the answer back.
//!
//! One thread accepts and hands each connection to the worker with the fewest; each worker is one thread with its own
//! current-thread runtime, its own instance of the application, and hyper's HTTP/1.1 and HTTP/2. On TLS the protocol
//! is the one agreed by ALPN, on plain TCP HTTP/2 is known by its preface. [`bind`] takes the address, [`Bound::serve`]
//! starts answering, [`Shutdown`] ends it.
//!
//! The application learns about the transport from the request's extensions: [`Connection`] (peer, client
//! certificates), [`Upgrade`] (when the client asks to leave HTTP) and [`Shutdown`] (so that a watch can end).
//!
//! Invariants: a handler whose client went away is dropped; a panic costs one request, never a worker; every limit is
//! in [`Limits`]; an answer that is not read is given up ([`AnswerDeadline`]); a client that is answered before it has
//! sent its whole body can read the answer. What is absent: HTTP/3, trailers in answers, WebSocket framing (an upgrade
//! gives the raw bytes).

mod accept;
mod answer;
mod config;
mod connection;
mod conversation;
mod descriptors;
mod drive;
mod forward;
mod head_timed;
mod lingering;
mod paced;
mod prefixed;
mod request;
mod request_body;
mod response;
mod serve;
mod upgrade;
mod worker;

pub use crate::shutdown::{Phase, Shutdown};
pub use accept::{Bound, Serving, bind};
pub use answer::AnswerDeadline;
pub use config::{Bind, Goaway, Limits, ListenerConfig};
pub use connection::Connection;
pub use descriptors::raise_descriptor_limit;
pub use upgrade::{Upgrade, Upgraded};

/// Why a listener did not come up or ended badly.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// What was asked for.
        address: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A thread or its runtime could not be started.
    #[error("cannot start a worker of the listener: {0}")]
    Worker(#[from] std::io::Error),
    /// The application's service could not be made.
    #[error("cannot start the application: {0}")]
    Application(String),
}
