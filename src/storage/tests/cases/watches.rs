//! Cases of watches.

use super::*;

/// When compaction takes what a change replaced, a watch yields it with what it replaced or not at all: without that,
/// nobody could tell a change from a creation, nor who has to hear of a deletion.
pub async fn no_change_is_told_without_its_past(store: Shared, p: &str) {
    let key = &format!("{p}a");
    let first = create(&store, key, "1").await;
    let second = write(&store, key, Expect::Revision(first), put("2")).await;
    let third = write(&store, key, Expect::Revision(second), Write::Delete).await;
    for (revision, before) in [(second, "1"), (third, "2")] {
        store.compact(revision).await.unwrap();
        let after = Revision(revision.0 - 1);
        let told = match store.watch(p, after).await {
            Ok(mut watch) => next(&mut watch).await,
            Err(error) => Err(error),
        };
        match told {
            Err(StoreError::Compacted { oldest }) => assert!(oldest >= revision),
            Ok(WatchItem::Events(events)) => match &events[0] {
                Event::Put { previous, .. } | Event::Delete { previous, .. } => {
                    let previous = previous.as_ref().map(|entry| entry.value.as_ref());
                    assert_eq!(previous, Some(before.as_bytes()));
                }
            },
            other => panic!("{other:?}"),
        }
    }
}

pub async fn watches_tell_every_change_in_order(store: Shared, p: &str) {
    let (a, b) = (&format!("{p}a"), &format!("{p}b"));
    let start = store.current_revision().await.unwrap();
    let mut live = store.watch(p, start).await.unwrap();
    let a1 = create(&store, a, "a1").await;
    let a2 = write(&store, a, Expect::Revision(a1), put("a2")).await;
    let b1 = create(&store, b, "b1").await;
    let a3 = write(&store, a, Expect::Revision(a2), Write::Delete).await;
    let a4 = create(&store, a, "a4").await;
    let all = [
        (a1, (a.clone(), "a1".to_owned(), "-".to_owned())),
        (a2, (a.clone(), "a2".to_owned(), "a1".to_owned())),
        (b1, (b.clone(), "b1".to_owned(), "-".to_owned())),
        (a3, (a.clone(), "-".to_owned(), "a2".to_owned())),
        (a4, (a.clone(), "a4".to_owned(), "-".to_owned())),
    ];
    let seen = |events: Vec<Event>| {
        events
            .iter()
            .map(|event| (revision(event), told(event)))
            .collect::<Vec<_>>()
    };
    assert_eq!(seen(events(&mut live, 5).await), all);
    let mut replay = store.watch(p, start).await.unwrap();
    assert_eq!(seen(events(&mut replay, 5).await), all);
    let mut late = store.watch(p, a2).await.unwrap();
    assert_eq!(seen(events(&mut late, 3).await), all[2..]);
    let b2 = write(&store, b, Expect::Revision(b1), put("b2")).await;
    for watch in [&mut live, &mut replay, &mut late] {
        assert_eq!(
            seen(events(watch, 1).await),
            [(b2, (b.clone(), "b2".to_owned(), "b1".to_owned()))]
        );
    }
}

pub async fn watches_keep_to_their_prefix(store: Shared, p: &str) {
    let start = store.current_revision().await.unwrap();
    let mut live = store.watch(&format!("{p}a/"), start).await.unwrap();
    for key in ["a", "ab/1", "a/1", "b/a/1", "a0", "a/b/c"] {
        create(&store, &format!("{p}{key}"), key).await;
    }
    let mut replay = store.watch(&format!("{p}a/"), start).await.unwrap();
    for watch in [&mut live, &mut replay] {
        let seen: Vec<_> = events(watch, 2).await.iter().map(|event| told(event).1).collect();
        assert_eq!(seen, ["a/1", "a/b/c"]);
    }
}

pub async fn a_watch_continues_a_list_without_a_gap(store: Shared, p: &str) {
    const WRITES: usize = 120;
    let writers = (0..4).map(|writer| {
        let (store, p) = (store.clone(), p.to_owned());
        tokio::spawn(async move {
            for n in 0..WRITES {
                create(&store, &format!("{p}{writer}-{n}"), "x").await;
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let readers = (0..4).map(|reader| {
        let (store, p) = (store.clone(), p.to_owned());
        tokio::spawn(async move {
            for round in 0.. {
                tokio::time::sleep(Duration::from_millis(3 * reader + round)).await;
                let listed = store.list(&p, ListOptions::default()).await.unwrap();
                let mut watch = store.watch(&p, listed.revision).await.unwrap();
                let seen = events(&mut watch, 4 * WRITES - listed.entries.len()).await;
                let mut last = listed.revision;
                for event in &seen {
                    assert!(revision(event) > last, "out of order, or twice");
                    last = revision(event);
                }
                if listed.entries.len() == 4 * WRITES || round == 5 {
                    return;
                }
            }
        })
    });
    for task in join_all(readers.chain(writers)).await {
        task.unwrap();
    }
}

/// A thousand times: a list under a prefix that is written to all the time, then a watch from there, while history is
/// compacted behind it. Whoever comes too late lists again, and is not too late for ever: a machine with other work may
/// let a reader miss several hundred writes, but not each time.
pub async fn lists_and_watches_keep_up_with_a_hot_prefix(store: Shared, p: &str) {
    const ROUNDS: usize = 1000;
    let hot = format!("{p}hot/");
    let done = Arc::new(AtomicBool::new(false));
    // Also where this fails: a writer that never rests would keep the runtime from ending.
    let ended = SetWhenDropped(done.clone());
    let writer = tokio::spawn({
        let (store, key) = (store.clone(), format!("{hot}key"));
        async move {
            let mut last = create(&store, &key, "x").await;
            let mut before = last;
            for n in 0_u64.. {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                let now = write(&store, &key, Expect::Revision(last), put("x")).await;
                if n % 512 == 511 {
                    store.compact(before).await.unwrap();
                    before = last;
                }
                last = now;
            }
        }
    });
    let mut late = 0;
    for _ in 0..ROUNDS {
        let listed = store.list(&hot, ListOptions::default()).await.unwrap();
        let first = match store.watch(&hot, listed.revision).await {
            Ok(mut watch) => loop {
                match next(&mut watch).await {
                    Ok(WatchItem::Events(events)) => break Ok(events),
                    Ok(WatchItem::Progress(_)) => {}
                    Err(error) => break Err(error),
                }
            },
            Err(error) => Err(error),
        };
        match first {
            Ok(events) => {
                assert!(revision(&events[0]) > listed.revision);
                late = 0;
            }
            Err(StoreError::Compacted { .. }) => late += 1,
            Err(other) => panic!("{other}"),
        }
        assert!(late < 8, "too late eight times in a row");
    }
    drop(ended);
    writer.await.unwrap();
}

struct SetWhenDropped(Arc<AtomicBool>);

impl Drop for SetWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A prefix where nothing happens while history goes by elsewhere: its watch lives, and hears what comes at last.
pub async fn an_idle_watch_outlives_history(store: Shared, p: &str) {
    let (idle, busy) = (format!("{p}idle/"), format!("{p}busy/"));
    create(&store, &format!("{idle}first"), "x").await;
    let listed = store.list(&idle, ListOptions::default()).await.unwrap();
    let mut watch = store.watch(&idle, listed.revision).await.unwrap();
    let mut last = create(&store, &format!("{busy}key"), "x").await;
    for _ in 0..300 {
        last = write(&store, &format!("{busy}key"), Expect::Revision(last), put("x")).await;
    }
    store.compact(last).await.unwrap();
    create(&store, &format!("{idle}second"), "x").await;
    assert_eq!(told(&events(&mut watch, 1).await[0]).0, format!("{idle}second"));
    // Who lists now, and is told that nothing changed since, waits for the next change and not for an error.
    let listed = store.list(&idle, ListOptions::default()).await.unwrap();
    assert!(listed.revision > last);
    let mut watch = store.watch(&idle, listed.revision).await.unwrap();
    create(&store, &format!("{idle}third"), "x").await;
    assert_eq!(told(&events(&mut watch, 1).await[0]).0, format!("{idle}third"));
}

/// A write at every moment between a list and the watch from its revision: it is in one of both, and never in both.
pub async fn no_write_slips_between_a_list_and_its_watch(store: Shared, p: &str) {
    for round in 0..200_u64 {
        let key = format!("{p}{round:03}");
        let writer = tokio::spawn({
            let (store, key) = (store.clone(), key.clone());
            async move {
                tokio::time::sleep(Duration::from_micros(round * 10)).await;
                create(&store, &key, "x").await
            }
        });
        let listed = store.list(p, ListOptions::default()).await.unwrap();
        tokio::time::sleep(Duration::from_micros((200 - round) * 5)).await;
        let mut watch = store.watch(p, listed.revision).await.unwrap();
        let written = writer.await.unwrap();
        let was_listed = listed.entries.iter().any(|entry| *entry.key == *key);
        assert_eq!(was_listed, written <= listed.revision);
        if !was_listed {
            assert_eq!(revision(&events(&mut watch, 1).await[0]), written);
        }
    }
}

/// What is certain to be new is read without waiting for anything else to happen: the prefix is idle, another is busy.
pub async fn certain_reads_of_an_idle_prefix_are_quick(store: Shared, p: &str) {
    let (idle, busy) = (format!("{p}idle/"), format!("{p}busy/"));
    create(&store, &format!("{idle}key"), "x").await;
    let mut last = create(&store, &format!("{busy}key"), "x").await;
    store.snapshot(&idle).await.unwrap();
    let mut times = Vec::new();
    for _ in 0..40 {
        last = write(&store, &format!("{busy}key"), Expect::Revision(last), put("x")).await;
        let begin = Instant::now();
        let snapshot = store.snapshot(&idle).await.unwrap();
        times.push(begin.elapsed());
        assert!(snapshot.revision() >= last, "older than an answered write");
        assert_eq!(snapshot.count(&idle), 1);
    }
    times.sort_unstable();
    // Far from what waiting for anything that happens by itself would take, also on a busy machine.
    assert!(times[times.len() / 2] < Duration::from_millis(150), "{times:?}");
}

pub async fn a_slow_watch_misses_nothing(store: Shared, p: &str) {
    const WRITERS: usize = 8;
    const WRITES: usize = 400;
    let start = store.current_revision().await.unwrap();
    let mut watch = store.watch(p, start).await.unwrap();
    create(&store, &format!("{p}first"), "x").await;
    events(&mut watch, 1).await;
    let writers = (0..WRITERS).map(|writer| {
        let store = &store;
        async move {
            for n in 0..WRITES {
                create(store, &format!("{p}{writer}-{n}"), "x").await;
            }
        }
    });
    join_all(writers).await;
    let seen = events(&mut watch, WRITERS * WRITES).await;
    assert!(seen.is_sorted_by(|a, b| revision(a) < revision(b)));
}

pub async fn watches_hear_of_progress_when_asked(store: Shared, p: &str) {
    let mut watch = store
        .watch(&format!("{p}mine/"), store.current_revision().await.unwrap())
        .await
        .unwrap();
    let mine = create(&store, &format!("{p}mine/a"), "x").await;
    let other = create(&store, &format!("{p}other/a"), "x").await;
    let mut seen = Vec::new();
    let asked = Instant::now();
    loop {
        assert!(asked.elapsed() < PATIENCE, "no progress");
        store.request_progress().await.unwrap();
        let item = tokio::time::timeout(Duration::from_millis(100), watch.next()).await;
        match item.map(|item| item.unwrap().unwrap()) {
            Ok(WatchItem::Events(events)) => seen.extend(events.iter().map(revision)),
            Ok(WatchItem::Progress(revision)) => {
                assert!(revision < mine || seen == [mine], "progress before the event");
                if revision >= other {
                    return;
                }
            }
            Err(_silent) => {}
        }
    }
}
