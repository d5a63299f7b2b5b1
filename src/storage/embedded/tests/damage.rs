//! Bits that flip, pages that vanish and files that are cut: the store opens with everything, or it refuses and names
//! the file. It never shows what was not written.

use std::fs;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::{all, open, write};
use crate::embedded::EmbeddedStore;
use crate::{Entry, Expect, LeaseId, Revision, Store, StoreError, Write};

/// Seeds of each kind of damage; `KEELSON_FAULTS=all`: so many times as many.
const SEEDS: u64 = 150;
const THOROUGH: u64 = 20;

/// A folder's files, and the states that they hold.
struct Original {
    database: Vec<u8>,
    log: Vec<u8>,
    /// By revision, from the oldest that can be read.
    states: Vec<(Revision, Vec<Entry>)>,
    lease: LeaseId,
}

impl Original {
    /// A store with values of many sizes, deletions, history and a lease. `log`: the newer half is in the log.
    async fn new(log: bool) -> Original {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).unwrap();
        store.stop_upkeep(); // no checkpoint but ours
        let lease = store.grant(Duration::from_secs(3600)).await.unwrap();
        let leased = Write::Put {
            value: "leased".into(),
            lease: Some(lease),
        };
        store.write("/leased", Expect::Absent, leased).await.unwrap();
        let mut oldest = Revision(0);
        for n in 0..60u64 {
            let key = format!("/key/{}", n % 9);
            let held = store.get(&key).await.unwrap().entry;
            let expect = held
                .as_ref()
                .map_or(Expect::Absent, |e| Expect::Revision(e.mod_revision));
            let value = n.to_string().repeat(1 + (n * 1597 % 6000) as usize);
            let deletes = n % 11 == 0 && held.is_some();
            let revision = write(&store, &key, expect, (!deletes).then_some(value.as_str())).await;
            if n == 20 {
                oldest = revision;
                store.compact(revision).await.unwrap();
            }
            if n == 30 && log {
                super::super::Database::connect(&store.path)
                    .unwrap()
                    .empty_log()
                    .unwrap();
            }
        }
        let mut states = Vec::new();
        let newest = store.current_revision().await.unwrap();
        for revision in oldest.0..=newest.0 {
            states.push((Revision(revision), all(&store, Some(Revision(revision))).await));
        }
        if !log {
            store.close().await;
        }
        let read = |name| fs::read(dir.path().join(name)).unwrap_or_default();
        let original = Original {
            database: read("store.db"),
            log: read("store.db-wal"),
            states,
            lease,
        };
        assert_eq!(original.log.is_empty(), !log);
        store.close().await;
        original
    }

    /// What the damaged files open as: how many of the newest revisions are missing; an error is the store's own.
    async fn open(&self, database: &[u8], log: &[u8], context: &str) -> Result<usize, StoreError> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("store.db"), database).unwrap();
        if !log.is_empty() {
            fs::write(dir.path().join("store.db-wal"), log).unwrap();
        }
        // it was in use
        fs::File::create(dir.path().join("reserve"))
            .and_then(|file| file.set_len(super::super::reserve::BYTES as u64))
            .unwrap();
        let store = match open(dir.path()) {
            Ok(store) => store,
            Err(error) => {
                let names = error.to_string().contains(&dir.path().display().to_string());
                assert!(names, "{context}: {error}");
                return Err(error);
            }
        };
        let missing = self.compare(&store, context).await;
        store.close().await;
        Ok(missing)
    }

    async fn compare(&self, store: &EmbeddedStore, context: &str) -> usize {
        let newest = store.current_revision().await.unwrap();
        let place = self.states.iter().position(|(revision, _)| *revision == newest);
        let place = place.unwrap_or_else(|| panic!("{context}: revision {newest} never was"));
        for (revision, entries) in &self.states[..=place] {
            let held = all(store, Some(*revision)).await;
            assert_eq!(&held, entries, "{context}: at revision {revision}");
        }
        assert!(store.shared.mvcc.leases().contains(self.lease), "{context}");
        self.states.len() - 1 - place
    }
}

fn seeds() -> u64 {
    let thorough = std::env::var_os("KEELSON_FAULTS").is_some_and(|value| value == "all");
    SEEDS * if thorough { THOROUGH } else { 1 }
}

#[tokio::test]
async fn flipped_bits_of_the_database_are_noticed_or_harmless() {
    let original = Original::new(false).await;
    let (mut opened, mut refused) = (0, 0);
    for seed in 0..seeds() {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut database = original.database.clone();
        // each page in turn, for as long as there are seeds
        let pages = database.len() / 4096;
        let at = seed as usize % pages * 4096 + rng.random_range(0..4096);
        database[at] ^= 1 << rng.random_range(0..8);
        match original.open(&database, &[], &format!("seed {seed}, byte {at}")).await {
            Ok(missing) => {
                assert_eq!(missing, 0, "seed {seed}");
                opened += 1;
            }
            Err(_) => refused += 1,
        }
    }
    println!("{opened} opened whole, {refused} were refused");
    assert!(opened > 0 && refused > 0);
}

#[tokio::test]
async fn lost_pages_and_lost_ends_of_the_database_are_noticed() {
    let original = Original::new(false).await;
    let mut refused = 0;
    // With the last a row stands before older ones, and those are needed.
    for seed in (0..seeds()).chain([1_778]) {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut database = original.database.clone();
        let page = rng.random_range(0..database.len() / 4096) * 4096;
        let context = match seed % 3 {
            0 => {
                database[page..page + 4096].fill(0);
                format!("seed {seed}, without the page at {page}")
            }
            1 => {
                let length = rng.random_range(0..database.len());
                database.truncate(length);
                format!("seed {seed}, cut at {length}")
            }
            _ => {
                let other = rng.random_range(0..database.len() / 4096) * 4096;
                database.copy_within(other..other + 4096, page);
                format!("seed {seed}, with the page at {other} at {page} too")
            }
        };
        match original.open(&database, &[], &context).await {
            Ok(missing) => assert_eq!(missing, 0, "{context}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0);
    original.open(&[], &[], "empty").await.unwrap_err();
}

/// In the log, the last transaction alone can't be told from one that a crash cut.
#[tokio::test]
async fn flipped_bits_of_the_log_are_noticed() {
    let original = Original::new(true).await;
    let (mut whole, mut cut, mut refused) = (0, 0, 0);
    for seed in 0..seeds() {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut log = original.log.clone();
        let at = match seed {
            0..32 => seed as usize,
            _ => rng.random_range(0..log.len()),
        };
        log[at] ^= 1 << rng.random_range(0..8);
        let context = format!("seed {seed}, byte {at}");
        match original.open(&original.database, &log, &context).await {
            Ok(0) => whole += 1,
            Ok(missing) => {
                assert_eq!(missing, 1, "{context}");
                cut += 1;
            }
            Err(_) => refused += 1,
        }
    }
    println!("{whole} opened whole, {cut} without the last transaction, {refused} were refused");
    assert!(refused > 0);
}

/// A log that is cut opens as it was then, whichever checkpoint came between.
#[tokio::test]
async fn a_cut_log_shows_no_mixture() {
    let original = Original::new(true).await;
    for seed in 0..seeds() {
        let length = SmallRng::seed_from_u64(seed).random_range(0..original.log.len());
        let context = format!("cut at {length}");
        let opened = original
            .open(&original.database, &original.log[..length], &context)
            .await;
        assert!(opened.is_ok(), "{context}: {opened:?}");
    }
}
