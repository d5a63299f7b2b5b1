//! Sessions: one case while it is being played.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::answer::{Answer, captured, captured_from};
use super::setup::seconds;
use super::{Player, Thoroughness};
use crate::case::{Action, Answers, Recorded, Step, Watch};
use crate::client::Received;
use crate::fault::Fault;
use crate::normalise::Normaliser;
use crate::stub::Stub;
use crate::variables::Variables;
use crate::watch::Watching;

/// Between two attempts of a step that waits for an answer.
const PAUSE: Duration = Duration::from_millis(100);
/// Seconds that a step waits for an answer.
const WITHIN: f64 = 10.0;
/// The same, of a case that is known to fail.
const BRIEF: f64 = 2.0;

pub struct Session<'a> {
    pub(super) player: &'a Player,
    pub(super) recorded: &'a Recorded,
    pub(super) variables: Variables,
    pub(super) normaliser: Normaliser,
    pub(super) stub: Option<Arc<Stub>>,
    /// Paths of the stub that are answered for this case.
    answered: Vec<String>,
    pub(super) watches: HashMap<String, Watching>,
    namespaces: Vec<String>,
    how: Thoroughness,
}

impl<'a> Session<'a> {
    /// Makes what the case finds. What was made is deleted again where that fails.
    pub async fn begin(player: &'a Player, recorded: &'a Recorded, how: Thoroughness) -> Result<Session<'a>, Fault> {
        let mut variables = Variables::default();
        variables.set("uniq", format!("u{}", &chance()[1..]));
        variables.set("server", player.client.address.to_string());
        variables.set("advertise", player.advertised.clone());
        let mut session = Session {
            player,
            recorded,
            variables,
            normaliser: Normaliser::default(),
            stub: None,
            answered: Vec::new(),
            watches: HashMap::new(),
            namespaces: Vec::new(),
            how,
        };
        match session.prepare().await {
            Ok(()) => Ok(session),
            Err(fault) => {
                session.end().await;
                Err(fault)
            }
        }
    }

    async fn prepare(&mut self) -> Result<(), Fault> {
        let case = &self.recorded.case;
        for number in 1..=case.namespaces {
            let variable = if number == 1 {
                "ns".to_owned()
            } else {
                format!("ns{number}")
            };
            let name = format!("t{number}-{}", chance());
            self.variables.set(&variable, name.clone());
            self.namespaces.push(name.clone());
            self.player
                .make_namespace(&name, case.namespace_labels.as_ref())
                .await?;
        }
        if case.stub.is_empty() && !self.recorded.folder.join("STUB").exists() {
            return Ok(());
        }
        let chosen = self
            .player
            .stubs
            .of(&self.recorded.folder, self.player.copy.as_deref())
            .await?;
        let port = chosen.stub.port;
        let prefix = format!("/{}", self.variables.get("uniq").unwrap_or_default());
        self.variables.set("stub", format!("https://127.0.0.1:{port}{prefix}"));
        self.variables.set("stubPort", port.to_string());
        self.variables.set("stubCA", chosen.stub.ca.clone());
        self.normaliser = Normaliser::new(chosen.by_chance.then_some(port));
        for (path, answers) in &case.stub {
            let path = self.stub_path(path);
            let answers: Answers = serde_json::from_value(self.variables.value(answers)).map_err(Fault::unusable)?;
            chosen.stub.answer(path.clone(), answers);
            self.answered.push(path);
        }
        self.stub = Some(chosen.stub);
        Ok(())
    }

    /// A path of the stub: below one of the case's own, or exactly the one behind `!`.
    pub(super) fn stub_path(&self, path: &str) -> String {
        match path.strip_prefix('!') {
            Some(exact) => self.variables.text(exact),
            None => format!("/{}{path}", self.variables.get("uniq").unwrap_or_default()),
        }
    }

    /// Deletes what the case has made.
    pub async fn end(mut self) {
        self.watches.clear();
        for cleanup in &self.recorded.case.cleanup {
            self.player.delete(&self.variables.text(&cleanup.path)).await;
        }
        for namespace in &self.namespaces {
            self.player.delete(&format!("/api/v1/namespaces/{namespace}")).await;
        }
        for path in &self.answered {
            if let Some(stub) = &self.stub {
                stub.forget(path);
            }
        }
    }

    /// Does a step; its normalised answer, where there is one.
    pub async fn step(&mut self, step: &Step) -> Result<Option<Value>, Fault> {
        match step.action().map_err(Fault::Unusable)? {
            Action::Sleep(time) => {
                tokio::time::sleep(seconds(time)).await;
                Ok(None)
            }
            Action::Sign(token) => self.sign(token).map(|()| None),
            Action::Collect(name) => self.collect(step, name).await.map(Some),
            Action::Audit(expressions) => self.audit(step, expressions).await.map(Some),
            Action::Etcd(key) => self.etcd(step, key).await.map(Some),
            Action::StubRequests(path) => Ok(Some(self.stub_requests(step, path).await)),
            Action::Watch(path, watch) if watch.background => self.follow(step, path, watch).await.map(|()| None),
            Action::Watch(path, watch) => self.watch(step, path, watch).await.map(Some),
            Action::Send(path) => self.send(step, path).await.map(Some),
        }
    }

    async fn send(&mut self, step: &Step, path: &str) -> Result<Value, Fault> {
        let (received, answer) = self.answer(step, path).await?;
        for (name, place) in &step.capture {
            self.variables.set(name, captured(place, &received, &answer.body));
        }
        let mut out = json!({"status": received.status, "contentType": answer.kind});
        let headers = self.headers(step, &received);
        if !headers.is_empty() {
            out["headers"] = headers.into();
        }
        if !step.checks.is_empty() {
            out["checks"] = self.checks(step, &answer.body);
        }
        out["body"] = self.clean(step, answer.body, &self.recorded.case.ignore_keys);
        Ok(out)
    }

    /// The answer to a step's request, asked for again until it is as the step wants it, or the time is over.
    async fn answer(&self, step: &Step, path: &str) -> Result<(Received, Answer), Fault> {
        let sent = self.request(step, path)?;
        let certificate = step.client_cert.as_ref().map(|name| self.recorded.folder.join(name));
        let within = step.within.unwrap_or(WITHIN);
        let within = if self.how == Thoroughness::Brief {
            within.min(BRIEF)
        } else {
            within
        };
        let deadline = Instant::now() + seconds(within);
        loop {
            let received = self.player.client.send(&sent, certificate.as_deref()).await?;
            let answer = Answer::read(&received, step);
            if self.satisfies(step, &received, &answer.body) || Instant::now() > deadline {
                return Ok((received, answer));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn follow(&mut self, step: &Step, path: &str, watch: &Watch) -> Result<(), Fault> {
        let name = step
            .id
            .clone()
            .ok_or_else(|| Fault::unusable("a watch in the background needs an id"))?;
        let mut watching = Watching::open(self.player.client.clone(), self.request(step, path)?, watch.clone());
        watching.opened().await;
        self.watches.insert(name, watching);
        Ok(())
    }

    async fn watch(&mut self, step: &Step, path: &str, watch: &Watch) -> Result<Value, Fault> {
        let mut watching = Watching::open(self.player.client.clone(), self.request(step, path)?, watch.clone());
        let count = watch.events.unwrap_or(usize::MAX);
        let mut seen = watching.events(count, seconds(watch.timeout + 1.0)).await;
        seen.events.truncate(count);
        let events = Value::Array(seen.events);
        for (name, place) in &step.capture {
            self.variables.set(name, captured_from(&events, place));
        }
        let mut out = json!({"status": seen.status});
        if !step.checks.is_empty() {
            out["checks"] = self.checks(step, &events);
        }
        out["events"] = self.clean(step, events, &self.recorded.case.ignore_keys);
        Ok(out)
    }
}

/// Eight letters and digits.
fn chance() -> String {
    uuid::Uuid::new_v4().simple().to_string()[..8].to_owned()
}
