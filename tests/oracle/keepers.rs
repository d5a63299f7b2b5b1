//! Field keepers: fields that keep their value, whoever may write there. Every field is changed alone, through the
//! object's own path, its status, and each subresource of its own kind. Unless `WHOLE` is set, those that stand deep
//! are left out.

use std::collections::BTreeMap;

use keelson_machinery::scheme::KindDesc;
use serde_json::Value;

use super::changes::{self, Change};
use super::run;
use super::samples::{self, Sample};
use super::server::{Ask, Server};

/// What is recorded: a line for each path and outcome, with the changes that it comes to.
const TABLE: &str = "oracle/keepers.txt";
/// Changes that come to something else here, and why.
const PENDING: &str = "oracle/keepers-pending.txt";
const HEAD: &str = "\
# What becomes of each field that is changed alone, through the path of the object, its status or another subresource.
# `taken`: it has the new value; `kept`: it has the old one; `refused`, because it changes; `faulty`: refused for what the
# value is, not for its change; `moved`: it has another value. Recorded: see tests/oracle/main.rs.
";

/// The last parts of the paths at which an object is changed; the first, empty one is its own.
fn parts(kind: &'static KindDesc) -> Vec<&'static str> {
    let own = |sub: &&keelson_machinery::scheme::SubresourceDesc| {
        !sub.connect && sub.verbs.contains("update") && (sub.kind.is_empty() || sub.kind == kind.kind)
    };
    let subresources = kind.subresources.iter().filter(own).map(|sub| sub.name.as_str());
    let itself = kind.verbs.contains("update").then_some("");
    itself.into_iter().chain(subresources).collect()
}

/// Words of a cause that speak of what was there before.
const OF_CHANGES: [&str; 18] = [
    "immutable",
    "may not change",
    "may not be changed",
    "may not update",
    "may not add or remove",
    "may not be unset",
    "may not be cleared",
    "cannot be changed",
    "cannot change",
    "can not be modified",
    "updates to",
    "must not be updated",
    "must not update",
    "may not remove or update",
    "may not be modified",
    "is forbidden after",
    "must match",
    "Forbidden",
];

fn outcome(change: &Change, object: &Value, (status, told): &(u16, Value)) -> &'static str {
    if *status >= 300 {
        let message = told["message"].as_str().unwrap_or_default();
        let of_change = *status != 422 || OF_CHANGES.iter().any(|words| message.contains(words));
        return if of_change { "refused" } else { "faulty" };
    }
    let (now, wanted, was) = (
        change.found(told),
        change.found(&change.applied(object)).clone(),
        change.found(object),
    );
    match now {
        now if *now == wanted => "taken",
        now if now == was => "kept",
        _ => "moved",
    }
}

/// Kinds whose status the server itself writes when it finds the time.
const CONTROLLED: [&str; 4] = [
    "apiservices",
    "customresourcedefinitions",
    "flowschemas",
    "prioritylevelconfigurations",
];
/// Asks for the changes of all fields, however deep they stand.
const WHOLE: &str = "WHOLE";
/// How deep fields stand that are changed otherwise.
const DEPTH: usize = 3;

fn is_asked(server: &Server, sample: &Sample, change: &Change) -> bool {
    let name = change.name();
    let is_controlled = CONTROLLED.contains(&sample.kind.plural.as_str()) && name.starts_with("status");
    // Set to the time of the write where it is not said: the same within a second.
    let is_timed = name.contains("timeAdded");
    // Templates of pods are the same everywhere; that of a job is the one that stays.
    let inside = name
        .split_once("emplate.spec.")
        .map(|(_, inside)| inside.contains(['.', '[']));
    let is_repeated = inside == Some(true) && sample.kind.plural != "jobs";
    let is_deep = change.depth() > DEPTH && !server.is_recorded() && std::env::var_os(WHOLE).is_none();
    !is_controlled
        && !is_repeated
        && !is_deep
        && !is_timed
        && !matches!(name.as_str(), "kind other" | "apiVersion other")
}

/// Outcome → changes, of one path.
async fn part(server: &Server, sample: &Sample, path: &str, sub: &str) -> BTreeMap<String, &'static str> {
    let mut object = server.must(Ask::new("GET", path)).await;
    let mut found = BTreeMap::new();
    let target = if sub.is_empty() {
        path.to_owned()
    } else {
        format!("{path}/{sub}")
    };
    let all = changes::of_object(&object, &sample.kind.message).into_iter();
    for change in all.filter(|change| is_asked(server, sample, change)) {
        let name = change.name();
        let ask = |object: &Value| Ask::new("PUT", format!("{target}?dryRun=All")).body(&change.applied(object));
        let mut told = server.ask(&ask(&object)).await;
        if told.0 == 409
            && told.1["message"]
                .as_str()
                .unwrap_or_default()
                .contains("object has been modified")
        {
            object = server.must(Ask::new("GET", path)).await;
            told = server.ask(&ask(&object)).await;
        }
        found.insert(name, outcome(&change, &object, &told));
    }
    found
}

/// `resource[/subresource]` → change → outcome.
type Table = BTreeMap<String, BTreeMap<String, String>>;

async fn asked(server: &Server) -> Table {
    samples::prepare(server).await;
    let mut all = Table::new();
    for sample in samples::all() {
        let kind = sample.kind;
        if !server.serves(&kind.group, &kind.version, &kind.plural).await {
            continue;
        }
        let made = Ask::new("POST", sample.collection()).body(&sample.object(&server.mark("kept")));
        let made = server.must(made).await;
        let path = format!("{}/{}", sample.collection(), made["metadata"]["name"].as_str().unwrap());
        for sub in parts(kind) {
            let name = if sub.is_empty() {
                sample.resource()
            } else {
                format!("{}/{sub}", sample.resource())
            };
            let found = part(server, &sample, &path, sub).await;
            all.insert(name, found.into_iter().map(|(k, v)| (k, v.to_owned())).collect());
        }
        samples::remove(server, &sample, &made).await;
    }
    all
}

/// `resource outcome: change, change`.
fn read(text: &str) -> Table {
    let mut table = Table::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (name, changes) = line.split_once(": ").unwrap();
        let (resource, outcome) = name.split_once(' ').unwrap();
        let row = table.entry(resource.to_owned()).or_default();
        row.extend(
            changes
                .split(", ")
                .map(|change| (change.to_owned(), outcome.to_owned())),
        );
    }
    table
}

fn write(table: &Table) -> String {
    let mut text = HEAD.to_owned();
    for (resource, row) in table {
        let mut of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (change, outcome) in row {
            of.entry(outcome).or_default().push(change);
        }
        for (outcome, changes) in of {
            text += &format!("{resource} {outcome}: {}\n", changes.join(", "));
        }
    }
    text
}

/// Whether an outcome is the recorded one, as far as this test goes: what is refused, is refused.
fn agree(theirs: &str, ours: &str) -> bool {
    let refused = |outcome: &str| matches!(outcome, "refused" | "faulty");
    theirs == ours || (refused(theirs) && refused(ours))
}

/// Fields that lead to other objects, and who believes them: of these nothing may be pending.
const LEADING: &[(&str, &str, &str)] = &[
    (
        "certificates.k8s.io/certificatesigningrequests",
        "spec.",
        "signers: who a certificate is for",
    ),
    (
        "certificates.k8s.io/podcertificaterequests",
        "spec.",
        "signers: pod, account and node",
    ),
    ("discovery.k8s.io/endpointslices", "addressType", "proxies"),
    (
        "networking.k8s.io/ipaddresses",
        "spec.",
        "the allocator: whose address it is",
    ),
    (
        "persistentvolumeclaims",
        "spec.volumeName",
        "the node authorizer: claim to volume",
    ),
    (
        "persistentvolumes",
        "spec.csi",
        "the node authorizer: volume to secrets",
    ),
    ("persistentvolumes", "spec.hostPath", "nodes: their own files"),
    (
        "persistentvolumes",
        "spec.azureFile",
        "the node authorizer: volume to secret",
    ),
    (
        "persistentvolumes",
        "spec.cephfs",
        "the node authorizer: volume to secret",
    ),
    (
        "persistentvolumes",
        "spec.cinder",
        "the node authorizer: volume to secret",
    ),
    (
        "persistentvolumes",
        "spec.flexVolume",
        "the node authorizer: volume to secret",
    ),
    (
        "persistentvolumes",
        "spec.iscsi",
        "the node authorizer: volume to secret",
    ),
    ("persistentvolumes", "spec.rbd", "the node authorizer: volume to secret"),
    (
        "persistentvolumes",
        "spec.scaleIO",
        "the node authorizer: volume to secret",
    ),
    (
        "persistentvolumes",
        "spec.storageos",
        "the node authorizer: volume to secret",
    ),
    (
        "pods",
        "metadata.annotations",
        "the node authorizer: mirrors reach nothing",
    ),
    (
        "pods",
        "spec.volumes",
        "the node authorizer: pod to secrets, maps and claims",
    ),
    ("pods", "spec.imagePullSecrets", "the node authorizer: pod to secrets"),
    (
        "pods",
        "spec.resourceClaims",
        "the node authorizer: pod to claims of devices",
    ),
    (
        "pods/status",
        "status.resourceClaimStatuses",
        "the node authorizer: pod to claims of devices",
    ),
    (
        "pods/status",
        "status.extendedResourceClaimStatus",
        "the node authorizer: pod to claims of devices",
    ),
    (
        "rbac.authorization.k8s.io/clusterrolebindings",
        "roleRef",
        "the authorizer of roles",
    ),
    (
        "rbac.authorization.k8s.io/rolebindings",
        "roleRef",
        "the authorizer of roles",
    ),
    ("resource.k8s.io/resourceclaims", "spec.", "drivers: which devices"),
    (
        "resource.k8s.io/resourceslices",
        "spec.nodeName",
        "the node authorizer: slice to node",
    ),
    (
        "storage.k8s.io/volumeattachments",
        "spec.",
        "the node authorizer: attachment to node",
    ),
];

#[test]
fn no_field_that_leads_elsewhere_is_pending() {
    let read = |file| read(&std::fs::read_to_string(samples::data(file)).unwrap());
    let (table, pending) = (read(TABLE), read(PENDING));
    for (resource, field, believer) in LEADING {
        let leads = |change: &&String| change.starts_with(field);
        let none = BTreeMap::new();
        let recorded = table.get(*resource).unwrap_or(&none).keys().filter(leads).count();
        assert!(recorded > 0, "{resource} has no {field}, which {believer} believe");
        let open: Vec<&String> = pending.get(*resource).unwrap_or(&none).keys().filter(leads).collect();
        assert!(open.is_empty(), "{resource}: {open:?}, which {believer} believe");
    }
}

#[test]
fn fields_keep_what_they_keep_in_kubernetes() {
    run(async {
        let server = Server::start().await;
        let found = asked(&server).await;
        let path = samples::data(TABLE);
        let mut table = read(&std::fs::read_to_string(&path).unwrap_or_default());
        if server.is_recorded() {
            table.extend(found);
            std::fs::write(&path, write(&table)).unwrap();
            return;
        }
        let pending = read(&std::fs::read_to_string(samples::data(PENDING)).unwrap_or_default());
        let mut wrong = Table::new();
        for (resource, row) in &found {
            for (change, ours) in row {
                let theirs = table
                    .get(resource)
                    .and_then(|row| row.get(change))
                    .map_or("unrecorded", String::as_str);
                let known = pending
                    .get(resource)
                    .and_then(|row| row.get(change))
                    .map(String::as_str);
                let now = format!("{theirs}-here-{ours}");
                let expected = if agree(theirs, ours) { None } else { Some(now.as_str()) };
                if known != expected {
                    wrong.entry(resource.clone()).or_default().insert(change.clone(), now);
                }
            }
        }
        server.stop().await;
        assert!(found.len() > 80, "{}", found.len());
        assert!(wrong.is_empty(), "{}", write(&wrong));
    });
}
