//! An open watch: a collection's events as the body of an answer.
//!
//! An idle watch is one small allocation with one timer: there may be very many. A client that does not read the
//! present objects in the time of a request loses its watch, which has a seat and a snapshot as long as it shows them.
//! One that does not read what follows costs nobody else: its body is not asked for more, the store then takes its
//! watch off the list of those it feeds, and when the client reads again the watch goes on from history, or ends with a
//! 410 where history does not reach back so far.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::body::{BodySize, MessageBody};
use bytes::Bytes;
use futures_util::future::{BoxFuture, LocalBoxFuture};
use futures_util::{FutureExt, StreamExt};
use keelson_base::cooperative::Slices;
use keelson_machinery::selector::{FieldSelector, LabelSelector};
use keelson_machinery::status::StatusError;
use keelson_net::listener::{AnswerDeadline, Shutdown};
use keelson_registry::cache::Items;
use keelson_registry::{Endpoint, Resource};
use keelson_storage::{Entry, Event, Revision, StoreError, WatchItem, WatchStream};
use tokio::time::{Instant, Sleep, sleep_until};

use super::events::{self, Encoder};
use super::options::ListOptions;
use crate::seat::WatchSeat;

/// Bytes of present objects in a chunk, about.
const CHUNK: usize = 64 * 1024;
/// How often a watch that asked for them gets a bookmark.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);

/// When a watch ends though its client would go on.
pub(super) struct Ends {
    pub at: Instant,
    pub shutdown: Shutdown,
    /// How long after the server began to end.
    pub grace: Duration,
}

impl Ends {
    /// Says why a watch of a resource ends.
    fn why(self, resource: &Arc<Resource>) -> LocalBoxFuture<'static, End> {
        let Ends { shutdown, grace, .. } = self;
        let retired = resource.retired();
        Box::pin(async move {
            tokio::select! {
                biased;
                () = shutdown.refusing() => {
                    if !grace.is_zero() {
                        tokio::time::sleep(grace).await;
                    }
                    End::Now
                }
                () = retired => End::Drained,
            }
        })
    }
}

/// How a watch ends that could go on.
enum End {
    Now,
    /// When it has shown what has come: the resource is not served any more.
    Drained,
}

/// One open watch.
pub(super) struct Watch {
    writer: Writer,
    /// `None`: nothing comes any more.
    events: Option<WatchStream>,
    /// What came and is not all written.
    came: Came,
    slices: Slices,
    /// Present objects that are still to be sent, before any event.
    initial: Option<Initial>,
    /// The mark of the initial objects' end is wanted.
    mark: bool,
    ends_at: Instant,
    /// When the next bookmark is due; `None`: none is wanted.
    bookmark_at: Option<Instant>,
    /// Runs until the earlier of the two.
    timer: Pin<Box<Sleep>>,
    /// `None`: it ends when nothing more has come.
    end: Option<LocalBoxFuture<'static, End>>,
    /// It has begun when the present objects are sent: then it gives back what only its beginning needs.
    seat: Option<WatchSeat>,
    /// By when the present objects have to be read.
    deadline: Option<AnswerDeadline>,
}

impl Watch {
    /// A watch of what `events` brings after revision `after`, behind the objects of `initial`.
    pub(super) fn new(
        endpoint: Arc<Endpoint>,
        options: &ListOptions,
        encoder: Encoder,
        initial: Option<Items>,
        after: Revision,
        events: Result<WatchStream, StoreError>,
        ends: Ends,
    ) -> Watch {
        let end = ends.at;
        let why = ends.why(&endpoint.resource);
        let mut writer = Writer {
            endpoint,
            selection: Selection::of(options),
            encoder,
            seen: after,
            chunk: Vec::new(),
            ended: false,
        };
        let events = match events {
            Ok(events) => Some(events),
            Err(error) => {
                writer.fail(error);
                None
            }
        };
        let bookmark_at = options.bookmarks.then(|| Instant::now() + BOOKMARK_PERIOD);
        Watch {
            writer,
            events,
            came: Came::default(),
            slices: Slices::begin(),
            initial: initial.map(|items| Initial {
                items,
                batch: VecDeque::new(),
            }),
            mark: options.send_initial_events == Some(true) && options.bookmarks,
            ends_at: end,
            bookmark_at,
            timer: Box::pin(sleep_until(bookmark_at.map_or(end, |at| at.min(end)))),
            end: Some(why),
            seat: None,
            deadline: None,
        }
    }

    /// Whether time is up, and whether a bookmark is due.
    fn look_at_the_clock(&mut self, cx: &mut Context<'_>) -> (bool, bool) {
        if self.timer.as_mut().poll(cx).is_pending() {
            return (false, false);
        }
        let now = Instant::now();
        if now >= self.ends_at {
            return (true, false);
        }
        let due = self.bookmark_at.is_some();
        self.bookmark_at = due.then(|| now + BOOKMARK_PERIOD);
        let next = self.bookmark_at.map_or(self.ends_at, |at| at.min(self.ends_at));
        self.timer.as_mut().reset(next);
        // Polled, so that it wakes this task.
        let _ = self.timer.as_mut().poll(cx);
        (false, due)
    }

    /// With what flow control gave it, and the time that its client has to read the present objects, if it shows them.
    pub(super) fn begun(mut self, seat: Option<WatchSeat>, by: Instant) -> (Watch, Option<AnswerDeadline>) {
        self.seat = seat;
        self.deadline = self.initial.is_some().then(|| AnswerDeadline::at(by));
        if let (Some(seat), Some(deadline)) = (&self.seat, &self.deadline) {
            seat.sends(deadline);
        }
        self.go_on_without_initial();
        let deadline = self.deadline.clone();
        (self, deadline)
    }

    fn go_on_without_initial(&mut self) {
        if self.initial.is_some() {
            return;
        }
        if let Some(seat) = &mut self.seat {
            seat.release();
        }
        if let Some(deadline) = self.deadline.take() {
            deadline.lift();
        }
    }

    /// Writes what came, as far as it can be read, until there is a chunk of it or a slice is over.
    fn poll_came(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(until) = &mut self.came.until {
            let prepared = ready!(until.poll_unpin(cx));
            self.came.until = None;
            self.writer.end_if(prepared);
        }
        ready!(self.slices.poll_between(cx));
        let end = self.slices.end_of_piece();
        while self.writer.chunk.len() < CHUNK && !self.writer.ended {
            let Some(event) = self.came.events.as_slice().first() else {
                break;
            };
            if let Some(until) = self.writer.unprepared(event) {
                self.came.until = Some(until);
                break;
            }
            self.writer.event(event);
            self.came.events.next();
            if std::time::Instant::now() >= end {
                break;
            }
        }
        Poll::Ready(())
    }

    /// What there is to send now; `None` at the end.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let (time_is_up, mut bookmark) = self.look_at_the_clock(cx);
        match self.end.as_mut().map(|end| end.as_mut().poll(cx)) {
            _ if time_is_up => return Poll::Ready(None),
            Some(Poll::Ready(End::Now)) => return Poll::Ready(None),
            Some(Poll::Ready(End::Drained)) => self.end = None,
            Some(Poll::Pending) | None => {}
        }
        loop {
            if self.initial.is_some() {
                ready!(self.slices.poll_between(cx));
                let end = self.slices.end_of_piece();
                let rest = self.initial.take();
                self.initial = rest.and_then(|rest| self.writer.state(rest, self.mark, end));
                self.go_on_without_initial();
            } else if !self.came.is_empty() && !self.writer.ended {
                ready!(self.poll_came(cx));
            } else if let Some(events) = self.events.as_mut().filter(|_| !self.writer.ended) {
                match events.poll_next_unpin(cx) {
                    Poll::Ready(Some(Ok(WatchItem::Events(events)))) => {
                        self.came.events = events.into_iter();
                        self.slices = Slices::begin();
                    }
                    Poll::Ready(item) => self.writer.item(item),
                    Poll::Pending if bookmark => {
                        bookmark = false;
                        self.writer.bookmark(false);
                    }
                    Poll::Pending if self.end.is_none() => return Poll::Ready(None),
                    Poll::Pending => return Poll::Pending,
                }
            } else if self.writer.chunk.is_empty() {
                return Poll::Ready(None);
            }
            if self.writer.encoder.gave_up() {
                return Poll::Ready(None);
            }
            if !self.writer.chunk.is_empty() {
                // Of the events of one revision all are sent before a bookmark says so.
                let complete = self.initial.is_none() && self.came.is_empty();
                if complete && !self.writer.ended && std::mem::take(&mut bookmark) {
                    self.writer.bookmark(false);
                }
                return Poll::Ready(Some(std::mem::take(&mut self.writer.chunk).into()));
            }
        }
    }
}

impl MessageBody for Watch {
    type Error = std::convert::Infallible;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let chunk = self.poll_chunk(cx);
        if let Some(seat) = &self.seat {
            seat.asked(chunk.is_ready());
        }
        chunk.map(|chunk| chunk.map(Ok))
    }
}

/// Events that came and are still to be written.
#[derive(Default)]
struct Came {
    events: std::vec::IntoIter<Event>,
    /// Before the next one can be read; see [`Resource::unprepared`](keelson_registry::Resource::unprepared).
    until: Option<BoxFuture<'static, Result<(), StatusError>>>,
}

impl Came {
    fn is_empty(&self) -> bool {
        self.events.as_slice().is_empty()
    }
}

/// The present objects that are still to be sent.
struct Initial {
    items: Items,
    batch: VecDeque<Entry>,
}

impl Initial {
    fn next(&mut self) -> Option<Entry> {
        if self.batch.is_empty() {
            self.batch = self.items.batch();
        }
        self.batch.pop_front()
    }
}

/// What of a collection is watched; `None`: all of it.
struct Selection(Option<Box<(LabelSelector, FieldSelector)>>);

impl Selection {
    fn of(options: &ListOptions) -> Selection {
        let selective = options.is_selective();
        Selection(selective.then(|| Box::new((options.labels.clone(), options.fields.clone()))))
    }

    fn has(&self, endpoint: &Endpoint, entry: &Entry) -> Result<bool, StatusError> {
        match self.0.as_deref() {
            Some((labels, fields)) => endpoint.resource.matches(labels, fields, entry),
            None => Ok(true),
        }
    }
}

/// Turns events into frames.
struct Writer {
    endpoint: Arc<Endpoint>,
    selection: Selection,
    encoder: Encoder,
    /// Everything up to here has been delivered.
    seen: Revision,
    /// Frames that wait to be sent.
    chunk: Vec<u8>,
    ended: bool,
}

impl Writer {
    /// Some of the present objects, and gives back the rest; after the last one the mark of their end.
    fn state(&mut self, mut initial: Initial, mark: bool, end: std::time::Instant) -> Option<Initial> {
        while self.chunk.len() < CHUNK && (self.chunk.is_empty() || std::time::Instant::now() < end) {
            let Some(entry) = initial.next() else {
                if mark {
                    self.bookmark(true);
                }
                return None;
            };
            let written = self
                .encoder
                .event(&self.endpoint, "ADDED", &entry, None, &mut self.chunk);
            self.end_if(written);
            if self.ended {
                return None;
            }
        }
        Some(initial)
    }

    /// What is to be awaited before an event can be read.
    fn unprepared(&self, event: &Event) -> Option<BoxFuture<'static, Result<(), StatusError>>> {
        let resource = &self.endpoint.resource;
        let entries = match event {
            Event::Put { entry, previous } => [Some(entry), previous.as_ref()],
            Event::Delete { previous, .. } => [None, previous.as_ref()],
        };
        entries
            .into_iter()
            .flatten()
            .find_map(|entry| resource.unprepared(entry))
    }

    fn item(&mut self, item: Option<Result<WatchItem, StoreError>>) {
        match item {
            Some(Ok(WatchItem::Events(events))) => events.iter().for_each(|event| self.event(event)),
            Some(Ok(WatchItem::Progress(revision))) => self.seen = self.seen.max(revision),
            Some(Err(error)) => self.fail(error),
            None => self.ended = true,
        }
    }

    fn event(&mut self, event: &Event) {
        let written = match event {
            Event::Put { entry, previous } => {
                self.seen = self.seen.max(entry.mod_revision);
                self.put(entry, previous.as_ref())
            }
            Event::Delete { revision, previous, .. } => {
                self.seen = self.seen.max(*revision);
                previous.as_ref().map_or(Ok(()), |p| self.deleted(p, *revision))
            }
        };
        self.end_if(written);
    }

    /// A change shows as ADDED or DELETED when it moves the object into or out of the selection.
    fn put(&mut self, entry: &Entry, previous: Option<&Entry>) -> Result<(), StatusError> {
        let now = self.selection.has(&self.endpoint, entry)?;
        let before = match previous {
            Some(previous) => self.selection.has(&self.endpoint, previous)?.then_some(previous),
            None => None,
        };
        let (kind, shown, gone) = match (before, now) {
            (None, true) => ("ADDED", entry, None),
            (Some(_), true) => ("MODIFIED", entry, None),
            (Some(previous), false) => ("DELETED", previous, Some(entry.mod_revision)),
            (None, false) => return Ok(()),
        };
        self.encoder.event(&self.endpoint, kind, shown, gone, &mut self.chunk)
    }

    /// What is gone is shown as it was, with the revision at which it went.
    fn deleted(&mut self, previous: &Entry, revision: Revision) -> Result<(), StatusError> {
        match self.selection.has(&self.endpoint, previous)? {
            true => self
                .encoder
                .event(&self.endpoint, "DELETED", previous, Some(revision), &mut self.chunk),
            false => Ok(()),
        }
    }

    /// A bookmark of what has been delivered; `initial`: the one that ends the present objects.
    fn bookmark(&mut self, initial: bool) {
        let mut object = self.endpoint.resource.hub.new_object();
        object.meta_mut().resource_version = self.seen.to_string();
        if initial {
            let annotations = &mut object.meta_mut().annotations;
            annotations.insert(events::INITIAL_END.into(), "true".into());
        }
        self.endpoint.resource.strategy.fill_bookmark(&mut *object);
        let written = self
            .encoder
            .object_event(&self.endpoint, "BOOKMARK", object, &mut self.chunk);
        self.end_if(written);
    }

    fn end_if(&mut self, written: Result<(), StatusError>) {
        if let Err(error) = written {
            self.encoder.error(&error, &mut self.chunk);
            self.ended = true;
        }
    }

    /// Ends the watch with an ERROR event, whose 410 makes clients list again.
    fn fail(&mut self, error: StoreError) {
        self.ended = true;
        let error = match error {
            StoreError::Closed => return,
            StoreError::Compacted { oldest } => StatusError::too_old_resource_version(self.seen.0, oldest.0),
            // It was handed out, hence committed, on another timeline: this one may never come to it.
            StoreError::Future { wanted, current } => StatusError::too_old_resource_version(wanted.0, current.0),
            other => self.endpoint.resource.store_error(other),
        };
        self.encoder.error(&error, &mut self.chunk);
    }
}
