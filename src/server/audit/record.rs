//! One audited request: what is known of it, and the events made of that.

use std::cell::RefCell;
use std::sync::Arc;

use actix_web::http::header::{self, HeaderValue};
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::time::Time;

use super::addresses::addresses;
use super::annotations::Annotations;
use super::auditor::Auditor;
use super::event::Event;
use super::level::Stage;
use super::outcome::{Outcome, Recording};
use super::policy::Decision;
use super::sink::Wait;
use crate::request_info::RequestInfo;
use crate::rest::request::Request;
use crate::user::User;

/// Bytes of a client's own name for itself; more is cut off.
const MAX_AGENT_BYTES: usize = 1024;
const CUT: &str = "...TRUNCATED";

/// What is known of a request from the beginning.
pub struct Asked {
    pub id: HeaderValue,
    pub received: Time,
    /// Path and query as they came.
    pub uri: String,
    pub info: Arc<RequestInfo>,
    /// `None`: it was not found out.
    pub user: Option<Arc<User>>,
    /// Where it came from, nearest last.
    pub addresses: Vec<String>,
    pub agent: String,
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
}

impl Asked {
    /// Reads a request whose sender is `user`.
    pub fn of(request: &Request, id: HeaderValue, user: Option<Arc<User>>) -> Asked {
        let uri = request.http.uri();
        let uri = uri.path_and_query().map_or_else(|| uri.path(), |both| both.as_str());
        let agent = request.headers.get(header::USER_AGENT).map(HeaderValue::as_bytes);
        let agent = keelson_machinery::json::lossy_text(agent.unwrap_or_default());
        let agent = match agent.len() {
            0..=MAX_AGENT_BYTES => agent.into_owned(),
            _ => format!("{}{CUT}", &agent[..agent.floor_char_boundary(MAX_AGENT_BYTES)]),
        };
        let peer = request.connection().map(|connection| connection.peer);
        Asked {
            id,
            received: request.audit.received(),
            uri: uri.to_owned(),
            info: request.info.clone(),
            user,
            addresses: addresses(&request.headers, peer),
            agent,
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

    pub(super) fn annotate(&self, name: &'static str, text: String) {
        self.learned.borrow_mut().annotations.set(name, text);
    }

    pub(super) fn impersonated(&self, user: Arc<User>, constraint: Option<&'static str>) {
        self.learned.borrow_mut().impersonated = Some((user, constraint));
    }

    /// An object was sent; of its metadata the event names what the path does not.
    pub(super) fn sent_about(&self, meta: &ObjectMeta) {
        let mut learned = self.learned.borrow_mut();
        learned.namespace.clone_from(&meta.namespace);
        learned.name.clone_from(&meta.name);
        learned.uid.clone_from(&meta.uid);
        learned.resource_version.clone_from(&meta.resource_version);
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
        let texts = self.with_event(stage, outcome, |event| self.auditor.encode(event));
        self.auditor.send(texts, wait).await
    }

    /// As [`Record::emit`] where nobody can wait.
    pub fn emit_now(&self, stage: Stage, outcome: Option<(u16, &Outcome)>) {
        if !self.decision.omitted.contains(stage) {
            let texts = self.with_event(stage, outcome, |event| self.auditor.encode(event));
            self.auditor.send_now(texts);
        }
    }

    fn with_event<T>(&self, stage: Stage, outcome: Option<(u16, &Outcome)>, use_it: impl FnOnce(&Event<'_>) -> T) -> T {
        let at = match stage {
            Stage::RequestReceived => self.asked.received,
            _ => self.auditor.now(),
        };
        use_it(&Event {
            asked: &self.asked,
            learned: &self.learned.borrow(),
            level: self.decision.level,
            stage,
            at,
            outcome,
        })
    }
}
