//! Stored forms: encodings, stores of their own, copies of a store that serves.

use std::io::{BufRead as _, BufReader};
use std::path::Path;

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use keelson_storage::embedded::EmbeddedStore;
use keelson_storage::{EtcdConfig, Expect, HistoryLimits, ListOptions, Store, StoreConfig, Write};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::support::{Etcd, Server, at_rest, command, keelson};

async fn maps(server: &Server) -> Api<ConfigMap> {
    Api::namespaced(server.client().await, "default")
}

fn named(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.into());
    map.data = Some([("answer".to_owned(), "yes".to_owned())].into());
    map
}

#[tokio::test]
async fn objects_are_stored_in_the_form_that_is_asked_for_and_read_in_any() {
    let mut folder = tempfile::tempdir().unwrap();
    for (name, kind, begin) in [
        (
            "a",
            "application/json",
            "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",",
        ),
        (
            "b",
            "application/yaml",
            "apiVersion: v1\ndata:\n  answer: \"yes\"\nkind: ConfigMap\n",
        ),
        ("c", "application/vnd.kubernetes.protobuf", "k8s\0"),
    ] {
        let flag = format!("--storage-media-type={kind}");
        let server = Server::start_in(keelson(), folder, &[&flag]).await;
        let maps = maps(&server).await;
        maps.create(&PostParams::default(), &named(name)).await.unwrap();
        for read in maps.list(&Default::default()).await.unwrap().items {
            if read.metadata.name.as_deref() != Some("kube-root-ca.crt") {
                assert_eq!(read.data, named(name).data);
            }
        }
        (_, _, folder) = server.terminate();
        let store = EmbeddedStore::open(&folder.path().join("keelson/store"), HistoryLimits::default()).unwrap();
        let value = store
            .get(&format!("/registry/configmaps/default/{name}"))
            .await
            .unwrap();
        let value = value.entry.unwrap().value.clone();
        assert!(value.starts_with(begin.as_bytes()), "{value:?}");
        store.close().await;
    }
}

/// What the store of a folder at rest has for a ConfigMap of the default namespace.
async fn value(store: &dyn Store, name: &str) -> keelson_storage::Entry {
    let key = format!("/registry/configmaps/default/{name}");
    store.get(&key).await.unwrap().entry.unwrap()
}

#[tokio::test]
async fn objects_at_rest_are_decoded_and_written_as_they_are_stored_today() {
    let server = Server::start(keelson(), &["--storage-media-type=application/json"]).await;
    let maps = maps(&server).await;
    for name in ["a", "b"] {
        maps.create(&PostParams::default(), &named(name)).await.unwrap();
    }
    let (_, _, folder) = server.terminate();
    let (fine, text) = at_rest(keelson(), folder.path(), &["check"]);
    assert!(fine && text.contains("can be decoded"), "{text}");

    let data = folder.path().join("keelson/store");
    let open = || EmbeddedStore::open(&data, HistoryLimits::default()).unwrap();
    assert!(value(&open(), "a").await.value.starts_with(b"{"));
    let (fine, text) = at_rest(keelson(), folder.path(), &["migrate"]);
    assert!(fine && text.contains("objects rewritten"), "{text}");
    let (fine, text) = at_rest(keelson(), folder.path(), &["migrate"]);
    assert!(fine && text.contains(": 0 of "), "nothing is left to be done: {text}");
    let store = open();
    assert!(value(&store, "a").await.value.starts_with(b"k8s\0"));

    let bad = value(&store, "b").await;
    let write = Write::Put {
        value: "k8s\0 and nothing that can be read".into(),
        lease: None,
    };
    store
        .write(&bad.key, Expect::Revision(bad.mod_revision), write)
        .await
        .unwrap();
    store.close().await;
    drop(store);
    for action in ["check", "migrate"] {
        let (fine, text) = at_rest(keelson(), folder.path(), &[action]);
        assert!(
            !fine && text.contains("unable to decode /registry/configmaps/default/b:"),
            "{text}"
        );
        assert!(!text.contains("default/a"), "{text}");
    }
}

/// A store with so many objects in a form that is not the one of today.
async fn many(data: &Path, count: usize) {
    let store = EmbeddedStore::open(data, HistoryLimits::default()).unwrap();
    let written = (0..count).map(|number| {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{number}")}});
        let write = Write::Put {
            value: object.to_string().into_bytes().into(),
            lease: None,
        };
        let (key, store) = (format!("/registry/configmaps/default/m{number}"), &store);
        async move { store.write(&key, Expect::Absent, write).await.unwrap() }
    });
    join_all(written).await;
    store.close().await;
}

#[tokio::test]
async fn a_migration_tells_how_far_it_is_and_goes_on_where_it_was_stopped() {
    const OBJECTS: usize = 40_000;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("keelson/store");
    std::fs::create_dir_all(&data).unwrap();
    many(&data, OBJECTS).await;
    let mut first = command(keelson(), folder.path())
        .args(["store", "migrate"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(first.stderr.take().unwrap()).lines();
    let progress = lines.next().unwrap().unwrap();
    assert_eq!(progress, "10000 objects, 10000 rewritten");
    first.kill().unwrap();
    assert!(!first.wait().unwrap().success(), "it was done before it was stopped");

    let (fine, text) = at_rest(keelson(), folder.path(), &["migrate"]);
    assert!(fine, "{text}");
    let (_, told) = text.rsplit_once(": ").unwrap();
    let rest: usize = told
        .split_once(" of 40000 objects rewritten")
        .unwrap()
        .0
        .parse()
        .unwrap();
    assert!(0 < rest && rest <= OBJECTS - 10_000, "{text}");
    let (fine, text) = at_rest(keelson(), folder.path(), &["migrate"]);
    assert!(fine && text.contains(": 0 of 40000 objects rewritten"), "{text}");
}

#[tokio::test]
async fn a_store_that_serves_is_copied_for_those_who_may() {
    let server = Server::start(keelson(), &[]).await;
    let maps = maps(&server).await;
    maps.create(&PostParams::default(), &named("kept")).await.unwrap();
    let request = || http::Request::get("/debug/store/snapshot").body(Vec::new()).unwrap();
    let nobody = {
        let mut config = kube::Config::from_custom_kubeconfig(
            kube::config::Kubeconfig::read_from(&server.kubeconfig).unwrap(),
            &Default::default(),
        )
        .await
        .unwrap();
        config.auth_info = Default::default();
        kube::Client::try_from(config).unwrap()
    };
    match nobody.request_text(request()).await.unwrap_err() {
        kube::Error::Api(status) => assert_eq!(status.code, 403),
        other => panic!("{other}"),
    }
    let client = server.client().await;
    let body = kube::client::Body::empty();
    let answer = client
        .send(http::Request::get("/debug/store/snapshot").body(body).unwrap())
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    let bytes = http_body_util::BodyExt::collect(answer.into_body())
        .await
        .unwrap()
        .to_bytes();
    maps.create(&PostParams::default(), &named("later")).await.unwrap();

    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("snapshot");
    std::fs::write(&file, &bytes).unwrap();
    for action in ["check", "restore"] {
        let done = command(keelson(), elsewhere.path())
            .arg("store")
            .arg(action)
            .arg(&file)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    server.terminate();
    let server = Server::start_in(keelson(), elsewhere, &[]).await;
    let maps = self::maps(&server).await;
    assert!(maps.get_opt("kept").await.unwrap().is_some());
    assert!(maps.get_opt("later").await.unwrap().is_none());
    server.terminate();
}

async fn keys(etcd: &Etcd, prefix: &str) -> usize {
    let config = EtcdConfig {
        endpoints: vec![etcd.url.clone()],
        ..EtcdConfig::default()
    };
    let store = keelson_storage::open(StoreConfig::Etcd(config)).await.unwrap();
    let count = store.list(prefix, ListOptions::default()).await.unwrap().count;
    store.close().await;
    count
}

#[tokio::test]
async fn a_resource_may_have_a_store_of_its_own() {
    let (Some(main), Some(own)) = (Etcd::start(), Etcd::start()) else {
        return;
    };
    let overrides = format!("--etcd-servers-overrides=/configmaps#{}", own.url);
    let flags = [
        "--etcd-servers",
        &main.url,
        &overrides,
        "--etcd-db-metric-poll-interval=1s",
    ];
    let server = Server::start(keelson(), &flags).await;
    maps(&server)
        .await
        .create(&PostParams::default(), &named("there"))
        .await
        .unwrap();
    let client = server.client().await;
    let get = |path: &str| client.request_text(http::Request::get(path).body(Vec::new()).unwrap());
    let checks = get("/readyz?verbose").await.unwrap();
    for check in ["etcd", "etcd-readiness", "etcd-override-0", "etcd-override-readiness-0"] {
        assert!(checks.contains(&format!("[+]{check} ok\n")), "{checks}");
    }
    let metrics = get("/metrics").await.unwrap();
    assert!(
        metrics.contains("apiserver_storage_size_bytes{storage_cluster_id=\"etcd-1\"}"),
        "{metrics}"
    );
    server.terminate();
    let prefix = "/registry/configmaps/default/there";
    assert_eq!((keys(&main, prefix).await, keys(&own, prefix).await), (0, 1));
    assert_eq!(keys(&own, "/registry/namespaces/").await, 0);
}
