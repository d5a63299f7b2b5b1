//! kill -9 in the middle of writes: what was answered is there, whole; nothing else is, but the write that was under
//! way.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::Bytes;

use super::{all, open};
use crate::{Expect, Revision, Store, Write, Written};

const ROUNDS: u64 = 20;
const WRITERS: usize = 8;
/// Names the folder for the process that is killed.
const DIR: &str = "KEELSON_TEST_CRASH_DIR";

/// The value of a key's nth write; its length is from 1 to about 6000 bytes.
fn value(key: &str, n: u64) -> Vec<u8> {
    let part = format!("{key}={n};");
    let length = 1 + (n * 1597 + key.len() as u64 * 31) as usize % 6000;
    part.bytes().cycle().take(length.max(part.len())).collect()
}

/// The n that a value was made with.
fn number(key: &str, value: &[u8]) -> u64 {
    let text = str::from_utf8(value).unwrap();
    text[key.len() + 1..].split(';').next().unwrap().parse().unwrap()
}

/// The process that is killed; as a test of its own it does nothing.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = std::sync::Arc::new(open(dir.as_ref()).unwrap());
        let writers = (0..WRITERS).map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let key = format!("/writer/{writer}");
                let held = store.get(&key).await.unwrap().entry;
                let mut n = held.as_ref().map_or(0, |entry| number(&key, &entry.value));
                let mut expect = held.map_or(Expect::Absent, |entry| Expect::Revision(entry.mod_revision));
                loop {
                    n += 1;
                    let put = Write::Put {
                        value: Bytes::from(value(&key, n)),
                        lease: None,
                    };
                    let Written::Done { revision, .. } = store.write(&key, expect, put).await.unwrap() else {
                        panic!("conflict")
                    };
                    expect = Expect::Revision(revision);
                    let line = format!("answered {key} {n} {revision}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            })
        });
        futures_util::future::join_all(writers.collect::<Vec<_>>()).await;
    });
}

#[tokio::test]
async fn kill_9_loses_no_answered_write() {
    let dir = tempfile::tempdir().unwrap();
    let mut answered: HashMap<String, (u64, u64)> = HashMap::new();
    let mut total = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "embedded::tests::crash::child",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(DIR, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).split(b'\n');
        let mut lines = lines
            .map(|line| String::from_utf8(line.unwrap()).unwrap())
            .filter(|line| !line.is_empty());
        let first = lines
            .find(|line| line.contains("answered"))
            .expect("the child has failed");
        std::thread::sleep(Duration::from_millis(1 + round * 37 % 120));
        child.kill().unwrap();
        for line in std::iter::once(first).chain(lines) {
            // what the test harness says may stand before it, and the last line may be cut
            let Some((_, line)) = line.split_once("answered ") else {
                continue;
            };
            let [key, n, revision] = line.split(' ').collect::<Vec<_>>()[..] else {
                continue;
            };
            if let (Ok(n), Ok(revision)) = (n.parse(), revision.parse()) {
                let held = answered.entry(key.to_owned()).or_default();
                *held = (*held).max((n, revision));
                total += 1;
            }
        }
        child.wait().unwrap();

        let store = open(dir.path()).unwrap();
        let entries = all(&store, None).await;
        for entry in &entries {
            let n = number(&entry.key, &entry.value);
            assert_eq!(
                entry.value,
                value(&entry.key, n),
                "round {round}: {} is half written",
                entry.key
            );
            let (answered, revision) = answered.get(&*entry.key).copied().unwrap_or_default();
            assert!(
                n == answered || n == answered + 1,
                "round {round}: {} is {n}, not {answered}",
                entry.key
            );
            assert!(entry.mod_revision >= Revision(revision) && entry.version == n);
        }
        let lost = answered
            .keys()
            .filter(|key| entries.iter().all(|entry| *entry.key != ***key));
        assert_eq!(lost.count(), 0, "round {round}");
        store.close().await;
        // what an unanswered write left is the state to go on from
        for entry in entries {
            answered.insert(
                entry.key.to_string(),
                (number(&entry.key, &entry.value), entry.mod_revision.0),
            );
        }
    }
    println!("{total} answered writes in {ROUNDS} rounds");
}
