//! Files of a store that are missing, empty, cut, older, or those of another store, when it is started, compacted,
//! restored or filled by an import: it is whole, or refused with the file named. It never is a mixture.
//!
//! A log that is cut, emptied or put back to an earlier moment can't be told from one that a crash left so: the store
//! is then as it was at that moment, as long as its database file was not further.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{EmbeddedStore, all, open, write};
use crate::embedded::fill::Filling;
use crate::embedded::{Database, offline};
use crate::{Entry, Expect, Revision, Store, StoreError};

/// What became of a file.
#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Missing,
    Empty,
    Shorter,
    Older,
    Others,
}

const STATES: [State; 5] = [
    State::Missing,
    State::Empty,
    State::Shorter,
    State::Older,
    State::Others,
];

/// What a start comes to.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Outcome {
    Whole,
    /// As it was at an earlier revision, history included.
    Earlier,
    Refused,
}
use Outcome::{Earlier, Refused, Whole};

const FILES: [(&str, [Outcome; 5]); 6] = [
    //                missing  empty    shorter  older    another store's
    ("store.db", [Refused, Refused, Refused, Refused, Refused]),
    ("store.db-wal", [Refused, Earlier, Earlier, Refused, Refused]),
    ("store.db-shm", [Whole; 5]),
    ("reserve", [Whole; 5]),
    ("store.copy", [Whole; 5]),
    ("lock", [Whole; 5]),
];

/// A folder that a killed server left, what it was before, and one of another store.
struct Scene {
    dir: tempfile::TempDir,
    /// By revision.
    states: Vec<(Revision, Vec<Entry>)>,
}

async fn fill(store: &EmbeddedStore, range: Range<usize>, states: &mut Vec<(Revision, Vec<Entry>)>) {
    for n in range {
        let key = format!("/{}", n % 40);
        let held = store.get(&key).await.unwrap().entry;
        let expect = held.map_or(Expect::Absent, |held| Expect::Revision(held.mod_revision));
        let revision = write(store, &key, expect, Some(&n.to_string().repeat(1 + n * 7 % 900))).await;
        states.push((revision, all(store, None).await));
    }
}

/// Copies a folder of a server that runs: what is left if it is killed now.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

impl Scene {
    async fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let (live, other) = (dir.path().join("live"), dir.path().join("live-other"));
        let mut states = vec![(Revision(1), vec![])];
        let store = open(&live).unwrap();
        store.stop_upkeep();
        fill(&store, 0..40, &mut states).await;
        copy(&live, &dir.path().join("older"));
        fill(&store, 40..60, &mut states).await;
        // The older log is in the file, and another one is begun.
        Database::connect(&store.path).unwrap().empty_log().unwrap();
        fill(&store, 60..120, &mut states).await;
        copy(&live, &dir.path().join("newest"));
        store.close().await;
        let store = open(&other).unwrap();
        store.stop_upkeep();
        fill(&store, 7..190, &mut Vec::new()).await;
        copy(&other, &dir.path().join("other"));
        store.close().await;
        Scene { dir, states }
    }

    /// A folder in which a file is as said.
    fn folder(&self, name: &str, file: &str, state: State) -> PathBuf {
        let folder = self.dir.path().join(name);
        let _ = fs::remove_dir_all(&folder);
        copy(&self.dir.path().join("newest"), &folder);
        let (path, source) = (folder.join(file), |of: &str| self.dir.path().join(of).join(file));
        let bytes = fs::read(&path).unwrap_or_default();
        match state {
            State::Missing => drop(fs::remove_file(&path)),
            State::Empty => fs::write(&path, b"").unwrap(),
            State::Shorter => fs::write(&path, &bytes[..bytes.len() / 2]).unwrap(),
            State::Older => fs::write(&path, fs::read(source("older")).unwrap_or_default()).unwrap(),
            State::Others => fs::write(&path, fs::read(source("other")).unwrap_or_default()).unwrap(),
        }
        folder
    }

    async fn start(&self, folder: &Path, context: &str) -> Outcome {
        let store = match open(folder) {
            Ok(store) => store,
            Err(error) => {
                let named = error.to_string().contains(&folder.display().to_string());
                assert!(named && matches!(error, StoreError::Corrupt(_)), "{context}: {error}");
                return Refused;
            }
        };
        let revision = store.current_revision().await.unwrap();
        let place = self.states.iter().position(|(of, _)| *of == revision);
        let place = place.unwrap_or_else(|| panic!("{context}: {revision} never was"));
        for (revision, entries) in &self.states[..=place] {
            assert_eq!(&all(&store, Some(*revision)).await, entries, "{context} at {revision}");
        }
        store.close().await;
        match place + 1 == self.states.len() {
            true => Whole,
            false => Earlier,
        }
    }
}

#[tokio::test]
async fn files_that_are_not_as_they_were_are_noticed() {
    let scene = Scene::new().await;
    for (file, outcomes) in FILES {
        for (state, expected) in STATES.into_iter().zip(outcomes) {
            let context = format!("{file} {state:?}");
            let folder = scene.folder("started", file, state);
            let outcome = scene.start(&folder, &context).await;
            assert_eq!(outcome, expected, "{context}");
            if outcome == Refused {
                let again = scene.start(&folder, &context).await;
                assert_eq!(
                    again, Refused,
                    "{context}: a start that is refused makes nothing better or worse"
                );
            }
            assert!(!folder.join("store.copy").exists() || outcome == Refused, "{context}");

            let folder = scene.folder("compacted", file, state);
            let compacted = offline::compact(&folder);
            assert_eq!(compacted.is_err(), expected == Refused, "{context}: {compacted:?}");
            if let Ok((_, after)) = compacted {
                let known = scene.states.iter().find(|(revision, _)| *revision == after.revision);
                let store = open(&folder).unwrap();
                assert_eq!(all(&store, None).await, known.unwrap().1, "{context}");
                store.close().await;
            }
        }
    }
}

/// What is put into the place of a store is there, and nothing else, whatever was there before.
#[tokio::test]
async fn what_is_put_back_or_imported_never_meets_what_was_there() {
    let scene = Scene::new().await;
    let snapshot = scene.dir.path().join("snapshot");
    let store = open(&scene.dir.path().join("source")).unwrap();
    write(&store, "/only", Expect::Absent, Some("x")).await;
    let wanted = all(&store, None).await;
    store.snapshot_to(&snapshot).await.unwrap();
    store.close().await;
    for (file, _) in FILES {
        for state in STATES {
            let context = format!("{file} {state:?}");
            let folder = scene.folder("restored", file, state);
            let before = all_files(&folder);
            let refused = offline::restore(&snapshot, &folder, false).unwrap_err().to_string();
            assert!(refused.contains("holds a store already"), "{context}: {refused}");
            assert_eq!(all_files(&folder), before, "{context}");
            let (report, kept) = offline::restore(&snapshot, &folder, true).unwrap();
            assert_eq!(report.keys, 1, "{context}");
            assert!(kept.is_some(), "{context}");
            let store = open(&folder).unwrap();
            assert_eq!(all(&store, None).await, wanted, "{context}");
            store.close().await;

            let folder = scene.folder("imported", file, state);
            let imported = import(&folder, &wanted);
            if imported.is_ok() {
                let store = open(&folder).unwrap();
                assert_eq!(all(&store, None).await, wanted, "{context}");
                store.close().await;
            }
            let damaged = scene.start(&scene.folder("tried", file, state), &context).await == Refused;
            assert_eq!(imported.is_err(), damaged, "{context}: {imported:?}");
        }
    }
}

fn import(folder: &Path, entries: &[Entry]) -> Result<(), StoreError> {
    let mut filling = Filling::begin(folder, true)?;
    filling.add(entries.to_vec())?;
    filling
        .finish(Revision(2), &[(crate::LeaseId(1), Duration::from_secs(60))])
        .map(drop)
}

/// Names and bytes, but for the lock.
fn all_files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|file| !file.ends_with("lock"))
        .map(|file| (file.display().to_string(), fs::read(file).unwrap()))
        .collect();
    files.sort();
    files
}
