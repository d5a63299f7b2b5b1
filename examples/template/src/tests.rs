//! The server in a test: versions, defaults, rules, and the built-in groups that it has.

use std::time::Duration;

use keelson::testing::TestServer;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config};
use serde_json::{Value, json};

async fn client(server: &TestServer) -> Client {
    let file = kube::config::Kubeconfig::from_yaml(server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(file, &Default::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn vans(client: &Client, version: &str, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("fleet.example.com", version, "Van");
    Api::namespaced_with(
        client.clone(),
        namespace,
        &ApiResource::from_gvk_with_plural(&kind, "vans"),
    )
}

fn van(version: &str, name: &str, spec: Value) -> DynamicObject {
    let version = format!("fleet.example.com/{version}");
    let object = json!({"apiVersion": version, "kind": "Van", "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

/// Status code and message of a refusal.
fn refusal<T: std::fmt::Debug>(result: kube::Result<T>) -> (u16, String) {
    match result.unwrap_err() {
        kube::Error::Api(status) => (status.code, status.message.clone()),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn vans_are_made_read_and_refused() {
    let server = TestServer::start(super::server).unwrap();
    let client = client(&server).await;
    let (new, old) = (vans(&client, "v1", "default"), vans(&client, "v1beta1", "default"));
    let create = PostParams::default();

    let made = old
        .create(
            &create,
            &van("v1beta1", "ann", json!({"payload": "2t", "plate": "A-1"})),
        )
        .await
        .unwrap();
    assert_eq!(made.data["status"]["phase"], "Free");
    assert_eq!(new.get("ann").await.unwrap().data["spec"]["payloadKilograms"], 2000);

    let bad = van("v1beta1", "bad", json!({"payload": "much", "plate": "A-2"}));
    let (code, message) = refusal(old.create(&create, &bad).await);
    assert!(
        code == 422 && message.contains("must be like 800kg or 2t"),
        "{code} {message}"
    );

    let heavy = van(
        "v1",
        "heavy",
        json!({"payloadKilograms": 9000, "plate": "A-3", "driver": "bob"}),
    );
    let (code, message) = refusal(new.create(&create, &heavy).await);
    assert!(
        code == 422 && message.contains("heavier vans drive themselves"),
        "{code} {message}"
    );

    let other = Patch::Merge(json!({"spec": {"plate": "B-1"}}));
    let (code, message) = refusal(new.patch("ann", &PatchParams::default(), &other).await);
    assert!(
        code == 422 && message.contains("a van keeps its plate"),
        "{code} {message}"
    );
}

#[tokio::test]
async fn namespaces_and_roles_are_there() {
    let server = TestServer::start(super::server).unwrap();
    let client = client(&server).await;
    let create = PostParams::default();
    let a = van("v1", "a", json!({"payloadKilograms": 1, "plate": "A"}));
    let nowhere = vans(&client, "v1", "nowhere");
    assert_eq!(refusal(nowhere.create(&create, &a).await).0, 404);

    let kind = GroupVersionKind::gvk("", "v1", "Namespace");
    let namespaces: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "depot"}});
    namespaces
        .create(&create, &serde_json::from_value(object).unwrap())
        .await
        .unwrap();
    let inside = vans(&client, "v1", "depot");
    inside.create(&create, &a).await.unwrap();
    namespaces.delete("depot", &DeleteParams::default()).await.unwrap();
    let gone = async {
        while namespaces.get_opt("depot").await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone)
        .await
        .expect("the namespace goes");
    assert!(inside.get_opt("a").await.unwrap().is_none());

    let roles = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", "ClusterRole");
    let roles: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&roles));
    roles.get("cluster-admin").await.unwrap();
}
