//! Checking, compacting, copying out and back in.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::embedded::offline;

#[tokio::test]
async fn a_snapshot_of_a_serving_store_is_restored_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let (live, copy) = (dir.path().join("live"), dir.path().join("copy"));
    let file = dir.path().join("snapshot");
    let store = open(&live).unwrap();
    let first = write(&store, "/a", Expect::Absent, Some("one")).await;
    write(&store, "/b", Expect::Absent, Some("two")).await;
    store.snapshot_to(&file).await.unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let taken = all(&store, None).await;
    write(&store, "/a", Expect::Revision(first), Some("later")).await;
    let refused = store.snapshot_to(&file).await.unwrap_err().to_string();
    assert!(refused.contains("exists already"), "{refused}");

    let (report, replaced) = offline::restore(&file, &copy, false).unwrap();
    assert_eq!(replaced, None);
    assert_eq!((report.keys, report.revision), (2, Revision(3)));
    let restored = open(&copy).unwrap();
    assert_eq!(all(&restored, None).await, taken, "keys, values and revisions");
    restored.close().await;
    let refused = offline::restore(&file, &copy, false).unwrap_err().to_string();
    assert!(refused.contains("holds a store already"), "{refused}");
    store.close().await;
}

#[tokio::test]
async fn a_serving_store_is_copied_without_a_trace() {
    use std::io::Read;
    let dir = tempfile::tempdir().unwrap();
    let (live, file) = (dir.path().join("live"), dir.path().join("copy"));
    let store = open(&live).unwrap();
    write(&store, "/a", Expect::Absent, Some("one")).await;
    let names = || {
        fs::read_dir(&live)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect::<Vec<_>>()
    };
    let before = names();
    let mut copy = store.copy().unwrap().await.unwrap();
    assert_eq!(names(), before);
    let busy = store.copy().unwrap().await.unwrap_err().to_string();
    assert!(busy.ends_with("another copy is being made"), "{busy}");
    write(&store, "/b", Expect::Absent, Some("two")).await;
    let mut bytes = Vec::new();
    copy.file.read_to_end(&mut bytes).unwrap();
    fs::write(&file, &bytes).unwrap();
    let report = offline::check_snapshot(&file).unwrap();
    assert_eq!((report.keys, report.revision), (1, Revision(2)));
    drop(copy);
    assert!(store.copy().unwrap().await.is_ok());
    store.close().await;

    let at = bytes.windows(3).position(|bytes| bytes == b"one").unwrap();
    bytes[at] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let damaged = offline::check_snapshot(&file).unwrap_err().to_string();
    assert!(damaged.contains("key /a"), "{damaged}");
}

#[tokio::test]
async fn compaction_forgets_history_and_gives_space_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let value = "x".repeat(20_000);
    let mut expect = Expect::Absent;
    for _ in 0..100 {
        expect = Expect::Revision(write(&store, "/a", expect, Some(&value)).await);
    }
    let busy = offline::check(dir.path()).unwrap_err().to_string();
    assert!(busy.ends_with("is in use by another process"), "{busy}");
    let held = all(&store, None).await;
    store.close().await;
    let (before, after) = offline::compact(dir.path()).unwrap();
    assert_eq!((before.keys, before.value_bytes), (1, 20_000));
    assert_eq!((after.revision, after.oldest), (before.revision, before.revision));
    assert!(after.file_bytes < before.file_bytes / 10, "{before:?} {after:?}");
    let checked = offline::check(dir.path()).unwrap();
    assert_eq!((checked.keys, checked.oldest), (after.keys, after.oldest));
    assert_eq!(all(&open(dir.path()).unwrap(), None).await, held);
}

#[tokio::test]
async fn damage_is_found_before_it_is_restored() {
    let dir = tempfile::tempdir().unwrap();
    let (live, copy) = (dir.path().join("live"), dir.path().join("copy"));
    let (file, bad) = (dir.path().join("snapshot"), dir.path().join("bad"));
    let store = open(&live).unwrap();
    write(
        &store,
        "/a",
        Expect::Absent,
        Some("a value that can be found in the file"),
    )
    .await;
    store.close().await;
    offline::snapshot(&live, &file).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let text = b"can be found";
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at] ^= 1;
    fs::write(&bad, &bytes).unwrap();
    let refused = offline::restore(&bad, &copy, false).unwrap_err();
    assert!(
        matches!(&refused, StoreError::Corrupt(text) if text.contains("key /a")),
        "{refused}"
    );
    assert!(!copy.join("store.db.part").exists());
    assert_eq!(
        offline::restore(&file, &copy, false).unwrap().0.keys,
        1,
        "the folder is free still"
    );

    fs::write(copy.join("store.db"), &bytes).unwrap();
    assert!(matches!(offline::check(&copy), Err(StoreError::Corrupt(_))));
}

#[test]
fn what_is_no_store_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = |error: StoreError| error.to_string();
    assert!(text(offline::check(dir.path()).unwrap_err()).ends_with("holds no store"));
    let absent = offline::restore(&dir.path().join("x"), dir.path(), false).unwrap_err();
    assert!(text(absent).ends_with("there is no such file"));
    let file = dir.path().join("text");
    fs::write(&file, "not a database, but long enough to be looked at as one").unwrap();
    assert!(matches!(
        offline::restore(&file, dir.path(), false),
        Err(StoreError::Corrupt(_))
    ));
}

/// What people do in an emergency: the file is gone or damaged, its log is still there, and a snapshot is put back.
#[tokio::test]
async fn a_snapshot_never_meets_the_log_of_another_store() {
    let dir = tempfile::tempdir().unwrap();
    let (live, file) = (dir.path().join("live"), dir.path().join("snapshot"));
    let store = open(&live).unwrap();
    store.stop_upkeep(); // what follows stays in the log
    write(&store, "/old", Expect::Absent, Some("1")).await;
    store.snapshot_to(&file).await.unwrap();
    for n in 0..100 {
        write(&store, &format!("/new/{n}"), Expect::Absent, Some("2")).await;
    }
    let timeline = store.timeline();
    let crashed = dir.path().join("crashed");
    fs::create_dir(&crashed).unwrap();
    fs::copy(live.join("store.db-wal"), crashed.join("store.db-wal")).unwrap();
    store.close().await;

    let lost = open(&crashed).map(drop).unwrap_err().to_string();
    assert!(
        lost.contains("store.db: the file is missing, and its log beside it is not"),
        "{lost}"
    );
    assert!(!crashed.join("store.db").exists(), "nothing is made beside the log");
    let refused = offline::restore(&file, &crashed, false).unwrap_err().to_string();
    assert!(refused.contains("holds a store already"), "{refused}");
    let (report, replaced) = offline::restore(&file, &crashed, true).unwrap();
    assert_eq!((report.keys, report.revision), (1, Revision(2)));
    assert!(
        replaced.unwrap().join("store.db-wal").metadata().unwrap().len() > 0,
        "the old files are kept"
    );
    let restored = open(&crashed).unwrap();
    assert_eq!(all(&restored, None).await.len(), 1);
    assert_ne!(
        restored.timeline(),
        timeline,
        "revisions after the snapshot are others now"
    );
    let again = restored.timeline();
    restored.close().await;
    let restored = open(&crashed).unwrap();
    assert_eq!(restored.timeline(), again, "which stays so");
    restored.close().await;

    let (report, replaced) = offline::restore(&file, &live, true).unwrap();
    assert_eq!(report.keys, 1);
    assert_eq!(
        offline::check(&replaced.unwrap()).unwrap().keys,
        101,
        "and can be opened as a store"
    );
}

/// A copy reads the store for as long as it takes; a log that has to be emptied does not wait for it.
#[tokio::test]
async fn a_copy_holds_up_no_recovery() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    for n in 0..30 {
        write(&store, &format!("/{n}"), Expect::Absent, Some(&"x".repeat(1 << 20))).await;
    }
    let begin = std::time::Instant::now();
    let big = crate::Write::Put {
        value: vec![b'x'; 1 << 20].into(),
        lease: None,
    };
    let interrupted = async {
        loop {
            let copy = tokio::join!(store.copy().unwrap(), async {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                let fault = super::super::writer::Command::Fault { pages: 1 };
                assert!(store.queue.send(fault).await.is_ok());
                store.write("/big", Expect::Absent, big.clone()).await.unwrap_err();
                let fault = super::super::writer::Command::Fault { pages: 1 << 30 };
                assert!(store.queue.send(fault).await.is_ok());
                while store.health().await.is_err() {
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
            });
            if copy.0.is_err() {
                break;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), interrupted)
        .await
        .unwrap();
    println!("{:?}", begin.elapsed());
    write(&store, "/after", Expect::Absent, Some("x")).await;
    assert!(store.copy().unwrap().await.is_ok(), "the next one is made");
}
