//! Watches: events of a collection as a stream of frames.

use std::collections::VecDeque;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, LocalBoxStream};
use keelson_machinery::selector::FieldSelector;
use keelson_machinery::status::StatusError;
use keelson_storage::{Entry, Event, Revision, StoreError, WatchItem, WatchStream};
use tokio::time::{Instant, Interval};

use super::events::{self, Encoder};
use super::list::resolve_fields;
use super::options::{self, ListOptions};
use super::output::include_object;
use super::request::Request;
use super::{Rest, namespace};
use crate::cache::Items;
use crate::listener::Shutdown;
use crate::negotiate::{Format, Offer};
use crate::registry::{Endpoint, Query};

/// A watch without `timeoutSeconds` ends after this much time, plus up to as much again by chance, in seconds.
const MIN_TIMEOUT_SECONDS: u64 = 1800;
/// How often a watch that asked for them gets a bookmark.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);

/// Where a watch begins.
enum Start {
    /// The present objects as ADDED events, then what follows.
    State,
    /// What follows this revision; `None`: the newest.
    After(Option<Revision>),
}

impl Rest {
    pub(super) async fn watch(
        self: &Rest,
        request: &Request,
        endpoint: &Endpoint,
    ) -> Result<HttpResponse, StatusError> {
        request.negotiate(Offer::Objects)?;
        let mut options = ListOptions::parse(&request.query, true)?;
        let accepted = request.negotiate(Offer::Events)?;
        if request.info.legacy_watch && !request.info.path_name().is_empty() {
            options.fields = only_named(&options.fields, &request.info.name)?;
        }
        let options = resolve_fields(endpoint, options)?;
        let include = include_object(request, accepted)?;
        let encoder = Encoder::new(endpoint, accepted, include, self.backend.clock.clone());
        let namespace = namespace(request, endpoint);
        let prefix = endpoint.resource.prefix(namespace)?;
        let mut watch = Watch {
            endpoint: endpoint.clone(),
            timer: self.deadline(&options),
            bookmarks: options.bookmarks.then(bookmark_interval),
            shutdown: self.shutdown.clone(),
            options,
            encoder,
            events: stream::pending().boxed(),
            initial: None,
            frames: VecDeque::new(),
            seen: Revision(0),
            ended: false,
        };
        watch.begin(namespace, &prefix).await?;
        let content_type = match accepted.format {
            Format::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            _ => "application/json",
        };
        Ok(HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, content_type))
            .streaming(watch.into_stream()))
    }

    fn deadline(&self, options: &ListOptions) -> Instant {
        let seconds = options.timeout_seconds.filter(|s| *s > 0).unwrap_or_else(|| {
            let mut random = [0u8; 2];
            self.backend.entropy.fill(&mut random);
            MIN_TIMEOUT_SECONDS + u64::from(u16::from_le_bytes(random)) % MIN_TIMEOUT_SECONDS
        });
        Instant::now() + Duration::from_secs(seconds)
    }
}

/// The selector of a watch of one object; one that the query has must name that object too.
fn only_named(fields: &FieldSelector, name: &str) -> Result<FieldSelector, StatusError> {
    if fields.is_everything() {
        return Ok(FieldSelector::name(name));
    }
    if fields.required_value("metadata.name") != Some(name) {
        return Err(StatusError::bad_request(
            "fieldSelector metadata.name doesn't match requested name",
        ));
    }
    Ok(fields.clone())
}

fn bookmark_interval() -> Interval {
    tokio::time::interval_at(Instant::now() + BOOKMARK_PERIOD, BOOKMARK_PERIOD)
}

/// One open watch.
struct Watch {
    endpoint: Endpoint,
    options: ListOptions,
    encoder: Encoder,
    events: WatchStream,
    /// Present objects that are still to be sent, before any event.
    initial: Option<Items>,
    /// Frames that wait to be sent.
    frames: VecDeque<Bytes>,
    /// Everything up to here has been delivered.
    seen: Revision,
    timer: Instant,
    bookmarks: Option<Interval>,
    shutdown: Shutdown,
    ended: bool,
}

impl Watch {
    async fn begin(&mut self, namespace: &str, prefix: &str) -> Result<(), StatusError> {
        let asked = options::revision(&self.options.resource_version).map_err(StatusError::unknown)?;
        let start = match (self.options.send_initial_events, asked) {
            (Some(true), _) => Start::State,
            (Some(false), None) => Start::After(None),
            (None, None) => Start::State,
            (_, Some(revision)) => Start::After(Some(revision)),
        };
        let after = match start {
            Start::State => self.begin_with_state(namespace, asked).await?,
            Start::After(Some(revision)) => revision,
            Start::After(None) => {
                let store = &self.endpoint.resource.backend.store;
                store
                    .current_revision()
                    .await
                    .map_err(|e| self.endpoint.resource.store_error(e))?
            }
        };
        self.seen = after;
        match self.endpoint.resource.watch(prefix, after).await {
            Ok(events) => self.events = events,
            Err(error) => self.fail(after, error),
        }
        Ok(())
    }

    /// Begins with the present objects; they are sent while the client takes them.
    async fn begin_with_state(&mut self, namespace: &str, at_least: Option<Revision>) -> Result<Revision, StatusError> {
        let resource = &self.endpoint.resource;
        if let Some(revision) = at_least {
            resource.wait_for(revision).await?;
        }
        let query = Query {
            namespace,
            labels: &self.options.labels,
            fields: &self.options.fields,
            limit: 0,
            revision: None,
            from: None,
            left: None,
        };
        let chosen = resource.select(&query).await?;
        self.initial = Some(chosen.items);
        Ok(chosen.revision)
    }

    /// A chunk of the present objects; after the last one the mark of their end, where it was asked for.
    fn send_state(&mut self, mut items: Items) {
        let mut chunk = Vec::new();
        let batch = items.batch();
        let sent = match batch.is_empty() {
            true if self.options.send_initial_events == Some(true) && self.options.bookmarks => {
                self.bookmark(self.seen, true, &mut chunk)
            }
            true => Ok(()),
            false => {
                self.initial = Some(items);
                let mut entries = batch.iter();
                entries.try_for_each(|entry| self.encoder.event(&self.endpoint, "ADDED", entry, None, &mut chunk))
            }
        };
        if let Err(error) = sent {
            self.encoder.error(&error, &mut chunk);
            self.initial = None;
            self.ended = true;
        }
        if !chunk.is_empty() {
            self.frames.push_back(chunk.into());
        }
    }

    fn bookmark(&mut self, revision: Revision, initial: bool, out: &mut Vec<u8>) -> Result<(), StatusError> {
        let mut object = (self.endpoint.resource.hub.new)();
        object.meta_mut().resource_version = revision.to_string();
        if initial {
            object
                .meta_mut()
                .annotations
                .insert(events::INITIAL_END.into(), "true".into());
        }
        self.endpoint.resource.strategy.fill_bookmark(&mut *object);
        self.encoder.object_event(&self.endpoint, "BOOKMARK", object, out)
    }

    /// The stream of frames; it ends at the deadline, on shutdown and after an error event.
    fn into_stream(self) -> LocalBoxStream<'static, Result<Bytes, actix_web::Error>> {
        stream::unfold(self, |mut watch| async move {
            loop {
                if let Some(frame) = watch.frames.pop_front() {
                    return Some((Ok(frame), watch));
                }
                if watch.encoder.gave_up() {
                    return None;
                }
                if let Some(items) = watch.initial.take() {
                    watch.send_state(items);
                    continue;
                }
                if watch.ended {
                    return None;
                }
                watch.step().await;
            }
        })
        .boxed_local()
    }

    /// Waits for the next thing to happen.
    async fn step(&mut self) {
        tokio::select! {
            biased;
            () = self.shutdown.wait() => self.ended = true,
            item = self.events.next() => match item {
                Some(Ok(WatchItem::Events(events))) => self.deliver(events),
                Some(Ok(WatchItem::Progress(revision))) => self.seen = self.seen.max(revision),
                Some(Err(error)) => self.fail(self.seen, error),
                None => self.ended = true,
            },
            () = tokio::time::sleep_until(self.timer) => self.ended = true,
            () = tick(&mut self.bookmarks) => {
                let mut chunk = Vec::new();
                if self.bookmark(self.seen, false, &mut chunk).is_ok() {
                    self.frames.push_back(chunk.into());
                }
            }
        }
    }

    fn deliver(&mut self, events: Vec<Event>) {
        let mut chunk = Vec::new();
        for event in events {
            let result = match event {
                Event::Put { entry, previous } => {
                    self.seen = self.seen.max(entry.mod_revision);
                    self.put(&entry, previous.as_ref(), &mut chunk)
                }
                Event::Delete { revision, previous, .. } => {
                    self.seen = self.seen.max(revision);
                    previous.map_or(Ok(()), |p| self.deleted(&p, revision, &mut chunk))
                }
            };
            if let Err(error) = result {
                self.encoder.error(&error, &mut chunk);
                self.ended = true;
                break;
            }
        }
        if !chunk.is_empty() {
            self.frames.push_back(chunk.into());
        }
    }

    /// A change shows as ADDED or DELETED when it moves the object into or out of the selection.
    fn put(&mut self, entry: &Entry, previous: Option<&Entry>, out: &mut Vec<u8>) -> Result<(), StatusError> {
        let now = self.selects(entry)?;
        let before = match previous {
            Some(previous) => self.selects(previous)?.then_some(previous),
            None => None,
        };
        match (before, now) {
            (None, true) => self.encoder.event(&self.endpoint, "ADDED", entry, None, out),
            (Some(_), true) => self.encoder.event(&self.endpoint, "MODIFIED", entry, None, out),
            (Some(previous), false) => self.gone(previous, entry.mod_revision, out),
            (None, false) => Ok(()),
        }
    }

    fn deleted(&mut self, previous: &Entry, revision: Revision, out: &mut Vec<u8>) -> Result<(), StatusError> {
        match self.selects(previous)? {
            true => self.gone(previous, revision, out),
            false => Ok(()),
        }
    }

    /// What is gone is shown as it was, with the revision at which it went.
    fn gone(&mut self, previous: &Entry, revision: Revision, out: &mut Vec<u8>) -> Result<(), StatusError> {
        self.encoder
            .event(&self.endpoint, "DELETED", previous, Some(revision), out)
    }

    fn selects(&self, entry: &Entry) -> Result<bool, StatusError> {
        let options = &self.options;
        Ok(!options.is_selective()
            || self
                .endpoint
                .resource
                .matches(&options.labels, &options.fields, entry)?)
    }

    /// Ends the watch with an ERROR event, whose 410 makes clients list again.
    fn fail(&mut self, asked: Revision, error: StoreError) {
        self.ended = true;
        let error = match error {
            StoreError::Closed => return,
            StoreError::Compacted { oldest } => StatusError::too_old_resource_version(asked.0, oldest.0),
            other => self.endpoint.resource.store_error(other),
        };
        let mut chunk = Vec::new();
        self.encoder.error(&error, &mut chunk);
        self.frames.push_back(chunk.into());
    }
}

async fn tick(interval: &mut Option<Interval>) {
    match interval {
        Some(interval) => {
            interval.tick().await;
        }
        None => std::future::pending().await,
    }
}
