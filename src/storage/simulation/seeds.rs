//! Runs of many seeds, and what to say of those that find something.
//!
//! `KEELSON_SEEDS` says how many seeds, `KEELSON_FIRST_SEED` from which one on; `KEELSON_REPORT` names a file that gets
//! a line for each violation.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Outcome;
use super::world::Violation;

/// A run of a seed, which tells what happens if the second argument says so.
pub type Play = fn(u64, bool) -> Outcome;

/// The seed of `KEELSON_SEED`.
pub fn one_seed() -> Option<u64> {
    number("KEELSON_SEED")
}

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{variable}: {value} is no number")),
    )
}

/// Runs a seed; a panic is a violation.
pub fn run(play: Play, seed: u64, talks: bool) -> Outcome {
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

/// Runs `count` seeds, or what the environment says, on all processors. Panics if any of them finds a violation, and
/// says how `test` of `package` repeats it.
pub fn sweep(play: Play, count: u64, package: &str, test: &str) {
    let (first, count) = (
        number("KEELSON_FIRST_SEED").unwrap_or(1),
        number("KEELSON_SEEDS").unwrap_or(count),
    );
    let begin = Instant::now();
    let (found, steps) = run_all(play, first, count);
    println!("{count} seeds, {steps} steps, {:.1} s", begin.elapsed().as_secs_f64());
    if let Some(path) = std::env::var_os("KEELSON_REPORT") {
        let lines: Vec<String> = found.iter().map(|(seed, outcome)| line(*seed, outcome)).collect();
        std::fs::write(path, lines.concat()).unwrap();
    }
    let mut by_promise: BTreeMap<&str, Vec<&(u64, Outcome)>> = BTreeMap::new();
    for one in &found {
        let promise = one.1.violation.as_ref().map_or("", |violation| violation.promise);
        by_promise.entry(promise).or_default().push(one);
    }
    for (promise, seeds) in &by_promise {
        let numbers: Vec<u64> = seeds.iter().map(|(seed, _)| *seed).take(12).collect();
        println!("{promise}: {} seeds, such as {numbers:?}", seeds.len());
        // The shortest run is the easiest to read.
        if let Some((seed, outcome)) = seeds.iter().min_by_key(|(_, outcome)| outcome.steps) {
            println!("  {}", line(*seed, outcome).trim_end());
            println!("  KEELSON_SEED={seed} cargo test -p {package} {test} -- --nocapture");
        }
    }
    assert!(found.is_empty(), "{} of {count} seeds broke promises", found.len());
}

fn run_all(play: Play, first: u64, count: u64) -> (Vec<(u64, Outcome)>, u64) {
    let (next, steps, found) = (AtomicU64::new(first), AtomicU64::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    let outcome = run(play, seed, false);
                    steps.fetch_add(outcome.steps, Ordering::Relaxed);
                    if outcome.violation.is_some() {
                        found.lock().unwrap().push((seed, outcome));
                    }
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|(seed, _)| *seed);
    (found, steps.into_inner())
}

fn line(seed: u64, outcome: &Outcome) -> String {
    let Some(violation) = &outcome.violation else {
        return String::new();
    };
    let (promise, what) = (violation.promise, &violation.what);
    format!("{seed}\t{promise}\t{what}\t{}\n", outcome.plan)
}
