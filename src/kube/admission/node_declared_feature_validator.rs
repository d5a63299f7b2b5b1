//! NodeDeclaredFeatureValidator: a pod on a node does not change to what needs features that the node does not have.

use keelson_api::core::v1::{Node, Pod};
use keelson_machinery::equality;
use keelson_machinery::field::text::quote;
use keelson_machinery::status::StatusError;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};

use super::lookup;

const NODES: (&str, &str) = ("", "nodes");
const OF_INIT_CONTAINERS: &str = "InPlacePodVerticalScalingInitContainers";
const OF_PODS: &str = "InPlacePodLevelResourcesVerticalScaling";

pub struct NodeDeclaredFeatureValidator;

impl Plugin for NodeDeclaredFeatureValidator {
    fn name(&self) -> &'static str {
        "NodeDeclaredFeatureValidator"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let is_pods = (scope.group, scope.plural) == ("", "pods") && matches!(scope.subresource, "" | "resize");
        Handles::VALIDATES.when(is_pods && scope.operation == Operation::Update)
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[NODES]
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        let (Some(new), Some(old)) = (attributes.typed::<Pod>(), attributes.old_typed::<Pod>()) else {
            return now(Ok(()));
        };
        if new.spec.node_name.is_empty() || new.metadata.generation == old.metadata.generation {
            return now(Ok(()));
        }
        match needed(new, old) {
            features if features.is_empty() => now(Ok(())),
            features => later(check(attributes, new, features)),
        }
    }
}

/// The features that an update needs, by name and in their order.
fn needed(new: &Pod, old: &Pod) -> Vec<&'static str> {
    let mut features = Vec::new();
    let resources = (new.spec.resources.as_deref(), old.spec.resources.as_deref());
    let is_same = match resources {
        (None, None) => true,
        (Some(new), Some(old)) => equality::equal(new, old),
        (Some(one), None) | (None, Some(one)) => equality::is_zero(one),
    };
    if !is_same {
        features.push(OF_PODS);
    }
    let pairs = old.spec.init_containers.iter().zip(&new.spec.init_containers);
    let ends = pairs.filter(|(old, _)| old.restart_policy.as_deref() != Some("Always"));
    if ends
        .into_iter()
        .any(|(old, new)| !equality::equal(&old.resources, &new.resources))
    {
        features.push(OF_INIT_CONTAINERS);
    }
    features
}

async fn check(attributes: &Attributes<'_>, pod: &Pod, features: Vec<&'static str>) -> Result<(), StatusError> {
    let name = &pod.spec.node_name;
    let found = lookup::find::<Node>(attributes, NODES, "", name).await;
    let found = found.map_err(|error| {
        let why = format!("failed to get node {}: {}", quote(name), error.message);
        attributes.forbidden(why)
    })?;
    let node = found.ok_or_else(|| attributes.forbidden(format!("node {} not found", quote(name))))?;
    let declared = &node.status.declared_features;
    let missing = features
        .into_iter()
        .filter(|feature| !declared.iter().any(|known| known == feature));
    let missing: Vec<&str> = missing.collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(attributes.forbidden(format!(
            "pod update requires features {} which are not available on node {}",
            missing.join(", "),
            quote(name)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn resizes_beyond_containers_need_features() {
        let asks = r#""resources":{"requests":{"cpu":"1"}}"#;
        let init = |more: &str| format!(r#""initContainers":[{{"name":"i"{more}}}]"#);
        let stays = r#","restartPolicy":"Always""#;
        for (old, new, expected) in [
            (String::new(), String::new(), &[][..]),
            (String::new(), asks.to_owned(), &[OF_PODS]),
            (r#""resources":{}"#.to_owned(), String::new(), &[]),
            (init(""), init(&format!(",{asks}")), &[OF_INIT_CONTAINERS]),
            (init(stays), init(&format!("{stays},{asks}")), &[]),
        ] {
            let pod = |spec: &str| -> Pod { read(&format!(r#"{{"spec":{{{spec}}}}}"#)) };
            assert_eq!(needed(&pod(&new), &pod(&old)), expected, "{old} {new}");
        }
    }
}
