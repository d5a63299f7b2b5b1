//! kill -9 of the server under load: every answered write is there after the next start, whole, and nothing but the
//! writes that were under way is there besides.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "what fails here fails a test, as it should"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, PostParams};

/// Kills, in CI and elsewhere.
const ROUNDS: (u64, u64) = (50, 10);
const WRITERS: usize = 8;
const NAMESPACE: &str = "crash";
/// A writer deletes what it made so many objects ago.
const KEPT: u64 = 5;
/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the writers know of an object.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    /// Its creation was sent.
    Asked,
    /// Its creation was answered.
    There,
    /// Its deletion was sent.
    Doomed,
    /// Its deletion was answered.
    Gone,
}

type Fates = Arc<Mutex<BTreeMap<String, Fate>>>;

/// An object whose content follows from its name, up to about 4000 bytes.
fn object(writer: usize, n: u64) -> ConfigMap {
    let name = format!("writer-{writer}-{n}");
    let length = 1 + (n * 1597 + writer as u64 * 331) as usize % 4000;
    let content = name.chars().cycle().take(length).collect();
    let data = Some([("content".to_owned(), content)].into());
    let mut object = ConfigMap {
        data,
        ..Default::default()
    };
    object.metadata.name = Some(name);
    object
}

/// Makes and deletes objects until the server is gone.
async fn write(maps: Api<ConfigMap>, fates: Fates, writer: usize, first: u64) {
    let note = |name: &str, fate| fates.lock().unwrap().insert(name.to_owned(), fate);
    for n in first.. {
        let object = object(writer, n);
        let name = object.metadata.name.clone().unwrap();
        note(&name, Fate::Asked);
        if maps.create(&PostParams::default(), &object).await.is_err() {
            return;
        }
        note(&name, Fate::There);
        let Some(old) = n.checked_sub(KEPT) else { continue };
        let name = format!("writer-{writer}-{old}");
        if fates.lock().unwrap().get(&name) != Some(&Fate::There) {
            continue;
        }
        note(&name, Fate::Doomed);
        if maps.delete(&name, &DeleteParams::default()).await.is_err() {
            return;
        }
        note(&name, Fate::Gone);
    }
}

/// Starts the server on the data of the one before.
fn start(folder: &Path) -> (Child, kube::config::Kubeconfig) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut child = Command::new(env!("CARGO_BIN_EXE_keelson"))
        .env_remove("KUBECONFIG")
        .arg(format!("--data-dir={}", folder.display()))
        .arg(format!("--secure-port={port}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let path = line
        .trim_end()
        .strip_prefix("export KUBECONFIG=")
        .expect("the server did not start");
    (child, kube::config::Kubeconfig::read_from(path).unwrap())
}

async fn connect(kubeconfig: kube::config::Kubeconfig) -> Api<ConfigMap> {
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
        .await
        .unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let maps = Api::namespaced(client, NAMESPACE);
    let since = Instant::now();
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(NAMESPACE.to_owned());
    loop {
        match namespaces.create(&PostParams::default(), &namespace).await {
            Ok(_) => break,
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => break,
            Err(error) => assert!(since.elapsed() < PATIENCE, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    maps
}

/// Compares what is there with what was answered, and settles what was open.
async fn check(maps: &Api<ConfigMap>, fates: &Fates, round: u64) {
    let listed = maps.list(&ListParams::default()).await.unwrap();
    let mut found: BTreeMap<String, ConfigMap> = BTreeMap::new();
    for map in listed.items {
        let name = map.metadata.name.clone().unwrap();
        if name.starts_with("writer-") {
            found.insert(name, map);
        }
    }
    let mut fates = fates.lock().unwrap();
    for (name, map) in &found {
        let [_, writer, n] = name.split('-').collect::<Vec<_>>()[..] else {
            panic!("{name}")
        };
        let whole = object(writer.parse().unwrap(), n.parse().unwrap());
        assert_eq!(map.data, whole.data, "round {round}: {name} is half written");
        assert!(fates.contains_key(name), "round {round}: nobody made {name}");
    }
    fates.retain(|name, fate| {
        let there = found.contains_key(name);
        match fate {
            Fate::There => assert!(there, "round {round}: {name} is lost"),
            Fate::Gone => assert!(!there, "round {round}: {name} is back"),
            Fate::Asked | Fate::Doomed => *fate = if there { Fate::There } else { Fate::Gone },
        }
        there
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_loses_no_answered_write() {
    let rounds = if std::env::var_os("CI").is_some() {
        ROUNDS.0
    } else {
        ROUNDS.1
    };
    let folder = tempfile::tempdir().unwrap();
    let fates = Fates::default();
    let (mut first, mut answered) = (0, 0);
    for round in 0..rounds {
        let (mut server, kubeconfig) = start(folder.path());
        let maps = connect(kubeconfig).await;
        check(&maps, &fates, round).await;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| tokio::spawn(write(maps.clone(), fates.clone(), writer, first)))
            .collect();
        tokio::time::sleep(Duration::from_millis(50 + round * 37 % 200)).await;
        server.kill().unwrap();
        server.wait().unwrap();
        for writer in writers {
            tokio::time::timeout(PATIENCE, writer)
                .await
                .expect("a request has no end")
                .unwrap();
        }
        let settled = [Fate::There, Fate::Gone];
        answered += fates
            .lock()
            .unwrap()
            .values()
            .filter(|fate| settled.contains(fate))
            .count();
        // names are used once
        let used = |name: &String| name.rsplit('-').next().and_then(|n| n.parse::<u64>().ok());
        first = fates
            .lock()
            .unwrap()
            .keys()
            .filter_map(used)
            .max()
            .map_or(first, |n| n + 1);
    }
    let (mut server, kubeconfig) = start(folder.path());
    check(&connect(kubeconfig).await, &fates, rounds).await;
    assert!(answered > WRITERS * rounds as usize, "the load was no load");
    println!("{answered} objects answered for in {rounds} rounds");
    server.kill().unwrap();
    server.wait().unwrap();
}
