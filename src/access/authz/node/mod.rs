//! The node authorizer: the rules of nodes, and of objects only those that their pods need.

mod graph;

use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard};

use keelson_machinery::object::Object;

use super::rbac::Rule;
use super::{Answer, Authorizer, Decision, Rules};
use crate::lister::{Change, Feed, Listers};
use crate::request_info::RequestInfo;
use crate::user::{GROUP_NODES, NODE_PREFIX, User};
use graph::Graph;

pub use graph::{PodNeeds, Reference, ReferenceKind, VolumeNeeds};

/// Where nodes show that they are alive.
const LEASES: &str = "kube-node-lease";
const STORAGE: &str = "storage.k8s.io";
const RESOURCE: &str = "resource.k8s.io";

/// Reads the typed objects, which this crate does not know. `None`: the object leads to no node.
pub trait ReadGraph: Send + Sync {
    fn pod(&self, pod: &dyn Object) -> Option<PodNeeds>;
    fn volume(&self, volume: &dyn Object) -> Option<VolumeNeeds>;
    /// The node of a VolumeAttachment.
    fn attachment(&self, attachment: &dyn Object) -> Option<String>;
    /// The node of a ResourceSlice.
    fn slice(&self, slice: &dyn Object) -> Option<String>;
}

/// Decides about nodes by a graph that is brought up to date before each decision; of others it has no opinion.
pub struct NodeAuthorizer {
    reader: Box<dyn ReadGraph>,
    /// What every node may do beside.
    common: Vec<Rule>,
    sources: OnceLock<Vec<(Source, Box<dyn Feed>)>>,
    graph: RwLock<Graph>,
}

/// Whether a node may; else the reason, which goes to the client as it is and is told apart by nobody.
type Allowed = Result<(), String>;

#[derive(Clone, Copy)]
enum Source {
    Pods,
    Volumes,
    Attachments,
    Slices,
}

const SOURCES: [(Source, &str, &str); 4] = [
    (Source::Pods, "", "pods"),
    (Source::Volumes, "", "persistentvolumes"),
    (Source::Attachments, STORAGE, "volumeattachments"),
    (Source::Slices, RESOURCE, "resourceslices"),
];

impl NodeAuthorizer {
    /// `common`: rules for what no pod decides.
    pub fn new(reader: impl ReadGraph + 'static, common: Vec<Rule>) -> NodeAuthorizer {
        NodeAuthorizer {
            reader: Box::new(reader),
            common,
            sources: OnceLock::new(),
            graph: RwLock::default(),
        }
    }

    fn graph(&self) -> RwLockReadGuard<'_, Graph> {
        for (source, feed) in self.sources.get().into_iter().flatten() {
            feed.catch_up(&mut |changes| {
                let mut graph = self.graph.write().unwrap_or_else(PoisonError::into_inner);
                for change in changes {
                    self.take(&mut graph, *source, change);
                }
            });
        }
        self.graph.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, graph: &mut Graph, source: Source, change: Change) {
        match (source, change) {
            (Source::Pods, Change::Reset) => graph.clear_pods(),
            (Source::Volumes, Change::Reset) => graph.clear_volumes(),
            (Source::Attachments, Change::Reset) => graph.attachments.clear(),
            (Source::Slices, Change::Reset) => graph.slices.clear(),
            (Source::Pods, Change::Put(place, object)) => match self.reader.pod(&*object) {
                Some(needs) => graph.put_pod(&place, needs),
                None => graph.remove_pod(&place),
            },
            (Source::Volumes, Change::Put(place, object)) => match self.reader.volume(&*object) {
                Some(needs) => graph.put_volume(&place.name, needs),
                None => graph.remove_volume(&place.name),
            },
            (Source::Attachments, Change::Put(place, object)) => {
                let node = self.reader.attachment(&*object).unwrap_or_default();
                graph.attachments.insert(place.name, node);
            }
            (Source::Slices, Change::Put(place, object)) => {
                let node = self.reader.slice(&*object).unwrap_or_default();
                graph.slices.insert(place.name, node);
            }
            (Source::Pods, Change::Gone(place)) => graph.remove_pod(&place),
            (Source::Volumes, Change::Gone(place)) => graph.remove_volume(&place.name),
            (Source::Attachments, Change::Gone(place)) => drop(graph.attachments.remove(&place.name)),
            (Source::Slices, Change::Gone(place)) => drop(graph.slices.remove(&place.name)),
        }
    }

    fn decide(&self, node: &str, info: &RequestInfo) -> Allowed {
        let verb = info.verb.as_str();
        match (info.group.as_str(), info.resource.as_str(), info.subresource.as_str()) {
            ("", "secrets", _) => self.read(node, info, ReferenceKind::Secret),
            ("", "configmaps", _) => self.read(node, info, ReferenceKind::ConfigMap),
            ("", "persistentvolumeclaims", "status") => match verb {
                "update" | "patch" => self.needed(node, info, ReferenceKind::Claim),
                _ => no("can only get/update/patch this type"),
            },
            ("", "persistentvolumeclaims", _) => {
                only_get(info).and_then(|()| self.needed(node, info, ReferenceKind::Claim))
            }
            ("", "persistentvolumes", _) => {
                only_get(info).and_then(|()| self.related(node, info, |graph| graph.mounts(node, &info.name)))
            }
            (RESOURCE, "resourceclaims", _) => {
                only_get(info).and_then(|()| self.needed(node, info, ReferenceKind::ResourceClaim))
            }
            (STORAGE, "volumeattachments", _) => {
                only_get(info).and_then(|()| self.related(node, info, |graph| is(&graph.attachments, &info.name, node)))
            }
            ("", "serviceaccounts", _) => self.service_account(node, info),
            ("coordination.k8s.io", "leases", _) => lease(node, info),
            (STORAGE, "csinodes", _) => csi_node(node, info),
            (RESOURCE, "resourceslices", _) => self.slice(node, info),
            ("", "nodes", "") => self.node(node, info),
            ("", "pods", "") => self.pod(node, info),
            _ => self.common(info),
        }
    }

    fn common(&self, info: &RequestInfo) -> Allowed {
        match self.common.iter().any(|rule| rule.allows(info)) {
            true => Ok(()),
            false => no(""),
        }
    }

    /// Whether `found` says that the named object has to do with the node.
    fn related(&self, node: &str, info: &RequestInfo, found: impl FnOnce(&Graph) -> bool) -> Allowed {
        if info.name.is_empty() {
            return no("No Object name found");
        }
        match found(&self.graph()) {
            true => Ok(()),
            false => Err(format!("no relationship found between node '{node}' and this object")),
        }
    }

    fn needed(&self, node: &str, info: &RequestInfo, kind: ReferenceKind) -> Allowed {
        self.related(node, info, |graph| graph.needs(node, kind, &info.namespace, &info.name))
    }

    fn read(&self, node: &str, info: &RequestInfo, kind: ReferenceKind) -> Allowed {
        if !matches!(info.verb.as_str(), "get" | "list" | "watch") {
            return no("can only read resources of this type");
        }
        if !info.subresource.is_empty() {
            return no("cannot read subresource");
        }
        if info.namespace.is_empty() {
            return no("can only read namespaced object of this type");
        }
        self.needed(node, info, kind)
    }

    fn service_account(&self, node: &str, info: &RequestInfo) -> Allowed {
        let reads = info.verb == "get" && info.subresource.is_empty();
        if !reads && (info.verb != "create" || info.name.is_empty()) {
            return no("can only create tokens for individual service accounts");
        }
        if !reads && info.subresource != "token" {
            return no("can only create token subresource of serviceaccount");
        }
        self.needed(node, info, ReferenceKind::ServiceAccount)
    }

    fn slice(&self, node: &str, info: &RequestInfo) -> Allowed {
        if !info.subresource.is_empty() {
            return no("cannot authorize ResourceSlice subresources");
        }
        match info.verb.as_str() {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => {
                self.related(node, info, |graph| is(&graph.slices, &info.name, node))
            }
            "list" | "watch" | "deletecollection" if selects_node(info, node) => Ok(()),
            "list" | "watch" | "deletecollection" => {
                no("can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => no(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, \
                 delete, deletecollection",
            ),
        }
    }

    fn node(&self, node: &str, info: &RequestInfo) -> Allowed {
        match (info.verb.as_str(), info.name.as_str()) {
            ("get" | "list" | "watch", name) if name == node => Ok(()),
            ("get" | "list" | "watch", "") => {
                Err(format!("node '{node}' cannot read all nodes, only its own Node object"))
            }
            ("get" | "list" | "watch", other) => {
                Err(format!("node '{node}' cannot read '{other}', only its own Node object"))
            }
            _ => self.common(info),
        }
    }

    fn pod(&self, node: &str, info: &RequestInfo) -> Allowed {
        let verb = info.verb.as_str();
        if !matches!(verb, "get" | "list" | "watch") {
            return self.common(info);
        }
        if verb == "get" || !info.name.is_empty() {
            return self.related(node, info, |graph| graph.has_pod(node, &info.namespace, &info.name));
        }
        match selects_node(info, node) {
            true => Ok(()),
            false => no("can only list/watch pods with spec.nodeName field selector"),
        }
    }
}

impl Authorizer for NodeAuthorizer {
    fn authorize<'a>(&'a self, user: &'a User, info: &'a RequestInfo) -> Answer<'a> {
        let Some(node) = user
            .name
            .strip_prefix(NODE_PREFIX)
            .filter(|_| user.in_group(GROUP_NODES))
        else {
            return Decision::NoOpinion(String::new()).into();
        };
        let decided = match node {
            "" => Err(format!("unknown node for user {:?}", user.name)),
            _ if info.is_resource => self.decide(node, info),
            _ => self.common(info),
        };
        decided
            .map_or_else(Decision::NoOpinion, |()| Decision::Allow(String::new()))
            .into()
    }

    /// There are no rules that a node could be shown.
    fn rules(&self, _user: &User, _namespace: &str) -> Rules {
        Rules::default()
    }

    fn attach(&self, listers: &dyn Listers) {
        self.sources.get_or_init(|| {
            let known = SOURCES
                .into_iter()
                .filter_map(|(source, group, plural)| Some((source, listers.feed(group, plural)?)));
            known.collect()
        });
    }
}

fn no(why: &str) -> Allowed {
    Err(why.to_owned())
}

fn is(nodes: &std::collections::HashMap<Box<str>, String>, name: &str, node: &str) -> bool {
    nodes.get(name).is_some_and(|of| of == node)
}

fn only_get(info: &RequestInfo) -> Allowed {
    if info.verb != "get" {
        return no("can only get individual resources of this type");
    }
    match info.subresource.as_str() {
        "" => Ok(()),
        _ => no("cannot get subresource"),
    }
}

fn selects_node(info: &RequestInfo, node: &str) -> bool {
    let own = |term: &keelson_machinery::selector::field::Term| {
        term.field == "spec.nodeName" && term.value == node && !term.negated
    };
    info.fields.iter().any(own)
}

/// Of a new object nobody knows the name here.
fn is_own(node: &str, info: &RequestInfo) -> bool {
    info.verb == "create" || info.name == node
}

fn is_kept_by_its_node(info: &RequestInfo) -> bool {
    matches!(info.verb.as_str(), "get" | "create" | "update" | "patch" | "delete")
}

fn lease(node: &str, info: &RequestInfo) -> Allowed {
    if !is_kept_by_its_node(info) {
        return no("can only get, create, update, patch, or delete a node lease");
    }
    if info.namespace != LEASES {
        return Err(format!("can only access leases in the {LEASES:?} system namespace"));
    }
    match is_own(node, info) {
        true => Ok(()),
        false => no("can only access node lease with the same name as the requesting node"),
    }
}

fn csi_node(node: &str, info: &RequestInfo) -> Allowed {
    if !is_kept_by_its_node(info) {
        return no("can only get, create, update, patch, or delete a CSINode");
    }
    if !info.subresource.is_empty() {
        return no("cannot authorize CSINode subresources");
    }
    match is_own(node, info) {
        true => Ok(()),
        false => no("can only access CSINode with the same name as the requesting node"),
    }
}
