//! Reopening: what is there after a store was closed, or not closed, and opened again.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use rusqlite::Connection;

use super::{all, open, write};
use crate::embedded::{offline, repair};
use crate::{Entry, Expect, ListOptions, Position, Revision, Store, StoreError, WatchItem, Write};

#[tokio::test]
async fn everything_is_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let a1 = write(&store, "/a", Expect::Absent, Some("a1")).await;
    let b1 = write(&store, "/b", Expect::Absent, Some("b1")).await;
    let a2 = write(&store, "/a", Expect::Revision(a1), Some("a2")).await;
    let b2 = write(&store, "/b", Expect::Revision(b1), None).await;
    let (now, past) = (all(&store, None).await, all(&store, Some(b1)).await);
    store.close().await;

    let store = open(dir.path()).unwrap();
    assert_eq!(store.current_revision().await.unwrap(), b2);
    assert_eq!(all(&store, None).await, now);
    assert_eq!(all(&store, Some(b1)).await, past);
    let mut watch = store.watch("/", a1).await.unwrap();
    let Some(Ok(WatchItem::Events(events))) = watch.next().await else {
        panic!("no events")
    };
    assert_eq!(events.len(), 3);
    assert_eq!(
        write(&store, "/a", Expect::Revision(a2), Some("a3")).await,
        Revision(b2.0 + 1)
    );
}

#[tokio::test]
async fn compacted_history_stays_compacted_and_its_rows_go() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let mut last = write(&store, "/a", Expect::Absent, Some("0")).await;
    write(&store, "/kept", Expect::Absent, Some("x")).await;
    let gone = write(&store, "/gone", Expect::Absent, Some("x")).await;
    write(&store, "/gone", Expect::Revision(gone), None).await;
    for n in 1..500 {
        last = write(&store, "/a", Expect::Revision(last), Some(&n.to_string())).await;
    }
    store.compact(last).await.unwrap();
    let entries = all(&store, None).await;
    // closed at once, so that the rows are deleted by the store that opens next
    store.close().await;
    let store = open(dir.path()).unwrap();
    assert_eq!(all(&store, None).await, entries);
    let old = ListOptions {
        revision: Some(Revision(last.0 - 1)),
        ..Default::default()
    };
    assert!(matches!(store.list("/", old).await, Err(StoreError::Compacted { oldest }) if oldest == last));

    let rows = || {
        let database = Connection::open(dir.path().join("store.db")).unwrap();
        database
            .query_row("SELECT count(*) FROM history", [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    for _ in 0..100 {
        if rows() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(rows(), 2, "what the two keys hold");
    let deleted = write(&store, "/a", Expect::Revision(last), None).await;
    store.compact(deleted).await.unwrap();
    store.close().await;
    let store = open(dir.path()).unwrap();
    assert_eq!(
        store.current_revision().await.unwrap(),
        deleted,
        "though no row may be left that has it"
    );
}

/// Compaction takes what the oldest revision replaced from the disk: after another start a watch must not tell of it.
#[tokio::test]
async fn the_oldest_change_is_not_told_without_its_past() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let first = write(&store, "/a", Expect::Absent, Some("1")).await;
    let second = write(&store, "/a", Expect::Revision(first), Some("2")).await;
    write(&store, "/b", Expect::Absent, Some("x")).await;
    store.compact(second).await.unwrap();
    // takes the row along
    write(&store, "/c", Expect::Absent, Some("x")).await;
    store.close().await;
    let store = open(dir.path()).unwrap();
    let mut watch = store.watch("/", first).await.unwrap();
    let told = watch.next().await;
    assert!(
        matches!(told, Some(Err(StoreError::Compacted { oldest })) if oldest == second),
        "{told:?}"
    );
    let first = Position {
        revision: first,
        ..store.held_position("/").unwrap()
    };
    assert_eq!(store.events("/", first, second, 10), None);
    let mut watch = store.watch("/", second).await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(WatchItem::Events(events))) if events.len() == 2));
}

#[tokio::test]
async fn leases_begin_anew_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let lease = store.grant(Duration::from_secs(1)).await.unwrap();
    let put = Write::Put {
        value: "x".into(),
        lease: Some(lease),
    };
    store.write("/a", Expect::Absent, put).await.unwrap();
    let long = store.grant(Duration::from_secs(3600)).await.unwrap();
    store.close().await;

    let store = open(dir.path()).unwrap();
    assert_eq!(all(&store, None).await.len(), 1);
    let put = Write::Put {
        value: "y".into(),
        lease: Some(long),
    };
    store.write("/b", Expect::Absent, put).await.unwrap();
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if all(&store, None).await.len() == 1 {
            return;
        }
    }
    panic!("the key outlived its lease");
}

#[tokio::test]
async fn one_process_at_a_time_and_nobody_else_reads_the_files() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("a/store");
    let store = open(&dir).unwrap();
    write(&store, "/a", Expect::Absent, Some("x")).await;
    let Err(StoreError::Unavailable(reason)) = open(&dir) else {
        panic!("opened twice")
    };
    assert_eq!(reason, format!("{} is in use by another process", dir.display()));

    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    let files: Vec<_> = fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    store.close().await;
    open(&dir).unwrap();
}

/// A folder that a crash left behind, the log torn at any byte, opens as it was after some transaction, which is the
/// last if the log is whole.
/// A server that was killed has the folder until the system has ended it.
#[test]
fn who_has_the_folder_for_a_moment_is_waited_for() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    drop(open(&dir).unwrap());
    let lock = fs::File::open(dir.join("lock")).unwrap();
    lock.lock().unwrap();
    let predecessor = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        drop(lock);
    });
    drop(open(&dir).unwrap());
    predecessor.join().unwrap();
}

#[tokio::test]
async fn a_torn_log_opens_at_a_whole_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    store.stop_upkeep(); // no checkpoint, so that everything is in the log
    let mut states: Vec<Vec<Entry>> = vec![vec![]];
    let mut last = Expect::Absent;
    for n in 0..40 {
        let value = n.to_string().repeat(1 + 40 * n);
        last = Expect::Revision(write(&store, "/a", last, Some(&value)).await);
        states.push(all(&store, None).await);
        write(&store, &format!("/{n}"), Expect::Absent, Some(&value)).await;
        states.push(all(&store, None).await);
    }
    let read = |name| fs::read(dir.path().join(name)).unwrap();
    let (database, log) = (read("store.db"), read("store.db-wal"));
    let mut newest = 0;
    for cut in (0..=log.len()).step_by(7919).chain([log.len()]) {
        let copy = tempfile::tempdir().unwrap();
        fs::write(copy.path().join("store.db"), &database).unwrap();
        fs::write(copy.path().join("store.db-wal"), &log[..cut]).unwrap();
        let store = open(copy.path()).unwrap();
        let revision = store.current_revision().await.unwrap().0 as usize;
        assert!(
            revision > newest || revision == newest.max(1),
            "a longer log holds no less"
        );
        assert_eq!(all(&store, None).await, states[revision - 1]);
        newest = revision;
    }
    assert_eq!(newest, states.len());
}

#[tokio::test]
async fn damaged_rows_are_named() {
    // after a compaction, the rows of that time are in the table of current keys
    let damages = [
        (
            false,
            "UPDATE history SET value = x'00' WHERE key = '/b'",
            "key /b at revision 3: its checksum is wrong",
        ),
        (
            false,
            "UPDATE history SET key = '/c' WHERE key = '/b'",
            "key /c at revision 3: its checksum is wrong",
        ),
        (
            false,
            "UPDATE history SET version = 7 WHERE key = '/b'",
            "key /b at revision 3: its checksum is wrong",
        ),
        (
            false,
            "DELETE FROM history WHERE revision = 2",
            "key /b at revision 3: the revision before it is missing",
        ),
        (
            false,
            "DELETE FROM history WHERE revision = 4",
            "the last revision is 3, and was 4",
        ),
        (
            false,
            "UPDATE meta SET value = 3 WHERE name = 'last_revision'",
            "row last_revision of table meta: its checksum is wrong",
        ),
        (
            true,
            "DELETE FROM history WHERE revision = 3",
            "key /b: revision 3 is missing",
        ),
        (
            true,
            "DELETE FROM history WHERE revision = 4",
            "key /a: revision 4 is missing",
        ),
    ];
    for (compacted, damage, told) in damages {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).unwrap();
        let a1 = write(&store, "/a", Expect::Absent, Some("a1")).await;
        write(&store, "/b", Expect::Absent, Some("b1")).await;
        let last = write(&store, "/a", Expect::Revision(a1), Some("a2")).await;
        if compacted {
            store.compact(last).await.unwrap();
        }
        store.close().await;
        let file = dir.path().join("store.db");
        assert_eq!(Connection::open(&file).unwrap().execute(damage, []).unwrap(), 1);
        let Err(StoreError::Corrupt(reason)) = open(dir.path()) else {
            panic!("opened after {damage}")
        };
        assert_eq!(reason, format!("{}: {told}", file.display()));
    }
}

/// The table of current keys is brought up to date for many keys at once, and what it says holds at any moment.
#[tokio::test]
async fn the_table_of_keys_follows() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).unwrap();
    let mut first = Revision(0);
    for n in 0..1300 {
        let revision = write(&store, &format!("/key/{n}"), Expect::Absent, Some("x")).await;
        first = if n == 0 { revision } else { first };
        if n % 400 == 0 {
            store.close().await;
            store = open(dir.path()).unwrap();
        }
    }
    write(&store, "/key/0", Expect::Revision(first), None).await;
    let entries = all(&store, None).await;
    store.close().await;
    let rows = {
        let database = Connection::open(dir.path().join("store.db")).unwrap();
        let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        database.query_row("SELECT count(*) FROM current", [], count).unwrap()
    };
    assert!((700..1300).contains(&rows), "{rows}");
    let store = open(dir.path()).unwrap();
    assert_eq!(all(&store, None).await, entries);
}

/// Writes that are refused, and ticks, come between those that bring the table up to date.
#[tokio::test]
async fn refused_writes_leave_the_table_of_keys_right() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let refused = async |key: &str| {
        let put = Write::Put {
            value: "x".into(),
            lease: None,
        };
        let written = store.write(key, Expect::Absent, put).await.unwrap();
        assert!(matches!(written, crate::Written::Conflict { .. }), "{written:?}");
    };
    for n in 0..700 {
        write(&store, &format!("/a/{n}"), Expect::Absent, Some("x")).await;
        refused(&format!("/a/{n}")).await;
    }
    tokio::time::sleep(Duration::from_millis(1200)).await; // ticks with nothing to do
    for n in 0..700 {
        write(&store, &format!("/b/{n}"), Expect::Absent, Some("x")).await;
    }
    store.close().await;
    assert_eq!(offline::check(dir.path()).unwrap().keys, 1400);
}

/// A folder that an older version left: its rows are all there, and its table of current keys lacks 512.
#[tokio::test]
async fn a_table_that_is_behind_is_mended() {
    let dir = tempfile::tempdir().unwrap();
    let leave = async || {
        let store = open(dir.path()).unwrap();
        for n in 0..600 {
            let key = format!("/key/{n}");
            let held = store.get(&key).await.unwrap().entry;
            let expect = held.map_or(Expect::Absent, |held| Expect::Revision(held.mod_revision));
            write(&store, &key, expect, Some("x")).await;
        }
        store.compact(store.current_revision().await.unwrap()).await.unwrap();
        let entries = all(&store, None).await;
        store.close().await;
        let file = Connection::open(dir.path().join("store.db")).unwrap();
        assert_eq!(
            file.execute("DELETE FROM current WHERE key < '/key/5'", []).unwrap(),
            445
        );
        entries
    };
    let entries = leave().await;
    let told = offline::check(dir.path()).unwrap_err().to_string();
    assert!(
        told.contains("445 keys are not as the table current says. Nothing is lost"),
        "{told}"
    );
    let repaired = repair(dir.path(), false).unwrap();
    assert_eq!(repaired.mended, ["445 keys are not as the table current says"]);
    assert_eq!(repaired.report.keys, 600);
    let kept = repaired.kept.unwrap();
    assert!(
        offline::check(&kept).unwrap_err().to_string().contains("445 keys"),
        "as it was"
    );
    assert_eq!(offline::check(dir.path()).unwrap().keys, 600);
    assert_eq!(
        repair(dir.path(), false).unwrap().mended,
        [""; 0],
        "nothing is left to mend"
    );
    let store = open(dir.path()).unwrap();
    assert_eq!(all(&store, None).await, entries);
    store.close().await;

    let entries = leave().await;
    let store = open(dir.path()).unwrap();
    assert_eq!(all(&store, None).await, entries, "a start mends it too");
    store.close().await;
    offline::check(dir.path()).unwrap();
}

/// Rows that are lost are given up when that is wanted, and named.
#[tokio::test]
async fn a_repair_says_what_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    for n in 0..5 {
        write(&store, &format!("/{n}"), Expect::Absent, Some("x")).await;
    }
    let last = store.current_revision().await.unwrap();
    store.compact(last).await.unwrap();
    let timeline = store.timeline();
    store.close().await;
    let file = Connection::open(dir.path().join("store.db")).unwrap();
    assert_eq!(file.execute("DELETE FROM history WHERE revision = 3", []).unwrap(), 1);
    drop(file);
    let lost = "key /1: revision 3 is missing";
    for refused in [open(dir.path()).map(drop), repair(dir.path(), false).map(drop)] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.ends_with(lost), "{refused}");
    }
    let repaired = repair(dir.path(), true).unwrap();
    assert_eq!((repaired.mended, repaired.report.keys), (vec![lost.to_owned()], 4));
    let store = open(dir.path()).unwrap();
    assert_eq!(store.current_revision().await.unwrap(), last);
    assert_ne!(store.timeline(), timeline, "clients know of what is lost");
    store.close().await;
}

#[tokio::test]
async fn files_of_others_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.db");
    fs::write(&file, "not a database, but long enough to be one".repeat(100)).unwrap();
    let Err(StoreError::Corrupt(reason)) = open(dir.path()) else {
        panic!("opened")
    };
    assert!(reason.starts_with(&file.display().to_string()), "{reason}");

    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).unwrap().close().await;
    let file = dir.path().join("store.db");
    Connection::open(&file)
        .unwrap()
        .execute("UPDATE meta SET value = 2 WHERE name = 'format'", [])
        .unwrap();
    let Err(StoreError::Unavailable(reason)) = open(dir.path()) else {
        panic!("opened")
    };
    assert_eq!(
        reason,
        format!("{} has format 2, and this version reads format 3 only", file.display())
    );
}
