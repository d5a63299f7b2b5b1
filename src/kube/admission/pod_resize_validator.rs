//! PodResizeValidator: a pod on a node grows no further than the node has room for at all.

use keelson_api::core::v1::{Node, Pod};
use keelson_machinery::field::text::quote;
use keelson_machinery::quantity::Quantity;
use keelson_machinery::status::{Cause, StatusError};
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};

use super::lookup;
use crate::core::pod_resources;

const NODES: (&str, &str) = ("", "nodes");
const SYSTEM: &str = "kubernetes.io/os";

pub struct PodResizeValidator;

impl Plugin for PodResizeValidator {
    fn name(&self) -> &'static str {
        "PodResizeValidator"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let resize = (scope.group, scope.plural, scope.subresource) == ("", "pods", "resize");
        Handles::VALIDATES.when(resize && scope.operation == Operation::Update)
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[NODES]
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        match (attributes.typed::<Pod>(), attributes.old_typed::<Pod>()) {
            (Some(new), Some(old))
                if !new.spec.node_name.is_empty() && new.metadata.generation != old.metadata.generation =>
            {
                later(check(attributes, new))
            }
            _ => now(Ok(())),
        }
    }
}

async fn check(attributes: &Attributes<'_>, pod: &Pod) -> Result<(), StatusError> {
    let name = &pod.spec.node_name;
    let found = lookup::find::<Node>(attributes, NODES, "", name).await;
    let found = found.map_err(|error| {
        let why = format!("failed to get node {}: {}", quote(name), error.message);
        attributes.forbidden(why)
    })?;
    let node = found.ok_or_else(|| attributes.forbidden(format!("node {} not found", quote(name))))?;
    let Some((reason, why)) = fault(pod, &node) else {
        return Ok(());
    };
    let mut error = attributes.forbidden(why);
    error.details_mut().causes.push(Cause {
        reason: reason.into(),
        message: String::new(),
        field: "".into(),
    });
    Err(error)
}

fn fault(pod: &Pod, node: &Node) -> Option<(&'static str, String)> {
    let system = node.metadata.labels.get(SYSTEM).filter(|system| *system != "linux");
    if let Some(system) = system {
        let node = quote(&node.metadata.name);
        let why = format!(
            "pod resize is only supported on linux nodes, node {node} is {}",
            quote(system)
        );
        return Some(("UnsupportedPlatform", why));
    }
    let requests = pod_resources::requests(&pod.spec);
    let none = Quantity::default();
    let mut told = Vec::new();
    for (resource, amount) in [
        ("cpu", Quantity::milli_value as fn(&Quantity) -> i64),
        ("memory", Quantity::value),
    ] {
        let asked = requests.get(resource).unwrap_or(&none);
        let there = node.status.allocatable.get(resource).unwrap_or(&none);
        if asked > there {
            let (asked, there) = (amount(asked), amount(there));
            told.push(format!("{resource}, requested: {asked}, allocatable: {there}"));
        }
    }
    let why = || format!("node didn't have enough allocatable resources: {}", told.join("; "));
    (!told.is_empty()).then(|| ("NodeCapacity", why()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn a_pod_asks_for_no_more_than_its_node_has() {
        let pod: Pod = read(
            r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1500m","memory":"1Gi"}}},
                                      {"name":"b","resources":{"requests":{"cpu":"600m"}}}]}}"#,
        );
        for (node, expected) in [
            (r#"{"status":{"allocatable":{"cpu":"2100m","memory":"1Gi"}}}"#, None),
            (
                r#"{"status":{"allocatable":{"cpu":"2"}}}"#,
                Some((
                    "NodeCapacity",
                    "node didn't have enough allocatable resources: cpu, requested: 2100, allocatable: 2000; memory, \
                     requested: 1073741824, allocatable: 0",
                )),
            ),
            (
                r#"{"metadata":{"name":"n","labels":{"kubernetes.io/os":"windows"}}}"#,
                Some((
                    "UnsupportedPlatform",
                    "pod resize is only supported on linux nodes, node \"n\" is \"windows\"",
                )),
            ),
        ] {
            let found = fault(&pod, &read(node));
            let found = found.as_ref().map(|(reason, why)| (*reason, why.as_str()));
            assert_eq!(found, expected, "{node}");
        }
    }
}
