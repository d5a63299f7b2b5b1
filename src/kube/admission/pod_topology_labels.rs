//! PodTopologyLabels: a pod that has a node gets the node's zone and region as labels.

use std::collections::BTreeMap;

use keelson_api::core::v1::{Binding, Node, Pod};
use keelson_machinery::status::StatusError;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};

use super::lookup;

const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];
const NODES: (&str, &str) = ("", "nodes");

pub struct PodTopologyLabels;

impl Plugin for PodTopologyLabels {
    fn name(&self) -> &'static str {
        "PodTopologyLabels"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let is_pods = (scope.group, scope.plural) == ("", "pods") && matches!(scope.subresource, "" | "binding");
        Handles::MUTATES.when(is_pods && scope.operation == Operation::Create)
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[NODES]
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        match node_of(attributes) {
            "" => now(Ok(())),
            _ => later(label(attributes)),
        }
    }
}

/// "": the pod is not on a node, nor about to be.
fn node_of<'a>(attributes: &'a Attributes<'_>) -> &'a str {
    if let Some(pod) = attributes.typed::<Pod>() {
        return &pod.spec.node_name;
    }
    let binding = attributes.typed::<Binding>();
    let target = binding
        .map(|binding| &binding.target)
        .filter(|target| target.kind == "Node");
    target.map_or("", |target| &target.name)
}

async fn label(attributes: &mut Attributes<'_>) -> Result<(), StatusError> {
    let name = node_of(attributes).to_owned();
    let Some(node) = lookup::find::<Node>(attributes, NODES, "", &name).await? else {
        return Ok(());
    };
    if let Some(metadata) = attributes.metadata_mut() {
        metadata.labels.extend(topology(&node));
    }
    Ok(())
}

fn topology(node: &Node) -> BTreeMap<String, String> {
    let labels = LABELS.iter().filter_map(|key| node.metadata.labels.get_key_value(*key));
    labels.map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn zone_and_region_are_told_and_nothing_else() {
        let node: Node = read(
            r#"{"metadata":{"labels":{"topology.kubernetes.io/zone":"z","topology.kubernetes.io/x":"x","a":"b"}}}"#,
        );
        let labels: Vec<String> = topology(&node).into_values().collect();
        assert_eq!(labels, ["z"]);
    }
}
