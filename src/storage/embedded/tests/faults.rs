//! Faults below the store: writes and syncs that fail, a disk that is full, power that fails with what was not synced
//! dropped or torn. A library that is preloaded into a child process (`shim.c`) stands for the disk.
//!
//! `KEELSON_FAULTS=all` tries every operation of a recorded run instead of some, and ten times the power failures.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::{all, open};
use crate::embedded::EmbeddedStore;
use crate::embedded::reserve::{self, Reserve};
use crate::{Expect, Revision, Store, StoreError, Write, Written};

/// Names the folder for the child process; as a test of its own the child does nothing.
const DIR: &str = "KEELSON_TEST_FAULTS_DIR";
/// The number that the child's first write puts.
const FIRST: &str = "KEELSON_TEST_FAULTS_FIRST";
/// The child's exit status when power failed.
const CRASHED: i32 = 99;
const KEYS: u64 = 5;
/// Writes of one child.
const WRITES: u64 = 24;
/// Operations that are made to fail, of those of a recorded run.
const SAMPLES: usize = 6;
const POWER_FAILURES: u64 = 40;
/// Room for the files, beside the space set aside, and the size of a value that fills it.
const SMALL_DISK: usize = 12 << 20;
const BIG: usize = 200_000;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Whether everything is to be tried.
fn thorough() -> bool {
    std::env::var_os("KEELSON_FAULTS").is_some_and(|value| value == "all")
}

/// The library that stands for the disk, compiled once. A C compiler is there: SQLite needs it too.
fn shim() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let library = std::env::current_exe().unwrap().with_file_name("libfaults.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("embedded/tests/shim.c");
        let fresh = library.with_extension(std::process::id().to_string());
        let compiler = std::env::var_os("CC").unwrap_or("cc".into());
        let built = Command::new(compiler)
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&fresh, &source])
            .args(["-ldl", "-lpthread"])
            .status()
            .expect("faults can't be injected without a C compiler, cc or the one that CC names");
        assert!(built.success(), "the compiler refuses {}", source.display());
        std::fs::rename(&fresh, &library).unwrap();
        library
    })
}

fn value(key: &str, n: u64) -> Vec<u8> {
    let part = format!("{key}={n};");
    part.bytes()
        .cycle()
        .take(part.len() + (n * 1597) as usize % 9000)
        .collect()
}

fn number(key: &str, value: &[u8]) -> u64 {
    let text = str::from_utf8(value).unwrap();
    let n = text[key.len() + 1..].split(';').next().unwrap().parse().unwrap();
    assert_eq!(value, self::value(key, n), "{key} is half written");
    n
}

/// Says how it is, so that the parent hears it even if nothing else follows.
fn say(line: String) {
    use std::io::Write as _;
    std::io::stdout()
        .lock()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

/// What the store holds, for the parent to compare.
async fn say_all(store: &EmbeddedStore) {
    for entry in all(store, None).await {
        say(format!("held {} {}", entry.key, number(&entry.key, &entry.value)));
    }
    say(format!("revision {}", store.current_revision().await.unwrap()));
}

/// One write; each seventh deletes what is there, which is told as 0. False: it failed, which reads survive.
async fn write(store: &EmbeddedStore, key: &str, n: u64) -> bool {
    loop {
        if let Some(done) = try_write(store, key, n).await {
            return done;
        }
    }
}

/// `None`: a write that had failed has happened nevertheless, and is seen now.
async fn try_write(store: &EmbeddedStore, key: &str, n: u64) -> Option<bool> {
    let held = store.get(key).await.expect("reads go on").entry;
    let n = if n.is_multiple_of(7) && held.is_some() { 0 } else { n };
    let expect = held.map_or(Expect::Absent, |entry| Expect::Revision(entry.mod_revision));
    let write = match n {
        0 => Write::Delete,
        _ => Write::Put {
            value: Bytes::from(value(key, n)),
            lease: None,
        },
    };
    say(format!("asked {key} {n}"));
    match store.write(key, expect, write).await {
        Ok(Written::Done { revision, .. }) => {
            say(format!("answered {key} {n} {revision}"));
            Some(true)
        }
        Ok(Written::Conflict { .. }) => None,
        Err(StoreError::Unavailable(_)) => {
            say("failed".to_owned());
            Some(false)
        }
        Err(other) => panic!("{other:?}"),
    }
}

async fn heal(store: &EmbeddedStore) {
    if let Some(file) = std::env::var_os("SHIM_HEAL") {
        std::fs::write(file, "").unwrap();
    }
    for _ in 0..200 {
        if store.health().await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it does not heal: {:?}", store.health().await);
}

/// The process whose disk fails.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let fails_for_good = std::env::var("SHIM_FAIL").is_ok_and(|plan| plan.ends_with(" on"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = match open(dir.as_ref()) {
            Ok(store) => store,
            Err(error) => return say(format!("refused {error}")),
        };
        say_all(&store).await;
        let mut failed = false;
        for n in first..first + WRITES {
            let key = format!("/key/{}", n % KEYS);
            let done = write(&store, &key, n).await;
            if failed && fails_for_good {
                assert!(!done, "acknowledged after a failure");
            }
            if !done {
                failed = true;
                assert!(
                    !fails_for_good || store.health().await.is_err(),
                    "healthy after a failure"
                );
                all(&store, None).await;
            }
            if n % WRITES == WRITES / 2 {
                // fails as writes do
                let _ = store.compact(store.current_revision().await.unwrap()).await;
            }
        }
        heal(&store).await;
        assert!(write(&store, "/key/0", first + WRITES).await, "no write after healing");
        say_all(&store).await;
        // a store that is not closed, as after a crash, every second time
        if first.is_multiple_of(2) {
            store.close().await;
        }
    });
    say("finished".to_owned());
}

/// The process whose disk is small.
#[test]
fn child_on_a_small_disk() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(fill_and_empty(dir.as_ref()));
    say("finished".to_owned());
}

async fn fill_and_empty(dir: &Path) {
    let store = open(dir).unwrap();
    let reserve = Reserve::beside(&dir.join("store.db"));
    while !reserve.is_there() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let put = async |key: String| {
        let value = Bytes::from(vec![b'x'; BIG]);
        let put = Write::Put { value, lease: None };
        store.write(&key, Expect::Absent, put).await
    };
    let mut count = 0u64;
    while put(format!("/big/{count}")).await.is_ok() {
        count += 1;
        assert!(count < 1000, "the disk is never full");
    }
    assert!(count > 10, "full after {count}");
    assert!(store.health().await.is_err(), "healthy on a full disk");
    let refused = put("/more".to_owned()).await.unwrap_err().to_string();
    assert!(refused.contains("full"), "{refused}");
    let held = all(&store, None).await;
    assert_eq!(held.len() as u64, count, "reads go on");
    // one by one, as a user would, and without waiting for anything
    for entry in &held {
        let expect = Expect::Revision(entry.mod_revision);
        let deleted = store.write(&entry.key, expect, Write::Delete).await;
        deleted.unwrap_or_else(|error| panic!("deleting {}: {error}", entry.key));
    }
    assert!(store.health().await.is_err(), "history still takes the space");
    let current = store.current_revision().await.unwrap();
    store.compact(current).await.unwrap();
    for _ in 0..300 {
        if store.health().await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    store.health().await.unwrap();
    for n in 0..count / 4 {
        put(format!("/again/{n}")).await.unwrap();
    }
    say(format!("full after {count}"));
}

/// Reads go on, deletions are done, and compaction heals the store, all without help.
#[tokio::test]
async fn a_full_disk_is_survived() {
    let dir = tempfile::tempdir().unwrap();
    let quota = ("SHIM_QUOTA", (reserve::BYTES + SMALL_DISK).to_string());
    let output = run_child("child_on_a_small_disk", dir.path(), 1, &[quota]);
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("finished"), "{said}{errors}");
    let store = open(dir.path()).unwrap();
    assert!(
        all(&store, None)
            .await
            .iter()
            .all(|entry| entry.key.starts_with("/again/"))
    );
}

/// What the parent knows: by key what it may hold; 0: nothing.
#[derive(Default)]
struct Known {
    keys: HashMap<String, Vec<u64>>,
    revision: u64,
}

impl Known {
    /// Takes in what a child said; an error says what was lost or invented.
    fn hear(&mut self, said: &str) -> Result<(), String> {
        let mut held: HashMap<String, u64> = HashMap::new();
        for line in said.lines() {
            // what the test harness says may stand before it
            let words: Vec<_> = line.split(' ').collect();
            let at = words
                .iter()
                .position(|word| ["held", "asked", "answered", "revision"].contains(word));
            match words.get(at.unwrap_or(words.len())..).unwrap_or_default() {
                ["held", key, n] => drop(held.insert((*key).to_owned(), n.parse().unwrap())),
                ["revision", revision] => self.compare(std::mem::take(&mut held), revision.parse().unwrap())?,
                ["asked", key, n] => {
                    let may = self.keys.entry((*key).to_owned()).or_insert(vec![0]);
                    may.push(n.parse().unwrap());
                }
                ["answered", key, n, revision] => {
                    self.keys.insert((*key).to_owned(), vec![n.parse().unwrap()]);
                    self.revision = revision.parse().unwrap();
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn compare(&mut self, held: HashMap<String, u64>, revision: u64) -> Result<(), String> {
        if revision < self.revision {
            return Err(format!("revision {revision} after {}", self.revision));
        }
        self.revision = revision;
        if let Some(key) = held.keys().find(|key| !self.keys.contains_key(*key)) {
            return Err(format!("{key} is invented"));
        }
        for (key, may) in &mut self.keys {
            let n = held.get(key).copied().unwrap_or(0);
            if !may.contains(&n) {
                return Err(format!("{key} is {n}, not of {may:?}"));
            }
            *may = vec![n];
        }
        Ok(())
    }

    /// Compares with the folder.
    async fn look(&mut self, dir: &Path) -> Result<(), String> {
        let store = open(dir).map_err(|error| error.to_string())?;
        let entries = all(&store, None).await;
        let held = entries
            .iter()
            .map(|entry| (entry.key.to_string(), number(&entry.key, &entry.value)));
        let Revision(revision) = store.current_revision().await.unwrap();
        let compared = self.compare(held.collect(), revision);
        store.close().await;
        compared
    }
}

fn run(dir: &Path, first: u64, plan: &[(&str, String)]) -> Output {
    run_child("child", dir, first, plan)
}

fn run_child(name: &str, dir: &Path, first: u64, plan: &[(&str, String)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            &format!("embedded::tests::faults::{name}"),
            "--nocapture",
            "--test-threads=1",
        ])
        .env(DIR, dir)
        .env(FIRST, first.to_string())
        .env("LD_PRELOAD", shim())
        .env("SHIM_DIR", dir.canonicalize().unwrap_or(dir.to_owned()));
    for (name, value) in plan {
        command.env(name, value);
    }
    command.output().unwrap()
}

/// A child that must come to its end.
async fn finishes(plan: &[(&str, String)], first: u64) {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    std::fs::create_dir(&dir).unwrap();
    let heal = ("SHIM_HEAL", parent.path().join("heal").display().to_string());
    let plan: Vec<_> = plan.iter().cloned().chain([heal]).collect();
    let output = run(&dir, first, &plan);
    let (said, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let context = format!("{plan:?}");
    assert!(output.status.success(), "{context}: {said}\n{errors}");
    let mut known = Known::default();
    let refused = said.contains("refused");
    assert!(refused || said.contains("finished"), "{context}: {said}");
    let mut compared = known.hear(&said);
    if compared.is_ok() {
        compared = known.look(&dir).await;
    }
    assert_eq!(compared, Ok(()), "{context}");
}

/// Writes and syncs of a run in which nothing fails.
fn recorded() -> (usize, usize) {
    let parent = tempfile::tempdir().unwrap();
    let (dir, file) = (parent.path().join("store"), parent.path().join("count"));
    std::fs::create_dir(&dir).unwrap();
    let output = run(&dir, 100, &[("SHIM_COUNT", file.display().to_string())]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let counts = std::fs::read_to_string(file).unwrap();
    let (writes, syncs) = counts.split_once(' ').unwrap();
    let counts = (writes.parse().unwrap(), syncs.parse().unwrap());
    assert!(counts.0 > WRITES as usize && counts.1 > WRITES as usize, "{counts:?}");
    counts
}

/// After a failed write or sync nothing is acknowledged until the disk works again; nothing acknowledged is lost.
#[tokio::test]
async fn every_write_and_every_sync_may_fail() {
    let (writes, syncs) = recorded();
    for (kind, count, error) in [("write", writes, EIO), ("sync", syncs, EIO), ("write", writes, ENOSPC)] {
        let step = if thorough() { 1 } else { count.div_ceil(SAMPLES) };
        for n in (1..=count).step_by(step) {
            for how in ["once", "on"] {
                let plan = format!("{kind} {n} {error} {how}");
                finishes(&[("SHIM_FAIL", plan)], 100 + n as u64 % 2).await;
            }
        }
    }
    println!("{writes} writes and {syncs} syncs of a recorded run");
}

/// Power failures, one child after the other on one folder: how many there were, or what was lost.
async fn power_failures(seeds: impl Iterator<Item = u64>, more: &[(&'static str, String)]) -> Result<u64, String> {
    let (writes, syncs) = recorded();
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    std::fs::create_dir(&dir).unwrap();
    let (mut known, mut failures) = (Known::default(), 0);
    for seed in seeds {
        let mut rng = SmallRng::seed_from_u64(seed);
        // half of them while the store is opened
        let most = if rng.random() { writes + syncs } else { 12 };
        let mut plan = vec![("SHIM_CRASH", format!("{} {seed}", rng.random_range(1..=most)))];
        if rng.random_ratio(1, 3) {
            let n = rng.random_range(1..=syncs);
            plan.push(("SHIM_FAIL", format!("sync {n} {EIO} once")));
        }
        plan.extend_from_slice(more);
        let output = run(&dir, (seed + 1) * 1000, &plan);
        let said = String::from_utf8_lossy(&output.stdout);
        let status = output.status.code();
        if status != Some(CRASHED) && !output.status.success() {
            return Err(format!("{plan:?}: {said}{}", String::from_utf8_lossy(&output.stderr)));
        }
        failures += u64::from(status == Some(CRASHED));
        known.hear(&said).map_err(|error| format!("{plan:?}: {error}"))?;
        if seed % 8 == 7 {
            known.look(&dir).await.map_err(|error| format!("{plan:?}: {error}"))?;
        }
    }
    known.look(&dir).await?;
    Ok(failures)
}

/// Power fails again and again, also while the store is opened and after a sync that failed once.
#[tokio::test]
async fn power_may_fail_at_any_write() {
    let rounds = if thorough() { 10 } else { 1 } * POWER_FAILURES;
    let failures = power_failures(0..rounds, &[]).await.unwrap();
    assert!(failures > rounds / 2, "power failed {failures} times only");
    println!("power failed {failures} times");
}

/// No store can be safe on a disk that only pretends to sync: that this shows proves that the tests above can fail.
#[tokio::test]
async fn a_disk_that_lies_is_noticed() {
    let lie = [("SHIM_LIE", "1".to_owned())];
    power_failures(0..POWER_FAILURES, &lie).await.unwrap_err();
}
