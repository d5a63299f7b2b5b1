//! Namespaces: they are told apart by a label too, and go only when the finalizers of their spec are done.

use keelson_api::core::v1::Namespace;
use keelson_machinery::field::ErrorList;
use keelson_registry::write::Part;
use keelson_registry::{Context, KindCode, MetadataChecks, RepeatedChecks, Strategy};

use crate::cells;
use crate::faults::{self, Faults};
use crate::metadata;

/// Holds the name, so that selectors can name a namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// Stands in the spec of every namespace until what is in it is gone.
pub(super) const FINALIZER: &str = "kubernetes";
/// Finalizers that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = [FINALIZER, "orphan", "foregroundDeletion"];

const ACTIVE: &str = "Active";
const TERMINATING: &str = "Terminating";

/// Registers the rules of namespaces.
pub fn register(code: &mut KindCode) {
    code.kind::<Namespace>()
        .strategy(NamespaceStrategy)
        .metadata_checks(CHECKS)
        .defaults(defaults)
        .cells(cells::namespace::NAMESPACE);
}

/// Of what comes to its end by a subresource the change alone is checked again.
const CHECKS: MetadataChecks = MetadataChecks {
    subresource: RepeatedChecks::CHANGE,
    ..metadata::WHOLE_FIRST
};

/// The rules of namespaces.
struct NamespaceStrategy;

impl Strategy for NamespaceStrategy {
    type Object = Namespace;

    fn defaults_metadata(&self) -> bool {
        true
    }

    fn prepare_for_create(&self, _context: &Context, namespace: &mut Namespace) {
        namespace.status.phase = ACTIVE.to_owned();
        if !namespace.spec.finalizers.iter().any(|f| f == FINALIZER) {
            namespace.spec.finalizers.push(FINALIZER.to_owned());
        }
        label(namespace);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut Namespace, old: &Namespace) {
        new.spec.finalizers.clone_from(&old.spec.finalizers);
        label(new);
    }

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        match part {
            Part::Named("finalize") => &[&["status"]],
            _ => &[],
        }
    }

    fn prepare_for_subresource(&self, _context: &Context, name: &str, new: &mut Namespace, old: &Namespace) {
        if name == "finalize" {
            new.status = old.status.clone();
        }
    }

    /// Of a new one faults are told at the list.
    fn validate(&self, _context: &Context, new: &Namespace, old: Option<&Namespace>) -> ErrorList {
        faults::of_spec(|f| {
            let names = &new.spec.finalizers;
            match old {
                None => names.iter().for_each(|name| finalizer(&mut f.at("finalizers"), name)),
                Some(_) => f.each("finalizers", names, |f, name| finalizer(f, name)),
            }
        })
    }

    fn validate_status_update(&self, _context: &Context, new: &Namespace, _old: &Namespace) -> ErrorList {
        let (is_going, phase) = (new.metadata.deletion_timestamp.is_some(), &new.status.phase);
        let (expected, text) = match is_going {
            false => (ACTIVE, "may only be 'Active' if `deletionTimestamp` is empty"),
            true => (
                TERMINATING,
                "may only be 'Terminating' if `deletionTimestamp` is not empty",
            ),
        };
        faults::of_status(|f| f.at("Phase").invalid_if(phase != expected, phase, text))
    }

    fn prepare_for_deletion(&self, namespace: &mut Namespace) {
        namespace.status.phase = TERMINATING.to_owned();
        // A namespace waits for what is in it, not for a time.
        namespace.metadata.deletion_grace_period_seconds = None;
    }

    fn may_vanish(&self, object: &Namespace) -> bool {
        // The mark comes before the end even of a namespace that nothing holds.
        is_marked(object) && object.spec.finalizers.is_empty()
    }

    fn is_deletion_settled(&self, object: &Namespace) -> bool {
        is_marked(object) && !object.spec.finalizers.is_empty()
    }

    fn failed_precondition(&self, what: &str, wanted: &str, found: &str) -> Option<String> {
        Some(format!(
            "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
        ))
    }
}

/// Gives a namespace the label with its name.
fn defaults(namespace: &mut Namespace) {
    label(namespace);
}

fn is_marked(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_some()
}

fn label(namespace: &mut Namespace) {
    let meta = &mut namespace.metadata;
    if !meta.name.is_empty() {
        meta.labels.insert(NAME_LABEL.to_owned(), meta.name.clone());
    }
}

fn finalizer(f: &mut Faults<'_>, name: &str) {
    f.qualified(name);
    let is_known = name.contains('/') || STANDARD_FINALIZERS.contains(&name);
    let text = "name is neither a standard finalizer name nor is it fully qualified";
    f.invalid_if(!is_known, name, text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, read};

    #[test]
    fn a_new_namespace_is_active_and_held() {
        let mut object: Namespace = read(r#"{"metadata":{"name":"a"},"spec":{"finalizers":["example.com/f"]}}"#);
        NamespaceStrategy.prepare_for_create(&context(), &mut object);
        assert_eq!(object.status.phase, "Active");
        assert_eq!(object.spec.finalizers, ["example.com/f", "kubernetes"]);
        assert_eq!(object.metadata.labels[NAME_LABEL], "a");
        assert!(!NamespaceStrategy.may_vanish(&object));
        NamespaceStrategy.prepare_for_deletion(&mut object);
        assert_eq!(object.status.phase, "Terminating");
    }

    #[test]
    fn only_finalize_changes_finalizers() {
        let old: Namespace = read(r#"{"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}"#);
        let changed = r#"{"metadata":{"name":"a"},"status":{"phase":"Terminating"}}"#;
        let mut new: Namespace = read(changed);
        NamespaceStrategy.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new.spec.finalizers, ["kubernetes"]);
        let mut new: Namespace = read(changed);
        NamespaceStrategy.prepare_for_subresource(&context(), "finalize", &mut new, &old);
        assert!(new.spec.finalizers.is_empty());
        assert_eq!(new.status.phase, "Active");
    }

    #[test]
    fn the_phase_follows_the_deletion() {
        for (text, expected) in [
            (r#"{"status":{"phase":"Active"}}"#, ""),
            (
                r#"{"status":{"phase":"Terminating"}}"#,
                "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty",
            ),
            (
                r#"{"metadata":{"deletionTimestamp":"2024-01-01T00:00:00Z"},"status":{"phase":"Active"}}"#,
                "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty",
            ),
        ] {
            let object: Namespace = read(text);
            let errors = NamespaceStrategy.validate_status_update(&context(), &object, &object);
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts.join(","), expected);
        }
    }

    #[test]
    fn finalizers_have_a_domain_or_are_known() {
        let object: Namespace = read(r#"{"spec":{"finalizers":["kubernetes","a.b/c","x"]}}"#);
        assert_eq!(
            NamespaceStrategy.validate(&context(), &object, None).to_string(),
            "spec.finalizers: Invalid value: \"x\": name is neither a standard finalizer name nor is it fully qualified"
        );
        let errors = NamespaceStrategy.validate(&context(), &object, Some(&object));
        assert!(errors.to_string().starts_with("spec.finalizers[2]: "));
    }
}
