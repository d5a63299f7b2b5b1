//! What is known about the connection a request came on.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use actix_web::HttpMessage;
use actix_web::dev::Extensions;
use rustls::pki_types::CertificateDer;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The connection a request came on; the same for all its requests.
#[derive(Debug)]
pub struct Connection {
    /// The client's address, as the socket says.
    pub peer: SocketAddr,
    /// The address the client reached.
    pub local: SocketAddr,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// HTTP/2 (else HTTP/1.x).
    pub http2: bool,
    /// The name the client asked for in its TLS greeting (SNI).
    pub server_name: Option<String>,
    /// The chain the client showed, its own certificate first. The handshake proved that the client holds its key
    /// and nothing else: whether the chain leads to a known authority, is in its time and fit for clients is for the
    /// authenticator to judge. Empty without TLS or when none was shown.
    pub certificates: Vec<CertificateDer<'static>>,
    /// What filters remember for the life of the connection, by type: the identity a certificate proved, for example.
    pub memory: RefCell<Extensions>,
}

impl Connection {
    /// A connection of nobody.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Connection {
            peer: nowhere,
            local: nowhere,
            tls: true,
            http2: true,
            server_name: None,
            certificates: Vec::new(),
            memory: RefCell::default(),
        }
    }

    /// The connection of this request; `None` only for requests no listener made.
    pub fn of(request: &impl HttpMessage) -> Option<Rc<Self>> {
        request.extensions().get::<Rc<Self>>().cloned()
    }
}

/// What the requests of one connection and the task that drives it tell each other.
pub(super) struct Activity {
    /// Requests whose answers are not out yet.
    under_way: Cell<usize>,
    /// Requests begun in the connection's life.
    begun: Cell<u64>,
    /// When the last answer was out.
    last_end: Cell<Instant>,
    /// An answer asked for the connection's end.
    closing: Cell<bool>,
    close: Notify,
    /// Counts the times that requests came to be under way and that they ended: even while none is.
    turns: Arc<AtomicU64>,
}

impl Activity {
    pub(super) fn new() -> Self {
        Activity {
            under_way: Cell::new(0),
            begun: Cell::new(0),
            last_end: Cell::new(Instant::now()),
            closing: Cell::new(false),
            close: Notify::new(),
            turns: Arc::default(),
        }
    }

    /// Counts a request until the returned guard is dropped with the last of its answer.
    pub(super) fn begin(self: &Rc<Self>) -> UnderWay {
        if self.under_way.replace(self.under_way.get() + 1) == 0 {
            self.turns.fetch_add(1, Ordering::Relaxed);
        }
        self.begun.set(self.begun.get() + 1);
        UnderWay(Rc::clone(self))
    }

    /// For the reader of HTTP/1.1, which thereby knows the bytes of heads: an even number while no request is under way,
    /// and another one for each time.
    pub(super) fn turns(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.turns)
    }

    /// Requests begun so far.
    pub(super) fn begun(&self) -> u64 {
        self.begun.get()
    }

    /// Since when no request is under way; `None` while one is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (self.under_way.get() == 0).then(|| self.last_end.get())
    }

    /// Asks for an orderly end after the requests under way.
    pub(super) fn close(&self) {
        if !self.closing.replace(true) {
            self.close.notify_one();
        }
    }

    /// Returns when [`close`](Self::close) was called; afterwards never again.
    pub(super) async fn closed(&self) {
        self.close.notified().await;
    }
}

/// A request under way.
pub(super) struct UnderWay(Rc<Activity>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let left = self.0.under_way.get() - 1;
        self.0.under_way.set(left);
        if left == 0 {
            self.0.last_end.set(Instant::now());
            self.0.turns.fetch_add(1, Ordering::Relaxed);
        }
    }
}
