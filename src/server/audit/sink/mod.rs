//! Audit backends. Between the requests and each sink is a bounded queue; what is behind it, a slow disk say, holds up
//! no worker thread, only the requests that have to wait for their own events.

mod log;
mod queue;
mod rotation;
mod throttle;
mod webhook;

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use keelson_machinery::env::Clock;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::oneshot;

pub use log::{Format, LogSettings};
pub use queue::Batching;
pub use rotation::Rotation;
pub use webhook::WebhookSettings;

use super::event::Event;
use queue::{Bell, Queue, Turned};

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
    /// Only a strict sink has to know. What is sent later comes out later, so the answer's own event waits for this
    /// one.
    IfStrict,
}

/// A sink and its queue.
pub struct Sink {
    plugin: &'static str,
    mode: Mode,
    format: Format,
    truncation: Option<Truncation>,
    /// Bytes that the place of an event has: the objects of a larger one are left out.
    room: usize,
    queue: Arc<Queue>,
    /// Events lost.
    errors: Counter,
}

/// An event that a sink was given.
pub(super) enum Handed<'a> {
    /// Nobody has to wait for it. False: it is lost, and the sink is strict.
    Done(bool),
    /// It is in the queue, and the request has to wait until it is out.
    Waits(Bell<'a>, oneshot::Receiver<bool>),
    /// The queue is full, and the event waits for room.
    NoRoom(Bytes),
}

impl Handed<'_> {
    /// Has the event delivered now.
    pub(super) fn ring(&mut self) {
        if let Handed::Waits(bell, _) = self {
            *bell = Bell::default();
        }
    }
}

impl Sink {
    pub(super) const LOG: &'static str = "log";
    pub(super) const WEBHOOK: &'static str = "webhook";

    /// A file, or standard output, with a thread of its own.
    pub(super) fn log(settings: LogSettings, clock: Arc<dyn Clock>, errors: Counter) -> io::Result<Sink> {
        let mut sink = Sink::queued(Sink::LOG, settings.mode, &settings.batching, errors);
        (sink.format, sink.truncation) = (settings.format, settings.truncation);
        sink.room = settings.room();
        log::start(settings, clock, sink.queue.clone())?;
        Ok(sink)
    }

    /// Another server, called from a thread of its own.
    pub(super) fn webhook(settings: WebhookSettings, errors: Counter) -> io::Result<Sink> {
        let mut sink = Sink::queued(Sink::WEBHOOK, settings.mode, &settings.batching, errors);
        sink.truncation = settings.truncation;
        webhook::start(settings, sink.queue.clone())?;
        Ok(sink)
    }

    fn queued(plugin: &'static str, mode: Mode, batching: &Batching, errors: Counter) -> Sink {
        Sink {
            plugin,
            mode,
            format: Format::Json,
            truncation: None,
            room: usize::MAX,
            queue: Arc::new(Queue::new(mode, batching, errors.clone())),
            errors,
        }
    }

    pub(super) fn plugin(&self) -> &'static str {
        self.plugin
    }

    /// Writes the text of an event in place of what is in `text`. False: the event is too large.
    pub(super) fn encode(&self, event: &Event<'_>, text: &mut Vec<u8>) -> bool {
        text.clear();
        if self.format == Format::Legacy {
            event.write_line(text);
            return true;
        }
        event.write_json(true, text);
        let limit = self.truncation.map_or(usize::MAX, |truncation| truncation.max_event);
        if text.len() > limit.min(self.room) {
            text.clear();
            event.write_json(false, text);
        }
        text.len() <= limit
    }

    /// An event is lost. The answer is that of [`Sink::send`].
    pub(super) fn lost(&self) -> bool {
        self.errors.inc();
        self.mode != Mode::BlockingStrict
    }

    fn waits(&self, wait: Wait) -> bool {
        match self.mode {
            Mode::Batch => false,
            Mode::Blocking => wait == Wait::Always,
            Mode::BlockingStrict => true,
        }
    }

    /// Puts an event into the queue if it has room.
    pub(super) fn hand(&self, text: &[u8], wait: Wait) -> Handed<'_> {
        let (done, written) = self.waits(wait).then(oneshot::channel).unzip();
        match (self.queue.offer(text, done), written) {
            (Ok(bell), Some(written)) => Handed::Waits(bell, written),
            (Ok(_), None) => Handed::Done(true),
            (Err(Turned::NoRoom), _) if self.mode != Mode::Batch => Handed::NoRoom(Bytes::copy_from_slice(text)),
            (Err(_), _) => Handed::Done(self.lost()),
        }
    }

    /// Waits as long as the request has to. False: the event is lost, and this sink is strict.
    pub(super) async fn settle(&self, handed: Handed<'_>, wait: Wait) -> bool {
        let written = match handed {
            Handed::Done(kept) => return kept,
            Handed::Waits(bell, written) => {
                drop(bell);
                Some(written)
            }
            Handed::NoRoom(text) => {
                let (done, written) = self.waits(wait).then(oneshot::channel).unzip();
                match self.queue.room().await.then(|| self.queue.put(&text, done)) {
                    Some(Ok(_)) => written,
                    _ => return self.lost(),
                }
            }
        };
        let Some(written) = written else { return true };
        // Whoever writes counts what it loses.
        written.await.unwrap_or(false) || self.mode != Mode::BlockingStrict
    }

    /// Hands over an event, and waits as long as the request has to. False: it is lost, and this sink is strict.
    #[cfg(test)]
    pub(super) async fn send(&self, text: &[u8], wait: Wait) -> bool {
        self.settle(self.hand(text, wait), wait).await
    }

    /// Hands over an event without waiting for anything.
    pub(super) fn send_now(&self, text: &[u8]) {
        let full = match self.queue.offer(text, None) {
            Ok(_) => return,
            Err(turned) => turned == Turned::NoRoom && self.mode != Mode::Batch,
        };
        let runtime = tokio::runtime::Handle::try_current().ok().filter(|_| full);
        let Some(runtime) = runtime else {
            self.errors.inc();
            return;
        };
        // There are at most as many such tasks as requests under way.
        let (queue, errors, text) = (self.queue.clone(), self.errors.clone(), Bytes::copy_from_slice(text));
        runtime.spawn(async move {
            let put = queue.room().await && queue.put(&text, None).is_ok();
            if !put {
                errors.inc();
            }
        });
    }

    /// Returns when everything that was handed over is out or lost.
    pub(super) async fn flush(&self) {
        self.queue.flush().await;
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.queue.close();
    }
}
