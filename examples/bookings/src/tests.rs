//! The server in a test: defaults, rules, the plug-in's policy, and what the controller makes of bookings.

use std::time::Duration;

use keelson::testing::TestServer;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config};
use serde_json::{Value, json};

async fn bookings(server: &TestServer, user: &str, groups: &[&str]) -> Api<DynamicObject> {
    let file = kube::config::Kubeconfig::from_yaml(server.kubeconfig()).unwrap();
    let mut config = Config::from_custom_kubeconfig(file, &Default::default()).await.unwrap();
    config.auth_info.impersonate = Some(user.to_owned());
    config.auth_info.impersonate_groups = Some(groups.iter().map(|group| (*group).to_owned()).collect());
    let kind = GroupVersionKind::gvk("rooms.example.com", "v1", "Booking");
    let resource = ApiResource::from_gvk_with_plural(&kind, "bookings");
    Api::namespaced_with(Client::try_from(config).unwrap(), "default", &resource)
}

fn booking(name: &str, start: &str) -> DynamicObject {
    let object = json!({"apiVersion": "rooms.example.com/v1", "kind": "Booking", "metadata": {"name": name},
        "spec": {"room": "green", "start": start}});
    serde_json::from_value(object).unwrap()
}

/// Waits until a booking has come to a phase.
async fn becomes(api: &Api<DynamicObject>, name: &str, phase: &str) {
    let wait = async {
        while api.get(name).await.unwrap().data["status"]["phase"] != phase {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect(phase);
}

fn code<T: std::fmt::Debug>(result: kube::Result<T>) -> u16 {
    match result.unwrap_err() {
        kube::Error::Api(status) => status.code,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn rooms_go_to_who_comes_first() {
    let server = TestServer::start_with(super::server, &["--authorization-mode=AlwaysAllow"]).unwrap();
    let (ann, bob) = (
        bookings(&server, "ann", &[]).await,
        bookings(&server, "bob", &["managers"]).await,
    );
    let create = PostParams::default();
    let made = ann
        .create(&create, &booking("a", "2090-01-07T09:00:00Z"))
        .await
        .unwrap();
    assert_eq!(made.data["spec"]["end"], "2090-01-07T10:00:00Z");
    becomes(&ann, "a", "Confirmed").await;
    bob.create(&create, &booking("b", "2090-01-07T09:30:00Z"))
        .await
        .unwrap();
    bob.create(&create, &booking("past", "1990-01-07T09:00:00Z"))
        .await
        .unwrap();
    becomes(&bob, "b", "Waiting").await;
    becomes(&bob, "past", "Over").await;

    let patch = |spec: Value| Patch::Merge(json!({"spec": spec}));
    let (none, long) = (PatchParams::default(), json!({"end": "2090-01-07T14:00:00Z"}));
    assert_eq!(code(ann.patch("a", &none, &patch(json!({"room": "blue"}))).await), 422);
    assert_eq!(code(ann.patch("b", &none, &patch(long.clone())).await), 403);
    bob.patch("b", &none, &patch(long)).await.unwrap();

    ann.delete("a", &DeleteParams::default()).await.unwrap();
    becomes(&bob, "b", "Confirmed").await;
}
