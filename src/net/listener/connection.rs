//! Connection data that requests see.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use actix_web::HttpMessage;
use actix_web::dev::Extensions;
use rustls::pki_types::CertificateDer;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::answer::Answer;

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
    #[cfg(any(test, feature = "testing"))]
    pub fn for_tests() -> Self {
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
    under_way: RefCell<Vec<Weak<Answer>>>,
    /// When to look at them, because of a deadline.
    look_at: Cell<Option<Instant>>,
    /// On HTTP/2, the request that was begun last, for the task that will answer it.
    begun_last: Cell<Option<Rc<Answer>>>,
    /// Requests begun in the connection's life.
    begun: Cell<u64>,
    /// When the last answer was out.
    last_end: Cell<Instant>,
    /// An answer asked for the connection's end.
    closing: Cell<bool>,
    close: Notify,
    /// Counts the times that requests came to be under way and that they ended: even while none is.
    turns: Arc<AtomicU64>,
    /// The rest of a body on HTTP/1.1 is not read.
    unread: Arc<AtomicBool>,
}

impl Activity {
    pub(super) fn new() -> Self {
        Activity {
            under_way: RefCell::default(),
            look_at: Cell::default(),
            begun_last: Cell::default(),
            begun: Cell::new(0),
            last_end: Cell::new(Instant::now()),
            closing: Cell::new(false),
            close: Notify::new(),
            turns: Arc::default(),
            unread: Arc::default(),
        }
    }

    /// A request has come; it is under way until the last owner of the answer lets it go.
    pub(super) fn begin(self: &Rc<Self>) -> Rc<Answer> {
        let answer = Rc::new(Answer::new(Rc::clone(self)));
        let mut under_way = self.under_way.borrow_mut();
        if under_way.is_empty() {
            self.turns.fetch_add(1, Ordering::Relaxed);
        }
        under_way.push(Rc::downgrade(&answer));
        self.begun.set(self.begun.get() + 1);
        answer
    }

    /// For the task that will answer this request.
    pub(super) fn leave_for_its_task(&self, answer: &Rc<Answer>) {
        self.begun_last.set(Some(Rc::clone(answer)));
    }

    /// What was left.
    pub(super) fn take_for_its_task(&self) -> Option<Rc<Answer>> {
        self.begun_last.take()
    }

    /// An answer is out.
    pub(super) fn ended(&self, answer: &Answer) {
        let mut under_way = self.under_way.borrow_mut();
        if let Some(place) = under_way.iter().position(|one| std::ptr::eq(one.as_ptr(), answer)) {
            under_way.swap_remove(place);
        }
        if under_way.is_empty() {
            self.last_end.set(Instant::now());
            self.turns.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The answers are to be looked at by then.
    pub(super) fn look_at(&self, moment: Instant) {
        let earliest = self.look_at.get().map_or(moment, |at| at.min(moment));
        self.look_at.set(Some(earliest));
    }

    /// When to look at the answers.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.look_at.get()
    }

    /// Gives up the answers whose time is over, and with `stalled` those of which nothing was read since the last look.
    /// Says whether there was any.
    pub(super) fn give_up(&self, now: Instant, stalled: bool) -> bool {
        let under_way: Vec<Rc<Answer>> = self.under_way.borrow().iter().filter_map(Weak::upgrade).collect();
        self.look_at.set(None);
        let mut any = false;
        for answer in under_way {
            let deadline = answer.deadline();
            if deadline.is_some_and(|at| at <= now) || (stalled && answer.has_stalled()) {
                answer.give_up();
                any = true;
            } else if let Some(at) = deadline {
                self.look_at(at);
            }
        }
        any
    }

    /// For the reader of HTTP/1.1, which thereby knows the bytes of heads: an even number while no request is under
    /// way, and another one for each time.
    pub(super) fn turns(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.turns)
    }

    /// The client has more to send of a body than will be read.
    pub(super) fn leave_unread(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    /// For the one that ends the connection: whether a body was left unread.
    pub(super) fn unread(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.unread)
    }

    /// Requests begun so far.
    pub(super) fn begun(&self) -> u64 {
        self.begun.get()
    }

    /// Since when no request is under way; `None` while one is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.under_way.borrow().is_empty().then(|| self.last_end.get())
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
