//! Definitions of custom resources: how soon they are served, and what each costs the server. Real ones are those of
//! the folder that `KEELSON_CASES` names, or of the recorded conversations beside the project, if they are there.
//!
//! The bars: 200 definitions of 8 clients are served half a second after the last one is created, and cost at most 1 ms
//! of CPU and 100 KiB each. Those of 300 KB and 1.2 MB cost at most 25 ms, and three times their size.

#![allow(clippy::unwrap_used, reason = "what fails here stops the benchmark, as it should")]
#![allow(clippy::print_stdout, reason = "the figures")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use kube::Client;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WRITERS: usize = 8;

/// The server as a program, with an embedded store in a folder of its own.
struct Server {
    child: Child,
    _folder: TempDir,
    client: Client,
}

/// What a server has used.
#[derive(Clone, Copy)]
struct Used {
    cpu: Duration,
    kibibytes: u64,
}

impl Server {
    async fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_keelson"))
            .arg(format!("--secure-port={}", free_port()))
            .arg("--data-dir")
            .arg(folder.path().join("data"))
            .env("HOME", folder.path())
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let kubeconfig = kubeconfig(&mut child);
        let file = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file, &options).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let server = Server {
            child,
            _folder: folder,
            client,
        };
        while ask(&server.client, "GET", "/readyz", &Value::Null).await.0 != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        server
    }

    fn used(&self) -> Used {
        let proc = PathBuf::from(format!("/proc/{}", self.child.id()));
        let stat = fs::read_to_string(proc.join("stat")).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        // User and system time, in hundredths of a second.
        let ticks: u64 = fields
            .split(' ')
            .skip(11)
            .take(2)
            .map(|n| n.parse::<u64>().unwrap())
            .sum();
        let status = fs::read_to_string(proc.join("status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Used {
            cpu: Duration::from_millis(ticks * 10),
            kibibytes: resident.trim().trim_end_matches(" kB").parse().unwrap(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The kubeconfig that the server says it has written.
fn kubeconfig(child: &mut Child) -> PathBuf {
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut lines = output.lines().map(Result::unwrap);
    let line = lines.next().unwrap();
    line.strip_prefix("export KUBECONFIG=").unwrap().into()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

async fn ask(client: &Client, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = http::Request::builder().method(method).uri(path);
    let request = request.header("Content-Type", "application/json");
    let request = request.body(kube::client::Body::from(body)).unwrap();
    let Ok(answer) = client.send(request).await else {
        return (0, Value::Null);
    };
    let status = answer.status().as_u16();
    let bytes = http_body_util::BodyExt::collect(answer.into_body())
        .await
        .unwrap()
        .to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

fn definition(group: &str) -> Value {
    let field = json!({"type": "string", "description": "One of the fields of the thing.", "maxLength": 100});
    let fields: Map<String, Value> = (0..50).map(|n| (format!("field{n}"), field.clone())).collect();
    definition_of(group, &json!({"type": "object", "properties": fields}))
}

/// What large projects publish: parts within parts, most of the text in descriptions, rules here and there.
fn large_definition(group: &str, bytes: usize) -> Value {
    let text =
        "What this is for, how it is used together with the others, and what becomes of it when it is not there. ";
    let field = |n: usize| json!({"type": "string", "description": text.repeat(1 + n % 4), "maxLength": 253});
    let part = |n: usize| {
        let fields: Map<String, Value> = (0..8).map(|k| (format!("field{k}"), field(n + k))).collect();
        let items = json!({"type": "object", "required": ["field0"], "properties": fields});
        json!({
            "type": "object",
            "description": text,
            "properties": {
                "mode": {"type": "string", "enum": ["Fast", "Slow"], "default": "Fast"},
                "size": {"type": "integer", "format": "int32", "minimum": 1},
                "parts": {
                    "type": "array", "maxItems": 16, "items": items,
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["field0"],
                },
            },
            "x-kubernetes-validations": [{"rule": format!("!has(self.size) || self.size < {}", n + 1000)}],
        })
    };
    let (mut parts, mut length) = (Map::new(), 0);
    while length < bytes {
        let one = part(parts.len());
        length += one.to_string().len();
        parts.insert(format!("part{}", parts.len()), one);
    }
    definition_of(group, &json!({"type": "object", "properties": parts}))
}

fn definition_of(group: &str, spec: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
        },
    })
}

/// Creates definitions, a part of them by each of the writers, waits until discovery has all, and tells the figures.
async fn measure(what: &str, definitions: &[Value]) {
    let server = Server::start().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = server.used();
    let begin = Instant::now();
    let writers = definitions
        .chunks(definitions.len().div_ceil(WRITERS))
        .map(async |part| {
            for definition in part {
                let (status, answer) = ask(&server.client, "POST", DEFINITIONS, definition).await;
                assert_eq!(status, 201, "{answer}");
            }
        });
    join_all(writers).await;
    let last = Instant::now();
    let wanted: BTreeSet<&str> = definitions
        .iter()
        .filter_map(|one| one["spec"]["group"].as_str())
        .collect();
    while !wanted.is_subset(&discovered(&server.client).await.iter().map(String::as_str).collect()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let served = last.elapsed();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = server.used();
    let (count, bytes) = (
        definitions.len() as u64,
        definitions.iter().map(|one| one.to_string().len()).sum::<usize>(),
    );
    println!(
        "{what}: {count} definitions of {} KiB: created in {:?}, served {served:?} later; each {:?} of CPU, {} KiB",
        bytes / 1024,
        last - begin,
        (after.cpu - before.cpu) / u32::try_from(count).unwrap(),
        after.kibibytes.saturating_sub(before.kibibytes) / count,
    );
}

/// The groups in the document of aggregated discovery.
async fn discovered(client: &Client) -> BTreeSet<String> {
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let request = http::Request::get("/apis")
        .header("Accept", accept)
        .body(Vec::new())
        .unwrap();
    let document: Value = client.request(request).await.unwrap();
    let groups = document["items"].as_array().unwrap().iter();
    groups
        .map(|group| group["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The definitions that recorded conversations create, each once.
fn real() -> Vec<Value> {
    let cases = std::env::var_os("KEELSON_CASES").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/conformance/cases");
    let folder = cases.unwrap_or(beside).join("crd-real");
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found = std::collections::BTreeMap::new();
    for file in files {
        let case: Value = serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap();
        let steps = case["steps"].as_array().into_iter().flatten();
        let is_made = |step: &&Value| step["expect"]["status"] == 201;
        for step in steps
            .filter(|step| step["method"] == "POST" && step["path"] == DEFINITIONS)
            .filter(is_made)
        {
            let name = step["body"]["metadata"]["name"].as_str().unwrap_or_default();
            found.entry(name.to_owned()).or_insert_with(|| step["body"].clone());
        }
    }
    found.into_values().collect()
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        for count in [200, 2000] {
            let made: Vec<Value> = (0..count).map(|n| definition(&format!("g{n}.example.com"))).collect();
            measure("made", &made).await;
        }
        for kilobytes in [300, 1200] {
            let made: Vec<Value> = (0..16)
                .map(|n| large_definition(&format!("l{n}.example.com"), kilobytes * 1000))
                .collect();
            measure("large", &made).await;
        }
        match real() {
            none if none.is_empty() => println!("real: there are none beside the project"),
            real => measure("real", &real).await,
        }
    });
}
