//! Tests of the hooks, on a store in memory.

use std::sync::Arc;

use keelson_access::authn::Authentication;
use keelson_access::authz::Authorization;
use keelson_api::core::v1::{ConfigMap, Endpoints, Namespace, Service};
use keelson_api::flowcontrol_apiserver_k8s_io::v1::FlowSchema;
use keelson_api::networking_k8s_io::v1::ServiceCIDR;
use keelson_api::rbac_authorization_k8s_io::v1::{ClusterRole, ClusterRoleBinding};
use keelson_base::env::{SystemClock, SystemEntropy};
use keelson_machinery::meta::v1::{DeleteOptions, ObjectMeta};
use keelson_machinery::object::Object;
use keelson_machinery::reflect::Reflect;
use keelson_registry::controller::Controllers;
use keelson_registry::{Backend, Objects, Registry, RuntimeConfig, Verbs};
use keelson_server::server::Ending;
use keelson_storage::memory::MemoryStore;
use keelson_storage::{HistoryLimits, ListOptions};

use super::system_namespaces::{NAMES, make_absent};
use super::*;

pub fn context() -> HookContext {
    let backend = Backend {
        store: Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap()),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        budget: keelson_registry::cache::Budget::new(0),
        encryption: keelson_storage::encryption::Encryption::none(),
        placement: Arc::default(),
        corrupt: Default::default(),
    };
    let mut code = crate::code(&crate::CodeOptions::default());
    code.admission(crate::admission::chain());
    let registry = Registry::new(
        &[&keelson_api::SCHEME],
        &code,
        &backend,
        "/registry",
        &RuntimeConfig::all(),
    )
    .unwrap();
    let registry = Arc::new(registry);
    let verbs = Verbs {
        registry: registry.clone(),
        backend: backend.clone(),
        authentication: Authentication::default(),
        authorization: Authorization::default(),
    };
    HookContext {
        registry,
        backend,
        verbs: Arc::new(verbs),
        advertise: "192.0.2.2:6443".to_owned(),
        controllers: Controllers::default(),
        ending: Ending::default(),
    }
}

/// Three authorities, of which one has ended.
const AUTHORITIES: &str = include_str!("../../../tests/data/conversations/authn-certs/clients.crt");

fn setting() -> Setting {
    Setting {
        client_ca_pem: AUTHORITIES.to_owned(),
        ..Setting::default()
    }
}

async fn run_all(context: &HookContext) {
    let runs = hooks(&setting()).into_iter().map(|hook| (hook.run)(context.clone()));
    for outcome in futures_util::future::join_all(runs).await {
        outcome.unwrap();
    }
}

async fn stored<T: Reflect + Clone>(context: &HookContext, group: &str, plural: &str, path: &str) -> T {
    let (namespace, name) = path.rsplit_once('/').unwrap_or(("", path));
    let found = context
        .registry
        .resource(group, plural)
        .unwrap()
        .find(namespace, name)
        .await;
    found.unwrap().unwrap().object.downcast_ref::<T>().unwrap().clone()
}

const RBAC: &str = "rbac.authorization.k8s.io";

async fn change<T: Reflect>(context: &HookContext, plural: &str, name: &str, change: impl Fn(&mut T)) {
    change_in(context, RBAC, plural, name, change).await;
}

async fn change_in<T: Reflect>(context: &HookContext, group: &str, plural: &str, name: &str, change: impl Fn(&mut T)) {
    let mut updater = |old: Option<&dyn Object>| {
        let mut new = old.unwrap().clone_object();
        change(new.downcast_mut::<T>().unwrap());
        Ok(new)
    };
    let masters = objects(context, group, plural);
    masters.update(name, &mut updater).await.unwrap();
}

/// Cluster-scoped objects, for somebody who may do everything and leaves no trace in `managedFields`.
fn objects(context: &HookContext, group: &str, plural: &str) -> Objects {
    context.client("").untracked().objects(group, plural, "").unwrap()
}

#[tokio::test]
async fn a_fresh_server_has_what_clients_look_for() {
    let context = context();
    tokio::task::LocalSet::new().run_until(run_all(&context)).await;
    let counts = [
        (RBAC, "clusterroles", 69),
        (RBAC, "clusterrolebindings", 50),
        (RBAC, "roles", 7),
        (RBAC, "rolebindings", 7),
        ("flowcontrol.apiserver.k8s.io", "flowschemas", 11),
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", 8),
        ("scheduling.k8s.io", "priorityclasses", 2),
        ("networking.k8s.io", "ipaddresses", 1),
        ("discovery.k8s.io", "endpointslices", 1),
    ];
    for (group, plural, count) in counts {
        let resource = context.registry.resource(group, plural).unwrap();
        assert_eq!(resource.all("").await.unwrap().len(), count, "{plural}");
    }
    let service: Service = stored(&context, "", "services", "default/kubernetes").await;
    assert_eq!(service.spec.cluster_ip, "10.0.0.1");
    let endpoints: Endpoints = stored(&context, "", "endpoints", "default/kubernetes").await;
    assert_eq!(endpoints.subsets[0].addresses[0].ip, "192.0.2.2");
    let range: ServiceCIDR = stored(&context, "networking.k8s.io", "servicecidrs", "kubernetes").await;
    assert_eq!(
        (&*range.spec.cidrs[0], &*range.status.conditions[0].status),
        ("10.0.0.0/24", "True")
    );
    let schema: FlowSchema = stored(&context, "flowcontrol.apiserver.k8s.io", "flowschemas", "exempt").await;
    assert_eq!(schema.status.conditions[0].reason, "Found");
    assert_eq!(schema.metadata.generation, 1);
    let map: ConfigMap = stored(
        &context,
        "",
        "configmaps",
        "kube-system/extension-apiserver-authentication",
    )
    .await;
    let told = &map.data["client-ca-file"];
    assert!(AUTHORITIES.starts_with(told.as_str()), "the last one has ended");
    assert_eq!(told.matches("BEGIN CERTIFICATE").count(), 2);
    let role: ClusterRole = stored(&context, RBAC, "clusterroles", "cluster-admin").await;
    assert_eq!(role.metadata.managed_fields[0].manager, "kube-apiserver");
}

#[test]
fn default_roles_are_made_where_roles_decide() {
    let names = |roles| -> Vec<&str> {
        let setting = Setting { roles, ..setting() };
        hooks(&setting).iter().map(|hook| hook.name).collect()
    };
    assert!(names(true).contains(&"rbac/bootstrap-roles"));
    assert!(!names(false).contains(&"rbac/bootstrap-roles"));
}

/// CVE-2021-25740: who may write endpoints can lead a service into another namespace, so users' roles don't have it.
#[tokio::test]
async fn default_roles_write_no_endpoints() {
    let context = context();
    tokio::task::LocalSet::new().run_until(run_all(&context)).await;
    let resource = context.registry.resource(RBAC, "clusterroles").unwrap();
    let (mut users, mut writers) = (0, Vec::new());
    for object in resource.all("").await.unwrap() {
        let role = object.downcast_ref::<ClusterRole>().unwrap();
        let name = &role.metadata.name;
        let of_users = ["admin", "edit", "view"].contains(&name.as_str()) || name.starts_with("system:aggregate-to-");
        users += usize::from(of_users);
        let has =
            |list: &[String], wanted: &[&str]| list.iter().any(|one| one == "*" || wanted.contains(&one.as_str()));
        let writes = role.rules.iter().any(|rule| {
            let verbs = ["create", "update", "patch", "delete", "deletecollection"];
            has(&rule.resources, &["endpoints", "endpointslices"]) && has(&rule.verbs, &verbs)
        });
        if writes && (of_users || !name.starts_with("system:")) {
            writers.push(name.clone());
        }
    }
    assert_eq!((users, writers), (6, vec!["cluster-admin".to_owned()]));
}

/// What is stored, but for the leases of servers, which no two of them share.
async fn all_but_leases(context: &HookContext) -> Vec<(String, u64)> {
    let listed = context.backend.store.list("/registry/", ListOptions::default()).await;
    let entries = listed.unwrap().entries.into_iter();
    let entries = entries.filter(|entry| !entry.key.starts_with("/registry/leases/"));
    entries
        .map(|entry| (entry.key.to_string(), entry.mod_revision.0))
        .collect()
}

#[tokio::test]
async fn a_second_start_changes_nothing() {
    let context = context();
    let local = tokio::task::LocalSet::new();
    local.run_until(run_all(&context)).await;
    let before = all_but_leases(&context).await;
    assert!(before.len() > 100);
    local.run_until(run_all(&context)).await;
    assert_eq!(all_but_leases(&context).await, before);
}

#[tokio::test]
async fn default_roles_get_back_what_they_lack_and_keep_what_was_added() {
    let context = context();
    let local = tokio::task::LocalSet::new();
    local.run_until(run_all(&context)).await;
    change::<ClusterRole>(&context, "clusterroles", "system:discovery", |role| {
        role.rules[0].non_resource_urls.retain(|url| url != "/version");
        role.rules[0].non_resource_urls.push("/mine".to_owned());
        role.metadata.labels.clear();
    })
    .await;
    change::<ClusterRole>(&context, "clusterroles", "system:basic-user", |role| {
        role.rules.clear();
        let annotations = &mut role.metadata.annotations;
        annotations.insert("rbac.authorization.kubernetes.io/autoupdate".into(), "false".into());
    })
    .await;
    change::<ClusterRoleBinding>(&context, "clusterrolebindings", "system:discovery", |binding| {
        binding.subjects[0].name = "mine".to_owned();
    })
    .await;
    local.run_until(run_all(&context)).await;
    let role: ClusterRole = stored(&context, RBAC, "clusterroles", "system:discovery").await;
    let urls: Vec<&String> = role.rules.iter().flat_map(|rule| &rule.non_resource_urls).collect();
    assert!(
        urls.iter().any(|url| *url == "/mine") && urls.iter().any(|url| *url == "/version"),
        "{urls:?}"
    );
    assert_eq!(role.rules.len(), 2);
    assert_eq!(role.metadata.labels["kubernetes.io/bootstrapping"], "rbac-defaults");
    let role: ClusterRole = stored(&context, RBAC, "clusterroles", "system:basic-user").await;
    assert!(role.rules.is_empty(), "its annotation says so");
    let binding: ClusterRoleBinding = stored(&context, RBAC, "clusterrolebindings", "system:discovery").await;
    let names: Vec<&str> = binding.subjects.iter().map(|subject| subject.name.as_str()).collect();
    assert_eq!(names, ["mine", "system:authenticated"]);
}

#[tokio::test]
async fn what_is_absent_is_made() {
    let context = context();
    make_absent(&context).await.unwrap();
    let namespaces = context.registry.resource("", "namespaces").unwrap();
    let mut first = Vec::new();
    for name in NAMES {
        let stored = namespaces.find("", name).await.unwrap().unwrap();
        let namespace = stored.object.downcast_ref::<Namespace>().unwrap();
        assert_eq!(namespace.metadata.labels["kubernetes.io/metadata.name"], name);
        assert_eq!(namespace.status.phase, "Active");
        first.push(namespace.metadata.uid.clone());
    }
    let name = NAMES[3];
    let own = objects(&context, "", "namespaces");
    own.delete(name, &DeleteOptions::default()).await.unwrap();
    assert!(
        namespaces.find("", name).await.unwrap().is_some(),
        "its finalizer holds it"
    );
    let mut without_finalizer = |old: Option<&dyn Object>| {
        let mut new = old.unwrap().clone_object();
        new.downcast_mut::<Namespace>().unwrap().spec.finalizers.clear();
        Ok(new)
    };
    let finalize = own.subresource("finalize").unwrap();
    finalize.update(name, &mut without_finalizer).await.unwrap();
    assert!(namespaces.find("", name).await.unwrap().is_none());
    make_absent(&context).await.unwrap();
    let mut second = Vec::new();
    for name in NAMES {
        second.push(
            namespaces
                .find("", name)
                .await
                .unwrap()
                .unwrap()
                .object
                .meta()
                .uid
                .clone(),
        );
    }
    assert_eq!(first[..3], second[..3]);
    assert_ne!(first[3], second[3]);
}

#[tokio::test]
async fn generated_names_have_their_label() {
    let context = context();
    let namespaces = context.client("").of::<Namespace>("").unwrap();
    let metadata = ObjectMeta {
        generate_name: "a-".to_owned(),
        ..ObjectMeta::default()
    };
    let namespace = Namespace {
        metadata,
        ..Namespace::default()
    };
    let made = namespaces.create(namespace).await.unwrap();
    assert_eq!(made.metadata.labels["kubernetes.io/metadata.name"], made.metadata.name);
}

/// A FlowSchema of somebody, from a wanted one.
async fn write_schema(context: &HookContext, name: &str, annotation: Option<&str>) {
    let schemas = objects(context, "flowcontrol.apiserver.k8s.io", "flowschemas");
    let mut schema = FlowSchema::default();
    schema.metadata.name = name.to_owned();
    if let Some(value) = annotation {
        let key = "apf.kubernetes.io/autoupdate-spec".to_owned();
        schema.metadata.annotations.insert(key, value.to_owned());
    }
    schema.spec.priority_level_configuration.name = "system".to_owned();
    schema.spec.matching_precedence = 77;
    schemas.create(Box::new(schema)).await.unwrap();
}

/// As kube-apiserver was seen to do it.
#[tokio::test]
async fn flow_schemas_are_looked_after() {
    const FLOW: &str = "flowcontrol.apiserver.k8s.io";
    const KEY: &str = "apf.kubernetes.io/autoupdate-spec";
    let context = context();
    tokio::task::LocalSet::new().run_until(run_all(&context)).await;
    let annotate = async |name: &str, value: Option<&'static str>, precedence: Option<i32>| {
        change_in(&context, FLOW, "flowschemas", name, |schema: &mut FlowSchema| {
            match value {
                Some(value) => schema.metadata.annotations.insert(KEY.to_owned(), value.to_owned()),
                None => schema.metadata.annotations.remove(KEY),
            };
            schema.spec.matching_precedence = precedence.unwrap_or(schema.spec.matching_precedence);
        })
        .await;
    };
    annotate("service-accounts", Some("true"), Some(77)).await;
    annotate("probes", Some("false"), Some(3)).await;
    annotate("system-nodes", None, Some(501)).await;
    annotate("global-default", None, None).await;
    annotate("catch-all", Some("false"), None).await;
    write_schema(&context, "old", Some("true")).await;
    write_schema(&context, "mine", None).await;
    flow_control::ensure(&context, &flow_control::wanted().unwrap())
        .await
        .unwrap();
    for (name, annotation, precedence) in [
        ("service-accounts", Some("true"), 9000),
        ("probes", Some("false"), 3),
        ("system-nodes", Some("false"), 501),
        ("global-default", Some("true"), 9900),
        ("catch-all", Some("true"), 10_000),
        ("mine", None, 77),
    ] {
        let schema: FlowSchema = stored(&context, FLOW, "flowschemas", name).await;
        let found = schema.metadata.annotations.get(KEY).map(String::as_str);
        assert_eq!(
            (found, schema.spec.matching_precedence),
            (annotation, precedence),
            "{name}"
        );
    }
    let schemas = context.registry.resource(FLOW, "flowschemas").unwrap();
    assert!(schemas.find("", "old").await.unwrap().is_none());
}

/// The client goes through admission, and is the owner of what it writes.
#[tokio::test]
async fn the_server_writes_as_a_client_does() {
    let context = context();
    let client = context.client("tester");
    let map = |namespace: &str| ConfigMap {
        metadata: ObjectMeta {
            name: "m".to_owned(),
            namespace: namespace.to_owned(),
            ..ObjectMeta::default()
        },
        data: [("a".to_owned(), "b".to_owned())].into(),
        ..ConfigMap::default()
    };
    let nowhere = client.of::<ConfigMap>("nowhere").unwrap();
    let error = nowhere.create(map("nowhere")).await.err().unwrap();
    assert_eq!((error.code, &*error.message), (404, "namespaces \"nowhere\" not found"));
    make_absent(&context).await.unwrap();
    let maps = client.of::<ConfigMap>("default").unwrap();
    let made = maps.create(map("default")).await.unwrap();
    assert_eq!(made.metadata.managed_fields[0].manager, "tester");
    let dry = context
        .client("tester")
        .dry_run(true)
        .of::<ConfigMap>("default")
        .unwrap();
    for (changing, stored) in [(dry, 1), (maps.clone(), 2)] {
        let changed = changing.update("m", |map| drop(map.data.insert("k".to_owned(), "v".to_owned())));
        assert_eq!(changed.await.unwrap().data.len(), 2);
        assert_eq!(maps.find("m").await.unwrap().unwrap().data.len(), stored);
    }
    assert_eq!(maps.all().await.unwrap().len(), 1);
    let namespaces = client.of::<Namespace>("").unwrap();
    let refused = namespaces
        .delete("default", &DeleteOptions::default())
        .await
        .unwrap_err();
    assert_eq!(refused.code, 403, "{refused}");
    maps.delete("m", &DeleteOptions::default()).await.unwrap();
    assert!(maps.find("m").await.unwrap().is_none());
}
