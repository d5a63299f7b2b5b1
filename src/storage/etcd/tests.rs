//! Promises of the etcd store beyond the contract: members and connections come and go.

mod gone_back;
mod lagging;
mod liveness;
mod lost_revisions;
mod simulated;
mod versions;
mod whole_revisions;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

use super::compactor::{Turn, compact};
use super::connect;
use super::*;
use crate::Event;
use crate::WatchItem;
use crate::tests::etcd_server::{EtcdCluster, EtcdServer, free_port};

async fn write(store: &EtcdStore, key: &str, expect: Expect, value: impl Into<Bytes>) -> Revision {
    match store
        .write(
            key,
            expect,
            Write::Put {
                value: value.into(),
                lease: None,
            },
        )
        .await
        .unwrap()
    {
        Written::Done { revision, .. } => revision,
        conflict => panic!("{conflict:?}"),
    }
}

async fn next(watch: &mut WatchStream) -> Result<WatchItem, StoreError> {
    let next = tokio::time::timeout(Duration::from_secs(90), watch.next());
    next.await.expect("the watch is silent").expect("the watch has ended")
}

/// Keys of the next so many events.
async fn keys(watch: &mut WatchStream, count: usize) -> Vec<String> {
    let mut keys = Vec::new();
    while keys.len() < count {
        if let WatchItem::Events(events) = next(watch).await.unwrap() {
            keys.extend(events.into_iter().map(|event| match event {
                Event::Put { entry, .. } => entry.key.to_string(),
                Event::Delete { key, .. } => key.to_string(),
            }));
        }
    }
    keys
}

#[tokio::test]
async fn watches_go_on_after_etcd_was_away() {
    let Some(mut server) = EtcdServer::start() else { return };
    let store = EtcdStore::connect(&server.config()).await.unwrap();
    let first = write(&store, "/a/1", Expect::Absent, "x").await;
    let mut watch = store.watch("/a/", Revision(first.0 - 1)).await.unwrap();
    assert_eq!(keys(&mut watch, 1).await, ["/a/1"]);
    for n in 2..5 {
        server.stop();
        assert!(store.health().await.is_err());
        server.restart();
        write(&store, &format!("/a/{n}"), Expect::Absent, "x").await;
        assert_eq!(
            keys(&mut watch, 1).await,
            [format!("/a/{n}")],
            "neither lost nor told twice"
        );
    }
    store.health().await.unwrap();
}

#[tokio::test]
async fn a_gap_made_while_etcd_was_away_ends_the_watch() {
    let Some(mut server) = EtcdServer::start() else { return };
    let store = EtcdStore::connect(&server.config()).await.unwrap();
    let first = write(&store, "/a", Expect::Absent, "1").await;
    // a watch that is not read: its task holds what fits into the queue, and comes back for the rest
    let mut watch = store.watch("/", Revision(first.0 - 1)).await.unwrap();
    let mut last = first;
    for _ in 0..200 {
        last = write(&store, "/a", Expect::Revision(last), "x").await;
    }
    store.compact(last).await.unwrap();
    server.stop();
    server.restart();
    let mut seen = 0;
    let end = loop {
        match next(&mut watch).await {
            Ok(WatchItem::Events(events)) => seen += events.len(),
            Ok(WatchItem::Progress(_)) => {}
            Err(error) => break error,
        }
        if seen == 201 {
            return; // etcd had told all before it went away: there is no gap
        }
    };
    assert!(
        matches!(end, StoreError::Compacted { oldest } if oldest == last),
        "{end:?}"
    );
    assert!(seen > 0 && seen < 201);
}

/// What is read into memory begins with a list: the change that made its revision is not among the events that follow.
#[tokio::test]
async fn a_watch_from_just_before_the_mirror_misses_nothing() {
    let Some(server) = EtcdServer::start() else { return };
    let first = {
        let store = EtcdStore::connect(&server.config()).await.unwrap();
        let first = write(&store, "/a/1", Expect::Absent, "x").await;
        write(&store, "/a/2", Expect::Absent, "x").await;
        first
    };
    let store = EtcdStore::connect(&server.config()).await.unwrap();
    assert_eq!(store.snapshot("/a/").await.unwrap().count("/a/"), 2);
    let mut watch = store.watch("/a/", first).await.unwrap();
    write(&store, "/a/3", Expect::Absent, "x").await;
    assert_eq!(keys(&mut watch, 2).await, ["/a/2", "/a/3"]);
}

/// More than what gRPC allows in one message unless told otherwise.
#[tokio::test]
async fn a_long_past_comes_whole() {
    let Some(server) = EtcdServer::start() else { return };
    let store = EtcdStore::connect(&server.config()).await.unwrap();
    for n in 0..8 {
        write(&store, &format!("/a/{n}"), Expect::Absent, vec![b'x'; 1_000_000]).await;
    }
    let mut watch = store.watch("/a/", Revision(1)).await.unwrap();
    assert_eq!(keys(&mut watch, 8).await.len(), 8);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// etcd that was put back to an older state: watches end, and memory shows what is there now.
#[tokio::test]
async fn etcd_that_has_gone_back_is_read_again() {
    let Some(mut server) = EtcdServer::start() else { return };
    let store = EtcdStore::connect(&server.config()).await.unwrap();
    write(&store, "/a/old", Expect::Absent, "x").await;
    server.stop();
    let (data, older) = (server.dir().join("data"), server.dir().join("older"));
    copy(&data, &older);
    server.restart();
    while store.health().await.is_err() {}
    let mut last = Revision(0);
    for n in 0..20 {
        last = write(&store, &format!("/a/new-{n}"), Expect::Absent, "x").await;
    }
    assert_eq!(store.snapshot("/a/").await.unwrap().count("/a/"), 21);
    let mut direct = store.watch("/", last).await.unwrap();
    let mut mirrored = store.watch("/a/", last).await.unwrap();
    server.stop();
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::rename(&older, &data).unwrap();
    server.restart();
    for watch in [&mut direct, &mut mirrored] {
        let end = loop {
            match next(watch).await {
                Ok(WatchItem::Progress(_)) => {}
                other => break other,
            }
        };
        assert!(matches!(end, Err(StoreError::Compacted { .. })), "{end:?}");
    }
    let again = store.snapshot("/a/").await.unwrap();
    assert_eq!(again.count("/a/"), 1);
    assert!(again.revision() < last);
}

#[tokio::test]
async fn a_reader_that_stands_still_does_not_stop_the_others() {
    const WRITES: usize = 300;
    let Some(server) = EtcdServer::start() else { return };
    let store = EtcdStore::connect(&server.config()).await.unwrap();
    let start = store.current_revision().await.unwrap();
    let mut still = store.watch("/", start).await.unwrap();
    let mut other = store.watch("/", start).await.unwrap();
    let reading = tokio::spawn(async move { keys(&mut other, WRITES).await });
    for n in 0..WRITES {
        write(&store, &format!("/{n:03}"), Expect::Absent, vec![b'x'; 20_000]).await;
    }
    let all = reading.await.unwrap();
    assert!(all.is_sorted());
    assert_eq!(keys(&mut still, WRITES).await, all, "and itself misses nothing");
}

#[tokio::test]
async fn one_member_of_several_is_enough() {
    let Some(server) = EtcdServer::start() else { return };
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let config = EtcdConfig {
        endpoints: vec![nobody, server.endpoint()],
        ..Default::default()
    };
    let store = EtcdStore::connect(&config).await.unwrap();
    for n in 0..20 {
        write(&store, &format!("/{n}"), Expect::Absent, "x").await;
        assert!(store.get(&format!("/{n}")).await.unwrap().entry.is_some());
    }
    let mut watch = store.watch("/", Revision(1)).await.unwrap();
    assert_eq!(keys(&mut watch, 20).await.len(), 20);
}

/// Longer than anything is waited for, and short of for ever.
const GIVEN_UP: Duration = Duration::from_secs(20);

/// etcd that says nothing: requests are given up, memory still answers, and all goes on when it speaks again.
#[tokio::test]
async fn etcd_that_hangs_is_given_up_and_taken_up_again() {
    let Some(server) = EtcdServer::start() else { return };
    let store = EtcdStore::connect(&server.config()).await.unwrap();
    let first = write(&store, "/a/1", Expect::Absent, "x").await;
    assert_eq!(store.snapshot("/a/").await.unwrap().count("/a/"), 1);
    let mut watch = store.watch("/a/", first).await.unwrap();
    server.pause();
    let put = |value: &'static str| Write::Put {
        value: value.into(),
        lease: None,
    };
    let begin = tokio::time::Instant::now();
    let (refused, ill, uncertain) = tokio::join!(
        store.write("/a/2", Expect::Absent, put("x")),
        store.health(),
        store.snapshot("/a/")
    );
    for given_up in [refused.map(drop), uncertain.map(drop)] {
        let why = given_up.unwrap_err().to_string();
        assert!(why.contains("no answer within 5 s"), "{why}");
    }
    assert!(ill.is_err());
    assert!(begin.elapsed() < GIVEN_UP, "{:?}", begin.elapsed());
    assert_eq!(store.held("/a/").unwrap().count("/a/"), 1, "memory is there");
    server.resume();
    let begin = tokio::time::Instant::now();
    while store.health().await.is_err() {
        assert!(begin.elapsed() < GIVEN_UP);
    }
    // The first of the two may have been carried out: nobody knows.
    write(&store, "/a/3", Expect::Absent, "x").await;
    assert!(begin.elapsed() < GIVEN_UP, "{:?}", begin.elapsed());
    while !keys(&mut watch, 1).await.contains(&"/a/3".to_owned()) {}
}

/// What is recalled is as new as what the store has written itself, whether its mirror has heard of that or not.
#[tokio::test]
async fn what_is_recalled_is_never_older_than_the_stores_own_writes() {
    let Some(server) = EtcdServer::start() else { return };
    let store = EtcdStore::connect(&server.config()).await.unwrap();
    let mut last = write(&store, "/a/1", Expect::Absent, "x").await;
    assert!(store.recall("/a/", "/a/1").is_none(), "nothing is held yet");
    store.snapshot("/a/").await.unwrap();
    let mut recalled = 0;
    for n in 0..200 {
        last = write(&store, "/a/1", Expect::Revision(last), n.to_string()).await;
        if let Some(entry) = store.recall("/a/", "/a/1") {
            assert_eq!((entry.mod_revision, &entry.value[..]), (last, n.to_string().as_bytes()));
            recalled += 1;
        }
    }
    store.snapshot("/a/").await.unwrap();
    assert_eq!(store.recall("/a/", "/a/1").unwrap().mod_revision, last);
    assert!(store.recall("/a/", "/a/2").is_none());
    println!("{recalled} of 200 recalled at once");
    store.close().await;
    assert!(store.recall("/a/", "/a/1").is_none());
}

/// Members that go one after the other, then all but one: with a leader all goes on, without one nothing is certain.
#[tokio::test]
async fn a_member_may_go_but_not_the_majority() {
    let Some(mut cluster) = EtcdCluster::start() else {
        return;
    };
    let store = EtcdStore::connect(&cluster.config()).await.unwrap();
    let first = write(&store, "/a/0", Expect::Absent, "x").await;
    let mut watch = store.watch("/a/", first).await.unwrap();
    let put = || Write::Put {
        value: "x".into(),
        lease: None,
    };
    // One of the three is the leader.
    for gone in 0..3 {
        cluster.members[gone].stop();
        let (key, begin) = (format!("/a/{}", gone + 1), tokio::time::Instant::now());
        loop {
            match store.write(&key, Expect::Absent, put()).await {
                Ok(_) => break,
                Err(error) => assert!(begin.elapsed() < 2 * GIVEN_UP, "{error}"),
            }
        }
        assert_eq!(keys(&mut watch, 1).await, [key]);
        cluster.members[gone].restart();
    }
    cluster.members[0].stop();
    cluster.members[1].stop();
    let begin = tokio::time::Instant::now();
    let (refused, ill) = tokio::join!(store.write("/a/x", Expect::Absent, put()), store.health());
    assert!(refused.is_err() && ill.is_err());
    assert!(begin.elapsed() < GIVEN_UP, "{:?}", begin.elapsed());
    cluster.members[0].restart();
    let begin = tokio::time::Instant::now();
    while store.health().await.is_err() {
        assert!(begin.elapsed() < 2 * GIVEN_UP);
    }
    write(&store, "/a/y", Expect::Absent, "x").await;
    while !keys(&mut watch, 1).await.contains(&"/a/y".to_owned()) {}
}

#[tokio::test]
async fn leases_are_shared_by_like_requests() {
    let Some(server) = EtcdServer::start() else { return };
    let store = EtcdStore::connect(&server.config()).await.unwrap();
    let hour = Duration::from_secs(3600);
    let lease = store.grant(hour).await.unwrap();
    assert_eq!(store.grant(hour).await.unwrap(), lease);
    assert_ne!(store.grant(hour / 2).await.unwrap(), lease);
}

#[tokio::test]
async fn servers_take_turns_at_compaction() {
    let Some(server) = EtcdServer::start() else { return };
    let store = EtcdStore::connect(&server.config()).await.unwrap();
    let calls = &store.calls;
    let (mut ours, mut theirs) = (Turn::default(), Turn::default());
    let first = write(&store, "/a", Expect::Absent, "1").await;
    ours = compact(calls, ours).await.unwrap();
    theirs = compact(calls, theirs).await.unwrap();
    assert_eq!(ours, theirs, "who comes second learns of the turn");
    let second = write(&store, "/a", Expect::Revision(first), "2").await;
    let at = |revision| ListOptions {
        revision: Some(revision),
        ..Default::default()
    };
    assert_eq!(store.list("/", at(first)).await.unwrap().count, 1);
    theirs = compact(calls, theirs).await.unwrap();
    assert!(
        matches!(store.list("/", at(first)).await, Err(StoreError::Compacted { .. })),
        "the turn before it"
    );
    ours = compact(calls, ours).await.unwrap();
    assert_eq!(ours, theirs);
    assert_eq!(
        store.list("/", at(second)).await.unwrap().count,
        1,
        "the second of a turn compacts nothing"
    );
    let key = store.get("compact_rev_key").await.unwrap().entry.unwrap();
    assert_eq!(key.version, 2);
}

/// A CA and what it signed, in the files of etcd's flags and of the store's configuration.
fn certificates(dir: &Path) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(vec![]).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    std::fs::write(dir.join("ca.crt"), ca.self_signed(&ca_key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    for (name, usage) in [
        ("server", ExtendedKeyUsagePurpose::ServerAuth),
        ("client", ExtendedKeyUsagePurpose::ClientAuth),
    ] {
        let key = KeyPair::generate().unwrap();
        let mut certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        certificate.extended_key_usages = vec![usage, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = certificate.signed_by(&key, &issuer).unwrap();
        std::fs::write(dir.join(format!("{name}.crt")), certificate.pem()).unwrap();
        std::fs::write(dir.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

#[tokio::test]
async fn etcd_with_client_certificates() {
    let server = EtcdServer::start_with("https", |dir| {
        certificates(dir);
        let file = |flag: &str, name: &str| [OsString::from(flag), dir.join(name).into_os_string()];
        let files = [
            file("--cert-file", "server.crt"),
            file("--key-file", "server.key"),
            file("--trusted-ca-file", "ca.crt"),
        ];
        files
            .into_iter()
            .flatten()
            .chain(["--client-cert-auth".into()])
            .collect()
    });
    let Some(server) = server else { return };
    let file = |name| Some(server.dir().join(name));
    let config = EtcdConfig {
        ca: file("ca.crt"),
        cert: file("client.crt"),
        key: file("client.key"),
        ..server.config()
    };
    let store = EtcdStore::connect(&config).await.unwrap();
    write(&store, "/a", Expect::Absent, "x").await;
    store.health().await.unwrap();

    let anonymous = EtcdConfig {
        cert: None,
        key: None,
        ..config.clone()
    };
    let calls = Calls::connect(&anonymous).await.unwrap();
    assert!(calls.health().await.is_err(), "without a certificate");
    let half = connect::client(&EtcdConfig {
        key: None,
        ..config.clone()
    })
    .await;
    assert!(matches!(half, Err(StoreError::Unavailable(reason)) if reason.contains("go together")));
    let missing = connect::client(&EtcdConfig {
        ca: file("none.crt"),
        ..config
    })
    .await;
    assert!(matches!(missing, Err(StoreError::Unavailable(reason)) if reason.contains("none.crt")));
}
