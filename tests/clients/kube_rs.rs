//! The `kube` crate: typed objects, a watcher, patches.

use futures_util::TryStreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;

use crate::support::{Server, keelson, widgets};

fn widget(name: &str, size: i64) -> DynamicObject {
    let kind = widget_resource();
    let mut object = DynamicObject::new(name, &kind);
    object.data = json!({ "spec": { "sizeMillimeters": size } });
    object
}

fn widget_resource() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Widget"), "widgets")
}

#[tokio::test]
async fn typed_objects_are_made_patched_and_deleted() {
    let server = Server::start(keelson(), &["--storage-backend=memory"]).await;
    let client = server.client().await;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let made: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "web", "labels": { "app": "web" } },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    }))
    .unwrap();
    let made = deployments.create(&PostParams::default(), &made).await.unwrap();
    assert_eq!(made.spec.unwrap().replicas, Some(1));

    let merge = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    let patched = deployments.patch("web", &PatchParams::default(), &merge).await.unwrap();
    assert_eq!(
        (patched.spec.unwrap().replicas, patched.metadata.generation),
        (Some(3), Some(2))
    );
    let steps = serde_json::from_value(json!([{ "op": "replace", "path": "/metadata/labels/app", "value": "site" }]));
    let patched = deployments
        .patch("web", &PatchParams::default(), &Patch::<()>::Json(steps.unwrap()))
        .await
        .unwrap();
    assert_eq!(patched.metadata.labels.unwrap()["app"], "site");
    let scale = deployments.get_scale("web").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(3));

    let found = deployments
        .list(&ListParams::default().labels("app=site"))
        .await
        .unwrap();
    assert_eq!(found.items.len(), 1);
    deployments.delete("web", &DeleteParams::default()).await.unwrap();
    let gone = deployments.get_opt("web").await.unwrap();
    // A foreground deletion would leave the object until a garbage collector came; the default doesn't.
    assert!(gone.is_none(), "{gone:?}");
}

#[tokio::test]
async fn a_watcher_sees_what_happens() {
    let server = Server::start(keelson(), &["--storage-backend=memory"]).await;
    let maps: Api<ConfigMap> = Api::namespaced(server.client().await, "default");
    let named = |name: &str| ConfigMap {
        metadata: kube::core::ObjectMeta {
            name: Some(name.into()),
            ..Default::default()
        },
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &named("before")).await.unwrap();
    let mut events = Box::pin(watcher(maps.clone(), watcher::Config::default()).default_backoff());
    loop {
        if let watcher::Event::InitDone = events.try_next().await.unwrap().unwrap() {
            break;
        }
    }
    maps.create(&PostParams::default(), &named("after")).await.unwrap();
    maps.delete("before", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        seen.push(match events.try_next().await.unwrap().unwrap() {
            watcher::Event::Apply(map) => format!("applied {}", map.metadata.name.unwrap()),
            watcher::Event::Delete(map) => format!("deleted {}", map.metadata.name.unwrap()),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(seen, ["applied after", "deleted before"]);
}

#[tokio::test]
async fn a_server_of_ones_own_serves_its_kinds() {
    let server = Server::start(widgets(), &["--storage-backend=memory"]).await;
    let api: Api<DynamicObject> = Api::namespaced_with(server.client().await, "default", &widget_resource());
    api.create(&PostParams::default(), &widget("gear", 12)).await.unwrap();
    let refused = api
        .create(&PostParams::default(), &widget("giant", 5000))
        .await
        .unwrap_err();
    let kube::Error::Api(status) = refused else {
        panic!("{refused}")
    };
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert!(status.message.contains("spec.sizeMillimeters"), "{}", status.message);

    let old = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1beta1", "Widget"), "widgets");
    let old: Api<DynamicObject> = Api::namespaced_with(server.client().await, "default", &old);
    assert_eq!(old.get("gear").await.unwrap().data["spec"]["size"], "12mm");
    let merge = Patch::Merge(json!({ "spec": { "size": "3cm" } }));
    old.patch("gear", &PatchParams::default(), &merge).await.unwrap();
    let data = api.get("gear").await.unwrap().data;
    assert_eq!(data["spec"]["sizeMillimeters"], 30);
    assert_eq!(data["spec"]["color"], "Green");
}

fn knob(name: &str, turns: i64) -> DynamicObject {
    let mut object = DynamicObject::new(name, &knob_resource());
    object.data = json!({ "spec": { "turns": turns } });
    object
}

fn knob_resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("kube-rs.example.com", "v1", "Knob"))
}

/// A definition and its objects are applied, waited for, watched and written to their status.
#[tokio::test]
async fn custom_resources_are_defined_applied_and_watched() {
    let server = Server::start(keelson(), &["--storage-backend=memory"]).await;
    let client = server.client().await;
    let spec = json!({"type": "object", "properties": {"turns": {"type": "integer", "maximum": 10}}});
    let status = json!({"type": "object", "properties": {"turned": {"type": "boolean"}}});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "knobs.kube-rs.example.com"},
        "spec": {"group": "kube-rs.example.com", "scope": "Namespaced", "names": {"plural": "knobs", "kind": "Knob"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}}}]}});
    let applying = PatchParams::apply("test");
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = "knobs.kube-rs.example.com";
    definitions
        .patch(name, &applying, &Patch::Apply(&definition))
        .await
        .unwrap();
    let established = await_condition(definitions.clone(), name, conditions::is_crd_established());
    established.await.unwrap();

    let knobs: Api<DynamicObject> = Api::namespaced_with(client, "default", &knob_resource());
    let mut events = Box::pin(watcher(knobs.clone(), watcher::Config::default().streaming_lists()).default_backoff());
    loop {
        if let watcher::Event::InitDone = events.try_next().await.unwrap().unwrap() {
            break;
        }
    }
    let applied = knobs.patch("a", &applying, &Patch::Apply(knob("a", 3))).await.unwrap();
    assert_eq!(
        (&applied.data["spec"]["turns"], applied.metadata.generation),
        (&json!(3), Some(1))
    );
    let refused = knobs
        .patch("a", &applying, &Patch::Apply(knob("a", 11)))
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("should be less than or equal to 10"),
        "{refused}"
    );
    let turned = Patch::Merge(json!({ "status": { "turned": true, "unknown": 1 } }));
    let turned = knobs.patch_status("a", &PatchParams::default(), &turned).await.unwrap();
    assert_eq!(
        turned.data,
        json!({ "spec": { "turns": 3 }, "status": { "turned": true } })
    );
    knobs.delete("a", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        seen.push(match events.try_next().await.unwrap().unwrap() {
            watcher::Event::Apply(knob) => format!("applied {}", knob.data["status"]),
            watcher::Event::Delete(knob) => format!("deleted {}", knob.data["status"]),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(
        seen,
        [
            "applied null",
            r#"applied {"turned":true}"#,
            r#"deleted {"turned":true}"#
        ]
    );
}
