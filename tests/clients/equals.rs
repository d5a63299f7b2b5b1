//! Two servers that share an etcd: what one has done holds for the other, though each looks into its own memory first.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::{Etcd, Server, keelson};

/// What another server is told of arrives within this.
const SOON: Duration = Duration::from_secs(20);

fn namespace(name: &str) -> Namespace {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "0"}})).unwrap()
}

async fn create(client: &kube::Client, namespace: &str, name: &str) -> Result<ConfigMap, u16> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let made = maps.create(&PostParams::default(), &map(name)).await;
    made.map_err(|error| match error {
        kube::Error::Api(status) => status.code,
        other => panic!("{other}"),
    })
}

#[tokio::test]
async fn what_one_server_does_holds_for_the_other() {
    let Some(etcd) = Etcd::start() else { return };
    let flag = format!("--etcd-servers={}", etcd.url);
    let flags = [flag.as_str()];
    let first = Server::start(keelson(), &flags).await;
    let second = Server::start(keelson(), &flags).await;
    let (one, other) = (first.client().await, second.client().await);
    let namespaces: Api<Namespace> = Api::all(one.clone());
    for round in 0..20 {
        let name = format!("shared-{round}");
        namespaces
            .create(&PostParams::default(), &namespace(&name))
            .await
            .unwrap();
        // Nobody has told the other server yet.
        create(&other, &name, "from-the-other").await.unwrap();
        changes(&one, &other, &name).await;
        namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
        // No object comes into a namespace that this server is deleting.
        assert_eq!(create(&one, &name, "too-late").await.unwrap_err(), 403, "{name}");
        let heard = async {
            let mut attempt = 0;
            while create(&other, &name, &format!("late-{attempt}")).await.is_ok() {
                attempt += 1;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(SOON, heard)
            .await
            .expect("the other server does not hear of it");
    }
}

/// Each server writes what the other has just written.
async fn changes(one: &kube::Client, other: &kube::Client, namespace: &str) {
    let maps = |client: &kube::Client| Api::<ConfigMap>::namespaced(client.clone(), namespace);
    let (one, other) = (maps(one), maps(other));
    for number in 0..10 {
        let (writer, reader) = if number % 2 == 0 {
            (&one, &other)
        } else {
            (&other, &one)
        };
        let patch = json!({"data": {format!("k{number}"): number.to_string()}});
        let merge = Patch::Merge(&patch);
        let written = writer
            .patch("from-the-other", &PatchParams::default(), &merge)
            .await
            .unwrap();
        assert_eq!(
            written.data.as_ref().unwrap().len(),
            2 * number + 2,
            "what was there stays"
        );
        let mut read = reader.get("from-the-other").await.unwrap();
        assert_eq!(read.metadata.resource_version, written.metadata.resource_version);
        read.data.as_mut().unwrap().insert(format!("p{number}"), String::new());
        let name = "from-the-other";
        reader.replace(name, &PostParams::default(), &read).await.unwrap();
        let stale = writer.replace(name, &PostParams::default(), &written).await;
        assert!(matches!(stale, Err(kube::Error::Api(status)) if status.code == 409));
    }
    for client in [&one, &other] {
        let end = client.delete("from-the-other", &DeleteParams::default()).await;
        let first = std::ptr::eq(client, &one);
        assert_eq!(end.is_ok(), first, "there is one object to be deleted");
    }
}
