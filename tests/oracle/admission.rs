//! Every route that stores or connects passes admission: each verb of each resource and subresource in each version is
//! called, with a plug-in that notes what it is asked and a store that notes what is written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use keelson::api::SCHEME;
use keelson_machinery::json as text;
use keelson_machinery::scheme::{KindDesc, SubresourceDesc};
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;
use keelson_storage::{
    Entry, Event, Expect, Got, LeaseId, ListOptions, Listed, Position, Revision, Snapshot, Store, StoreError,
    WatchStream, Write, Written,
};
use serde_json::{Value, json};

use super::run;
use super::samples::{self, NAMESPACE, Sample};
use super::server::{self, Ask, Server, version_path};

/// A label of all objects of this test.
const LABEL: &str = "walk";
const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
/// Requests that write or connect, at least: fewer would mean that this test walks past something.
const LEAST: usize = 750;

/// What a plug-in is asked about: operation, `group/plural`, subresource.
type Asked = (Operation, String, String);

/// What happened since it was looked at last.
#[derive(Default)]
struct Seen {
    admitted: Vec<Asked>,
    validated: Vec<Asked>,
    /// The options of connections, as JSON.
    connected: Vec<String>,
    /// Keys.
    written: Vec<String>,
}

#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Seen>>);

impl Recorder {
    fn take(&self) -> Seen {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn asked(attributes: &Attributes<'_>) -> Asked {
    let resource = format!("{}/{}", attributes.resource.group, attributes.resource.plural);
    (attributes.operation, resource, attributes.subresource.to_owned())
}

impl Plugin for Recorder {
    fn name(&self) -> &'static str {
        "Recorder"
    }
    fn handles(&self, _scope: &Scope<'_>) -> Handles {
        Handles::BOTH
    }
    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        let mut seen = self.0.lock().unwrap();
        seen.admitted.push(asked(attributes));
        if attributes.operation == Operation::Connect {
            let options = attributes.object.as_deref().map(text::to_vec);
            let options = options.map(|text| String::from_utf8(text).unwrap());
            seen.connected.push(options.unwrap_or_default());
        }
        now(Ok(()))
    }
    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        self.0.lock().unwrap().validated.push(asked(attributes));
        now(Ok(()))
    }
}

/// A store that notes what is written.
struct Noting {
    store: Arc<dyn Store>,
    seen: Recorder,
}

impl Store for Noting {
    fn write<'a>(&'a self, key: &'a str, expect: Expect, write: Write) -> BoxFuture<'a, Result<Written, StoreError>> {
        self.seen.0.lock().unwrap().written.push(key.to_owned());
        self.store.write(key, expect, write)
    }
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Got, StoreError>> {
        self.store.get(key)
    }
    fn recall(&self, prefix: &str, key: &str) -> Option<Entry> {
        self.store.recall(prefix, key)
    }
    fn list<'a>(&'a self, prefix: &'a str, options: ListOptions) -> BoxFuture<'a, Result<Listed, StoreError>> {
        self.store.list(prefix, options)
    }
    fn snapshot<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Snapshot, StoreError>> {
        self.store.snapshot(prefix)
    }
    fn held(&self, prefix: &str) -> Option<Snapshot> {
        self.store.held(prefix)
    }
    fn events(&self, prefix: &str, after: Position, until: Revision, limit: usize) -> Option<Vec<Event>> {
        self.store.events(prefix, after, until, limit)
    }
    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<WatchStream, StoreError>> {
        self.store.watch(prefix, after)
    }
    fn request_progress(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.request_progress()
    }
    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
        self.store.current_revision()
    }
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.compact(revision)
    }
    fn grant(&self, ttl: Duration) -> BoxFuture<'_, Result<LeaseId, StoreError>> {
        self.store.grant(ttl)
    }
    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.health()
    }
    fn close(&self) -> BoxFuture<'_, ()> {
        self.store.close()
    }
}

fn kinds() -> impl Iterator<Item = &'static KindDesc> {
    let versions = SCHEME.groups.iter().flat_map(|group| group.versions);
    versions
        .flat_map(|version| version.kinds)
        .filter(|kind| !kind.plural.is_empty() && !kind.verbs.is_empty())
}

fn collection(kind: &KindDesc) -> String {
    let version = version_path(&kind.group, &kind.version);
    match kind.namespaced {
        true => format!("{version}/namespaces/{NAMESPACE}/{}", kind.plural),
        false => format!("{version}/{}", kind.plural),
    }
}

/// A record of the server itself, which is no object of any resource: the ports that are taken, who shares the store.
fn is_record(key: &str) -> bool {
    ["/registry/ranges/", "/registry/masterleases/"]
        .iter()
        .any(|prefix| key.starts_with(prefix))
}

/// What controllers of the server write when it is their turn, whatever is asked meanwhile.
fn is_of_controllers(key: &str) -> bool {
    is_record(key)
        || ["/registry/flowschemas/", "/registry/leases/kube-system/"]
            .iter()
            .any(|prefix| key.starts_with(prefix))
}

/// Sends requests and looks at what they did.
struct Walk {
    server: Server,
    seen: Recorder,
    /// The resource of each prefix of keys: `/registry/pods/`.
    prefixes: Vec<(String, String)>,
    faults: Vec<String>,
    walked: usize,
    /// What was admitted and validated when it was looked at last: a controller may write only now what it was allowed
    /// then.
    earlier: Vec<Asked>,
}

impl Walk {
    async fn new() -> Walk {
        let seen = Recorder::default();
        let mut config = server::config();
        config.storage.store = Arc::new(Noting {
            store: config.storage.store.clone(),
            seen: seen.clone(),
        });
        config.resources.admission = config.resources.admission.with(seen.clone());
        let server = Server::with(Some(config)).await;
        let stored = kinds().filter(|kind| !kind.storage_path.is_empty());
        let prefixes = stored.map(|kind| {
            let resource = format!("{}/{}", kind.group, kind.plural);
            (format!("/registry/{}/", kind.storage_path), resource)
        });
        Walk {
            server,
            seen,
            prefixes: prefixes.collect(),
            faults: Vec::new(),
            walked: 0,
            earlier: Vec::new(),
        }
    }

    /// Whatever was written has been admitted and validated as something of its resource.
    fn check_written(&mut self, what: &str, seen: &Seen) {
        for key in seen.written.iter().filter(|key| !is_record(key)) {
            let of = self.prefixes.iter().filter(|(prefix, _)| key.starts_with(prefix));
            let resources: Vec<&String> = of.map(|(_, resource)| resource).collect();
            let is_of = |asked: &Asked| resources.contains(&&asked.1);
            let is_admitted = seen.admitted.iter().any(is_of) && seen.validated.iter().any(is_of);
            let was_admitted = is_of_controllers(key) && self.earlier.iter().any(is_of);
            if !is_admitted && !was_admitted {
                self.faults.push(format!("{what}: {key} was written past admission"));
            }
        }
    }

    async fn send(&mut self, ask: Ask, expected: Option<(Operation, &KindDesc, &str)>) -> (u16, Value) {
        let between = self.seen.take();
        self.earlier.extend(between.validated);
        let what = format!("{} {} ({})", ask.method, ask.path, ask.content_type);
        let (status, told) = self.server.ask(&ask).await;
        let seen = self.seen.take();
        self.check_written(&what, &seen);
        self.earlier.clone_from(&seen.validated);
        let Some((operation, kind, subresource)) = expected else {
            let written: Vec<&String> = seen.written.iter().filter(|key| !is_of_controllers(key)).collect();
            if !written.is_empty() {
                self.faults.push(format!("{what}: a read has written {written:?}"));
            }
            return (status, told);
        };
        self.walked += 1;
        let asked = (
            operation,
            format!("{}/{}", kind.group, kind.plural),
            subresource.to_owned(),
        );
        // What is refused behind the plug-ins that mutate does not come to those that validate.
        let refused = status >= 300 && operation != Operation::Connect;
        let validated = refused || seen.validated.contains(&asked);
        for options in &seen.connected {
            let wanted = match subresource {
                "exec" => r#""container":"in","command":["a","b"]"#,
                "attach" => r#""stdin":true"#,
                "portforward" => r#""ports":[80]"#,
                _ => r#""path":"/x""#,
            };
            if !options.contains(wanted) {
                self.faults.push(format!("{what}: plug-ins see the options {options}"));
            }
        }
        if !seen.admitted.contains(&asked) || !validated {
            self.faults
                .push(format!("{what}: {status} {} without {asked:?}", told["message"]));
        }
        (status, told)
    }

    /// An object in a version, made in that of its sample.
    async fn make(&mut self, sample: &Sample, kind: &KindDesc, mark: &str) -> Value {
        let mut object = sample.object(mark);
        object["metadata"]["labels"][LABEL] = "yes".into();
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let ask = Ask::new("POST", sample.collection()).body(&object);
        let (status, told) = self.send(ask, Some((Operation::Create, sample.kind, ""))).await;
        assert_eq!(status, 201, "{} {told}", sample.collection());
        let path = format!("{}/{name}", collection(kind));
        self.server.must(Ask::new("GET", path)).await
    }

    /// All verbs of a kind.
    async fn kind(&mut self, sample: &Sample, kind: &'static KindDesc, mark: &str) {
        let object = self.make(sample, kind, mark).await;
        let collection = collection(kind);
        let path = format!("{collection}/{}", object["metadata"]["name"].as_str().unwrap());
        for subresource in &kind.subresources {
            self.subresource(kind, subresource, &path).await;
        }
        for verb in kind.verbs.iter() {
            match verb {
                "get" => drop(self.send(Ask::new("GET", &*path), None).await),
                "list" => drop(self.send(Ask::new("GET", &*collection), None).await),
                "update" => self.put(kind, &path, "").await,
                "patch" => self.patches(kind, &path, "").await,
                "watch" | "create" | "delete" | "deletecollection" => {}
                other => self.faults.push(format!("{path}: nobody knows the verb {other}")),
            }
        }
        if kind.verbs.contains("delete") {
            let ask = Ask::new("DELETE", format!("{path}?gracePeriodSeconds=0"));
            self.send(ask, Some((Operation::Delete, kind, ""))).await;
        }
        if kind.verbs.contains("create") {
            let ask = Ask::new("POST", &*collection).body(&unmade(object));
            let (status, told) = self.send(ask, Some((Operation::Create, kind, ""))).await;
            // What its finalizers hold is still there.
            assert!(matches!(status, 201 | 409), "{collection} {told}");
        }
        if kind.verbs.contains("deletecollection") {
            let ask = Ask::new(
                "DELETE",
                format!("{collection}?labelSelector={LABEL}%3Dyes&gracePeriodSeconds=0"),
            );
            self.send(ask, Some((Operation::Delete, kind, ""))).await;
        }
    }

    async fn put(&mut self, kind: &KindDesc, path: &str, subresource: &str) {
        let mut object = self.server.must(Ask::new("GET", path)).await;
        object["metadata"]["labels"]["put"] = "yes".into();
        if subresource == "scale" {
            object["metadata"].as_object_mut().unwrap().remove("labels");
        }
        let ask = Ask::new("PUT", path).body(&object);
        self.send(ask, Some((Operation::Update, kind, subresource))).await;
    }

    async fn patches(&mut self, kind: &KindDesc, path: &str, subresource: &str) {
        let there = self.server.must(Ask::new("GET", path)).await;
        let merge = match subresource {
            "scale" => json!({"spec": {"replicas": 2}}),
            _ => json!({"metadata": {"labels": {"patch": "yes"}}}),
        };
        let mut apply = merge.clone();
        apply["apiVersion"] = there["apiVersion"].clone();
        apply["kind"] = there["kind"].clone();
        apply["metadata"]["name"] = there["metadata"]["name"].clone();
        let applied = format!("{path}?fieldManager=walk&force=true");
        for (path, content_type, body) in [(path, MERGE_PATCH, merge), (&*applied, APPLY, apply)] {
            let ask = Ask {
                content_type,
                ..Ask::new("PATCH", path).body(&body)
            };
            self.send(ask, Some((Operation::Update, kind, subresource))).await;
        }
    }

    async fn subresource(&mut self, kind: &'static KindDesc, subresource: &'static SubresourceDesc, path: &str) {
        let (name, path) = (subresource.name.as_str(), format!("{path}/{}", subresource.name));
        for verb in subresource.verbs.iter() {
            let method = match verb {
                "get" => "GET",
                "create" => "POST",
                "update" => "PUT",
                "patch" => "PATCH",
                "delete" => "DELETE",
                other => {
                    self.faults.push(format!("{path}: nobody knows the verb {other}"));
                    continue;
                }
            };
            if subresource.connect {
                // What stands behind the subresource counts, whatever the query says.
                let below = if subresource.subpaths { "/x" } else { "" };
                let query = "command=a&command=b&stdin=true&container=in&path=/y&ports=80";
                let ask = Ask::new(method, format!("{path}{below}?{query}"));
                self.send(ask, Some((Operation::Connect, kind, name))).await;
                continue;
            }
            match method {
                "GET" => drop(self.send(Ask::new("GET", &*path), None).await),
                "PUT" if subresource.verbs.contains("get") => self.put(kind, &path, name).await,
                "PUT" => {
                    let parent = path.trim_end_matches(name).trim_end_matches('/');
                    let object = self.server.must(Ask::new("GET", parent)).await;
                    let ask = Ask::new("PUT", &*path).body(&object);
                    self.send(ask, Some((Operation::Update, kind, name))).await;
                }
                "PATCH" => self.patches(kind, &path, name).await,
                "POST" => {
                    let name_of_object = path.rsplit('/').nth(1).unwrap();
                    let body = made_below(subresource, name_of_object);
                    let ask = Ask::new("POST", &*path).body(&body);
                    self.send(ask, Some((Operation::Create, kind, name))).await;
                }
                _ => self.faults.push(format!("{method} {path}: nobody knows what to send")),
            }
        }
    }
}

/// What is sent to a subresource that makes something.
fn made_below(subresource: &SubresourceDesc, name: &str) -> Value {
    let version = match subresource.group.as_str() {
        "" => subresource.version.to_string(),
        group => format!("{group}/{}", subresource.version),
    };
    let mut body = json!({"apiVersion": version, "kind": subresource.kind.as_str(), "metadata": {"name": name}});
    match subresource.kind.as_str() {
        "Binding" => body["target"] = json!({"kind": "Node", "name": "n"}),
        "TokenRequest" => body["spec"] = json!({"audiences": ["a"]}),
        _ => {}
    }
    body
}

/// An object as it was before it was made.
fn unmade(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for system in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "generation",
    ] {
        metadata.remove(system);
    }
    if object["kind"] == "Job" {
        // They name the job that was made before.
        object["spec"].as_object_mut().unwrap().remove("selector");
        object["spec"]["template"]["metadata"] = json!({});
    }
    object
}

#[test]
fn nothing_is_stored_or_connected_to_past_admission() {
    run(async {
        let mut walk = Walk::new().await;
        let started = walk.seen.take();
        assert!(!started.written.is_empty());
        walk.check_written("the start of the server", &started);
        samples::prepare(&walk.server).await;
        let samples: BTreeMap<String, Sample> = samples::all().into_iter().map(|s| (s.resource(), s)).collect();
        for (index, kind) in kinds().enumerate() {
            let path = collection(kind);
            if !walk.server.serves(&kind.group, &kind.version, &kind.plural).await {
                continue;
            }
            if kind.unstored {
                if kind.verbs.contains("create") {
                    let body = json!({"apiVersion": kind.gvk().api_version(), "kind": kind.kind.as_str(),
                        "metadata": {"name": "none"}});
                    let ask = Ask::new("POST", path).body(&body);
                    walk.send(ask, Some((Operation::Create, kind, ""))).await;
                }
                continue;
            }
            match samples.get(&samples::resource(kind)) {
                Some(sample) => walk.kind(sample, kind, &format!("walk{index}")).await,
                None => assert!(!kind.verbs.contains("create"), "{path} has no sample"),
            }
        }
        assert!(walk.faults.is_empty(), "{}", walk.faults.join("\n"));
        assert!(walk.walked >= LEAST, "{}", walk.walked);
        walk.server.stop().await;
    });
}
