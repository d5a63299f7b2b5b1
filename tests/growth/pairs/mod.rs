//! Pairs: two places of an object are large at once, made of valid objects. Fails where the work for them is that of
//! the one times that of the other.
//!
//! A run takes a sample by the seed of the others. There are some hundred thousand pairs: `KEELSON_GROWTH=all` takes
//! some thousand of them, `KEELSON_GROWTH=pairs` every one, for a night.

mod bodies;
mod samples;
mod spots;

use std::time::{Duration, Instant};

use keelson_machinery::scheme::KindDesc;
use serde_json::Value;

use super::measure::{Cost, Limits};
use super::{JSON, MAX, Numbers, Run, collection, kinds, now};
use bodies::Variant;
use samples::{NAMESPACE, Samples};
use spots::{Growth, Pair};

/// Pairs of a sample, and how long it may take.
const SAMPLE: usize = 60;
const PATIENCE: Duration = Duration::from_secs(15);
/// Pairs that `all` takes.
const OF_ALL: usize = 4_000;
/// How often a request is sent that costs too much: who shares a core makes its time dearer.
const AGAIN: usize = 2;

#[test]
fn no_two_places_cost_one_times_the_other() {
    let asked = std::env::var("KEELSON_GROWTH").unwrap_or_default();
    let samples = Samples::read();
    let (known, others): (Vec<_>, Vec<_>) = kinds().into_iter().partition(|kind| samples.has(kind));
    let all = spots::of_kinds(known.into_iter().chain(others));
    println!("{} pairs", all.len());
    assert!(all.len() > 5_000, "{} pairs", all.len());
    let seed = asked.parse().unwrap_or_else(|_| now());
    println!("KEELSON_GROWTH={seed}");
    let mut trials = Trials {
        run: Run::new(),
        samples,
        numbers: Numbers(seed),
        count: 0,
    };
    let namespace = format!(r#"{{"metadata":{{"name":"{NAMESPACE}"}}}}"#);
    trials.run.server.send("POST", "/api/v1/namespaces", JSON, namespace);
    let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    trials
        .run
        .server
        .send("POST", &accounts, JSON, r#"{"metadata":{"name":"default"}}"#);
    match asked.as_str() {
        "all" => (0..OF_ALL).for_each(|_| {
            let pair = trials.numbers.one_of(&all);
            trials.all_of(pair);
        }),
        "pairs" => all.iter().for_each(|pair| trials.all_of(pair)),
        _ => trials.sample(&all),
    }
    trials.run.finish();
}

struct Trials {
    run: Run,
    samples: Samples,
    numbers: Numbers,
    /// Objects so far.
    count: usize,
}

impl Trials {
    fn sample(&mut self, all: &[Pair]) {
        let begin = Instant::now();
        for _ in 0..SAMPLE {
            let pair = self.numbers.one_of(all);
            let variants = self.variants();
            self.one(pair, variants);
            if begin.elapsed() > PATIENCE {
                break;
            }
        }
    }

    fn variants(&mut self) -> [Variant; 2] {
        [(); 2].map(|()| *self.numbers.one_of(&Variant::ALL))
    }

    /// In one way that is drawn; two lists of different items too.
    fn all_of(&mut self, pair: &Pair) {
        let variants = self.variants();
        self.one(pair, variants);
        let are_lists = pair.spots.iter().all(|spot| spot.growth == Growth::Items);
        if are_lists && variants != [Variant::Distinct; 2] {
            self.one(pair, [Variant::Distinct; 2]);
        }
    }

    /// An object is created, replaced by one in another order, and its status is written, if it has one of the places.
    fn one(&mut self, pair: &Pair, variants: [Variant; 2]) {
        self.count += 1;
        let object = self.samples.best(pair, self.count);
        let path = collection(pair.kind).replace("/namespaces/default/", &format!("/namespaces/{NAMESPACE}/"));
        let one = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap_or_default());
        let mut trial = Trial {
            run: &mut self.run,
            pair,
            object: &object,
            variants,
            room: (MAX - object.to_string().len()) / 2 - 1024,
            query: ["?fieldValidation=Strict", ""][self.count % 2],
        };
        let mut is_made = trial.create(&path);
        is_made &= !pair.kind.unstored;
        if is_made {
            trial.send("PUT", &one, true);
        }
        if pair.is_of_status() && has_status(pair.kind) {
            if !is_made {
                let mut plain = object.clone();
                plain["status"] = Value::Null;
                is_made = trial.run.server.send("POST", &path, JSON, plain.to_string()).status == 201;
            }
            trial.send("PUT", &format!("{one}/status"), false);
        }
        if is_made {
            self.remove(&one);
        }
    }

    fn remove(&mut self, path: &str) {
        let options = r#"{"gracePeriodSeconds":0}"#;
        self.run.server.send("DELETE", path, JSON, options);
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        self.run
            .server
            .send("PATCH", path, "application/merge-patch+json", patch);
    }
}

fn has_status(kind: &KindDesc) -> bool {
    kind.subresources.iter().any(|subresource| subresource.name == "status")
}

struct Trial<'t> {
    run: &'t mut Run,
    pair: &'t Pair,
    object: &'t Value,
    variants: [Variant; 2],
    /// Bytes of each place.
    room: usize,
    query: &'static str,
}

impl Trial<'_> {
    /// Whether an object was made. What is too large for the decoder is sent again with smaller places: rules are to
    /// see it.
    fn create(&mut self, path: &str) -> bool {
        loop {
            match self.send("POST", path, false) {
                413 if self.room > MAX / 40 => self.room /= 2,
                status => return status == 201,
            }
        }
    }

    fn send(&mut self, method: &str, path: &str, backwards: bool) -> u16 {
        let body = bodies::body(self.pair, self.object, self.variants, self.room, backwards);
        let path = format!("{path}{}", self.query);
        let mut cost = self.run.server.send(method, &path, JSON, body.clone());
        for _ in 0..AGAIN {
            if Limits::BAR.broken_by(&cost).is_none() {
                break;
            }
            cost = least(cost, self.run.server.send(method, &path, JSON, body.clone()));
        }
        let (name, variants, room) = (self.pair.name(), self.variants, self.room);
        self.run.judge(format!("{method} {name} {variants:?} {room}"), cost);
        cost.status
    }
}

/// What two runs have cost at least.
fn least(one: Cost, other: Cost) -> Cost {
    Cost {
        milliseconds: one.milliseconds.min(other.milliseconds),
        mib: one.mib.min(other.mib),
        held: one.held.min(other.held),
        ..one
    }
}
