//! Writes per second at 1, 16 and 64 writers, beside the bare limit of the same disk: appending the same bytes to a
//! file, with one fdatasync for whatever is waiting. Then reads.

#![allow(clippy::unwrap_used, reason = "what fails here stops the bench, as it should")]

use std::fs::File;
use std::future::Future;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use keelson_storage::{Expect, HistoryLimits, ListOptions, Revision, Store, StoreConfig, Write, Written, open};
use tokio::runtime::Runtime;

/// Bytes of a pod in protobuf with its managedFields, about.
const VALUE: usize = 3 << 10;
const WRITERS: [usize; 3] = [1, 16, 64];
/// Keys that are written over and over.
const KEYS: u64 = 20_000;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

fn store(runtime: &Runtime, dir: Option<&Path>) -> Arc<dyn Store> {
    let history = HistoryLimits::default();
    let config = match dir {
        Some(dir) => StoreConfig::Embedded {
            dir: dir.to_owned(),
            history,
        },
        None => StoreConfig::Memory { history },
    };
    runtime.block_on(open(config)).unwrap()
}

/// Shares `iterations` out among so many tasks.
fn spread<F>(runtime: &Runtime, writers: usize, iterations: u64, task: impl Fn(Arc<AtomicU64>) -> F) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    let left = Arc::new(AtomicU64::new(iterations));
    let started = Instant::now();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..writers).map(|_| tokio::spawn(task(left.clone()))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    started.elapsed()
}

fn take(left: &AtomicU64) -> Option<u64> {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
        .ok()
}

/// Creates the key, or changes what is there.
async fn put(store: &dyn Store, key: &str, value: Bytes) {
    let held = store.get(key).await.unwrap().entry;
    let mut expect = held.map_or(Expect::Absent, |entry| Expect::Revision(entry.mod_revision));
    loop {
        let write = Write::Put {
            value: value.clone(),
            lease: None,
        };
        match store.write(key, expect, write).await.unwrap() {
            Written::Done { .. } => return,
            Written::Conflict { current, .. } => {
                expect = current.map_or(Expect::Absent, |entry| Expect::Revision(entry.mod_revision));
            }
        }
    }
}

type Waiting = tokio::sync::oneshot::Sender<()>;

/// Appends what is queued, syncs, answers.
fn log(mut file: File, queue: Receiver<(Bytes, Waiting)>) {
    while let Ok(first) = queue.recv() {
        let batch: Vec<_> = std::iter::once(first).chain(queue.try_iter()).collect();
        let bytes: Vec<u8> = batch.iter().flat_map(|(value, _)| value.iter().copied()).collect();
        file.write_all(&bytes).unwrap();
        file.sync_data().unwrap();
        for (_, waiting) in batch {
            waiting.send(()).unwrap();
        }
    }
}

fn writes(criterion: &mut Criterion) {
    let runtime = runtime();
    let value = Bytes::from(vec![b'x'; VALUE]);
    let mut group = criterion.benchmark_group("write");
    group
        .throughput(Throughput::Elements(1))
        .sample_size(10)
        .measurement_time(Duration::from_secs(4));
    for writers in WRITERS {
        let dir = tempfile::tempdir().unwrap();
        let (queue, waiting): (SyncSender<(Bytes, Waiting)>, _) = sync_channel(1024);
        let file = File::create(dir.path().join("log")).unwrap();
        std::thread::spawn(move || log(file, waiting));
        group.bench_function(BenchmarkId::new("bare-log", writers), |bencher| {
            bencher.iter_custom(|iterations| {
                spread(&runtime, writers, iterations, |left| {
                    let (queue, value) = (queue.clone(), value.clone());
                    async move {
                        while take(&left).is_some() {
                            let (answer, answered) = tokio::sync::oneshot::channel();
                            queue.send((value.clone(), answer)).unwrap();
                            answered.await.unwrap();
                        }
                    }
                })
            });
        });
        for (name, dir) in [("embedded", Some(dir.path())), ("memory", None)] {
            let store = store(&runtime, dir);
            group.bench_function(BenchmarkId::new(name, writers), |bencher| {
                bencher.iter_custom(|iterations| {
                    spread(&runtime, writers, iterations, |left| {
                        let (store, value) = (store.clone(), value.clone());
                        async move {
                            while let Some(n) = take(&left) {
                                let key = format!("/registry/pods/default/pod-{:05}", n % KEYS);
                                put(&*store, &key, value.clone()).await;
                            }
                        }
                    })
                });
            });
            runtime.block_on(store.close());
        }
    }
}

fn reads(criterion: &mut Criterion) {
    let runtime = runtime();
    let store = store(&runtime, None);
    let value = Bytes::from(vec![b'x'; VALUE]);
    runtime.block_on(async {
        for n in 0..10_000 {
            put(&*store, &format!("/registry/pods/default/pod-{n:05}"), value.clone()).await;
        }
    });
    let past = runtime.block_on(store.current_revision()).unwrap();
    runtime.block_on(put(&*store, "/registry/pods/default/pod-00000", value));
    let list = |limit, revision| {
        let options = ListOptions {
            limit,
            revision,
            ..ListOptions::default()
        };
        runtime
            .block_on(store.list("/registry/pods/default/", options))
            .unwrap()
    };
    let mut group = criterion.benchmark_group("read");
    group.bench_function("get", |bencher| {
        bencher.iter(|| runtime.block_on(store.get("/registry/pods/default/pod-04711")).unwrap());
    });
    group.bench_function("list-500-of-10000", |bencher| bencher.iter(|| list(500, None)));
    group.bench_function("list-10000", |bencher| bencher.iter(|| list(0, None)));
    group.bench_function("list-10000-in-the-past", |bencher| {
        bencher.iter(|| list(0, Some(Revision(past.0))))
    });
}

criterion_group!(benches, writes, reads);
criterion_main!(benches);
