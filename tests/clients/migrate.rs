//! `store import` and `store export` with a real etcd: objects keep their uids and, on the way in, their versions.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, PostParams};

use crate::support::{Etcd, Server, command, keelson};

async fn config_maps(server: &Server) -> Vec<ConfigMap> {
    let api: Api<ConfigMap> = Api::namespaced(server.client().await, "default");
    api.list(&ListParams::default()).await.unwrap().items
}

fn store(folder: &std::path::Path, arguments: &[&str]) -> String {
    let done = command(keelson(), folder)
        .arg("store")
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert!(done.status.success(), "{}", text(done.stderr));
    text(done.stdout)
}

#[tokio::test]
async fn a_server_moves_from_etcd_to_a_folder_and_back() {
    let Some(etcd) = Etcd::start() else { return };
    let server = Server::start(keelson(), &["--etcd-servers", &etcd.url]).await;
    let api: Api<ConfigMap> = Api::namespaced(server.client().await, "default");
    for n in 0..20 {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(format!("map-{n}"));
        api.create(&PostParams::default(), &map).await.unwrap();
    }
    let before = config_maps(&server).await;
    assert!(before.len() >= 20);
    let (_, _, folder) = server.terminate();

    let said = store(folder.path(), &["import", "--from", &etcd.url]);
    assert!(said.contains(": imported ") && said.contains(" keys with "), "{said}");
    let server = Server::start_in(keelson(), folder, &[]).await;
    assert_eq!(config_maps(&server).await, before);
    let (_, _, folder) = server.terminate();

    let Some(other) = Etcd::start() else { return };
    let said = store(folder.path(), &["export", "--to", &other.url]);
    assert!(said.contains(": exported "), "{said}");
    let server = Server::start_in(keelson(), folder, &["--etcd-servers", &other.url]).await;
    let mut after = config_maps(&server).await;
    for (after, before) in after.iter_mut().zip(&before) {
        after
            .metadata
            .resource_version
            .clone_from(&before.metadata.resource_version);
    }
    assert_eq!(after, before);
    server.terminate();
}
