//! Nodes: what is fixed once it is known.

use std::collections::HashSet;

use keelson_api::core::v1::{Node, NodeStatus, Taint};
use keelson_machinery::field::{ErrorList, ErrorType, FieldError, Path};
use keelson_machinery::validation::labels;
use keelson_machinery::validation::names::SUBDOMAIN_MAX;
use keelson_registry::{Context, KindCode, Strategy};
use serde_json::Value;

use super::pod_spec::affinity::TAINT_EFFECTS;
use super::resource_check;
use super::resource_list::round;
use super::subresources::proxy;
use crate::cells;
use crate::cidr::{self, Cidr};
use crate::faults::{self, Faults};
use crate::metadata;
use crate::typed::{object_fault, shown_internal};

const AVOID_PODS: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";
const FEATURE: &str = "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., \
    MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes";

/// Registers the rules of nodes.
pub fn register(code: &mut KindCode) {
    code.kind::<Node>()
        .strategy(NodeStrategy)
        .metadata_checks(metadata::WHOLE_FIRST)
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
        let mut found: Vec<String> = named.then(|| text.to_owned()).into_iter().collect();
        let path = Path::new("spec").child("podCIDRs");
        for (place, range) in new.spec.pod_cidrs.iter().enumerate() {
            found.extend(cidr::warnings(range, &path.index(place)));
        }
        found
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

    fn validate(&self, _context: &Context, new: &Node, _old: Option<&Node>) -> ErrorList {
        faults::of_object(|f| whole(f, new))
    }

    fn validate_change(&self, _context: &Context, new: &Node, old: &Node) -> ErrorList {
        faults::of_object(|f| change(f, new, old))
    }

    fn validate_status_update(&self, _context: &Context, new: &Node, old: &Node) -> ErrorList {
        faults::of_object(|f| change(f, new, old))
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

fn whole(f: &mut Faults<'_>, node: &Node) {
    avoided_pods(f, node);
    taints(&mut f.at("metadata"), &node.spec.taints);
    resources(f, &node.status);
    let swap = node.status.node_info.swap.as_deref();
    if let Some(capacity) = swap.and_then(|swap| swap.capacity) {
        let (mut meta, positive) = (f.at("metadata"), capacity > 0);
        if !positive {
            meta.at("nodeSwapStatus").at("capacity").positive(capacity);
        }
    }
    features(f, &node.status);
    pod_ranges(&mut f.at("spec").at("podCIDRs"), &node.spec.pod_cidrs);
}

/// Controllers whose pods had better go elsewhere, in an annotation that nobody reads any longer.
fn avoided_pods(f: &mut Faults<'_>, node: &Node) {
    let Some(text) = node
        .metadata
        .annotations
        .get(AVOID_PODS)
        .filter(|text| !text.is_empty())
    else {
        return;
    };
    let mut of_metadata = f.at("metadata");
    let mut f = of_metadata.at("annotations");
    if let Some(fault) = object_fault(text.as_bytes(), "v1.AvoidPods") {
        return f.at("AvoidPods").invalid(AVOID_PODS, fault);
    }
    let read: Value = serde_json::from_str(text).unwrap_or_default();
    let entries = read["preferAvoidPods"].as_array();
    f.each(AVOID_PODS, entries.into_iter().flatten(), |f, entry| {
        let controller = &entry["podSignature"]["podController"];
        if !controller.is_object() {
            f.at("PodSignature").required("");
        } else if controller["controller"] == false {
            let mut of_signature = f.at("PodSignature");
            let mut of_controller = of_signature.at("PodController");
            of_controller
                .at("Controller")
                .invalid(false, "must point to a controller");
        }
    });
}

/// One range of each family.
fn pod_ranges(f: &mut Faults<'_>, ranges: &[String]) {
    let parsed: Vec<Option<Cidr>> = ranges.iter().map(|text| Cidr::parse(text)).collect();
    for (place, text) in ranges.iter().enumerate() {
        let faults = cidr::validate(text, &[], &f.index(place).path());
        f.extend(faults);
    }
    if ranges.len() < 2 {
        return;
    }
    if let Some(place) = parsed.iter().position(Option::is_none) {
        let text = format!("invalid CIDR[{place}]: <nil> (invalid CIDR address: {})", ranges[place]);
        let text = format!("invalid PodCIDRs. failed to check with dual stack with error:{text}");
        let path = f.path();
        f.extend([FieldError::internal(&path, text)]);
    }
    let families: HashSet<Option<bool>> = parsed.iter().map(|c| c.map(|c| c.address.is_ipv4())).collect();
    if ranges.len() > 2 || families.len() < 2 || families.contains(&None) {
        f.invalid(ranges, "may specify no more than one CIDR for each IP family");
    }
}

fn change(f: &mut Faults<'_>, new: &Node, old: &Node) {
    avoided_pods(f, new);
    resources(f, &new.status);
    features(f, &new.status);
    let mut addresses = HashSet::new();
    f.at("status").each("addresses", &new.status.addresses, |f, address| {
        if !addresses.insert((&address.r#type, &address.address)) {
            f.duplicate(shown_internal(address));
        }
    });
    let (now, was) = (&new.spec, &old.spec);
    let mut spec = f.at("spec");
    let changed = match now.pod_cidrs.len() == was.pod_cidrs.len() {
        true => now.pod_cidrs.iter().zip(&was.pod_cidrs).filter(|(a, b)| a != b).count(),
        false => usize::from(!was.pod_cidrs.is_empty()),
    };
    for _ in 0..changed {
        let text = "node updates may not change podCIDR except from \"\" to valid";
        spec.at("podCIDRs").forbidden(text);
    }
    let text = "node updates may not change providerID except from \"\" to valid";
    spec.at("providerID")
        .forbidden_if(!was.provider_id.is_empty() && now.provider_id != was.provider_id, text);
    taints(&mut f.at("metadata"), &new.spec.taints);
    if now.external_id != was.external_id {
        f.at("spec").at("externalID").forbidden("may not be updated");
    }
}

fn resources(f: &mut Faults<'_>, status: &NodeStatus) {
    for (name, amounts) in [("capacity", &status.capacity), ("allocatable", &status.allocatable)] {
        for (resource, amount) in amounts {
            resource_check::amount(&mut f.at("status").at(name).at(resource), resource, amount);
        }
    }
}

/// Names of features in their order.
fn features(f: &mut Faults<'_>, status: &NodeStatus) {
    let names = &status.declared_features;
    let mut previous: Option<&String> = None;
    f.at("status").each("declaredFeatures", names, |f, name| {
        match previous.replace(name) {
            Some(before) if before == name => f.duplicate(name),
            Some(before) if before > name => f.invalid(name, "list must be sorted alphabetically"),
            _ => {}
        }
        if name.len() > SUBDOMAIN_MAX {
            let text = format!("invalid feature name {name:?}: must be no more than {SUBDOMAIN_MAX} characters");
            f.invalid(name, text);
        } else if !is_feature(name) {
            f.invalid(name, format!("invalid feature name {name:?}: {FEATURE}"));
        }
    });
}

fn is_feature(name: &str) -> bool {
    let mut parts = name.split('/');
    let fits = |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric());
    let is_letter = |part: &str| part.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    name.bytes().next().is_some_and(|b| b.is_ascii_uppercase()) && parts.all(|part| fits(part) && is_letter(part))
}

/// Taints, each of them once for an effect. The API tells them at the metadata.
fn taints(f: &mut Faults<'_>, taints: &[Taint]) {
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    f.each("taints", taints, |f, taint| {
        f.at("key").qualified(&taint.key);
        let text = labels::label_value(&taint.value).join(";");
        if !text.is_empty() {
            f.at("value").invalid(&taint.value, text);
        }
        f.at("effect").one_of_filled(&taint.effect, &TAINT_EFFECTS);
        if !seen.insert((&taint.key, &taint.effect)) {
            let text = "taints must be unique by key and effect pair";
            let fault = FieldError::new(ErrorType::Duplicate, &f.path(), shown_internal(taint), text);
            f.extend([fault]);
        }
    });
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
            lines(&NodeStrategy.validate_change(&context(), &new, &old)),
            "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid\n\
             spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid"
        );
        let named: Node = read(r#"{"spec":{"externalID":"e"}}"#);
        assert_eq!(
            lines(&NodeStrategy.validate_change(&context(), &named, &Node::default())),
            "spec.externalID: Forbidden: may not be updated"
        );
        assert_eq!(
            lines(&NodeStrategy.validate_change(&context(), &new, &Node::default())),
            ""
        );
    }

    #[test]
    fn avoided_pods_have_controllers() {
        for (text, expected) in [
            (
                r#"{"preferAvoidPods":[{"podSignature":{"podController":{"controller":true}}}]}"#,
                "",
            ),
            (
                "{",
                "AvoidPods: Invalid value: \"scheduler.alpha.kubernetes.io/preferAvoidPods\": unexpected end of JSON input",
            ),
            (
                r#"{"preferAvoidPods":[{},{"podSignature":{"podController":{"controller":false}}}]}"#,
                "scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature: Required value\n\
                 scheduler.alpha.kubernetes.io/preferAvoidPods[1].PodSignature.PodController.Controller: Invalid value: \
                 false: must point to a controller",
            ),
        ] {
            let mut node = Node::default();
            node.metadata.annotations.insert(AVOID_PODS.to_owned(), text.to_owned());
            let found = lines(&NodeStrategy.validate(&context(), &node, None));
            assert_eq!(found.replace("metadata.annotations.", ""), expected, "{text}");
        }
    }

    #[test]
    fn taints_are_unique_by_key_and_effect() {
        let node: Node =
            read(r#"{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoExecute"}]}}"#);
        assert_eq!(lines(&NodeStrategy.validate(&context(), &node, None)), "");
        let node: Node = read(
            r#"{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","value":"v","effect":"NoSchedule"},{"key":"b"}]}}"#,
        );
        assert_eq!(
            lines(&NodeStrategy.validate(&context(), &node, None)),
            "metadata.taints[1]: Duplicate value: {\"Key\":\"a\",\"Value\":\"v\",\"Effect\":\"NoSchedule\",\"TimeAdded\":null}: \
             taints must \
             be unique by key and effect pair\nmetadata.taints[2].effect: Required value"
        );
    }
}
