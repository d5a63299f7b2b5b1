//! Many seeds.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Outcome;
use super::world::Violation;
use super::{local, shared_etcd};

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{variable}: {value} is no number")),
    )
}

/// Every fourth seed is of a store in memory.
fn run(seed: u64, talks: bool) -> Outcome {
    let play = if seed % 4 == 0 { local::run } else { shared_etcd::run };
    catch_unwind(AssertUnwindSafe(|| play(seed, talks))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Outcome {
            violation: Some(Violation {
                promise: "nothing panics",
                what: text.unwrap_or_default(),
                at: Duration::ZERO,
            }),
            trace: 0,
            steps: 0,
            plan: String::new(),
        }
    })
}

/// Runs so many seeds on all processors. Returns the violations by their promise.
fn run_all(first: u64, count: u64) -> BTreeMap<&'static str, Vec<(u64, Outcome)>> {
    let (next, steps, found) = (AtomicU64::new(first), AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    let outcome = run(seed, false);
                    steps.fetch_add(outcome.steps, Ordering::Relaxed);
                    if let Some(violation) = &outcome.violation {
                        let mut found = found.lock().unwrap();
                        let of_promise: &mut Vec<_> = found.entry(violation.promise).or_default();
                        of_promise.push((seed, outcome));
                    }
                }
            });
        }
    });
    println!("{count} seeds, {} steps", steps.load(Ordering::Relaxed));
    found.into_inner().unwrap()
}

fn line(seed: u64, outcome: &Outcome) -> String {
    let violation = outcome.violation.as_ref().unwrap();
    format!("{seed}\t{}\t{}\t{}\n", violation.promise, outcome.plan, violation.what)
}

#[test]
fn seeds_keep_every_promise() {
    let count = number("KEELSON_SEEDS").unwrap_or(10_000);
    let found = run_all(number("KEELSON_FIRST_SEED").unwrap_or(1), count);
    if let Some(path) = std::env::var_os("KEELSON_REPORT") {
        let all = found.values().flatten();
        let lines: Vec<String> = all.map(|(seed, outcome)| line(*seed, outcome)).collect();
        std::fs::write(path, lines.concat()).unwrap();
    }
    for (promise, seeds) in &found {
        let numbers: Vec<u64> = seeds.iter().map(|(seed, _)| *seed).take(12).collect();
        println!("{}: {} seeds, such as {numbers:?}", promise, seeds.len());
        let (seed, outcome) = seeds.iter().min_by_key(|(_, outcome)| outcome.steps).unwrap();
        println!("  seed {seed}: {}", outcome.violation.as_ref().unwrap());
        println!("  {}", outcome.plan);
        println!("  KEELSON_SEED={seed} cargo test -p keelson-storage simulation::tests::one -- --nocapture");
    }
    assert!(found.is_empty(), "promises were broken");
}

#[test]
fn one() {
    let Some(seed) = number("KEELSON_SEED") else { return };
    let outcome = run(seed, true);
    println!("{}", outcome.plan);
    assert_eq!(outcome.violation, None);
}

/// The seed decides everything.
#[test]
fn a_seed_makes_the_same_run_again() {
    for seed in 1..=200 {
        assert_eq!(run(seed, false), run(seed, false), "seed {seed}");
    }
}
