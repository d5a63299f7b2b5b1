//! Steps that send no request: what the stub, the audit log and etcd hold, tokens, watches opened before.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::session::Session;
use super::setup::seconds;
use crate::case::{Step, Token};
use crate::fault::Fault;
use crate::paths::fits;
use crate::{audit, etcd, jwt};

/// Seconds that a step waits for events of the audit log or requests at the stub.
const WITHIN: f64 = 5.0;
/// Seconds that a step waits for events of a watch.
const COLLECTING: f64 = 8.0;
const PAUSE: Duration = Duration::from_millis(20);

impl Session<'_> {
    pub(super) fn sign(&mut self, token: &Token) -> Result<(), Fault> {
        let key = self.recorded.folder.join(self.variables.text(&token.key));
        let (header, claims) = (
            self.variables.object(&token.header),
            self.variables.object(&token.claims),
        );
        let signed = jwt::signed(&key, &header, &claims)?;
        self.variables.set(&self.variables.text(&token.variable), signed);
        Ok(())
    }

    pub(super) async fn collect(&mut self, step: &Step, name: &str) -> Result<Value, Fault> {
        let unknown = || Fault::unusable(format!("no watch {name} was opened"));
        let mut watching = self.watches.remove(name).ok_or_else(unknown)?;
        let within = seconds(step.timeout.unwrap_or(COLLECTING));
        let mut seen = watching.events(step.events.unwrap_or(1), within).await;
        seen.events.truncate(step.events.unwrap_or(usize::MAX));
        let events = self.clean(step, seen.events.into(), &self.recorded.case.ignore_keys);
        Ok(json!({"status": seen.status, "events": events}))
    }

    pub(super) async fn audit(&mut self, step: &Step, fit: &BTreeMap<String, String>) -> Result<Value, Fault> {
        let missing = || Fault::unusable("this case needs the server's audit log");
        let log = self.player.audit_log.as_ref().ok_or_else(missing)?;
        let expressions = self.expressions(fit);
        let marks: Vec<&str> = ["uniq", "ns"]
            .iter()
            .filter_map(|name| self.variables.get(name))
            .collect();
        let question = audit::Question {
            expressions: &expressions,
            marks: &marks,
            least: step.events.unwrap_or(1),
            within: seconds(step.within.unwrap_or(WITHIN)),
        };
        let events = audit::events(log, &question).await?;
        Ok(json!({"events": self.clean(step, events.into(), &[])}))
    }

    pub(super) async fn etcd(&mut self, step: &Step, key: &str) -> Result<Value, Fault> {
        let missing = || Fault::unusable("this case needs the server's etcd");
        let etcd = self.player.etcd.as_ref().ok_or_else(missing)?;
        let question = etcd::Question {
            key: &self.variables.text(key),
            prefix: step.prefix,
            keys_only: step.keys_only,
            least: step.min.unwrap_or(0),
            within: seconds(step.within.unwrap_or(0.0)),
        };
        let pairs = etcd.read(&question).await?;
        Ok(json!({"kvs": self.clean(step, pairs, &[])}))
    }

    pub(super) async fn stub_requests(&mut self, step: &Step, path: &str) -> Value {
        let path = self.stub_path(path);
        let asked = || self.stub.as_ref().map(|stub| stub.requests(&path)).unwrap_or_default();
        let deadline = Instant::now() + seconds(step.within.unwrap_or(WITHIN));
        while asked().len() < step.min.unwrap_or(0) && Instant::now() < deadline {
            tokio::time::sleep(PAUSE).await;
        }
        let expressions = self.expressions(&step.fits);
        let fitting = asked()
            .into_iter()
            .filter(|request| fits(&request["body"], &expressions));
        let requests = fitting
            .map(|request| with_headers(request, &step.keep_headers))
            .collect();
        json!({"requests": self.clean(step, requests, &[])})
    }

    fn expressions(&self, expressions: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let filled = expressions
            .iter()
            .map(|(path, expression)| (path.clone(), self.variables.text(expression)));
        filled.collect()
    }
}

/// A request with these of its headers.
fn with_headers(mut request: Value, kept: &[String]) -> Value {
    if let Some(headers) = request.get_mut("headers").and_then(Value::as_object_mut) {
        let all: Map<String, Value> = std::mem::take(headers);
        headers.extend(all.into_iter().filter(|(name, _)| kept.contains(name)));
    }
    request
}
