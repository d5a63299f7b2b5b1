//! Resources that come, change and go while the server serves.

use std::sync::Arc;

use keelson_codegen_sample::api::SCHEME;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::Gvk;
use keelson_machinery::reflect::{FieldDesc, Flags, Id, MessageDesc, Names, Ref, Type, Unknown};
use keelson_machinery::scheme::{Conversion, KindDesc, KindRef};
use keelson_registry::{
    ConversionStrategy, Definition, InstallError, OpenApiForm, OwnDefinitions, Registry, ResourceCode,
    VersionDefinition,
};
use keelson_server::server::{Config, Hook, HookError};
use serde_json::{Value, json};

use crate::setting::{Client, Events, Server, soon, text};

pub const JSON: &str = "application/json";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED_PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const GROUP: &str = "stable.example.com";

/// A server, and the registry of its resources.
pub fn server(change: impl FnOnce(&mut Config) + Send + 'static) -> (Server, Arc<Registry>) {
    let (tell, told) = std::sync::mpsc::channel();
    let server = Server::configured(move |config| {
        change(config);
        let run = move |context: keelson_server::server::HookContext| {
            tell.send(context.registry).unwrap();
            Box::pin(std::future::ready(Ok(()))) as futures_util::future::LocalBoxFuture<'static, Result<(), HookError>>
        };
        config.hooks.push(Hook {
            name: "tell-the-registry",
            run: Box::new(run),
        });
    });
    (server, told.recv().unwrap())
}

/// A version of a resource; the fields of its spec can be selected by.
pub fn version(group: &str, version: &str, plural: &str, fields: &[&str]) -> VersionDefinition {
    let string = |name: &&str| FieldDesc::shared(*name, Type::String, Flags::NONE);
    let spec = MessageDesc::shared("spec", None, fields.iter().map(string).collect(), Unknown::Dropped);
    let fields_of_object = vec![
        FieldDesc::shared(
            "metadata",
            Type::Message(Ref::Static(ObjectMeta::message_desc())),
            Flags::NONE,
        ),
        FieldDesc::shared("spec", Type::Message(spec.unwrap()), Flags::NONE),
    ];
    let name = format!("{}.CronTab", package(group, version, plural));
    let gvk = Gvk::new(group, version, "CronTab");
    let model = SCHEME.groups.iter().flat_map(|g| g.versions).flat_map(|v| v.kinds);
    let model = model.into_iter().find(|kind| kind.kind == "Order").unwrap();
    let kind = KindDesc {
        group: group.into(),
        version: version.into(),
        kind: "CronTab".into(),
        list_kind: "CronTabList".into(),
        plural: plural.into(),
        singular: "crontab".into(),
        short_names: Names::from_iter(["ct"]),
        subresources: Ref::Static(&[]),
        columns: Ref::Static(&[]),
        storage: true,
        hub: true,
        storage_path: format!("{group}/{plural}").into(),
        selectable_fields: Names::from_iter(fields.iter().map(|field| format!("spec.{field}"))),
        stored_as_json: true,
        message: MessageDesc::shared(&*name, Some(gvk), fields_of_object, Unknown::Dropped).unwrap(),
        conversion: Conversion::None,
        own_id: Id::fresh(),
        ..model.clone()
    };
    VersionDefinition {
        kind: KindRef::Shared(Arc::new(kind)),
        served: true,
        priority: 100,
        definitions: Arc::new(Definitions(definitions(group, version, plural, fields).to_string())),
    }
}

struct Definitions(String);

impl OwnDefinitions for Definitions {
    fn definitions(&self, form: OpenApiForm) -> Vec<u8> {
        match form {
            OpenApiForm::V2 => self.0.replace("#/components/schemas/", "#/definitions/").into_bytes(),
            OpenApiForm::V3 => self.0.clone().into_bytes(),
        }
    }
}

fn package(group: &str, version: &str, plural: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').collect();
    parts.reverse();
    format!("{}.{version}.{plural}", parts.join("."))
}

/// What OpenAPI has of a version.
fn definitions(group: &str, version: &str, plural: &str, fields: &[&str]) -> Value {
    let spec: serde_json::Map<String, Value> = fields
        .iter()
        .map(|field| ((*field).to_owned(), json!({"type": "string"})))
        .collect();
    let meta =
        |kind: &str| json!({"$ref": format!("#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.{kind}")});
    let package = package(group, version, plural);
    let item = json!({"$ref": format!("#/components/schemas/{package}.CronTab")});
    json!({
        format!("{package}.CronTab"): {"type": "object", "properties": {
            "metadata": meta("ObjectMeta"), "spec": {"type": "object", "properties": spec}}},
        format!("{package}.CronTabList"): {"type": "object", "properties": {
            "metadata": meta("ListMeta"), "items": {"type": "array", "items": item}}},
    })
}

/// A resource in one version.
pub fn definition(group: &str, plural: &str, fields: &[&str]) -> Definition {
    Definition {
        versions: vec![version(group, "v1", plural, fields)],
        group_priority: 1000,
        conversion: ConversionStrategy::Code,
        code: Box::new(|_| ResourceCode::default()),
    }
}

pub fn path(group: &str, plural: &str) -> String {
    format!("/apis/{group}/v1/namespaces/default/{plural}")
}

pub fn crontab(group: &str, name: &str, spec: &Value) -> String {
    let version = format!("{group}/v1");
    json!({"apiVersion": version, "kind": "CronTab", "metadata": {"name": name}, "spec": spec}).to_string()
}

/// The status of a GET.
pub async fn status(client: &mut Client, path: &str) -> u16 {
    let answer = client.get(path).await;
    let status = answer.status().as_u16();
    drop(text(answer).await);
    status
}

/// The types of all events up to the end, which is no error.
pub async fn types_to_the_end(mut events: Events) -> Vec<String> {
    let mut types = Vec::new();
    while let Some(event) = events.next().await {
        types.push(event["type"].as_str().unwrap().to_owned());
    }
    types
}

async fn tag(client: &mut Client, path: &str, accept: &str) -> String {
    let answer = client.get_as(path, accept).await;
    assert_eq!(answer.status(), 200, "{path}");
    answer.headers()["etag"].to_str().unwrap().to_owned()
}

/// What says which resources there are.
pub async fn documents(client: &mut Client) -> Vec<String> {
    let mut all = Vec::new();
    for (path, accept) in [
        ("/apis", AGGREGATED),
        ("/apis", AGGREGATED_PROTOBUF),
        ("/openapi/v2", JSON),
        ("/openapi/v2", V2_PROTOBUF),
    ] {
        all.push(tag(client, path, accept).await);
    }
    for path in ["/apis", "/openapi/v3", "/"] {
        all.push(text(client.get(path).await).await);
    }
    all
}

#[tokio::test]
async fn a_resource_is_served_while_it_is_installed_and_every_document_says_so() {
    let (server, registry) = server(|_| {});
    let mut client = server.client().await;
    let before = documents(&mut client).await;
    let path = path(GROUP, "crontabs");
    assert_eq!(status(&mut client, &path).await, 404);
    soon(registry.install(definition(GROUP, "crontabs", &["cron"])))
        .await
        .unwrap();
    let (code, made) = client
        .send("POST", &path, JSON, &crontab(GROUP, "a", &json!({"cron": "* *"})))
        .await;
    assert_eq!((code, &made["kind"]), (201, &json!("CronTab")), "{made}");
    assert_eq!(client.object(&path).await["items"][0]["spec"]["cron"], "* *");

    let during = documents(&mut client).await;
    assert!(before.iter().zip(&during).all(|(before, during)| before != during));
    let group = client.object(&format!("/apis/{GROUP}")).await;
    assert_eq!(group["preferredVersion"]["groupVersion"], "stable.example.com/v1");
    let resources = client.object(&format!("/apis/{GROUP}/v1")).await;
    assert_eq!(resources["resources"][0]["name"], "crontabs");
    let aggregated = text(client.get_as("/apis", AGGREGATED).await).await;
    let aggregated: Value = serde_json::from_str(&aggregated).unwrap();
    let groups = aggregated["items"].as_array().unwrap();
    let group = groups.iter().find(|group| group["metadata"]["name"] == GROUP).unwrap();
    assert_eq!(group["versions"][0]["resources"][0]["resource"], "crontabs");
    let name = "com.example.stable.v1.crontabs.CronTab";
    let index = client.object("/openapi/v3").await;
    let url = index["paths"]["apis/stable.example.com/v1"]["serverRelativeURL"].as_str();
    let document = client.object(url.unwrap()).await;
    assert!(document["components"]["schemas"][name]["properties"]["spec"]["properties"]["cron"].is_object());
    assert!(document["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"].is_object());
    let document = client.object("/openapi/v2").await;
    assert!(document["paths"][format!("/apis/{GROUP}/v1/namespaces/{{namespace}}/crontabs")].is_object());
    assert!(document["definitions"][name].is_object());

    assert!(soon(registry.remove(GROUP, "crontabs")).await);
    assert!(!soon(registry.remove(GROUP, "crontabs")).await);
    assert_eq!(status(&mut client, &path).await, 404);
    assert_eq!(status(&mut client, &format!("/apis/{GROUP}")).await, 404);
    assert_eq!(status(&mut client, "/openapi/v3/apis/stable.example.com/v1").await, 404);
    assert_eq!(documents(&mut client).await, before);
}

#[tokio::test]
async fn watches_end_with_their_resource_when_they_have_shown_all() {
    let (server, registry) = server(|_| {});
    let mut client = server.client().await;
    let path = path(GROUP, "crontabs");
    let install = async |fields: &[&str]| {
        soon(registry.install(definition(GROUP, "crontabs", fields)))
            .await
            .unwrap()
    };
    install(&["cron"]).await;
    let watch = async || server.client().await.watch_path(&format!("{path}?watch=1")).await;
    let first = watch().await;
    let orders = server.client().await.watch("").await;
    client
        .send("POST", &path, JSON, &crontab(GROUP, "a", &json!({"cron": "1"})))
        .await;
    client
        .send("POST", &path, JSON, &crontab(GROUP, "b", &json!({"cron": "2"})))
        .await;
    // Both are shown before the end.
    install(&["cron", "image"]).await;
    assert_eq!(types_to_the_end(first).await, ["ADDED", "ADDED"]);
    let second = watch().await;
    client.send("DELETE", &format!("{path}/a"), JSON, "{}").await;
    assert!(soon(registry.remove(GROUP, "crontabs")).await);
    let told = types_to_the_end(second).await;
    assert_eq!(told, ["ADDED", "ADDED", "DELETED"]);
    // Others go on.
    let mut orders = orders;
    client.create("one", 1).await;
    assert_eq!(orders.next_name().await, "one");
}

/// The fields that can be selected by are read from an object once; those of another definition are not taken for them.
#[tokio::test]
async fn another_definition_selects_by_its_own_fields() {
    let (server, registry) = server(|_| {});
    let mut client = server.client().await;
    let path = path(GROUP, "crontabs");
    let fields = ["image", "cron"];
    soon(registry.install(definition(GROUP, "crontabs", &fields[..1])))
        .await
        .unwrap();
    soon(registry.install(definition(GROUP, "crontabs", &fields)))
        .await
        .unwrap();
    client
        .send(
            "POST",
            &path,
            JSON,
            &crontab(GROUP, "a", &json!({"cron": "1", "image": "x"})),
        )
        .await;
    let count = async |client: &mut Client, selector: &str| {
        let list = client.object(&format!("{path}?fieldSelector={selector}")).await;
        list["items"].as_array().unwrap().len()
    };
    assert_eq!(count(&mut client, "spec.image=x").await, 1);
    soon(registry.install(definition(GROUP, "crontabs", &fields[..1])))
        .await
        .unwrap();
    assert_eq!(count(&mut client, "spec.image=x").await, 1);
    assert_eq!(count(&mut client, "spec.image=1").await, 0);
    assert_eq!(
        status(&mut client, &format!("{path}?fieldSelector=spec.cron=1")).await,
        400
    );
}

#[tokio::test]
async fn a_client_that_reads_late_is_shown_all_before_the_end() {
    /// More than connections take in advance.
    const OBJECTS: usize = 100;
    const BYTES: usize = 40_000;
    let (server, registry) = server(|_| {});
    let mut client = server.client().await;
    let path = path(GROUP, "crontabs");
    soon(registry.install(definition(GROUP, "crontabs", &["cron"])))
        .await
        .unwrap();
    let late = server.client().await.watch_path(&format!("{path}?watch=1")).await;
    let spec = json!({"cron": "c".repeat(BYTES)});
    for n in 0..OBJECTS {
        let (code, _) = client
            .send("POST", &path, JSON, &crontab(GROUP, &format!("a{n}"), &spec))
            .await;
        assert_eq!(code, 201);
    }
    assert!(soon(registry.remove(GROUP, "crontabs")).await);
    assert_eq!(types_to_the_end(late).await, vec!["ADDED"; OBJECTS]);
}

#[tokio::test]
async fn a_version_may_come_and_go() {
    let (server, registry) = server(|_| {});
    let mut client = server.client().await;
    let both = || {
        let mut both = definition(GROUP, "crontabs", &["cron"]);
        let mut second = version(GROUP, "v2", "crontabs", &["cron"]);
        if let KindRef::Shared(kind) = &mut second.kind {
            Arc::get_mut(kind).unwrap().storage = false;
        }
        both.versions.push(second);
        both
    };
    soon(registry.install(both())).await.unwrap();
    let group = client.object(&format!("/apis/{GROUP}")).await;
    let versions: Vec<&str> = group["versions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|v| v["version"].as_str())
        .collect();
    assert_eq!(versions, ["v2", "v1"]);
    let path = path(GROUP, "crontabs");
    let (code, _) = client
        .send("POST", &path, JSON, &crontab(GROUP, "a", &json!({"cron": "1"})))
        .await;
    assert_eq!(code, 201);
    let mut one = both();
    one.versions[1].served = false;
    soon(registry.install(one)).await.unwrap();
    assert_eq!(status(&mut client, &path).await, 200);
    assert_eq!(status(&mut client, &path.replace("v1", "v2")).await, 404);
}

#[tokio::test]
async fn what_is_no_resource_or_another_ones_is_refused() {
    let (_server, registry) = server(|_| {});
    let refused = async |definition| soon(registry.install(definition)).await.unwrap_err();
    let orders = definition("shop.example.com", "orders", &[]);
    assert!(matches!(refused(orders).await, InstallError::OfTheBuild(..)));
    assert!(!soon(registry.remove("shop.example.com", "orders")).await);
    let mut mixed = definition(GROUP, "crontabs", &[]);
    mixed.versions.push(version(GROUP, "v2", "others", &[]));
    assert!(matches!(refused(mixed).await, InstallError::Mixed(..)));
    let mut none = definition(GROUP, "crontabs", &[]);
    none.versions.clear();
    assert!(matches!(refused(none).await, InstallError::NoVersion));
    assert!(registry.resource(GROUP, "crontabs").is_none());
}
