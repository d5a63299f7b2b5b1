//! Growth: each place of each kind that a client can make large, grown with empty, small, wrong and null items, is sent
//! to a server in this process. Fails where CPU time, memory, the answer or the audit's line is more than a body of 3
//! MiB may cost.
//!
//! A run takes a sample, chosen by a seed that it prints. `KEELSON_GROWTH=<number>` is the run with this seed;
//! `KEELSON_GROWTH=all` goes through everything, each field of each message once and thousands of pairs of them, with
//! figures (best with `--release`); `KEELSON_GROWTH=pairs` through all pairs.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]
#![allow(clippy::print_stdout, reason = "figures, and how a sample is repeated")]

mod measure;
mod pairs;
mod patches;
mod places;
mod products;
mod selectors;
mod serving;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use keelson::api::SCHEME;
use keelson_machinery::scheme::KindDesc;

use measure::{Cost, Limits};
use places::{Place, Shape};
use serving::Server;

/// That of the program, which is measured here.
#[global_allocator]
static ALLOCATOR: keelson::Allocator = keelson::Allocator;

/// The largest body of a request; a third of it where code is slow.
const MAX: usize = if cfg!(debug_assertions) {
    1 << 20
} else {
    (3 << 20) - 1024
};
/// Items of a grown place; the last is as many as a body holds.
const COUNTS: [usize; 4] = [10, 1_000, 100_000, usize::MAX];
/// Requests of a sample, and how long it may take.
const SAMPLE: usize = 60;
const PATIENCE: Duration = Duration::from_secs(45);

/// The kinds that can be created, in each version.
fn kinds() -> Vec<&'static KindDesc> {
    let all = SCHEME.groups.iter().flat_map(|g| g.versions).filter(|v| v.served);
    all.flat_map(|v| v.kinds)
        .filter(|kind| kind.verbs.contains("create"))
        .collect()
}

/// Numbers that follow from a seed (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(end).unwrap()).unwrap()
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// The ways of a body to an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Create,
    CreateYaml,
    Apply,
    Put,
}

impl Way {
    const ALL: [Way; 4] = [Way::Create, Way::CreateYaml, Way::Apply, Way::Put];

    /// Method, what follows the path of the collection, and the media type.
    fn parts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Way::Create => ("POST", "", "application/json"),
            Way::CreateYaml => ("POST", "", "application/yaml"),
            Way::Apply => ("PATCH", "/grown?fieldManager=growth", "application/apply-patch+yaml"),
            Way::Put => ("PUT", "/grown", "application/json"),
        }
    }
}

fn collection(kind: &KindDesc) -> String {
    let root = match kind.group.as_str() {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    };
    match kind.namespaced {
        true => format!("{root}/namespaces/default/{}", kind.plural),
        false => format!("{root}/{}", kind.plural),
    }
}

/// What is measured is this process: one test at a time.
static TURN: Mutex<()> = Mutex::new(());

struct Run {
    _turn: MutexGuard<'static, ()>,
    server: Server,
    wrong: Vec<String>,
    costs: Vec<(Cost, String)>,
}

impl Run {
    fn new() -> Run {
        Run {
            _turn: TURN.lock().unwrap_or_else(PoisonError::into_inner),
            server: Server::start(),
            wrong: Vec::new(),
            costs: Vec::new(),
        }
    }

    fn one(&mut self, place: &Place, way: Way, shape: Shape, count: usize) {
        let name = format!("{way:?} {} {shape:?} {count}", place.name());
        let (method, rest, media_type) = way.parts();
        let path = format!("{}{rest}", collection(place.kind));
        let body = place.body(shape, count, MAX);
        let cost = self.server.send(method, &path, media_type, body);
        self.judge(name, cost);
    }

    /// Where every item is as small as it can be.
    fn protobuf(&mut self, place: &Place) {
        let Some(body) = place.protobuf(MAX) else { return };
        let path = collection(place.kind);
        let cost = self
            .server
            .send("POST", &path, "application/vnd.kubernetes.protobuf", body);
        self.judge(format!("protobuf {}", place.name()), cost);
    }

    /// One that is not about a place of an object.
    fn request(&mut self, name: &str, (method, path): (&str, &str), media_type: &str, body: impl Into<Bytes>) {
        let cost = self.server.send(method, path, media_type, body);
        println!("{name}: {cost:?}");
        self.judge(name.to_owned(), cost);
    }

    fn judge(&mut self, name: String, cost: Cost) {
        if let Some(why) = Limits::BAR.broken_by(&cost) {
            println!("{name}: {why}: {cost:?}");
            self.wrong.push(format!("{name}: {why}: {cost:?}"));
        }
        self.costs.push((cost, name));
    }

    /// What cost most, and the verdict.
    fn finish(mut self) {
        self.costs.sort_by_key(|(cost, _)| std::cmp::Reverse(cost.milliseconds));
        for (cost, name) in self.costs.iter().take(12) {
            println!("{name}: {cost:?}");
        }
        let mut ends = BTreeMap::new();
        for (cost, _) in &self.costs {
            *ends.entry(cost.status).or_insert(0) += 1;
        }
        println!("{} requests, by status: {ends:?}", self.costs.len());
        let (count, wrong) = (self.wrong.len(), self.wrong.join("\n"));
        assert!(self.wrong.is_empty(), "{count} of {}:\n{wrong}", self.costs.len());
    }
}

#[test]
fn nothing_costs_more_than_a_request_may() {
    let asked = std::env::var("KEELSON_GROWTH").unwrap_or_default();
    let mut run = Run::new();
    let all: Vec<Place> = kinds().into_iter().flat_map(places::of_kind).collect();
    assert!(all.len() > 2_000, "{} places", all.len());
    match asked.as_str() {
        "all" => everything(&mut run, &all),
        seed => sample(&mut run, &all, seed.parse().unwrap_or_else(|_| now())),
    }
    run.finish();
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn sample(run: &mut Run, all: &[Place], seed: u64) {
    println!("KEELSON_GROWTH={seed}");
    let (mut numbers, begin) = (Numbers(seed), Instant::now());
    for _ in 0..SAMPLE {
        let (place, way) = (numbers.one_of(all), *numbers.one_of(&Way::ALL));
        run.one(place, way, *numbers.one_of(&Shape::ALL), *numbers.one_of(&COUNTS));
        run.protobuf(place);
        if begin.elapsed() > PATIENCE {
            break;
        }
    }
}

/// Each field of each message once by each way, in the first kind that has it.
fn everything(run: &mut Run, all: &[Place]) {
    let mut seen = BTreeSet::new();
    for place in all.iter().filter(|p| seen.insert((p.owner, p.field()))) {
        for shape in Shape::ALL {
            for way in [Way::Create, Way::Apply] {
                run.one(place, way, shape, usize::MAX);
            }
        }
        run.protobuf(place);
    }
}

fn body_of(head: &str, unit: &str, tail: &str) -> String {
    let units = (MAX - head.len() - tail.len()) / unit.len();
    format!("{head}{}{tail}", unit.repeat(units))
}

/// What was seen to cost seconds and gigabytes: three bytes of a request for an error, or for a container.
#[test]
fn the_requests_of_which_three_bytes_made_an_error_are_cheap() {
    let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let attributes =
        r#"{"spec":{"resourceAttributes":{"verb":"get","resource":"pods","labelSelector":{"requirements":["#;
    let mut run = Run::new();
    for (name, path, body) in [
        ("empty requirements", review, body_of(attributes, "{},", "{}]}}}}")),
        (
            "wrong values",
            review,
            body_of(
                &format!(r#"{attributes}{{"key":"a","operator":"In","values":["#),
                "\"!\",",
                "\"!\"]}]}}}}",
            ),
        ),
        (
            "empty containers",
            "/api/v1/namespaces/default/pods",
            body_of(r#"{"metadata":{"name":"a"},"spec":{"containers":["#, "{},", "{}]}}"),
        ),
        (
            "fewer requirements",
            review,
            format!("{attributes}{}{{}}]}}}}}}}}", "{},".repeat(20_000)),
        ),
    ] {
        let cost = run.server.send("POST", path, "application/json", body);
        println!("{name}: {cost:?}");
        run.judge(name.to_owned(), cost);
    }
    run.finish();
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";

/// Two places that are large together: what is told of each part of the one shows the other.
#[test]
fn values_that_are_shown_often_are_cheap() {
    const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
    const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
    const TEMPLATES: &str = "/api/v1/namespaces/default/podtemplates";
    let mut run = Run::new();
    let capabilities = body_of(
        r#"{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":
            {"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","securityContext":
            {"allowPrivilegeEscalation":false,"capabilities":{"add":["#,
        r#""CAP_SYS_ADMIN","#,
        r#""CAP_SYS_ADMIN"]}}}]}}}}"#,
    );
    run.request("capabilities", ("POST", DEPLOYMENTS), JSON, capabilities);
    let hard: Vec<String> = (0..MAX / 40).map(|n| format!(r#""r{n}":"1""#)).collect();
    let start = format!(
        r#"{{"metadata":{{"name":"q"}},"spec":{{"hard":{{{}}},"scopeSelector":{{"matchExpressions":["#,
        hard.join(",")
    );
    let condition = r#"{"scopeName":"BestEffort","operator":"Exists"}"#;
    let quota = body_of(&start, &format!("{condition},"), &format!("{condition}]}}}}}}"));
    run.request("scopes of a quota", ("POST", QUOTAS), JSON, quota);
    for (name, resources, scope) in [
        ("listed scopes", "r#", "BestEffort"),
        ("listed scopes that fit", "example.com/r#", "Terminating"),
    ] {
        let hard: Vec<String> = (0..MAX / 60)
            .map(|n| format!(r#""{}":"1""#, resources.replace('#', &n.to_string())))
            .collect();
        let start = format!(
            r#"{{"metadata":{{"name":"q"}},"spec":{{"hard":{{{}}},"scopes":["#,
            hard.join(",")
        );
        let quota = body_of(&start, &format!("\"{scope}\","), &format!("\"{scope}\"]}}}}"));
        run.request(name, ("POST", QUOTAS), JSON, quota);
    }
    let name = "n".repeat(MAX / 2);
    for (kind, source) in [
        ("configMap", format!(r#""configMap":{{"name":"{name}","items":[#]}}"#)),
        (
            "projected",
            format!(r#""projected":{{"sources":[{{"configMap":{{"name":"{name}","items":[#]}}}}]}}"#),
        ),
    ] {
        let (start, end) = source.split_once('#').unwrap();
        let start = format!(
            r#"{{"metadata":{{"name":"d"}},"template":{{"spec":{{"containers":[{{"name":"c","image":"i"}}],
                "volumes":[{{"name":"v",{start}"#
        );
        let item = r#"{"key":"k","path":"a"}"#;
        let template = body_of(&start, &format!("{item},"), &format!("{item}{end}}}]}}}}}}"));
        run.request(&format!("paths in {kind}"), ("POST", TEMPLATES), JSON, template);
    }
    run.finish();
}

/// Options in queries, as long as a head may be, and in bodies.
#[test]
fn options_are_cheap() {
    // The audit shows a query twice at most.
    const LONGEST: usize = 30 << 10;
    let mut run = Run::new();
    let body = r#"{"metadata":{"generateName":"m-","labels":{"a":"b"}}}"#;
    for _ in 0..200 {
        let made = run.server.send("POST", MAPS, JSON, body);
        assert_eq!(made.status, 201);
    }
    let many = |unit: &str| unit.repeat(LONGEST / unit.len());
    for (name, query) in [
        ("requirements", format!("labelSelector={}z", many("a,"))),
        ("negations", format!("labelSelector={}z", many("!q,"))),
        ("values", format!("labelSelector=a+in+({}z)", many("b,"))),
        ("brackets", format!("labelSelector={}", many("("))),
        (
            "field terms",
            format!("fieldSelector={}metadata.name!=z", many("metadata.name!=z,")),
        ),
        ("a long name", format!("fieldSelector=metadata.name={}", many("a"))),
        ("parameters", many("x=1&")),
        ("a continue token", format!("limit=1&continue={}", many("A"))),
    ] {
        run.request(name, ("GET", &format!("{MAPS}?{query}")), JSON, "");
    }
    let one = format!("{MAPS}/absent");
    let items = body_of(r#"{"dryRun":["#, "\"\",", "\"\"]}");
    run.request("options of a deletion", ("DELETE", &one), JSON, items.clone());
    run.request("of all", ("DELETE", &format!("{MAPS}?dryRun=All")), JSON, items);
    let types = [places::delimited(1, b"v1"), places::delimited(2, b"DeleteOptions")].concat();
    let raw = [0x2a, 0].repeat(MAX / 4);
    let envelope = [
        b"k8s\0".to_vec(),
        places::delimited(1, &types),
        places::delimited(2, &raw),
    ]
    .concat();
    run.request(
        "in protobuf",
        ("DELETE", &one),
        "application/vnd.kubernetes.protobuf",
        envelope,
    );
    run.finish();
}
