//! Claims for volumes in quotas: themselves and their storage, of all classes and of each.

use std::collections::BTreeSet;

use keelson_api::core::v1::{PersistentVolumeClaim, ScopedResourceSelectorRequirement as Selector};
use keelson_machinery::quantity::Quantity;

use super::amounts::{Amounts, count};
use super::evaluator::{OperatorError, selects};
use crate::admission::default_storage_class::OLD_CLASS;

const COUNT: &str = "count/persistentvolumeclaims";
const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";
/// Stands between a class and what is counted of it.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";

/// Whether claims use a resource of this name.
pub fn concerns(name: &str) -> bool {
    let of_class = |of: &str| name.strip_suffix(of).is_some_and(|class| class.ends_with(OF_CLASS));
    matches!(name, COUNT | CLAIMS | STORAGE) || of_class(CLAIMS) || of_class(STORAGE)
}

/// What a claim uses.
pub fn usage(claim: &PersistentVolumeClaim) -> Amounts {
    let class = claim
        .metadata
        .annotations
        .get(OLD_CLASS)
        .or(claim.spec.storage_class_name.as_ref());
    let class = class.filter(|class| !class.is_empty());
    let mut amounts = Amounts::from([(CLAIMS.to_owned(), count(1)), (COUNT.to_owned(), count(1))]);
    amounts.extend(class.map(|class| (format!("{class}{OF_CLASS}{CLAIMS}"), count(1))));
    if let Some(storage) = storage(claim) {
        amounts.extend(class.map(|class| (format!("{class}{OF_CLASS}{STORAGE}"), storage.clone())));
        amounts.insert(STORAGE.to_owned(), storage);
    }
    amounts
}

/// What is asked for, or has been given if that is more, in whole bytes.
fn storage(claim: &PersistentVolumeClaim) -> Option<Quantity> {
    const NAME: &str = "storage";
    let asked = claim.spec.resources.requests.get(NAME)?;
    let given = claim
        .status
        .allocated_resources
        .get(NAME)
        .filter(|given| *given > asked);
    let mut most = given.unwrap_or(asked).clone();
    most.round_up(0);
    Some(most)
}

/// Whether a claim is in a scope.
pub fn is_in_scope(selector: &Selector, claim: &PersistentVolumeClaim) -> Result<bool, OperatorError> {
    if selector.scope_name != "VolumeAttributesClass" {
        return Ok(false);
    }
    let modified = claim.status.modify_volume_status.as_deref();
    let names = [
        claim.spec.volume_attributes_class_name.as_deref(),
        claim.status.current_volume_attributes_class_name.as_deref(),
        modified.map(|status| status.target_volume_attributes_class_name.as_str()),
    ];
    let names: BTreeSet<&str> = names.into_iter().flatten().filter(|name| !name.is_empty()).collect();
    selects(selector, &names.into_iter().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::resource_quota::amounts::text;
    use crate::testing::read;

    #[test]
    fn claims_count_for_their_class_too() {
        for (claim, expected) in [
            ("{}", "count/persistentvolumeclaims=1,persistentvolumeclaims=1"),
            (
                r#"{"spec":{"storageClassName":"c","resources":{"requests":{"storage":"1500m"}}},
                    "status":{"allocatedResources":{"storage":"1"}}}"#,
                "c.storageclass.storage.k8s.io/persistentvolumeclaims=1,c.storageclass.storage.k8s.io/requests.storage=2,\
                 count/persistentvolumeclaims=1,persistentvolumeclaims=1,requests.storage=2",
            ),
            (
                r#"{"spec":{"resources":{"requests":{"storage":"1Gi"}}},"status":{"allocatedResources":{"storage":"2Gi"}}}"#,
                "count/persistentvolumeclaims=1,persistentvolumeclaims=1,requests.storage=2Gi",
            ),
        ] {
            let usage = usage(&read(claim));
            assert_eq!(text(&usage), expected, "{claim}");
            assert!(usage.keys().all(|name| concerns(name)));
        }
        assert!(!concerns("requests.cpu") && !concerns("persistentvolumeclaims/x"));
    }

    #[test]
    fn scopes_are_classes_of_attributes() {
        let claim =
            read(r#"{"spec":{"volumeAttributesClassName":"a"},"status":{"currentVolumeAttributesClassName":"b"}}"#);
        let selector = |scope: &str, value: &str| Selector {
            scope_name: scope.to_owned(),
            operator: "In".to_owned(),
            values: vec![value.to_owned()],
        };
        for (scope, value, expected) in [
            ("VolumeAttributesClass", "a", true),
            ("VolumeAttributesClass", "b", true),
            ("VolumeAttributesClass", "c", false),
            ("PriorityClass", "a", false),
        ] {
            assert_eq!(
                is_in_scope(&selector(scope, value), &claim),
                Ok(expected),
                "{scope} {value}"
            );
        }
    }
}
