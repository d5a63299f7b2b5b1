//! Creates and updates of a configmap of 1 KiB through the whole server, on the embedded store and on etcd, at 1, 16
//! and 64 writers, beside the bare limit of each: the embedded store's own writes, and etcd's own puts. Etcd is
//! measured if ETCD_BIN names it.
//!
//! The bars: 70 % of the embedded store's rate, 85 % of etcd's.

#![allow(clippy::unwrap_used, reason = "what fails here stops the benchmark, as it should")]

mod support;

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use keelson_storage::{EtcdConfig, Expect, HistoryLimits, Store, StoreConfig, Write, open};
use support::client::{Client, Identity, Protocol};
use support::{request, serve};
use tokio::runtime::Runtime;

const NAMESPACE: &str = "/api/v1/namespaces/default/configmaps";
const WRITERS: [usize; 3] = [1, 16, 64];
/// As many bytes as a configmap of the requests has in the store.
const STORED: usize = 1_100;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// An etcd with its data on disk, killed when dropped.
struct Etcd {
    child: Child,
    endpoint: String,
    _folder: tempfile::TempDir,
}

impl Etcd {
    fn start() -> Option<Etcd> {
        let program = std::env::var_os("ETCD_BIN")?;
        let folder = tempfile::tempdir().unwrap();
        let [endpoint, peer] = [(); 2].map(|()| format!("http://127.0.0.1:{}", free_port()));
        let child = Command::new(program)
            .arg("--data-dir")
            .arg(folder.path())
            .args(["--listen-client-urls", &endpoint, "--advertise-client-urls", &endpoint])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}"), "--log-level=error"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        while std::net::TcpStream::connect(endpoint.trim_start_matches("http://")).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(20), "etcd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Etcd {
            child,
            endpoint,
            _folder: folder,
        })
    }

    fn config(&self) -> StoreConfig {
        StoreConfig::Etcd(EtcdConfig {
            endpoints: vec![self.endpoint.clone()],
            ..EtcdConfig::default()
        })
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn embedded(folder: &Path) -> StoreConfig {
    StoreConfig::Embedded {
        dir: folder.to_owned(),
        history: HistoryLimits::default(),
    }
}

/// `count` writes by so many tasks, each one after another.
fn spread<F: Future<Output = ()>>(runtime: &Runtime, writers: usize, count: u64, write: impl Fn(u64) -> F) -> Duration {
    let left = AtomicU64::new(count);
    let begin = Instant::now();
    runtime.block_on(futures_util::future::join_all((0..writers).map(|_| async {
        while left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok()
        {
            write(NEXT.fetch_add(1, Ordering::Relaxed)).await;
        }
    })));
    begin.elapsed()
}

fn create(index: u64) -> String {
    let value = "v".repeat(800);
    format!(r#"{{"metadata":{{"name":"cm-{index:09}"}},"data":{{"key":"{value}"}}}}"#)
}

/// Creates, and updates of what they made.
fn requests(client: &Client, count: u64, update: bool) -> Duration {
    if update {
        let make = || {
            let index = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("updated-{}", index % 500);
            // Each is another, or nothing would be written.
            let body = create(index).replace(&format!("cm-{index:09}"), &name);
            let body = body.replace(r#""data":{"#, &format!(r#""data":{{"index":"{index}","#));
            request("PUT", &format!("{NAMESPACE}/{name}"), "application/json", body)
        };
        return client.run(count, &make).wall;
    }
    let make = || {
        let index = NEXT.fetch_add(1, Ordering::Relaxed);
        request("POST", NAMESPACE, "application/json", create(index))
    };
    client.run(count, &make).wall
}

fn compare(
    criterion: &mut Criterion,
    name: &str,
    identity: &Identity,
    address: SocketAddr,
    raw: impl Fn(usize, u64) -> Duration,
) {
    for index in 0..500 {
        let client = Client::connect(identity, address, Protocol::Http2, 1, 1);
        let body = create(0).replace("cm-000000000", &format!("updated-{index}"));
        client.run(1, &|| request("POST", NAMESPACE, "application/json", body.clone()));
    }
    let mut group = criterion.benchmark_group(name);
    group
        .throughput(Throughput::Elements(1))
        .sample_size(10)
        .measurement_time(Duration::from_secs(3));
    for writers in WRITERS {
        let client = Client::connect(identity, address, Protocol::Http2, 2.min(writers), writers);
        for (what, update) in [("create", false), ("update", true)] {
            group.bench_function(BenchmarkId::new(what, writers), |bencher| {
                bencher.iter_custom(|count| requests(&client, count, update));
            });
        }
        group.bench_function(BenchmarkId::new("bare limit", writers), |bencher| {
            bencher.iter_custom(|count| raw(writers, count));
        });
    }
    group.finish();
}

fn on_embedded(criterion: &mut Criterion, identity: &Identity, runtime: &Runtime) {
    let (served, bare) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let address = serve(identity, embedded(served.path()));
    let store: Arc<dyn Store> = runtime.block_on(open(embedded(bare.path()))).unwrap();
    let value = Bytes::from(vec![b'x'; STORED]);
    compare(criterion, "embedded", identity, address, |writers, count| {
        spread(runtime, writers, count, |index| {
            let (store, value) = (&store, value.clone());
            async move {
                let key = format!("/registry/configmaps/default/cm-{index:09}");
                let put = Write::Put { value, lease: None };
                store.write(&key, Expect::Absent, put).await.unwrap();
            }
        })
    });
    runtime.block_on(store.close());
}

fn on_etcd(criterion: &mut Criterion, identity: &Identity, runtime: &Runtime) {
    let (Some(served), Some(bare)) = (Etcd::start(), Etcd::start()) else {
        return;
    };
    let address = serve(identity, served.config());
    let client = runtime
        .block_on(etcd_client::Client::connect([&bare.endpoint], None))
        .unwrap();
    compare(criterion, "etcd", identity, address, |writers, count| {
        spread(runtime, writers, count, |index| {
            let mut kv = client.kv_client();
            async move {
                let key = format!("/registry/configmaps/default/cm-{index:09}");
                kv.put(key, vec![b'x'; STORED], None).await.unwrap();
            }
        })
    });
}

fn writes(criterion: &mut Criterion) {
    let identity = Identity::create();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    on_embedded(criterion, &identity, &runtime);
    on_etcd(criterion, &identity, &runtime);
}

criterion_group!(benches, writes);
criterion_main!(benches);
