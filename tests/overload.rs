//! A server that is asked for ten times what it can do, by a noisy user and a quiet one. Its capacity is given: ten
//! seats, and an authorizer that takes ten milliseconds; so what is measured here does not depend on the machine.
//!
//! `KEELSON_OVERLOAD_SECONDS=30 cargo test --test overload` overloads it for longer, and checks times and memory too.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use keelson::api::SCHEME;
use keelson_access::authn::token_file::StaticTokens;
use keelson_access::authn::tokens::Tokens;
use keelson_access::authn::{Anonymous, Authentication};
use keelson_access::authz::{Answer, Authorization, Authorizer, Decision, Rules};
use keelson_access::request_info::RequestInfo;
use keelson_access::user::{GROUP_MASTERS, User};
use keelson_net::listener::ListenerConfig;
use keelson_server::server::{Config, start};
use keelson_server::settings::RequestSettings;
use keelson_storage::HistoryLimits;
use keelson_storage::memory::MemoryStore;
use serde_json::{Value, json};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SEATS: usize = 10;
/// How long a request takes, at least.
const SERVICE: Duration = Duration::from_millis(10);
/// Requests that a user has under way at any time.
const NOISY: usize = 20 * SEATS;
const QUIET: usize = SEATS;
/// Of its fair part the quiet user keeps at least so much.
const KEPT: f64 = 0.45;
/// No test waits longer for something that must happen.
const PATIENCE: Duration = Duration::from_secs(30);
const GROUP: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Whether, and for how long, more than counts is checked.
fn long_run() -> Option<Duration> {
    let seconds = std::env::var("KEELSON_OVERLOAD_SECONDS").ok()?.parse().unwrap();
    Some(Duration::from_secs(seconds))
}

/// Allows everything; users other than the admin wait for that.
struct Slow;

impl Authorizer for Slow {
    fn authorize<'a>(&'a self, user: &'a User, info: &'a RequestInfo) -> Answer<'a> {
        let decision = Decision::Allow(String::new());
        if user.in_group(GROUP_MASTERS) || !info.is_resource {
            return decision.into();
        }
        Answer::Later(Box::pin(async move {
            tokio::time::sleep(SERVICE).await;
            decision
        }))
    }

    fn rules(&self, _: &User, _: &str) -> Rules {
        Rules::default()
    }
}

/// A server on a thread of its own, for as long as the test runs.
fn server() -> SocketAddr {
    let (started, is_started) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let running = start(config()).unwrap();
            started.send(running.local_addr()).unwrap();
            std::future::pending::<()>().await;
        });
    });
    is_started.recv().unwrap()
}

fn config() -> Config {
    let mut listener = ListenerConfig::new(([127, 0, 0, 1], 0).into(), None);
    listener.workers = 2;
    let user = |name: &str, group: &str| {
        let user = User {
            name: name.to_owned(),
            groups: vec![group.to_owned()],
            ..User::default()
        };
        (name.to_owned(), user)
    };
    let users = [
        user("admin", GROUP_MASTERS),
        user("noisy", "some"),
        user("quiet", "some"),
    ];
    let store = Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap());
    let mut config = Config::new(vec![&SCHEME], store, listener);
    config.resources.code = keelson_kube::code(&keelson_kube::CodeOptions::default());
    config.resources.code.merge(keelson_extensions::code());
    config.resources.admission = keelson_kube::admission::chain();
    config.access.authentication = Authentication {
        chain: vec![Tokens::new(vec![Arc::new(StaticTokens::new(users))], None)],
        ..Authentication::default()
    }
    .with_anonymous(Anonymous::Everywhere);
    config.access.authorization = Authorization::new(vec![Arc::new(Slow)]);
    config.access.flow_control = Some(Box::new(keelson_kube::flowcontrol::Reader));
    config.hooks = keelson_kube::bootstrap::hooks(&Default::default());
    config.requests = RequestSettings {
        max_reads: SEATS - 2,
        max_writes: 2,
        ..RequestSettings::default()
    };
    config
}

/// A client on a connection of its own.
#[derive(Clone)]
struct Client {
    sender: SendRequest<Full<Bytes>>,
    token: &'static str,
}

impl Client {
    async fn connect(server: SocketAddr, token: &'static str) -> Client {
        let stream = TcpStream::connect(server).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        Client { sender, token }
    }

    /// The answer and its body; `None`: the connection is gone.
    async fn send(&mut self, method: &str, path: &str, body: Option<Value>) -> Option<(http::response::Parts, String)> {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("http://localhost{path}"))
            .header("content-type", "application/json");
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = request.body(Full::from(body)).unwrap();
        let answer = tokio::time::timeout(PATIENCE, self.sender.send_request(request)).await;
        let (parts, body) = answer.expect("no answer in time").ok()?.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        Some((parts, String::from_utf8(body.to_vec()).unwrap()))
    }

    async fn make(&mut self, path: &str, object: Value) {
        let (parts, body) = self.send("POST", path, Some(object)).await.unwrap();
        assert_eq!(parts.status, 201, "{body}");
    }

    /// One column of a level's row in the table of levels.
    async fn column(&mut self, level: &str, column: &str) -> u32 {
        let path = "/debug/api_priority_and_fairness/dump_priority_levels";
        let (_, table) = self.send("GET", path, None).await.unwrap();
        let mut rows = table
            .lines()
            .map(|row| row.split(',').map(str::trim).collect::<Vec<_>>());
        let place = rows.next().unwrap().iter().position(|name| *name == column).unwrap();
        let row = rows.find(|row| row[0] == level).unwrap();
        row[place].parse().unwrap()
    }
}

/// A level of all seats, and the schema that leads both users there.
async fn set_up(admin: &mut Client) {
    let ready = async {
        while admin.send("GET", "/readyz", None).await.unwrap().0.status != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ready).await.expect("not ready");
    let level = json!({
        "metadata": {"name": "test"},
        "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 100_000,
            "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Queue", "queuing": {"queues": 16, "handSize": 4, "queueLengthLimit": 40}},
        }},
    });
    admin.make(&format!("{GROUP}/prioritylevelconfigurations"), level).await;
    let user = |name: &str| json!({"kind": "User", "user": {"name": name}});
    let schema = json!({
        "metadata": {"name": "test"},
        "spec": {
            "priorityLevelConfiguration": {"name": "test"},
            "matchingPrecedence": 50,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{
                "subjects": [user("noisy"), user("quiet")],
                "resourceRules": [{
                    "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"],
                }],
            }],
        },
    });
    admin.make(&format!("{GROUP}/flowschemas"), schema).await;
    admin.make(MAPS, json!({"metadata": {"name": "a"}})).await;
}

/// What became of a user's requests.
#[derive(Default)]
struct Tally {
    served: AtomicU32,
    refused: AtomicU32,
}

/// Keeps so many requests of a user under way until told to stop.
async fn load(server: SocketAddr, user: &'static str, count: usize, stop: &Arc<AtomicBool>) -> Arc<Tally> {
    // A connection takes no more at once.
    const STREAMS: usize = 50;
    let tally = Arc::new(Tally::default());
    let mut client = Client::connect(server, user).await;
    for n in 0..count {
        if n > 0 && n % STREAMS == 0 {
            client = Client::connect(server, user).await;
        }
        let (mut client, tally, stop) = (client.clone(), tally.clone(), stop.clone());
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let Some((parts, _)) = client.send("GET", &format!("{MAPS}/a"), None).await else {
                    return;
                };
                if parts.status == 200 {
                    tally.served.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                assert_eq!(parts.status, 429);
                assert_eq!(parts.headers["retry-after"], "1");
                assert!(!parts.headers["x-kubernetes-pf-prioritylevel-uid"].is_empty());
                tally.refused.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(SERVICE).await;
            }
        });
    }
    tally
}

/// Asks for the server's health again and again; returns how long each answer took.
async fn probe(server: SocketAddr, stop: &Arc<AtomicBool>) -> Vec<Duration> {
    let mut client = Client::connect(server, "").await;
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let begin = Instant::now();
        let (parts, _) = client.send("GET", "/livez", None).await.unwrap();
        assert_eq!(parts.status, 200);
        took.push(begin.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    took
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_noisy_user_leaves_a_quiet_one_its_part() {
    let server = server();
    let mut admin = Client::connect(server, "admin").await;
    set_up(&mut admin).await;
    let time = long_run().unwrap_or(Duration::from_secs(2));
    let stop = Arc::new(AtomicBool::new(false));
    let of_noisy = load(server, "noisy", NOISY, &stop).await;
    let of_quiet = load(server, "quiet", QUIET, &stop).await;
    let probes = {
        let stop = stop.clone();
        tokio::spawn(async move { probe(server, &stop).await })
    };
    tokio::time::sleep(time / 4).await;
    let early = resident_kib();
    // Never more than there are seats and places in queues, whoever comes.
    let waiting = admin.column("test", "WaitingRequests").await;
    let executing = admin.column("test", "ExecutingRequests").await;
    assert!(executing as usize <= SEATS, "{executing}");
    assert!((1..=16 * 40).contains(&waiting), "{waiting}");
    tokio::time::sleep(time - time / 4).await;
    let grown = resident_kib().saturating_sub(early);
    stop.store(true, Ordering::Relaxed);
    let mut probes = probes.await.unwrap();
    probes.sort_unstable();
    let counts = [&of_noisy, &of_quiet].map(|tally| f64::from(tally.served.load(Ordering::Relaxed)));
    let part = counts[1] / (counts[0] + counts[1]);
    let refused = [&of_noisy, &of_quiet].map(|tally| tally.refused.load(Ordering::Relaxed));
    // Of a hundred probes ninety-nine were answered as fast.
    let health = probes[(probes.len() - 1) * 99 / 100];
    println!("served {counts:?}, the quiet user {part:.2}, refused {refused:?}, health {health:?}, grown {grown} KiB");
    assert!(part >= KEPT / 2.0, "the quiet user had {part} of what was served");
    assert_eq!(refused[1], 0, "the quiet user was turned away");
    assert!(refused[0] > 0 && !probes.is_empty());
    let calm = Instant::now();
    let mut quiet = Client::connect(server, "quiet").await;
    let (parts, _) = quiet.send("GET", &format!("{MAPS}/a"), None).await.unwrap();
    assert_eq!(parts.status, 200);
    if long_run().is_some() {
        assert!(health <= Duration::from_millis(100), "{health:?}");
        assert!(calm.elapsed() <= Duration::from_secs(1), "{:?}", calm.elapsed());
        assert!(grown <= 32 * 1024, "{grown} KiB");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_go_away_leave_seats_and_queues() {
    let server = server();
    let mut admin = Client::connect(server, "admin").await;
    set_up(&mut admin).await;
    let stop = Arc::new(AtomicBool::new(false));
    // With their runtime, so that their connections go with them.
    let mut clients = tokio::runtime::Builder::new_multi_thread();
    let clients = clients.worker_threads(1).enable_all().build().unwrap();
    let of_clients = stop.clone();
    clients.spawn(async move { load(server, "noisy", NOISY / 2, &of_clients).await });
    let until = async |admin: &mut Client, busy: bool| {
        let turn = async {
            while (admin.column("test", "WaitingRequests").await > 0) != busy {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, turn)
            .await
            .expect("it did not happen in time");
    };
    until(&mut admin, true).await;
    clients.shutdown_background();
    until(&mut admin, false).await;
    assert!(admin.column("test", "CancelledRequests").await > 0);
    let idle = async {
        while admin.column("test", "ExecutingRequests").await > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, idle)
        .await
        .expect("seats are still taken");
}

/// Twice as many requests as there are seats, whose clients keep them waiting: bodies that do not come, and answers
/// that nobody reads.
async fn dawdle(server: SocketAddr, how: &str) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for _ in 0..2 * SEATS {
        let mut stream = TcpStream::connect(server).await.unwrap();
        SockRef::from(&stream).set_recv_buffer_size(4 << 10).unwrap();
        let head = "Host: localhost\r\nAuthorization: Bearer noisy\r\nContent-Type: application/json\r\n";
        let request = match how {
            "body" => format!("POST {MAPS} HTTP/1.1\r\n{head}Content-Length: 3000\r\n\r\n{{"),
            query => format!("GET {MAPS}{query} HTTP/1.1\r\n{head}\r\n"),
        };
        stream.write_all(request.as_bytes()).await.unwrap();
        held.push(stream);
    }
    held
}

/// A request whose client keeps it waiting lends its seat to those who wait for one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_kept_waiting_keeps_nobody_waiting() {
    let server = server();
    let mut admin = Client::connect(server, "admin").await;
    set_up(&mut admin).await;
    let text = "x".repeat(500_000);
    for n in 0..20 {
        admin
            .make(
                MAPS,
                json!({"metadata": {"name": format!("large-{n}")}, "data": {"text": text}}),
            )
            .await;
    }
    let mut quiet = Client::connect(server, "quiet").await;
    for how in ["body", "", "?watch=1"] {
        let held = dawdle(server, how).await;
        // They are served, or wait.
        let begin = Instant::now();
        while admin.column("test", "WaitingRequests").await + admin.column("test", "ExecutingRequests").await == 0 {
            assert!(begin.elapsed() < PATIENCE, "{how}: nobody came");
        }
        for _ in 0..20 {
            let begin = Instant::now();
            let (parts, _) = quiet.send("GET", &format!("{MAPS}/a"), None).await.unwrap();
            assert_eq!(parts.status, 200, "{how}");
            // Those who dawdle have a minute.
            assert!(begin.elapsed() < Duration::from_secs(5), "{how}: {:?}", begin.elapsed());
        }
        drop(held);
        while admin.column("test", "ExecutingRequests").await > 0 {
            assert!(begin.elapsed() < PATIENCE, "{how}: seats are kept");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A body that comes slowly comes to its end, and what it asks for is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_body_is_served_though_others_wait() {
    let server = server();
    let mut admin = Client::connect(server, "admin").await;
    set_up(&mut admin).await;
    let stop = Arc::new(AtomicBool::new(false));
    let of_noisy = load(server, "noisy", NOISY / 2, &stop).await;
    let mut stream = TcpStream::connect(server).await.unwrap();
    let body = json!({"metadata": {"name": "slow"}}).to_string();
    let head = format!(
        "POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer quiet\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for byte in body.as_bytes() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        stream.write_all(&[*byte]).await.unwrap();
    }
    let mut answer = Vec::new();
    let reading = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer));
    reading.await.expect("no answer in time").unwrap();
    stop.store(true, Ordering::Relaxed);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert!(of_noisy.served.load(Ordering::Relaxed) > 0);
}
