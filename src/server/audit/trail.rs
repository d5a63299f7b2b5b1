//! The audit context of a request: the id that its answer shows, and the record that filters and handlers add to.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use actix_web::http::header::HeaderValue;
use keelson_access::user::User;
use keelson_machinery::meta::v1::{DeleteOptions, ObjectMeta};
use keelson_machinery::object::Kind;
use keelson_machinery::time::Time;
use keelson_machinery::{json, yaml};
use keelson_registry::Annotate;

use super::annotations::Annotations;
use super::level::Level;
use super::outcome::Recording;
use super::record::Record;

/// The type that kube-apiserver writes over recorded options of deletions.
const OPTIONS_VERSION: &str = "meta.k8s.io/__internal";
const OPTIONS_KIND: &str = "DeleteOptions";

/// The audit of one request, as far as it has come.
#[derive(Default)]
pub struct Trail {
    id: Option<HeaderValue>,
    received: Time,
    state: State,
}

enum State {
    /// Nobody has looked at the policy yet.
    Undecided(RefCell<Annotations>),
    /// Nothing is recorded.
    Off,
    On(Rc<Record>),
}

impl Default for State {
    fn default() -> State {
        State::Undecided(RefCell::default())
    }
}

impl Trail {
    /// That of a request that was received now and has this id. `possible`: the server has a policy.
    pub(crate) fn begin(id: HeaderValue, received: Time, possible: bool) -> Trail {
        Trail {
            id: Some(id),
            received,
            state: if possible { State::default() } else { State::Off },
        }
    }

    /// The id of the request; `None`: it has been given none.
    pub fn id(&self) -> Option<&HeaderValue> {
        self.id.as_ref()
    }

    /// When the request came in.
    pub fn received(&self) -> Time {
        self.received
    }

    /// The policy has decided: what is noted from now on is for `record`, if there is one.
    pub(crate) fn decided(&mut self, record: Option<Rc<Record>>) {
        self.state = record.map_or(State::Off, State::On);
    }

    /// What was noted before the policy was looked at.
    pub(super) fn take_early(&self) -> Annotations {
        match &self.state {
            State::Undecided(early) => early.take(),
            _ => Annotations::default(),
        }
    }

    fn record(&self) -> Option<&Rc<Record>> {
        match &self.state {
            State::On(record) => Some(record),
            _ => None,
        }
    }

    /// How much of objects is recorded.
    pub fn recording(&self) -> Recording {
        self.record().map(|record| record.recording()).unwrap_or_default()
    }

    /// Adds an annotation to the events that follow. `text` is called only where there are any; what was noted under
    /// the same name before stays.
    pub fn annotate<T: Into<Cow<'static, str>>>(&self, name: &'static str, text: impl FnOnce() -> T) {
        match &self.state {
            State::On(record) => record.annotate(name.into(), text().into()),
            State::Undecided(early) => early.borrow_mut().set(name, text()),
            State::Off => {}
        }
    }

    /// Where annotations of the events that follow go; `None`: there are no events.
    pub fn annotations(&self) -> Option<Rc<dyn Annotate>> {
        let record = self.record()?;
        Some(record.clone())
    }

    /// The request goes on as somebody else, by the permission named, if that is a constrained one.
    pub fn impersonated(&self, user: &Arc<User>, constraint: Option<&'static str>) {
        if let Some(record) = self.record() {
            record.impersonated(Arc::clone(user), constraint);
        }
    }

    /// The client sent an object; it was decoded, and has its defaults.
    pub fn sent(&self, object: &dyn Kind, meta: Option<&ObjectMeta>) {
        let Some(record) = self.record() else { return };
        if let Some(meta) = meta {
            record.sent_about(meta);
        }
        let recording = record.recording();
        if recording.level >= Level::Request {
            record.sent(recording.shown(&json::to_vec(object)));
        }
    }

    /// The client sent a patch, in any form. One that is not JSON is recorded as the JSON it stands for, or as text: an
    /// event that tells what was sent otherwise is better than none.
    pub fn sent_patch(&self, body: &[u8]) {
        let Some(record) = self
            .record()
            .filter(|record| record.recording().level >= Level::Request)
        else {
            return;
        };
        let mut shown = Vec::with_capacity(body.len());
        if json::validate(body).is_ok() {
            json::compact(json::lossy_text(body).as_bytes(), &mut shown);
        } else {
            match yaml::to_json(body) {
                Ok(converted) => json::compact(&converted, &mut shown),
                Err(_) => json::write_string(&json::lossy_text(body), &mut shown),
            }
        }
        record.sent(shown);
    }

    /// The client sent options of a deletion.
    pub fn sent_options(&self, options: &DeleteOptions) {
        if let Some(record) = self
            .record()
            .filter(|record| record.recording().level >= Level::Request)
        {
            let mut shown = Vec::new();
            json::write_kind_as(options, OPTIONS_VERSION, OPTIONS_KIND, &mut shown);
            record.sent(shown);
        }
    }
}
