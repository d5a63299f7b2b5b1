//! Defaults: absent fields get, from definitions and from code, what kube-apiserver gave to the same requests.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test, as it should")]

mod facts;

use std::sync::Arc;

use facts::facts;
use keelson::api::core::v1::RangeAllocation;
use keelson_access::authn::Authentication;
use keelson_access::authz::{Authorization, PrivilegedGroup};
use keelson_access::user::User;
use keelson_base::env::{SystemClock, SystemEntropy};
use keelson_machinery::scheme::KindDesc;
use keelson_machinery::{json, protobuf};
use keelson_registry::cache::Budget;
use keelson_registry::managed::Tracking;
use keelson_registry::{Backend, Context, Registry, RuntimeConfig, Target, Verbs, Warnings};
use keelson_storage::memory::MemoryStore;
use keelson_storage::{Expect, HistoryLimits, Write, Written};
use serde_json::Value;

/// The namespace of the recorded requests.
const NAMESPACE: &str = "facts";

/// What other capabilities put into new objects: admission, and the allocation of addresses and ports.
const LATER: [(&str, &[&str]); 7] = [
    ("nodes", &["/spec/taints"]),
    ("persistentvolumeclaims", &["/metadata/finalizers"]),
    ("persistentvolumes", &["/metadata/finalizers"]),
    ("podgroups", &["/metadata/finalizers", "/spec/priority"]),
    (
        "pods",
        &[
            "/spec/volumes",
            "/spec/containers/0/volumeMounts",
            "/spec/tolerations",
            "/spec/serviceAccount",
            "/spec/serviceAccountName",
            "/spec/priority",
            "/spec/preemptionPolicy",
        ],
    ),
    (
        "services",
        &[
            "/spec/clusterIP",
            "/spec/clusterIPs",
            "/spec/ipFamilies",
            "/spec/ipFamilyPolicy",
            "/spec/ports/0/nodePort",
        ],
    ),
    ("volumeattributesclasses", &["/metadata/finalizers"]),
];
/// Where the time of the request stands.
const TIMES: [&str; 3] = [
    "/status/lastPhaseTransitionTime",
    "/status/conditions/0/lastTransitionTime",
    "/spec/taint/timeAdded",
];
/// What differs from one object to the next.
const OWN: [&str; 4] = [
    "/metadata/uid",
    "/metadata/resourceVersion",
    "/metadata/creationTimestamp",
    "/metadata/managedFields",
];

fn records() -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(facts()?.join("created.json")).unwrap();
    let lines = text.lines();
    Some(
        lines
            .filter_map(|l| serde_json::from_str(l.trim_end_matches(',')).ok())
            .collect(),
    )
}

fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, key)) = pointer.rsplit_once('/') else {
        return;
    };
    if let Some(Value::Object(parent)) = value.pointer_mut(parent) {
        parent.remove(key);
    }
}

fn comparable(mut value: Value, plural: &str) -> Value {
    let later = LATER
        .iter()
        .filter(|(kind, _)| *kind == plural)
        .flat_map(|(_, pointers)| *pointers);
    for pointer in OWN.iter().chain(&TIMES).chain(later) {
        remove(&mut value, pointer);
    }
    value
}

async fn registry() -> Arc<Verbs> {
    let backend = Backend {
        store: Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap()),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        budget: Budget::new(0),
        encryption: keelson_storage::encryption::Encryption::none(),
        placement: Arc::default(),
        corrupt: Default::default(),
    };
    let mut code = keelson_kube::code(&keelson_kube::CodeOptions::default());
    code.merge(keelson_extensions::code());
    let registry = Registry::new(
        &[&keelson::api::SCHEME],
        &code,
        &backend,
        "/registry",
        &RuntimeConfig::all(),
    )
    .unwrap();
    let verbs = Arc::new(Verbs {
        registry: Arc::new(registry),
        backend,
        authentication: Authentication::default(),
        authorization: Authorization::default(),
    });
    // What addresses of services are taken from.
    let range = serde_json::json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.0.0.0/24"]}});
    let found = verbs
        .registry
        .lookup("networking.k8s.io", "v1", "servicecidrs")
        .unwrap();
    created(&verbs, &found.kind, &range).await.unwrap();
    // The record of ports, which a server makes at its start.
    let ports = RangeAllocation {
        range: "30000-32767".to_owned(),
        ..RangeAllocation::default()
    };
    let write = Write::Put {
        value: protobuf::encode(&ports).into(),
        lease: None,
    };
    let record = verbs
        .backend
        .store
        .write("/registry/ranges/servicenodeports", Expect::Absent, write);
    assert!(matches!(record.await, Ok(Written::Done { .. })));
    verbs
}

fn context(kind: &KindDesc, verbs: &Arc<Verbs>) -> Context {
    let namespace = if kind.namespaced { NAMESPACE } else { "" };
    Context {
        asked: Default::default(),
        verbs: Some(verbs.clone()),
        // Some objects say what their maker is allowed to elsewhere.
        authorization: Authorization::new(vec![Arc::new(PrivilegedGroup)]),
        now: verbs.backend.clock.now(),
        namespace: namespace.to_owned(),
        user: User {
            name: "admin".to_owned(),
            uid: "uid-admin".to_owned(),
            groups: ["system:masters", "system:authenticated"].map(str::to_owned).into(),
            ..User::default()
        },
        dry_run: false,
        tracking: Tracking::default(),
        warnings: Warnings::default(),
        audit: None,
    }
}

/// What the server makes of a request: JSON of the object, or the error.
async fn created(verbs: &Arc<Verbs>, kind: &KindDesc, request: &Value) -> Result<Value, String> {
    let endpoint = verbs.registry.lookup(&kind.group, &kind.version, &kind.plural).unwrap();
    let mut object = kind.new_object();
    json::read(request.to_string().as_bytes(), object.as_reflect_mut()).map_err(|e| e.to_string())?;
    endpoint.resource.apply_defaults(kind, &mut *object);
    let hub = endpoint.resource.to_hub(kind, object).map_err(|e| e.to_string())?;
    let context = context(kind, verbs);
    let made = verbs.create(&Target::of(&endpoint, "", &context), hub).await;
    let made = made.map_err(|e| e.to_string())?;
    let made = endpoint.resource.from_hub(kind, made).map_err(|e| e.to_string())?;
    Ok(serde_json::from_slice(&json::to_vec(&*made)).unwrap())
}

#[tokio::test]
async fn new_objects_are_those_of_kube_apiserver() {
    // Addresses are written beside the request.
    tokio::task::LocalSet::new().run_until(check()).await;
}

async fn check() {
    let Some(records) = records() else { return };
    let (mut found, mut checked) = (Vec::new(), 0);
    for record in &records {
        let Some(kind) = kind(record).filter(|k| !k.unstored) else {
            continue;
        };
        // Each on its own: the requests of several versions have the same names.
        let verbs = registry().await;
        let what = format!("{}/{} {}", kind.group, kind.version, kind.kind);
        let theirs = comparable(record["response"].clone(), &kind.plural);
        match created(&verbs, kind, &record["request"]).await {
            Err(error) => found.push(format!("{what}: {error}")),
            Ok(ours) => {
                let ours = comparable(ours, &kind.plural);
                if ours != theirs {
                    found.push(format!("{what}\n   ours: {ours}\n theirs: {theirs}"));
                }
            }
        }
        checked += 1;
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(checked > 80, "only {checked} kinds were checked");
}

fn kind(record: &Value) -> Option<&'static KindDesc> {
    let groups = keelson::api::SCHEME.groups.iter().filter(|g| g.name == record["group"]);
    let versions = groups
        .flat_map(|g| g.versions)
        .filter(|v| v.version == record["version"]);
    versions
        .flat_map(|v| v.kinds)
        .find(|k| record["resource"] == k.plural.as_str())
}
