//! Nodes: what is fixed once it is known.

use std::collections::HashSet;

use keelson_api::core::v1::Node;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::validation::labels;
use keelson_registry::{Context, KindCode, Strategy};

use super::resource_list::round;
use super::subresources::proxy;
use crate::cells;

/// Registers the rules of nodes.
pub fn register(code: &mut KindCode) {
    code.kind::<Node>()
        .strategy(NodeStrategy)
        .defaults(defaults)
        .subresource("proxy", proxy::OfNode)
        .cells(cells::node::NODE);
}

/// The rules of nodes.
struct NodeStrategy;

impl Strategy for NodeStrategy {
    type Object = Node;

    fn warnings(&self, new: &Node, _old: Option<&Node>) -> Vec<String> {
        let named = !new.spec.external_id.is_empty();
        let text = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
        named.then(|| text.to_owned()).into_iter().collect()
    }

    fn prepare_for_create(&self, _context: &Context, object: &mut Node) {
        forget_configuration(object);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut Node, _old: &Node) {
        forget_configuration(new);
    }

    fn prepare_for_status_update(&self, _context: &Context, new: &mut Node, _old: &Node) {
        forget_configuration(new);
    }

    /// A kubelet registers its node with all that it knows of it.
    fn keeps_new_status(&self) -> bool {
        true
    }

    fn validate(&self, _context: &Context, object: &Node) -> ErrorList {
        validate_taints(object)
    }

    fn validate_update(&self, _context: &Context, new: &Node, old: &Node) -> ErrorList {
        let spec = Path::new("spec");
        let mut errors = validate_taints(new);
        if !old.spec.pod_cidrs.is_empty() && new.spec.pod_cidrs != old.spec.pod_cidrs {
            let text = "node updates may not change podCIDR except from \"\" to valid";
            errors.push(FieldError::forbidden(&spec.child("podCIDRs"), text));
        }
        if !old.spec.provider_id.is_empty() && new.spec.provider_id != old.spec.provider_id {
            let text = "node updates may not change providerID except from \"\" to valid";
            errors.push(FieldError::forbidden(&spec.child("providerID"), text));
        }
        if new.spec.external_id != old.spec.external_id {
            errors.push(FieldError::forbidden(&spec.child("externalID"), "may not be updated"));
        }
        errors
    }
}

/// Defaults in code of nodes: pods may have all that a node has, unless it is said otherwise; the one range of pod
/// addresses and the list of ranges are the same.
fn defaults(node: &mut Node) {
    round(&mut node.status.capacity);
    round(&mut node.status.allocatable);
    if node.status.allocatable.is_empty() {
        node.status.allocatable.clone_from(&node.status.capacity);
    }
    let spec = &mut node.spec;
    if !spec.pod_cidr.is_empty() && spec.pod_cidrs.first() != Some(&spec.pod_cidr) {
        spec.pod_cidrs = vec![spec.pod_cidr.clone()];
    } else if let Some(first) = spec.pod_cidrs.first() {
        spec.pod_cidr.clone_from(first);
    }
}

/// Kubelets took their configuration from here once.
fn forget_configuration(node: &mut Node) {
    node.spec.config_source = None;
    node.status.config = None;
}

fn validate_taints(node: &Node) -> ErrorList {
    let mut errors = ErrorList::default();
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for (place, taint) in node.spec.taints.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = Path::new("spec").child("taints").index(place);
        let (key, value) = (&taint.key, &taint.value);
        let texts = labels::qualified_name(key);
        errors.extend(
            texts
                .into_iter()
                .map(|t| FieldError::invalid(&path.child("key"), key, t)),
        );
        let text = labels::label_value(value).join(";");
        if !text.is_empty() {
            errors.push(FieldError::invalid(&path.child("value"), value, text));
        }
        if taint.effect.is_empty() {
            errors.push(FieldError::required(&path.child("effect"), ""));
        } else if seen.contains(&(key.as_str(), taint.effect.as_str())) {
            errors.push(FieldError::duplicate(&path, crate::typed::shown(taint)));
        }
        seen.insert((key, &taint.effect));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn what_is_known_stays() {
        let mut old: Node = read(r#"{"spec":{"podCIDR":"10.0.0.0/24","providerID":"p"}}"#);
        defaults(&mut old);
        assert_eq!(old.spec.pod_cidrs, ["10.0.0.0/24"]);
        let mut new: Node = read(r#"{"spec":{"podCIDRs":["10.1.0.0/24"]}}"#);
        defaults(&mut new);
        assert_eq!(new.spec.pod_cidr, "10.1.0.0/24");
        assert_eq!(
            lines(&NodeStrategy.validate_update(&context(), &new, &old)),
            "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid\n\
             spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid"
        );
        let named: Node = read(r#"{"spec":{"externalID":"e"}}"#);
        assert_eq!(
            lines(&NodeStrategy.validate_update(&context(), &named, &Node::default())),
            "spec.externalID: Forbidden: may not be updated"
        );
        assert_eq!(
            lines(&NodeStrategy.validate_update(&context(), &new, &Node::default())),
            ""
        );
    }

    #[test]
    fn taints_are_unique_by_key_and_effect() {
        let node: Node =
            read(r#"{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoExecute"}]}}"#);
        assert_eq!(lines(&NodeStrategy.validate(&context(), &node)), "");
        let node: Node = read(
            r#"{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","value":"v","effect":"NoSchedule"},{"key":"b"}]}}"#,
        );
        assert_eq!(
            lines(&NodeStrategy.validate(&context(), &node)),
            "spec.taints[1]: Duplicate value: {\"key\":\"a\",\"value\":\"v\",\"effect\":\"NoSchedule\"}\n\
             spec.taints[2].effect: Required value"
        );
    }
}
