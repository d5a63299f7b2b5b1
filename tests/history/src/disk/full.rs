//! A server whose disk is full, for everything that it writes: its store, its audit, its certificates.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::{JSON, PATH, build, names, until_ready};
use crate::run::client::{Client, Target};
use crate::run::server::{Server, free_port};

const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n";

/// The disk of a server, and the file that says that it is full.
struct Disk {
    root: PathBuf,
    full: PathBuf,
    library: PathBuf,
}

impl Disk {
    fn new(root: &Path) -> Disk {
        Disk {
            root: root.join("disk"),
            full: root.join("full"),
            library: build(root, "full.so", "src/disk/full.c"),
        }
    }

    fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("LD_PRELOAD", self.library.clone()),
            ("FULL_DIR", self.root.clone()),
            ("FULL_WHILE", self.full.clone()),
        ]
    }

    fn fill(&self) {
        std::fs::write(&self.full, "").unwrap();
    }

    fn free(&self) {
        std::fs::remove_file(&self.full).unwrap();
    }
}

/// Writes on a full disk are refused with a Status, and leave nothing; reads go on, and so does the server without its
/// audit. With space all is well again by itself, and each line of the audit is whole.
pub async fn run(program: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let disk = Disk::new(&root);
    nothing_can_be_made(program, &disk);
    let (policy, log) = (root.join("policy.yaml"), disk.root.join("audit/audit.log"));
    std::fs::write(&policy, POLICY).unwrap();
    let flags = vec![
        "--storage-backend=embedded".to_owned(),
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", log.display()),
        "--audit-log-mode=blocking".to_owned(),
    ];
    let server = Server::start_with(program, &disk.root, flags, disk.environment());
    let target = server.target();
    until_ready(&target, 200).await;
    let kept = until_refused(&target, &disk).await;
    until_ready(&target, 500).await;
    assert_eq!(names(&target).await, kept, "reads go on, without what was refused");
    // It was killed beside a full disk, as a kubelet might do that finds it not alive.
    server.kill();
    server.start_again();
    server.serves().await.unwrap();
    assert_eq!(names(&target).await, kept, "after kill -9 on a full disk");
    disk.free();
    until_ready(&target, 200).await;
    let (status, answer) = create(&target, "z-after", 10).await;
    assert_eq!(status, 201, "{answer}");
    server.kill();
    server.check().unwrap();
    server.start_again();
    until_ready(&target, 200).await;
    let all: Vec<String> = kept.iter().cloned().chain(["z-after".to_owned()]).collect();
    assert_eq!(names(&target).await, all, "after kill -9 with space");
    lines_are_whole(&log);
    let log = std::fs::read_to_string(disk.root.join("log")).unwrap();
    assert!(!log.contains("panicked"), "{log}");
    println!(
        "a full disk: {} kept, writes refused, reads and audit go on, healed by itself",
        kept.len()
    );
}

/// A first start on a full disk ends with one line, and the next one, with space, is as if there had been none.
fn nothing_can_be_made(program: &Path, disk: &Disk) {
    std::fs::create_dir_all(&disk.root).unwrap();
    disk.fill();
    let output = Command::new(program)
        .env_remove("KUBECONFIG")
        .env("HOME", &disk.root)
        .envs(disk.environment())
        .arg(format!("--data-dir={}", disk.root.join("data").display()))
        .arg(format!("--secure-port={}", free_port()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // The kernel's words or SQLite's: whatever is written first.
    let full = said.contains("No space left") || said.contains("database or disk is full");
    assert!(
        output.status.code() == Some(1) && full && said.contains("--data-dir") && said.lines().count() == 1,
        "{said}"
    );
    disk.free();
}

/// Creates objects, and goes on when the disk is full, until some are refused: the names of those that were made, and
/// of those alone that are certain.
async fn until_refused(target: &Arc<Target>, disk: &Disk) -> Vec<String> {
    let mut made = Vec::new();
    for n in 0..20 {
        let (status, answer) = create(target, &format!("before-{n:02}"), 1_000).await;
        assert_eq!(status, 201, "{answer}");
        made.push(format!("before-{n:02}"));
    }
    disk.fill();
    let mut refused = 0;
    for n in 0.. {
        assert!(n < 200 && refused <= 5, "{n} writes, {refused} were refused");
        let name = format!("full-{n:03}");
        // Space that files have already may be used up first.
        let (status, answer) = create(target, &name, 100_000).await;
        match status {
            201 => made.push(name),
            _ => {
                assert_eq!(
                    (status, &answer["reason"]),
                    (503, &json!("ServiceUnavailable")),
                    "{answer}"
                );
                assert!(answer["message"].as_str().unwrap().contains("full"), "{answer}");
                refused += 1;
            }
        }
        if refused == 5 {
            break;
        }
    }
    made
}

async fn create(target: &Arc<Target>, name: &str, size: usize) -> (u16, Value) {
    let body = json!({"metadata": {"name": name}, "data": {"text": "x".repeat(size)}}).to_string();
    let mut client = Client::new(target.clone(), false);
    client.call(Method::POST, PATH, JSON, body).await.unwrap()
}

/// Events are lost on a full disk, and none is torn.
fn lines_are_whole(log: &Path) {
    let text = std::fs::read_to_string(log).unwrap();
    let mut after = 0;
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| {
            let begin: String = line.chars().take(200).collect();
            panic!("a torn line, {error}: {begin}")
        });
        after += usize::from(event["objectRef"]["name"] == "z-after");
    }
    assert!(after > 0, "events are written again");
}
