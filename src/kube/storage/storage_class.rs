//! Storage classes.

use std::collections::{BTreeMap, BTreeSet};

use keelson_api::core::v1::TopologySelectorTerm;
use keelson_api::storage_k8s_io::v1::StorageClass;
use keelson_machinery::field::{ErrorList, Path};
use keelson_registry::{Context, Kept, KindCode, Strategy};

use super::parameters;
use crate::cells;
use crate::core::pod_spec::warnings;
use crate::faults::{self, Faults};
use crate::metadata;

const KEPT: &[Kept] = &[
    Kept::at("parameters"),
    Kept::at("provisioner"),
    Kept::at("reclaimPolicy"),
    Kept::at("volumeBindingMode"),
];

/// Registers the rules of storage classes.
pub fn register(code: &mut KindCode) {
    code.kind::<StorageClass>()
        .strategy(StorageClassStrategy)
        .metadata_checks(metadata::WHOLE_FIRST)
        .kept(KEPT)
        .cells(cells::storage::STORAGE_CLASS);
}

/// The rules of storage classes.
struct StorageClassStrategy;

impl Strategy for StorageClassStrategy {
    type Object = StorageClass;

    fn warnings(&self, new: &StorageClass, _old: Option<&StorageClass>) -> Vec<String> {
        let terms = new.allowed_topologies.iter().enumerate();
        let keys = terms.flat_map(|(i, term)| {
            let path = Path::new("allowedTopologies").index(i).child("matchLabelExpressions");
            let expressions = term.match_label_expressions.iter().enumerate();
            expressions.map(move |(i, e)| (path.index(i).child("key"), e.key.as_str()))
        });
        keys.filter_map(|(path, key)| Some(format!("{path}: {}", warnings::of_node_label(key)?)))
            .collect()
    }

    fn validate(&self, _context: &Context, new: &StorageClass, _old: Option<&StorageClass>) -> ErrorList {
        faults::of_object(|f| {
            parameters::driver(&mut f.at("provisioner"), &new.provisioner);
            parameters::check(&mut f.at("parameters"), &new.parameters);
            if let Some(policy) = new.reclaim_policy.as_deref().filter(|policy| !policy.is_empty()) {
                f.at("reclaimPolicy").one_of(policy, &["Delete", "Retain"]);
            }
            topologies(f, &new.allowed_topologies);
        })
    }
}

fn topologies(f: &mut Faults<'_>, terms: &[TopologySelectorTerm]) {
    // The API begins with as many terms without conditions, which repeat each other.
    let mut seen: Vec<BTreeMap<&str, BTreeSet<&str>>> = vec![BTreeMap::new(); terms.len()];
    f.each("allowedTopologies", terms, |f, term| {
        let mut of_term: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        f.each(
            "matchLabelExpressions",
            &term.match_label_expressions,
            |f, condition| {
                f.at("values").required_if(condition.values.is_empty(), "");
                let mut values = BTreeSet::new();
                f.each("values", &condition.values, |f, value| {
                    if !values.insert(value.as_str()) {
                        f.duplicate(value);
                    }
                });
                f.at("key").qualified(&condition.key);
                if of_term.insert(&condition.key, values).is_some() {
                    f.at("key").duplicate(&condition.key);
                }
            },
        );
        for _ in seen.iter().filter(|other| **other == of_term) {
            f.at("matchLabelExpressions").duplicate("");
        }
        seen.push(of_term);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn topologies_are_said_once() {
        let term = |key: &str| format!(r#"{{"matchLabelExpressions":[{{"key":"{key}","values":["a"]}}]}}"#);
        for (terms, expected) in [
            (format!("{},{}", term("k"), term("l")), ""),
            (
                format!("{},{}", term("k"), term("k")),
                "allowedTopologies[1].matchLabelExpressions: Duplicate value: \"\"",
            ),
            (
                "{}".to_owned(),
                "allowedTopologies[0].matchLabelExpressions: Duplicate value: \"\"",
            ),
        ] {
            let text = format!(r#"{{"provisioner":"a.b/C","reclaimPolicy":"Retain","allowedTopologies":[{terms}]}}"#);
            let class: StorageClass = read(&text);
            assert_eq!(
                lines(&StorageClassStrategy.validate(&context(), &class, None)),
                expected,
                "{terms}"
            );
        }
        let class: StorageClass = read(r#"{"parameters":{"":"a"},"reclaimPolicy":"Recycle"}"#);
        assert_eq!(StorageClassStrategy.validate(&context(), &class, None).len(), 3);
    }
}
