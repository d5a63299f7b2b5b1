//! Where events go. Between the requests and each sink is a bounded queue; what is behind it, a slow disk say, holds up
//! no worker thread, only the requests that have to wait for their own events.

mod log;
mod queue;
mod rotation;
mod throttle;
mod webhook;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use keelson_machinery::env::Clock;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{mpsc, oneshot};

pub use log::{Format, LogSettings};
pub use queue::Batching;
pub use rotation::Rotation;
pub use webhook::WebhookSettings;

use super::event::Event;
use queue::{Entry, Message};

/// Events in the queue of a sink that requests wait for. Who finds it full waits for room.
const BLOCKING_QUEUE: usize = 1024;
/// Bytes of events in the queue of a sink that requests don't wait for; above it events are dropped.
const MAX_QUEUED_BYTES: usize = 256 << 20;

/// Whether requests wait until their events are out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They don't: events are collected and sent together. Events that the queue has no room for are lost.
    Batch,
    /// The answer waits.
    Blocking,
    /// And the request is refused if the event of its beginning is lost.
    BlockingStrict,
}

impl Mode {
    pub const ALL: [Mode; 3] = [Mode::Batch, Mode::Blocking, Mode::BlockingStrict];

    /// As flags name it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Batch => "batch",
            Mode::Blocking => "blocking",
            Mode::BlockingStrict => "blocking-strict",
        }
    }
}

/// What becomes of large events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Bytes; the objects of a larger event are left out, and if it is too large even so, it is lost.
    pub max_event: usize,
}

/// Whether a request has to wait for this event, if the sink is one that requests wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The answer may not go out before.
    Always,
    /// Only a strict sink has to know. What is sent later comes out later, so the answer's own event waits for this one.
    IfStrict,
}

/// A sink and its queue.
pub struct Sink {
    plugin: &'static str,
    mode: Mode,
    format: Format,
    truncation: Option<Truncation>,
    queue: mpsc::Sender<Message>,
    /// Bytes in the queue.
    queued: Arc<AtomicUsize>,
    /// Events lost.
    errors: Counter,
}

impl Sink {
    pub(super) const LOG: &'static str = "log";
    pub(super) const WEBHOOK: &'static str = "webhook";

    /// A file, or standard output, with a thread of its own.
    pub(super) fn log(settings: LogSettings, clock: Arc<dyn Clock>, errors: Counter) -> io::Result<Sink> {
        let (mut sink, receiver) = Sink::queued(Sink::LOG, settings.mode, &settings.batching, errors.clone());
        (sink.format, sink.truncation) = (settings.format, settings.truncation);
        log::start(settings, clock, receiver, errors)?;
        Ok(sink)
    }

    /// Another server, called from a thread of its own.
    pub(super) fn webhook(settings: WebhookSettings, errors: Counter) -> io::Result<Sink> {
        let (mut sink, receiver) = Sink::queued(Sink::WEBHOOK, settings.mode, &settings.batching, errors.clone());
        sink.truncation = settings.truncation;
        webhook::start(settings, receiver, errors)?;
        Ok(sink)
    }

    fn queued(
        plugin: &'static str,
        mode: Mode,
        batching: &Batching,
        errors: Counter,
    ) -> (Sink, mpsc::Receiver<Message>) {
        let (queue, receiver) = mpsc::channel(capacity(mode, batching));
        let sink = Sink {
            plugin,
            mode,
            format: Format::Json,
            truncation: None,
            queue,
            queued: Arc::default(),
            errors,
        };
        (sink, receiver)
    }

    pub(super) fn plugin(&self) -> &'static str {
        self.plugin
    }

    /// The text of an event; `None`: it is too large.
    pub(super) fn encode(&self, event: &Event<'_>) -> Option<Bytes> {
        if self.format == Format::Legacy {
            return Some(event.line().into());
        }
        let whole = event.json(true);
        let Some(Truncation { max_event }) = self.truncation.filter(|t| whole.len() > t.max_event) else {
            return Some(whole.into());
        };
        let cut = event.json(false);
        (cut.len() <= max_event).then(|| cut.into())
    }

    /// An event is lost. The answer is that of [`Sink::send`].
    pub(super) fn lost(&self) -> bool {
        self.errors.inc();
        self.mode != Mode::BlockingStrict
    }

    /// Hands over an event. False: it is lost, and this sink is strict.
    pub(super) async fn send(&self, text: Bytes, wait: Wait) -> bool {
        let waits = match self.mode {
            Mode::Batch => {
                self.send_now(text);
                return true;
            }
            Mode::Blocking => wait == Wait::Always,
            Mode::BlockingStrict => true,
        };
        let (done, written) = match waits {
            true => oneshot::channel(),
            false => {
                let entry = self.entry(text, None);
                return self.queue.send(Message::Event(entry)).await.is_ok() || self.lost();
            }
        };
        let entry = self.entry(text, Some(done));
        if self.queue.send(Message::Event(entry)).await.is_err() {
            return self.lost();
        }
        // Whoever writes counts what it loses.
        written.await.unwrap_or(false) || self.mode != Mode::BlockingStrict
    }

    /// Hands over an event without waiting for anything.
    pub(super) fn send_now(&self, text: Bytes) {
        let full = self.queued.load(Ordering::Relaxed).saturating_add(text.len()) > MAX_QUEUED_BYTES;
        if full && self.mode == Mode::Batch {
            self.errors.inc();
            return;
        }
        match self.queue.try_send(Message::Event(self.entry(text, None))) {
            Ok(()) => {}
            // There are at most as many such tasks as requests under way.
            Err(mpsc::error::TrySendError::Full(message)) if self.mode != Mode::Batch => {
                let (queue, errors) = (self.queue.clone(), self.errors.clone());
                let sending = async move {
                    if queue.send(message).await.is_err() {
                        errors.inc();
                    }
                };
                match tokio::runtime::Handle::try_current() {
                    Ok(runtime) => drop(runtime.spawn(sending)),
                    Err(_) => drop(self.errors.inc()),
                }
            }
            Err(_) => drop(self.errors.inc()),
        }
    }

    fn entry(&self, text: Bytes, done: Option<oneshot::Sender<bool>>) -> Entry {
        Entry::new(text, done, Arc::clone(&self.queued))
    }

    /// Returns when everything that was handed over is out or lost.
    pub(super) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.queue.send(Message::Flush(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }
}

fn capacity(mode: Mode, batching: &Batching) -> usize {
    match mode {
        Mode::Batch => batching.buffer.clamp(1, MAX_QUEUE),
        _ => BLOCKING_QUEUE,
    }
}

/// The most events that any queue may be made for.
const MAX_QUEUE: usize = 1 << 24;
