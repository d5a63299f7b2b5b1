//! Immutable fields of volumes: the source, which may name secrets that a node then gets, and where it can be reached.

use keelson_api::core::v1::{
    NodeSelectorRequirement, PersistentVolumeSource, PersistentVolumeSpec, VolumeNodeAffinity,
};
use keelson_machinery::equality;

use crate::faults::Faults;
use crate::typed::{IMMUTABLE, same, shown_option};

const CHANGED_SOURCE: &str = "spec.persistentvolumesource is immutable after creation";
const CHANGED_NODES: &str = "field is immutable, except for updating from beta label to GA";

/// Labels of nodes, and what they were called before they were stable.
const STABLE_LABELS: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

/// Checks a changed specification.
pub fn check(f: &mut Faults<'_>, new: &PersistentVolumeSpec, old: &PersistentVolumeSpec) {
    let is_same = is_same_source(&new.persistent_volume_source, &old.persistent_volume_source);
    f.at("spec")
        .at("persistentvolumesource")
        .forbidden_if(!is_same, CHANGED_SOURCE);
    let mode = new.volume_mode.as_deref();
    f.at("volumeMode")
        .invalid_if(mode != old.volume_mode.as_deref(), mode, IMMUTABLE);
    let (nodes, were) = (new.node_affinity.as_deref(), old.node_affinity.as_deref());
    if were.is_some() && !are_same_nodes(nodes, were) {
        f.at("nodeAffinity").invalid(shown_option(nodes), CHANGED_NODES);
    }
    let is_lost = old.volume_attributes_class_name.is_some() && new.volume_attributes_class_name.is_none();
    f.at("spec")
        .at("volumeAttributesClassName")
        .forbidden_if(is_lost, "update from non-nil value to nil is forbidden");
}

/// The secret of an expansion may be named later.
fn is_same_source(new: &PersistentVolumeSource, old: &PersistentVolumeSource) -> bool {
    let unnamed = |source: &PersistentVolumeSource| {
        let csi = source.csi.as_ref();
        csi.is_some_and(|csi| csi.controller_expand_secret_ref.is_none())
    };
    if unnamed(old) && !unnamed(new) {
        let mut without = new.clone();
        if let Some(csi) = &mut without.csi {
            csi.controller_expand_secret_ref = None;
        }
        return equality::equal(&without, old);
    }
    equality::equal(new, old)
}

fn are_same_nodes(new: Option<&VolumeNodeAffinity>, old: Option<&VolumeNodeAffinity>) -> bool {
    let (Some(new), Some(old)) = (new, old) else {
        return new.is_none() && old.is_none();
    };
    let mut renamed = old.clone();
    if let (Some(renamed), Some(new)) = (&mut renamed.required, &new.required) {
        let terms = renamed.node_selector_terms.iter_mut().zip(&new.node_selector_terms);
        for (term, new) in terms {
            rename(&mut term.match_expressions, &new.match_expressions);
            rename(&mut term.match_fields, &new.match_fields);
        }
    }
    same(Some(new), Some(&renamed))
}

/// Gives the old ones the stable names that the new ones have in their place.
fn rename(old: &mut [NodeSelectorRequirement], new: &[NodeSelectorRequirement]) {
    for (old, new) in old.iter_mut().zip(new) {
        if STABLE_LABELS.contains(&(&old.key, &new.key)) {
            old.key.clone_from(&new.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::of_object;
    use crate::testing::{lines, read};

    fn changed(old: &str, new: &str) -> String {
        lines(&of_object(|f| check(f, &read(new), &read(old))))
    }

    #[test]
    fn a_source_stays() {
        let csi = r#"{"csi":{"driver":"d","volumeHandle":"h"}}"#;
        let refused = format!("spec.persistentvolumesource: Forbidden: {CHANGED_SOURCE}");
        assert_eq!(changed(csi, csi), "");
        for other in [
            r#"{"csi":{"driver":"d","volumeHandle":"h","nodePublishSecretRef":{"name":"s"}}}"#,
            r#"{"csi":{"driver":"d","volumeHandle":"i"}}"#,
            r#"{"hostPath":{"path":"/"}}"#,
            "{}",
        ] {
            assert_eq!(changed(csi, other), refused, "{other}");
        }
        let expands = r#"{"csi":{"driver":"d","volumeHandle":"h","controllerExpandSecretRef":{"name":"s"}}}"#;
        assert_eq!(changed(csi, expands), "");
        assert_eq!(changed(expands, csi), refused);
        let both = expands.replace(r#""h""#, r#""i""#);
        assert_eq!(changed(csi, &both), refused);
    }

    #[test]
    fn nodes_stay_but_for_the_names_of_labels() {
        let on = |key: &str, value: &str| {
            format!(
                r#"{{"nodeAffinity":{{"required":{{"nodeSelectorTerms":[{{"matchExpressions":[{{"key":"{key}",
                "operator":"In","values":["{value}"]}}]}}]}}}}}}"#
            )
        };
        assert_eq!(changed("{}", &on("a", "b")), "");
        assert_eq!(
            changed(&on("beta.kubernetes.io/os", "b"), &on("kubernetes.io/os", "b")),
            ""
        );
        for (old, new) in [
            (on("a", "b"), "{}".to_owned()),
            (on("a", "b"), on("a", "c")),
            (on("kubernetes.io/os", "b"), on("beta.kubernetes.io/os", "b")),
            (on("beta.kubernetes.io/os", "b"), on("kubernetes.io/arch", "b")),
        ] {
            assert!(
                changed(&old, &new).starts_with("nodeAffinity: Invalid value: "),
                "{old} {new}"
            );
        }
    }

    #[test]
    fn a_mode_and_a_class_stay() {
        assert_eq!(
            changed(
                r#"{"volumeMode":"Block","volumeAttributesClassName":"a"}"#,
                r#"{"volumeMode":"Filesystem"}"#
            ),
            "volumeMode: Invalid value: \"Filesystem\": field is immutable\n\
             spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden"
        );
        assert_eq!(
            changed(
                r#"{"volumeAttributesClassName":"a"}"#,
                r#"{"volumeAttributesClassName":"b"}"#
            ),
            ""
        );
    }
}
