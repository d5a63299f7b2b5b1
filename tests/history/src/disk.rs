//! A server whose disk fails or is full, and works again: what its clients see. The library that stands for the disk
//! that fails is the one of the storage tests.

pub mod full;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;

use crate::run::client::{Client, Target};
use crate::run::server::Server;

const PATH: &str = "/api/v1/namespaces/default/configmaps";
const SHIM: &str = "../../src/storage/embedded/tests/shim.c";
const JSON: &str = "application/json";
/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Writes while every sync fails are refused and leave nothing; reads go on; `/readyz` tells; all is well again by
/// itself.
pub async fn run(program: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let healthy = root.join("healthy");
    std::fs::write(&healthy, "").unwrap();
    let environment = vec![
        ("LD_PRELOAD", build(&root, "faults.so", SHIM)),
        ("SHIM_DIR", root.join("server/data/store")),
        ("SHIM_FAIL", "sync 1 5 on".into()),
        ("SHIM_HEAL", healthy.clone()),
    ];
    let flags = vec!["--storage-backend=embedded".to_owned()];
    let server = Server::start_with(program, &root.join("server"), flags, environment);
    let target = server.target();
    until_ready(&target, 200).await;
    assert_eq!(create(&target, "before").await, 201);

    std::fs::remove_file(&healthy).unwrap();
    for n in 0..3 {
        let status = create(&target, &format!("refused-{n}")).await;
        assert!((500..600).contains(&status), "{status} while the disk fails");
    }
    until_ready(&target, 500).await;
    assert_eq!(
        names(&target).await,
        ["before"],
        "reads go on, without what was refused"
    );

    std::fs::write(&healthy, "").unwrap();
    until_ready(&target, 200).await;
    assert_eq!(create(&target, "after").await, 201);
    server.kill();
    server.start_again();
    until_ready(&target, 200).await;
    assert_eq!(names(&target).await, ["after", "before"], "after kill -9");
    println!("a failing disk: writes refused, reads served, readyz red, healed by itself");
}

/// Builds a library of this source, which is named from this package.
fn build(folder: &Path, name: &str, source: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let library = folder.join(name);
    let compiler = std::env::var_os("CC").unwrap_or("cc".into());
    let built = Command::new(compiler)
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .args(["-ldl", "-lpthread"])
        .status()
        .expect("a failing disk needs a C compiler, cc or the one that CC names");
    assert!(built.success(), "the compiler refuses {}", source.display());
    library
}

async fn create(target: &Arc<Target>, name: &str) -> u16 {
    let body = json!({"metadata": {"name": name}}).to_string();
    let mut client = Client::new(target.clone(), false);
    client.call(Method::POST, PATH, JSON, body).await.unwrap().0
}

async fn names(target: &Arc<Target>) -> Vec<String> {
    let (status, body) = Client::new(target.clone(), false).get(PATH).await.unwrap();
    assert_eq!(status, 200, "{body}");
    let items = body["items"].as_array().unwrap();
    items
        .iter()
        .filter_map(|item| item["metadata"]["name"].as_str())
        // of the certificate authority, which every namespace gets where controllers run
        .filter(|name| *name != "kube-root-ca.crt")
        .map(str::to_owned)
        .collect()
}

/// Waits until `/readyz` answers so.
async fn until_ready(target: &Arc<Target>, wanted: u16) {
    let since = Instant::now();
    loop {
        let mut client = Client::new(target.clone(), false);
        let answer = client.send(Method::GET, "/readyz", JSON, String::new()).await;
        let status = answer.map(|answer| answer.status().as_u16());
        if status == Ok(wanted) {
            return;
        }
        assert!(since.elapsed() < PATIENCE, "readyz is {status:?}, not {wanted}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
