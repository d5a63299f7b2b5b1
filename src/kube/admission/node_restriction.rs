//! NodeRestriction: a node writes to itself and to what belongs to its pods, and to nothing else.

mod labels;
mod nodes;
mod pods;
mod tokens;

use keelson_access::user::{GROUP_NODES, NODE_PREFIX};
use keelson_api::core::v1::PersistentVolumeClaim;
use keelson_api::resource_k8s_io::v1::ResourceSlice;
use keelson_machinery::equality;
use keelson_machinery::field::text::quote;
use keelson_machinery::status::StatusError;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};

/// Where nodes show that they are alive.
const LEASES: &str = "kube-node-lease";

pub struct NodeRestriction;

impl Plugin for NodeRestriction {
    fn name(&self) -> &'static str {
        "NodeRestriction"
    }

    fn enabled_by_default(&self) -> bool {
        false
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let known = matches!(
            (scope.group, scope.plural),
            ("", "pods" | "nodes" | "persistentvolumeclaims" | "serviceaccounts")
                | (
                    "certificates.k8s.io",
                    "certificatesigningrequests" | "podcertificaterequests"
                )
                | ("coordination.k8s.io", "leases")
                | ("resource.k8s.io", "resourceslices")
                | ("storage.k8s.io", "csinodes")
        );
        Handles::MUTATES.when(known && scope.operation != Operation::Connect)
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[("", "pods"), ("", "nodes")]
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        let user = attributes.user();
        let node = user
            .name
            .strip_prefix(NODE_PREFIX)
            .filter(|_| user.in_group(GROUP_NODES));
        match node.map(str::to_owned) {
            None => now(Ok(())),
            Some(node) if node.is_empty() => {
                let why = format!("could not determine node from user {}", quote(&user.name));
                now(Err(attributes.forbidden(why)))
            }
            Some(node) => later(check(attributes, node)),
        }
    }
}

async fn check(attributes: &mut Attributes<'_>, node: String) -> Result<(), StatusError> {
    let node = node.as_str();
    let resource = attributes.resource;
    match (&*resource.group, &*resource.plural, attributes.subresource) {
        ("", "pods", "") => pods::check(attributes, node).await,
        ("", "pods", "status") => pods::check_status(attributes, node),
        ("", "pods", "eviction") => pods::check_eviction(attributes, node).await,
        ("", "pods", other) => Err(attributes.forbidden(format!(
            "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
            quote(other)
        ))),
        ("", "nodes", _) => nodes::check(attributes, node),
        ("", "persistentvolumeclaims", "status") => check_claim(attributes, node),
        ("", "persistentvolumeclaims", _) => Err(attributes.forbidden("may only update PVC status")),
        ("", "serviceaccounts", "token") => tokens::check(attributes, node).await,
        ("certificates.k8s.io", "certificatesigningrequests", "") => nodes::check_request(attributes, node),
        ("certificates.k8s.io", "podcertificaterequests", _) => {
            Err(attributes.forbidden("PodCertificateRequest feature gate is disabled"))
        }
        ("coordination.k8s.io", "leases", _) => check_lease(attributes, node),
        ("resource.k8s.io", "resourceslices", _) => check_slice(attributes, node),
        ("storage.k8s.io", "csinodes", _) => match attributes.name() == node {
            true => Ok(()),
            false => Err(attributes.forbidden("can only access CSINode with the same name as the requesting node")),
        },
        _ => Ok(()),
    }
}

fn check_lease(attributes: &Attributes<'_>, node: &str) -> Result<(), StatusError> {
    if attributes.namespace() != LEASES {
        let namespace = quote(LEASES);
        return Err(attributes.forbidden(format!("can only access leases in the {namespace} system namespace")));
    }
    match attributes.name() == node {
        true => Ok(()),
        false => Err(attributes.forbidden("can only access node lease with the same name as the requesting node")),
    }
}

fn check_slice(attributes: &Attributes<'_>, node: &str) -> Result<(), StatusError> {
    let (slice, verb) = match attributes.operation {
        Operation::Create => (attributes.typed::<ResourceSlice>(), "create"),
        Operation::Delete => (attributes.old_typed::<ResourceSlice>(), "delete"),
        _ => return Ok(()),
    };
    match slice.and_then(|slice| slice.spec.node_name.as_deref()) == Some(node) {
        true => Ok(()),
        false => Err(attributes.forbidden(format!(
            "can only {verb} ResourceSlice with the same NodeName as the requesting node"
        ))),
    }
}

/// Of a claim a node says how large it has become.
fn check_claim(attributes: &Attributes<'_>, node: &str) -> Result<(), StatusError> {
    let (Some(new), Some(old)) = (attributes.typed(), attributes.old_typed()) else {
        return Ok(());
    };
    match equality::equal(&without_size(new), &without_size(old)) {
        true => Ok(()),
        false => Err(attributes.forbidden(format!(
            "node {} is not allowed to update fields other than status.quantity and status.conditions",
            quote(node)
        ))),
    }
}

fn without_size(claim: &PersistentVolumeClaim) -> PersistentVolumeClaim {
    let mut claim = claim.clone();
    claim.metadata.resource_version.clear();
    claim.metadata.managed_fields.clear();
    claim.status.capacity.clear();
    claim.status.conditions.clear();
    claim.status.allocated_resource_statuses.clear();
    claim.status.allocated_resources.clear();
    claim
}
