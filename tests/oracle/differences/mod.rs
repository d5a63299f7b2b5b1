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
use objects::{Model, Subresource};
use recording::{Kept, Known, Sample};

/// Another number draws other pairs, and another sample.
const SEED: &str = "SEED";
/// Kinds that are asked about, by the names of `objects.json`, with commas between; all unless it is set.
const KINDS: &str = "KINDS";
/// One out of so many requests is asked, which another seed draws again; all unless it is set.
const SHARE: &str = "SHARE";
/// Out of so many requests one is recorded, beside those that are answered differently.
const ONE_OF: usize = 12;
/// How often a server is asked whose answer is different: what is chance in it is another one then.
const AGAIN: usize = 3;
/// The same where the causes are ours in another order, which Go's maps leave to chance: an order that stays the same
/// so often is none of a map.
const AGAIN_IN_ORDER: usize = 8;
/// Requests of a whole recording, at least.
const LEAST: usize = 9_000;
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
    /// One out of so many requests is asked.
    share: usize,
    found: Found,
}

/// The verbs by which mutations are tried.
#[derive(Clone, Copy)]
enum Verb<'a> {
    Create,
    Update,
    Apply,
    Status,
    Subresource(&'a Subresource),
}

impl<'a> Verb<'a> {
    fn name(self) -> &'a str {
        match self {
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Apply => "apply",
            Verb::Status => "status",
            Verb::Subresource(subresource) => &subresource.model.name,
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
            Verb::Subresource(subresource) => {
                let method = if subresource.creates { "POST" } else { "PUT" };
                Ask::new(method, format!("{object}/{}?dryRun=All", subresource.model.name))
            }
        };
        ask.body(body)
    }
}

/// What is mutated, as it is in each server: ours first.
struct Bodies {
    ours: Value,
    theirs: Value,
}

/// Puts the fields of one object into another.
fn merge(into: &mut Value, from: &Value) {
    match from {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| merge(&mut into[name], value)),
        Value::Null => {}
        value => *into = value.clone(),
    }
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

    /// The bodies of a subresource: what is made, or what is read with what the row changes in it.
    async fn body_of(&self, model: &Model, subresource: &Subresource, object: &Value) -> Option<Bodies> {
        if subresource.creates {
            return Some(Bodies {
                ours: subresource.body.clone(),
                theirs: subresource.body.clone(),
            });
        }
        // A subresource of the same kind is the object, and not all of them can be read by themselves.
        let own = match subresource.is_own {
            true => String::new(),
            false => format!("/{}", subresource.model.name),
        };
        let ask = Ask::new("GET", format!("{}/{}{own}", model.collection, name_of(object)));
        let (ours, theirs) = self.ask(&ask, &ask).await;
        let mut bodies = stored(model, ours, theirs)?;
        merge(&mut bodies.ours, &subresource.body);
        merge(&mut bodies.theirs, &subresource.body);
        Some(bodies)
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
    let is_well = |exchange: &Exchange| (200..300).contains(&exchange.status);
    let well = is_well(&ours) && theirs.as_ref().is_none_or(is_well);
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
        let of = model.objects.iter().position(|other| other == object);
        for subresource in model.subresources.iter().filter(|s| Some(s.of) == of) {
            self.of_subresource(model, name, subresource, object).await;
        }
        self.pair.remove(model, object).await;
    }

    async fn of_subresource(&mut self, model: &Model, name: &str, subresource: &Subresource, object: &Value) {
        self.pair.make(model, object).await;
        let Some(mut bodies) = self.pair.body_of(model, subresource, object).await else {
            self.found.report += &format!("{name} {}: is refused as it is\n", subresource.model.name);
            return;
        };
        let part = match subresource.is_status {
            true => Part::Status,
            false => Part::Itself,
        };
        let mut draw = Draw::new(self.seed, name);
        let mutations = mutations::of_object(&subresource.model, &bodies.ours, part, true, &mut draw);
        let verb = Verb::Subresource(subresource);
        self.verb(model, (name, verb), &mutations, &mut bodies).await;
    }

    async fn verb(&mut self, model: &Model, (of, verb): (&str, Verb<'_>), mutations: &[Mutation], bodies: &mut Bodies) {
        let own_name = name_of(&bodies.ours);
        // The share is drawn by other numbers than the sample.
        let chosen = self.seed.wrapping_add(1 << 32);
        for mutation in mutations {
            let name = format!("{of} {} {}", verb.name(), mutation.name);
            if !self.is_asked(&name) || Draw::new(chosen, &name).below(self.share) != 0 {
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
        assert!(own.status > 0, "{name} is not answered here");
        // What makes kube-apiserver panic has no answer to compare with.
        if said.iter().any(|said| said.status == 0) {
            return;
        }
        let own = Answer::of(&own);
        let mut expected = match self.pair.theirs {
            Some(_) => said.iter().map(Answer::of).collect(),
            None => self.expected(&name),
        };
        answers::find_orders_of_chance(&mut expected);
        let is_different = !expected.iter().any(|theirs| theirs.is_met_by(&own));
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
            self.found.sample.insert(name.clone(), last.as_recorded());
        }
        if let (Some(kept), Some(_)) = (&mut self.kept, &self.pair.theirs) {
            kept.keep(&name, said);
        }
        self.found.asked.push(name);
    }

    /// What this server says, and the other one; more than once where that may be chance.
    async fn answers(&self, ours: &Ask, theirs: &Ask) -> (Exchange, Vec<Exchange>) {
        let mut said: Vec<Exchange> = Vec::new();
        loop {
            let (own, real) = self.pair.ask(ours, theirs).await;
            let Some(real) = real else {
                return (own, said);
            };
            said.push(real);
            let mut told: Vec<Answer> = said.iter().map(Answer::of).collect();
            answers::find_orders_of_chance(&mut told);
            let own_answer = Answer::of(&own);
            let is_told = told.iter().any(|theirs| theirs.is_met_by(&own_answer));
            let most = match told.iter().any(|theirs| theirs.sorted == own_answer.sorted) {
                true => AGAIN_IN_ORDER,
                false => AGAIN,
            };
            if is_told || said.len() >= most {
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

fn number(variable: &str) -> u64 {
    std::env::var(variable).map_or(1, |text| text.parse().unwrap())
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
            seed: number(SEED),
            share: number(SHARE) as usize,
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
