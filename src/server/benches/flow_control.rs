//! Costs of flow control where nobody has to wait: finding the schema of a request among those of a fresh server,
//! hashing its flow, and taking and giving back a seat.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use futures_util::FutureExt;
use keelson_access::flowcontrol::dealer::flow_hash;
use keelson_access::flowcontrol::level::{Asked, Level, Stopwatch};
use keelson_access::flowcontrol::queues::Arrival;
use keelson_access::flowcontrol::spec::{Discipline, Distinguisher, LevelSpec, Queuing, Rule, Schema, Subject};
use keelson_access::flowcontrol::stats::SchemaStats;
use keelson_access::flowcontrol::work::Work;
use keelson_access::request_info::{Query, RequestInfo};
use keelson_access::user::User;
use tokio::time::Instant;

/// As many schemas as a fresh server has, of which the last one fits.
fn schemas() -> Vec<Schema> {
    let schema = |n: usize| Schema {
        name: format!("schema-{n}"),
        rules: vec![Rule::of_everything(vec![Subject::Group(match n {
            10 => "system:serviceaccounts".to_owned(),
            _ => format!("system:group-{n:08}"),
        })])],
        ..Schema::default()
    };
    (0..=10).map(schema).collect()
}

fn level() -> Arc<Level> {
    let queuing = Queuing {
        queues: 128,
        hand_size: 6,
        length_limit: 50,
    };
    let spec = LevelSpec {
        name: "workload-low".to_owned(),
        uid: String::new(),
        discipline: Discipline::Queue(queuing),
        shares: 100,
        lendable_percent: 90,
        borrowing_percent: None,
    };
    let level = Arc::new(Level::new(spec, Stopwatch::start()));
    level.set_limit(0.0, 245);
    level
}

fn run(criterion: &mut Criterion) {
    let schemas = schemas();
    let info = RequestInfo::parse("GET", "/api/v1/namespaces/a/pods/p", &Query::default());
    let info = Arc::new(info.unwrap_or_default());
    let user = Arc::new(User {
        name: "system:serviceaccount:a:default".to_owned(),
        groups: [
            "system:serviceaccounts",
            "system:serviceaccounts:a",
            "system:authenticated",
        ]
        .map(str::to_owned)
        .into(),
        ..User::default()
    });
    criterion.bench_function("schema of a request", |bencher| {
        bencher.iter(|| {
            schemas
                .iter()
                .find(|schema| schema.takes(black_box(&user), black_box(&info)))
        });
    });
    criterion.bench_function("hash of a flow", |bencher| {
        bencher.iter(|| flow_hash(black_box("service-accounts"), black_box(&user.name)));
    });
    let (level, schema) = (level(), Arc::new(SchemaStats::new("s", Distinguisher::User)));
    let latest = Instant::now() + Duration::from_secs(3600);
    criterion.bench_function("a seat, taken and given back", |bencher| {
        bencher.iter(|| {
            let arrival = Arrival {
                hash: 7,
                work: Work::ONE,
                tag: Asked {
                    schema: schema.clone(),
                    user: user.clone(),
                    info: info.clone(),
                },
            };
            let mut entering = Box::pin(level.enter(arrival, latest, || ()));
            // Others are let in once.
            let first = entering.as_mut().now_or_never();
            first.or_else(|| entering.as_mut().now_or_never())
        });
    });
}

criterion_group!(benches, run);
criterion_main!(benches);
