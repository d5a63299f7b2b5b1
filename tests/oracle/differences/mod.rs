//! Differences: what this server and kube-apiserver answer to mutated requests, by four verbs: creates, updates, writes
//! of a status, and applies. `README.md` beside `main.rs` says how it is run against a real server, and recorded.

mod answers;
mod mutations;
mod objects;
mod recording;
mod values;

use std::collections::BTreeSet;

use futures_util::future;
use serde_json::{Value, json};

use super::server::{self, Ask, Exchange, Server};
use super::{run, samples};
use answers::Answer;
use mutations::{Draw, Mutation, Part};
use objects::Model;
use recording::{Kept, Known, Sample};

/// Another number draws other pairs, and another sample.
const SEED: &str = "SEED";
/// Kinds that are asked about, by the names of `objects.json`, with commas between; all unless it is set.
const KINDS: &str = "KINDS";
/// Out of so many requests one is recorded, beside those that are answered differently.
const ONE_OF: usize = 12;
/// How often a server is asked again whose answer is different, or has causes in an order: what is chance in it is
/// another one then.
const AGAIN: usize = 3;
/// Requests of a whole recording, at least.
const LEAST: usize = 2_700;
const APPLY: &str = "application/apply-patch+yaml";

/// Both servers; in a replay there is only ours.
struct Pair {
    ours: Server,
    theirs: Option<Server>,
}

/// What came of a comparison.
#[derive(Default)]
struct Found {
    asked: Vec<String>,
    different: Vec<String>,
    /// Of what is different and is not known to be.
    report: String,
    /// What is to be recorded.
    sample: Sample,
}

/// One comparison: the servers, what is recorded, and what is known.
struct Comparison {
    pair: Pair,
    recorded: Sample,
    /// All answers of a recording, where they are kept.
    kept: Option<Kept>,
    known: Known,
    seed: u64,
    found: Found,
}

/// The verbs by which mutations are tried.
#[derive(Clone, Copy)]
enum Verb {
    Create,
    Update,
    Apply,
    Status,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Apply => "apply",
            Verb::Status => "status",
        }
    }

    fn ask(self, model: &Model, name: &str, body: &Value) -> Ask {
        let object = format!("{}/{name}", model.collection);
        let ask = match self {
            Verb::Create => Ask::new("POST", format!("{}?dryRun=All", model.collection)),
            Verb::Update => Ask::new("PUT", format!("{object}?dryRun=All")),
            Verb::Apply => {
                let path = format!("{object}?dryRun=All&fieldManager=oracle&force=true");
                Ask {
                    content_type: APPLY,
                    ..Ask::new("PATCH", path)
                }
            }
            Verb::Status => Ask::new("PUT", format!("{object}/status?dryRun=All")),
        };
        ask.body(body)
    }
}

/// What is mutated, as it is in each server: ours first.
struct Bodies {
    ours: Value,
    theirs: Value,
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

impl Pair {
    /// Both answers; in a replay only ours.
    async fn ask(&self, ours: &Ask, theirs: &Ask) -> (Exchange, Option<Exchange>) {
        match &self.theirs {
            None => (self.ours.exchange(ours).await, None),
            Some(server) => {
                let (ours, theirs) = future::join(self.ours.exchange(ours), server.exchange(theirs)).await;
                (ours, Some(theirs))
            }
        }
    }

    fn servers(&self) -> impl Iterator<Item = &Server> {
        [Some(&self.ours), self.theirs.as_ref()].into_iter().flatten()
    }

    /// Makes an object on both, and gives what came of it; `None` where one of them refuses.
    async fn make(&self, model: &Model, object: &Value) -> Option<Bodies> {
        self.remove(model, object).await;
        let ask = Ask::new("POST", &model.collection).body(object);
        let (ours, theirs) = self.ask(&ask, &ask).await;
        stored(model, ours, theirs)
    }

    async fn write_status(&self, model: &Model, bodies: &Bodies) -> Option<Bodies> {
        let path = format!("{}/{}/status", model.collection, name_of(&bodies.ours));
        let ask = |body: &Value| Ask::new("PUT", &path).body(body);
        let (ours, theirs) = self.ask(&ask(&bodies.ours), &ask(&bodies.theirs)).await;
        stored(model, ours, theirs)
    }

    /// The resource versions that the objects have now, for kinds whose updates must say one: the servers write to
    /// some.
    async fn renew(&self, model: &Model, bodies: &mut Bodies) {
        if !model.kind.conditional_update {
            return;
        }
        let ask = Ask::new("GET", format!("{}/{}", model.collection, name_of(&bodies.ours)));
        let (ours, theirs) = self.ask(&ask, &ask).await;
        let version = |exchange: &Exchange| exchange.body["metadata"]["resourceVersion"].clone();
        bodies.ours["metadata"]["resourceVersion"] = version(&ours);
        if let Some(theirs) = theirs {
            bodies.theirs["metadata"]["resourceVersion"] = version(&theirs);
        }
    }

    /// Takes an object away, whatever holds it.
    async fn remove(&self, model: &Model, object: &Value) {
        let path = format!("{}/{}", model.collection, name_of(object));
        for server in self.servers() {
            for _ in 0..5 {
                if server.exchange(&Ask::new("GET", &path)).await.status == 404 {
                    break;
                }
                let released = json!({"metadata": {"finalizers": null}});
                let release = Ask::new("PATCH", &path).body(&released);
                let release = Ask {
                    content_type: "application/merge-patch+json",
                    ..release
                };
                let delete = Ask::new(
                    "DELETE",
                    format!("{path}?gracePeriodSeconds=0&propagationPolicy=Background"),
                );
                let mut asks = vec![release, delete];
                if model.kind.kind == "Namespace" {
                    let body = json!({"metadata": {"name": name_of(object)}, "spec": {"finalizers": []}});
                    asks.push(Ask::new("PUT", format!("{path}/finalize")).body(&body));
                }
                for ask in asks {
                    server.exchange(&ask).await;
                }
            }
        }
    }
}

/// What came of a write, to be mutated and written again, whoever writes in between where the kind allows it.
fn stored(model: &Model, ours: Exchange, theirs: Option<Exchange>) -> Option<Bodies> {
    let well = ours.status < 300 && theirs.as_ref().is_none_or(|theirs| theirs.status < 300);
    let plain = |mut object: Value| {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
            if !model.kind.conditional_update {
                metadata.remove("resourceVersion");
            }
        }
        object
    };
    well.then(|| Bodies {
        theirs: plain(theirs.map_or(Value::Null, |theirs| theirs.body)),
        ours: plain(ours.body),
    })
}

impl Comparison {
    /// In a replay only what is recorded is asked.
    fn is_asked(&self, name: &str) -> bool {
        let is_recorded = match &self.kept {
            Some(kept) => kept.has(name),
            None => self.recorded.contains_key(name),
        };
        self.pair.theirs.is_some() || is_recorded
    }

    /// What is recorded of a request: several answers where they differ by chance.
    fn expected(&self, name: &str) -> Vec<Answer> {
        match &self.kept {
            Some(kept) => kept.of(name),
            None => self
                .recorded
                .get(name)
                .map(|row| Answer::recorded(row))
                .into_iter()
                .collect(),
        }
    }

    async fn of_model(&mut self, model: &Model) {
        for (index, object) in model.objects.iter().enumerate() {
            let name = match index {
                0 => model.name.clone(),
                index => format!("{}#{index}", model.name),
            };
            self.of_object(model, &name, object, index == 0).await;
        }
    }

    async fn of_object(&mut self, model: &Model, name: &str, object: &Value, first: bool) {
        let mut draw = Draw::new(self.seed, name);
        let mutations = mutations::of_object(model, object, Part::Itself, first, &mut draw);
        let mut same = Bodies {
            ours: object.clone(),
            theirs: object.clone(),
        };
        self.pair.remove(model, object).await;
        self.verb(model, (name, Verb::Create), &mutations, &mut same).await;
        let Some(mut stored) = self.pair.make(model, object).await else {
            self.found.report += &format!("{name}: is refused as it is\n");
            return;
        };
        if model.kind.verbs.contains("update") {
            self.verb(model, (name, Verb::Update), &mutations, &mut stored).await;
        }
        // What an apply finds in a document, it finds in the first.
        if first && model.kind.verbs.contains("patch") {
            self.verb(model, (name, Verb::Apply), &mutations, &mut same).await;
        }
        for (index, status) in model.statuses.iter().enumerate() {
            let Some(mut bodies) = self.pair.make(model, object).await else {
                continue;
            };
            bodies.ours["status"] = status.clone();
            bodies.theirs["status"] = status.clone();
            let name = format!("{name}/{index}");
            // A status that may not be written as a whole is mutated all the same.
            let mut written = self.pair.write_status(model, &bodies).await.unwrap_or(bodies);
            let mut draw = Draw::new(self.seed, &name);
            let mutations = mutations::of_object(model, &written.ours, Part::Status, first, &mut draw);
            self.verb(model, (&name, Verb::Status), &mutations, &mut written).await;
        }
        self.pair.remove(model, object).await;
    }

    async fn verb(&mut self, model: &Model, (of, verb): (&str, Verb), mutations: &[Mutation], bodies: &mut Bodies) {
        let own_name = name_of(&bodies.ours);
        for mutation in mutations {
            let name = format!("{of} {} {}", verb.name(), mutation.name);
            if !self.is_asked(&name) {
                continue;
            }
            if matches!(verb, Verb::Update | Verb::Status) {
                self.pair.renew(model, bodies).await;
            }
            let ask = |body: &Value| verb.ask(model, &own_name, &mutation.applied(body));
            self.compare(name, &ask(&bodies.ours), &ask(&bodies.theirs)).await;
        }
    }

    async fn compare(&mut self, name: String, ours: &Ask, theirs: &Ask) {
        let (own, said) = self.answers(ours, theirs).await;
        let own = Answer::of(&own);
        let expected = match self.pair.theirs {
            Some(_) => said.iter().map(Answer::of).collect(),
            None => self.expected(&name),
        };
        let is_different = expected.iter().all(|theirs| theirs.row != own.row);
        if is_different {
            if !self.known.names(&name) {
                let difference = expected.last().map(|theirs| own.difference(theirs));
                self.found.report += &format!("{name}\n{}", difference.unwrap_or_default());
            }
            self.found.different.push(name.clone());
        }
        if let Some(last) = expected.last().filter(|_| self.pair.theirs.is_some())
            && (is_different || Draw::new(self.seed, &name).below(ONE_OF) == 0)
        {
            self.found.sample.insert(name.clone(), last.row.clone());
        }
        if let (Some(kept), Some(_)) = (&mut self.kept, &self.pair.theirs) {
            kept.keep(&name, said);
        }
        self.found.asked.push(name);
    }

    /// What this server says, and the other one; more than once where that may be chance.
    async fn answers(&self, ours: &Ask, theirs: &Ask) -> (Exchange, Vec<Exchange>) {
        let mut said: Vec<Exchange> = Vec::new();
        let mut rows: Vec<String> = Vec::new();
        loop {
            let (own, real) = self.pair.ask(ours, theirs).await;
            let Some(real) = real else {
                return (own, said);
            };
            let told = Answer::of(&real);
            let is_chance = self.kept.is_some() && told.has_causes;
            said.push(real);
            rows.push(told.row);
            if said.len() == AGAIN || (rows.contains(&Answer::of(&own).row) && !is_chance) {
                return (own, said);
            }
        }
    }

    /// Fails unless everything is as recorded and known.
    fn judge(&self, models: &[&Model]) {
        let found = &self.found;
        let stale = self.known.stale(&found.asked, &found.different);
        let asked: BTreeSet<&String> = found.asked.iter().collect();
        let is_of = |name: &str| models.iter().any(|model| model.is_of(name));
        let lost = self.recorded.keys().filter(|name| is_of(name) && !asked.contains(name));
        let lost: Vec<&String> = lost
            .filter(|_| self.pair.theirs.is_none() && self.kept.is_none())
            .collect();
        let (all, different) = (found.asked.len(), found.different.len());
        assert!(
            found.report.is_empty() && stale.is_empty() && lost.is_empty(),
            "{all} requests, {different} answered differently, of these unknown:\n{}\nknown, and not so: {stale:#?}\n\
             recorded, and not asked: {lost:#?}",
            found.report
        );
    }
}

#[test]
fn mutated_requests_are_answered_as_kubernetes_answers_them() {
    run(async {
        let is_live = std::env::var_os(server::RECORD).is_some();
        let kinds = std::env::var(KINDS).ok();
        let models = objects::all();
        let is_meant = |model: &&Model| {
            kinds
                .as_ref()
                .is_none_or(|all| all.split(',').any(|one| one == model.name))
        };
        let models: Vec<&Model> = models.iter().filter(is_meant).collect();
        let mut comparison = Comparison {
            pair: Pair {
                ours: Server::with(Some(server::config())).await,
                theirs: if is_live { Some(Server::with(None).await) } else { None },
            },
            recorded: recording::read_sample(),
            kept: Kept::read(is_live),
            known: Known::read(),
            seed: std::env::var(SEED).map_or(1, |seed| seed.parse().unwrap()),
            found: Found::default(),
        };
        for server in comparison.pair.servers() {
            samples::prepare(server).await;
        }
        for model in &models {
            comparison.of_model(model).await;
        }
        if is_live {
            if let Some(kept) = &comparison.kept {
                kept.write();
            }
            let mut sample = std::mem::take(&mut comparison.recorded);
            sample.retain(|name, _| !models.iter().any(|model| model.is_of(name)));
            sample.extend(std::mem::take(&mut comparison.found.sample));
            recording::write_sample(&sample);
        } else if kinds.is_none() && comparison.kept.is_none() {
            let asked = comparison.found.asked.len();
            assert!(asked > LEAST, "{asked} requests are recorded");
        }
        comparison.judge(&models);
        comparison.pair.ours.stop().await;
    });
}
