//! The audit record of one request, and the events made of it.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use actix_web::http::Uri;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use keelson_access::request_info::RequestInfo;
use keelson_access::user::User;
use keelson_machinery::json::lossy_text;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::time::{MicroTime, Time};
use keelson_registry::Annotate;

use super::addresses::addresses;
use super::annotations::Annotations;
use super::auditor::Auditor;
use super::event::Event;
use super::level::{Level, Stage};
use super::outcome::{Outcome, Recording};
use super::policy::Decision;
use super::sink::Wait;
use super::trail::Trail;

/// Bytes of a name that an event shows. Nothing has checked what was sent; no name that is one is longer.
const MAX_NAME: usize = 1024;

fn shortened(sent: &str) -> String {
    let mut text = sent
        .get(..sent.floor_char_boundary(MAX_NAME))
        .unwrap_or(sent)
        .to_owned();
    if text.len() < sent.len() {
        text.push_str("...");
    }
    text
}

/// Bytes of a client's own name for itself; more is cut off.
const MAX_AGENT_BYTES: usize = 1024;
const CUT: &str = "...TRUNCATED";

impl Annotate for Record {
    fn annotate(&self, name: Cow<'static, str>, text: String) {
        Record::annotate(self, name, text.into());
    }

    fn shows_requests(&self) -> bool {
        self.recording().level >= Level::Request
    }
}

/// What is known of a request from the beginning. Nothing of it is copied.
pub struct Asked {
    pub id: HeaderValue,
    pub received: Time,
    /// That, as events show it, once one does.
    received_text: OnceCell<String>,
    uri: Uri,
    pub info: Arc<RequestInfo>,
    /// `None`: it was not found out.
    pub user: Option<Arc<User>>,
    /// Where it came from, nearest last.
    pub addresses: Vec<IpAddr>,
    agent: Option<HeaderValue>,
}

/// A request as an audit reads it.
#[derive(Clone, Copy)]
pub struct Audited<'a> {
    pub trail: &'a Trail,
    pub info: &'a Arc<RequestInfo>,
    pub uri: &'a Uri,
    pub headers: &'a HeaderMap,
    /// The other end of its connection.
    pub peer: Option<SocketAddr>,
}

/// What was found out on the way.
#[derive(Default)]
pub struct Learned {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    /// What was sent, as JSON, where it is recorded.
    pub object: Option<Vec<u8>>,
    /// As whom the request goes on, and by which permission.
    pub impersonated: Option<(Arc<User>, Option<&'static str>)>,
    pub annotations: Annotations,
}

/// A request that is audited.
pub struct Record {
    auditor: Arc<Auditor>,
    decision: Decision,
    asked: Asked,
    learned: RefCell<Learned>,
    /// Memory for the text of an event.
    text: RefCell<Vec<u8>>,
}

impl Asked {
    /// Reads a request whose sender is `user`.
    pub fn of(request: &Audited<'_>, id: HeaderValue, user: Option<Arc<User>>) -> Asked {
        Asked {
            id,
            received: request.trail.received(),
            received_text: OnceCell::new(),
            uri: request.uri.clone(),
            info: request.info.clone(),
            user,
            addresses: addresses(request.headers, request.peer),
            agent: request.headers.get(header::USER_AGENT).cloned(),
        }
    }

    pub fn received_text(&self) -> &str {
        self.received_text.get_or_init(|| MicroTime(self.received).to_string())
    }

    /// Path and query as they came.
    pub fn uri(&self) -> &str {
        let uri = &self.uri;
        uri.path_and_query().map_or_else(|| uri.path(), |both| both.as_str())
    }

    /// The client's own name for itself.
    pub fn agent(&self) -> Cow<'_, str> {
        let agent = self.agent.as_ref().map(HeaderValue::as_bytes);
        let agent = lossy_text(agent.unwrap_or_default());
        match agent.len() {
            0..=MAX_AGENT_BYTES => agent,
            _ => format!("{}{CUT}", &agent[..agent.floor_char_boundary(MAX_AGENT_BYTES)]).into(),
        }
    }
}

impl Record {
    pub(super) fn new(auditor: Arc<Auditor>, decision: Decision, asked: Asked, annotations: Annotations) -> Record {
        Record {
            auditor,
            decision,
            asked,
            learned: RefCell::new(Learned {
                annotations,
                ..Learned::default()
            }),
            text: RefCell::default(),
        }
    }

    /// How much of objects is recorded.
    pub fn recording(&self) -> Recording {
        Recording {
            level: self.decision.level,
            omit_managed_fields: self.decision.omit_managed_fields,
        }
    }

    /// Whether the request has an event when its answer begins.
    pub fn is_long_running(&self) -> bool {
        self.asked.info.is_long_running()
    }

    pub(super) fn annotate(&self, name: Cow<'static, str>, text: Cow<'static, str>) {
        self.learned.borrow_mut().annotations.set(name, text);
    }

    pub(super) fn impersonated(&self, user: Arc<User>, constraint: Option<&'static str>) {
        self.learned.borrow_mut().impersonated = Some((user, constraint));
    }

    /// An object was sent; of its metadata the event names what the path does not.
    pub(super) fn sent_about(&self, meta: &ObjectMeta) {
        let mut learned = self.learned.borrow_mut();
        learned.namespace = shortened(&meta.namespace);
        learned.name = shortened(&meta.name);
        learned.uid = shortened(&meta.uid);
        learned.resource_version = shortened(&meta.resource_version);
    }

    pub(super) fn sent(&self, json: Vec<u8>) {
        self.learned.borrow_mut().object = Some(json);
    }

    /// Makes the event of a stage, unless the policy leaves it out. False: it is lost, and who asked for a strict log
    /// wants the request refused.
    pub async fn emit(&self, stage: Stage, outcome: Option<(u16, &Outcome)>, wait: Wait) -> bool {
        if self.decision.omitted.contains(stage) {
            return true;
        }
        let handed = self.with_event(stage, outcome, |event, text| self.auditor.hand(event, wait, text));
        self.auditor.settle(handed, wait).await
    }

    /// As [`Record::emit`] where nobody can wait.
    pub fn emit_now(&self, stage: Stage, outcome: Option<(u16, &Outcome)>) {
        if !self.decision.omitted.contains(stage) {
            self.with_event(stage, outcome, |event, text| self.auditor.hand_now(event, text));
        }
    }

    fn with_event<T>(
        &self,
        stage: Stage,
        outcome: Option<(u16, &Outcome)>,
        use_it: impl FnOnce(&Event<'_>, &mut Vec<u8>) -> T,
    ) -> T {
        let at = match stage {
            Stage::RequestReceived => self.asked.received,
            _ => self.auditor.now(),
        };
        let event = Event {
            asked: &self.asked,
            learned: &self.learned.borrow(),
            level: self.decision.level,
            stage,
            at,
            outcome,
        };
        use_it(&event, &mut self.text.borrow_mut())
    }
}
