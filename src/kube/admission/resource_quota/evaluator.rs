//! Evaluators: what an object uses of a quota, which resources of a quota it concerns, and whether it is in its scopes.

use keelson_api::core::v1::{PersistentVolumeClaim, Pod, ScopedResourceSelectorRequirement as Selector, Service};
use keelson_api::resource_k8s_io::v1::ResourceClaim;
use keelson_machinery::field::text::quote;
use keelson_machinery::object::Kind;
use keelson_machinery::reflect::Reflect;
use keelson_machinery::time::Time;

use super::amounts::{Amounts, count};
use super::{claims, devices, pods, services};
use crate::core::resource_name;

/// Resources that were counted before there was a rule for their names.
const ALIASES: [(&str, &str); 4] = [
    ("configmaps", "configmaps"),
    ("replicationcontrollers", "replicationcontrollers"),
    ("resourcequotas", "resourcequotas"),
    ("secrets", "secrets"),
];

/// How objects of a resource are counted.
pub enum Evaluator<'a> {
    /// Pods.
    Pods,
    /// Services.
    Services,
    /// Claims for volumes.
    Claims,
    /// Claims for devices.
    Devices(&'a devices::Classes),
    /// All others are only counted; the names under which they are.
    Objects(Vec<String>),
}

impl<'a> Evaluator<'a> {
    /// That of a resource.
    pub fn of(group: &str, plural: &str, classes: &'a devices::Classes) -> Evaluator<'a> {
        match (group, plural) {
            ("", "pods") => Evaluator::Pods,
            ("", "services") => Evaluator::Services,
            ("", "persistentvolumeclaims") => Evaluator::Claims,
            ("resource.k8s.io", "resourceclaims") => Evaluator::Devices(classes),
            _ => {
                let alias = ALIASES.iter().find(|(known, _)| group.is_empty() && plural == *known);
                let mut names = vec![count_name(group, plural)];
                names.extend(alias.map(|(_, name)| (*name).to_owned()));
                Evaluator::Objects(names)
            }
        }
    }

    /// What an object uses. `now`: pods that should be gone by then use nothing but their place.
    pub fn usage(&self, object: &dyn Kind, now: Time) -> Amounts {
        match self {
            Evaluator::Pods => cast::<Pod>(object).map(|pod| pods::usage(pod, now)).unwrap_or_default(),
            Evaluator::Services => cast::<Service>(object).map(services::usage).unwrap_or_default(),
            Evaluator::Claims => cast::<PersistentVolumeClaim>(object)
                .map(claims::usage)
                .unwrap_or_default(),
            Evaluator::Devices(classes) => {
                let claim = cast::<ResourceClaim>(object);
                claim.map(|claim| devices::usage(claim, classes)).unwrap_or_default()
            }
            Evaluator::Objects(names) => names.iter().map(|name| (name.clone(), count(1))).collect(),
        }
    }

    /// Whether objects of this resource use a resource of this name.
    pub fn concerns(&self, name: &str) -> bool {
        match self {
            Evaluator::Pods => pods::concerns(name),
            Evaluator::Services => services::concerns(name),
            Evaluator::Claims => claims::concerns(name),
            Evaluator::Devices(classes) => devices::concerns(name, classes),
            Evaluator::Objects(names) => names.iter().any(|known| known == name),
        }
    }

    /// Whether an object is in the scope that a selector names.
    pub fn is_in_scope(&self, selector: &Selector, object: &dyn Kind) -> Result<bool, OperatorError> {
        match self {
            Evaluator::Pods => cast::<Pod>(object).map_or(Ok(false), |pod| pods::is_in_scope(selector, pod)),
            Evaluator::Claims => {
                let claim = cast::<PersistentVolumeClaim>(object);
                claim.map_or(Ok(false), |claim| claims::is_in_scope(selector, claim))
            }
            _ => Ok(false),
        }
    }

    /// Whether scopes of configured limits count for objects of this resource.
    pub fn has_scopes(&self) -> bool {
        matches!(self, Evaluator::Pods | Evaluator::Claims)
    }

    /// Why an object can't be counted, which has to say how much it wants of these resources.
    pub fn constraint(&self, required: &[&String], object: &dyn Kind) -> Option<String> {
        match self {
            Evaluator::Pods => pods::constraint(required, cast::<Pod>(object)?),
            _ => None,
        }
    }
}

fn cast<T: Reflect>(object: &dyn Kind) -> Option<&T> {
    object.as_any().downcast_ref()
}

/// The name under which a quota counts objects: `count/deployments.apps`.
pub fn count_name(group: &str, plural: &str) -> String {
    match group {
        "" => format!("count/{plural}"),
        group => format!("count/{plural}.{group}"),
    }
}

/// Whether a quota counts requests for a resource that somebody else than Kubernetes has, or for a class of devices.
pub fn is_extended_request(name: &str) -> bool {
    let is_other = !resource_name::is_native(name) || name.starts_with(devices::IMPLICIT);
    is_other && name.starts_with(resource_name::REQUESTS)
}

/// An operator that no selector of scopes has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("failed to parse and convert selector: {} is not a valid scope selector operator", quote(.0))]
pub struct OperatorError(String);

/// Whether a selector of scopes selects what has these values; none: nothing is said.
pub fn selects(selector: &Selector, values: &[&str]) -> Result<bool, OperatorError> {
    let is_listed = |value: &&str| selector.values.iter().any(|listed| listed == value);
    Ok(match selector.operator.as_str() {
        "In" => values.iter().any(is_listed),
        "NotIn" => values.is_empty() || values.iter().any(|value| !is_listed(value)),
        "Exists" => !values.is_empty(),
        "DoesNotExist" => values.is_empty(),
        other => return Err(OperatorError(other.to_owned())),
    })
}

#[cfg(test)]
mod tests {
    use keelson_api::core::v1::{ConfigMap, Namespace};

    use super::*;
    use crate::admission::resource_quota::amounts::text;

    #[test]
    fn objects_are_counted_by_their_resource() {
        let classes = devices::Classes::default();
        let now = Time::from_unix(0, 0);
        for (group, plural, expected) in [
            ("", "configmaps", "configmaps=1,count/configmaps=1"),
            ("apps", "deployments", "count/deployments.apps=1"),
            ("example.com", "secrets", "count/secrets.example.com=1"),
            ("", "endpoints", "count/endpoints=1"),
        ] {
            let evaluator = Evaluator::of(group, plural, &classes);
            assert_eq!(text(&evaluator.usage(&ConfigMap::default(), now)), expected);
            assert!(evaluator.concerns(&count_name(group, plural)) && !evaluator.concerns("count/x"));
        }
        let pods = Evaluator::of("", "pods", &classes);
        assert!(
            pods.usage(&Namespace::default(), now).is_empty(),
            "an object of another kind uses nothing"
        );
    }

    #[test]
    fn selectors_of_scopes_are_those_of_labels() {
        let selector = |operator: &str| Selector {
            scope_name: "PriorityClass".to_owned(),
            operator: operator.to_owned(),
            values: vec!["a".to_owned(), "b".to_owned()],
        };
        for (operator, of_a, of_c, of_none) in [
            ("In", true, false, false),
            ("NotIn", false, true, true),
            ("Exists", true, true, false),
            ("DoesNotExist", false, false, true),
        ] {
            let found = [&["a"][..], &["c"], &[]].map(|values| selects(&selector(operator), values).unwrap());
            assert_eq!(found, [of_a, of_c, of_none], "{operator}");
        }
        assert!(selects(&selector("Is"), &[]).is_err());
    }
}
