//! Attacks on a server under load: floods of frames, slow clients, masses of watches and of connections. Beside each a
//! quiet user goes on reading one object, comes anew now and then, and others write and watch. The time of the quiet
//! user's reads is bounded, and so is the server's memory.

mod beside;
mod floods;
mod frames;
mod slow;

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::run::client::{Client, Connection, Target};
use crate::run::server::Server;
use beside::{Beside, Seen};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";
/// Users of the same priority.
const QUIET: &str = "quiet";
const MALLORY: &str = "mallory";
/// Objects of the namespace, with a KiB each.
const OBJECTS: usize = 200;

/// An attack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Attack {
    RapidResets,
    ForcedResets,
    Continuations,
    EmptyContinuations,
    Settings,
    Pings,
    Priorities,
    WindowUpdates,
    EmptyData,
    PaddedData,
    UnfoldingHeads,
    OneByteWindows,
    Toggles,
    ClosedWindows,
    SlowHeads,
    SlowBodies,
    Watches,
    Idle,
}

impl Attack {
    /// Connections at a time.
    fn connections(self) -> usize {
        match self {
            Attack::SlowHeads | Attack::SlowBodies => 500,
            Attack::ClosedWindows => 50,
            Attack::Watches => 200,
            Attack::Idle => 2 * DESCRIPTORS,
            _ => 4,
        }
    }

    /// MiB that the server may take for it at most, beside what it takes anyway.
    fn memory(self) -> usize {
        match self {
            // 60 KB of each body came.
            Attack::SlowBodies => 200,
            // 5 000 answers of 300 KB that nobody reads.
            Attack::ClosedWindows => 300,
            // 20 000, at 8 KiB each.
            Attack::Watches => 160,
            _ => 100,
        }
    }
}

/// Descriptors that the server may have open.
const DESCRIPTORS: usize = 1024;

/// What became of it.
#[derive(Default, Debug)]
struct Outcome {
    opened: usize,
    /// Connections that the server did not take in time.
    refused: usize,
    /// Connections that the server closed.
    ended: usize,
    /// What was sent of a flood's units.
    units: u64,
    /// Heads of answers on the first connections.
    answered: usize,
}

/// Who opens the attacking connections.
struct Attacker {
    target: Arc<Target>,
    process: u32,
    /// MiB when all connections were open.
    opened: Cell<usize>,
}

impl Attacker {
    async fn open(&self, http2: bool) -> Option<Connection> {
        Client::new(Arc::clone(&self.target), http2).open().await
    }

    fn note_opened(&self) {
        self.opened.set(memory(self.process, "VmRSS:"));
    }
}

/// What is attacked, for how long, and what it may take.
pub struct Plan {
    pub attacks: Vec<Attack>,
    pub time: Duration,
    /// Of a hundred reads of the quiet user 99 are answered within this time.
    pub p99: Duration,
}

pub async fn run(program: &Path, plan: Plan) -> bool {
    let attacks: Vec<Attack> = match plan.attacks.is_empty() {
        true => clap::ValueEnum::value_variants().to_vec(),
        false => plan.attacks,
    };
    let folder = tempfile::tempdir().unwrap();
    let limited = limited(program, folder.path());
    let flags = vec!["--storage-backend=embedded".to_owned()];
    let server = Server::start(&limited, &folder.path().join("server"), flags);
    let target = server.target();
    server.serves().await.unwrap();
    prepare(&target).await;
    let mut wrong = 0;
    for attack in std::iter::once(None).chain(attacks.into_iter().map(Some)) {
        let found = one(attack, &server, &target, plan.time).await;
        wrong += usize::from(found.judge(attack, plan.p99));
        // Connections end, and with them what was held for them.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(!server.has_ended(), "{}", server.last_words());
    let (status, _) = Client::new(target, false)
        .get("/readyz?verbose")
        .await
        .unwrap_or((200, Value::Null));
    println!("{wrong} attacks broke a bar; readyz {status}");
    wrong == 0
}

/// The program with so many descriptors. A server raises its own limit as far as it may.
fn limited(program: &Path, folder: &Path) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("limited");
    let program = program.canonicalize().unwrap();
    let script = format!(
        "#!/bin/sh\nulimit -n {DESCRIPTORS}\nexec {} \"$@\"\n",
        program.display()
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path
}

/// Objects, and the rights of both users.
async fn prepare(target: &Arc<Target>) {
    let mut admin = Client::new(Arc::clone(target), false);
    for n in 0..OBJECTS {
        let map = json!({"metadata": {"name": format!("map-{n}")}, "data": {"text": "x".repeat(1024)}});
        let made = admin.call(Method::POST, MAPS, JSON, map.to_string()).await;
        assert_eq!(made.unwrap().0, 201);
    }
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({
        "metadata": {"name": "maps"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}],
    });
    let user = |name: &str| json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name});
    let binding = json!({
        "metadata": {"name": "maps"},
        "roleRef": {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "maps"},
        "subjects": [user(QUIET), user(MALLORY)],
    });
    for (resource, body) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let made = admin
            .call(Method::POST, &format!("{rbac}/{resource}"), JSON, body.to_string())
            .await;
        assert_eq!(made.unwrap().0, 201, "{resource}");
    }
}

/// What was seen of an attack.
struct Found {
    outcome: Outcome,
    seen: Seen,
    cpu: Duration,
    /// MiB of the server before it, when all was open, and at most.
    before: usize,
    opened: usize,
    peak: usize,
}

/// `None`: nobody attacks.
async fn one(attack: Option<Attack>, server: &Server, target: &Arc<Target>, time: Duration) -> Found {
    let process = server.process();
    forget_peak(process);
    let (before, cpu_before) = (memory(process, "VmRSS:"), cpu(process));
    let beside = Beside::start(Arc::clone(target));
    let attacker = Attacker {
        target: Arc::clone(target),
        process,
        opened: Cell::new(before),
    };
    let (outcome, opened) = match attack {
        // One thread, so that the machine has others for who is attacked.
        Some(attack) => tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            tokio::task::LocalSet::new().block_on(&runtime.unwrap(), wage(attack, attacker, Instant::now() + time))
        })
        .await
        .unwrap(),
        None => {
            tokio::time::sleep(time).await;
            (Outcome::default(), before)
        }
    };
    let peak = memory(process, "VmHWM:");
    Found {
        outcome,
        opened,
        seen: beside.end(),
        cpu: cpu(process) - cpu_before,
        before,
        peak,
    }
}

/// The attack, and MiB of the server when all its connections were open.
async fn wage(attack: Attack, attacker: Attacker, until: Instant) -> (Outcome, usize) {
    if let Some(outcome) = slow::run(attack, &attacker, until).await {
        return (outcome, attacker.opened.get());
    }
    let attacker = Rc::new(attacker);
    let floods: Vec<_> = (0..attack.connections())
        .map(|_| {
            let attacker = Rc::clone(&attacker);
            tokio::task::spawn_local(async move { floods::run(attack, &attacker, until).await })
        })
        .collect();
    let mut all = Outcome::default();
    for flood in floods {
        let one = flood.await.unwrap().unwrap();
        all.opened += one.opened;
        all.ended += one.ended;
        all.units += one.units;
    }
    (all, attacker.opened.get())
}

impl Found {
    /// Tells all of it; whether a bar is broken.
    fn judge(&self, attack: Option<Attack>, p99: Duration) -> bool {
        let name = attack.map_or("nobody".to_owned(), |attack| format!("{attack:?}"));
        let grown = self.peak.saturating_sub(self.before);
        let (reads, newcomers, writes) = (&self.seen.reads, &self.seen.newcomers, &self.seen.writes);
        println!(
            "{name}: reads p50 {:.1?} p99 {:.1?} max {:.1?} of {}, failed {}; newcomers p99 {:.1?}, failed {} of {}; \
             writes p99 {:.1?}, failed {}; server {:.1?} CPU, {} MiB, open {}, peak {}; {:?}",
            reads.within(500),
            reads.within(990),
            reads.within(1000),
            reads.count(),
            reads.failed,
            newcomers.within(990),
            newcomers.failed,
            newcomers.count(),
            writes.within(990),
            writes.failed,
            self.cpu,
            self.before,
            self.opened,
            self.peak,
            self.outcome,
        );
        let slow = reads.within(990) > p99 || reads.failed > 0 || reads.count() < 20;
        let large = attack.is_some_and(|attack| grown > attack.memory());
        if slow || large {
            println!(
                "{name}: BROKEN:{}{}",
                if slow { " time" } else { "" },
                if large { " memory" } else { "" }
            );
        }
        slow || large
    }
}

/// A figure of a process, in MiB.
fn memory(process: u32, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib >> 10
}

/// Forgets the peak of memory; where that is not allowed, those before count too.
fn forget_peak(process: u32) {
    let _ = std::fs::write(format!("/proc/{process}/clear_refs"), "5");
}

fn cpu(process: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, rest) = text.rsplit_once(") ").unwrap();
    let mut fields = rest.split(' ').skip(11).map(|field| field.parse::<u64>().unwrap());
    Duration::from_millis((fields.next().unwrap() + fields.next().unwrap()) * 10)
}
