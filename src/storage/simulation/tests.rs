//! Many seeds.

use super::seeds::{one_seed, run, sweep};
use super::{Outcome, local, shared_etcd};

/// Most seeds are of etcd, some of them of one whose files are put back; some of a store in memory, and some of one in
/// a folder.
fn play(seed: u64, talks: bool) -> Outcome {
    match seed % 8 {
        0 => local::in_memory(seed, talks),
        2 => shared_etcd::put_back(seed, talks),
        4 => local::in_folder(seed, talks),
        _ => shared_etcd::run(seed, talks),
    }
}

#[test]
fn seeds_keep_every_promise() {
    sweep(play, 10_000, "keelson-storage", "simulation::tests::one");
}

#[test]
fn one() {
    let Some(seed) = one_seed() else { return };
    let outcome = run(play, seed, true);
    println!("{}", outcome.plan);
    assert_eq!(outcome.violation, None);
}

/// The seed decides everything.
#[test]
fn a_seed_makes_the_same_run_again() {
    for seed in 1..=200 {
        assert_eq!(run(play, seed, false), run(play, seed, false), "seed {seed}");
    }
}
