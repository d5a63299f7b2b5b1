//! Definitions of custom resources: names that follow from the kind, and the versions that objects were stored in.

use keelson_api::apiextensions_k8s_io::v1::{CustomResourceDefinition, CustomResourceDefinitionCondition};
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_registry::{Context, KindCode, RepeatedChecks, Strategy};

use crate::metadata;
use crate::typed::IMMUTABLE;

/// Registers the rules of definitions.
pub fn register(code: &mut KindCode) {
    code.kind::<CustomResourceDefinition>()
        .strategy(CustomResourceDefinitionStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::any_finalizer(RepeatedChecks::CHANGE));
}

/// The rules of definitions.
struct CustomResourceDefinitionStrategy;

impl Strategy for CustomResourceDefinitionStrategy {
    type Object = CustomResourceDefinition;

    fn prepare_for_create(&self, _context: &Context, object: &mut CustomResourceDefinition) {
        add_stored_version(object);
    }

    fn prepare_for_update(
        &self,
        _context: &Context,
        new: &mut CustomResourceDefinition,
        _old: &CustomResourceDefinition,
    ) {
        add_stored_version(new);
    }

    /// What names the resource stays; what its objects are, as soon as there may be any.
    fn validate_update(
        &self,
        _context: &Context,
        new: &CustomResourceDefinition,
        old: &CustomResourceDefinition,
    ) -> ErrorList {
        let established = |c: &CustomResourceDefinitionCondition| c.r#type == ESTABLISHED && c.status == "True";
        let is_served = old.status.conditions.iter().any(established);
        let (now, was) = (&new.spec, &old.spec);
        let fields = [
            ("scope", is_served, &now.scope, &was.scope),
            ("names.kind", is_served, &now.names.kind, &was.names.kind),
            ("group", true, &now.group, &was.group),
            ("names.plural", true, &now.names.plural, &was.names.plural),
        ];
        let changed = fields.into_iter().filter(|(_, kept, now, was)| *kept && now != was);
        changed
            .map(|(name, _, now, _)| FieldError::invalid(&Path::new("spec").child(name), now, IMMUTABLE))
            .collect()
    }
}

/// Objects of the definition are served.
const ESTABLISHED: &str = "Established";

/// Objects will be stored in this version from now on; the list only grows.
fn add_stored_version(o: &mut CustomResourceDefinition) {
    for version in o.spec.versions.iter().filter(|v| v.storage) {
        if !o.status.stored_versions.contains(&version.name) {
            o.status.stored_versions.push(version.name.clone());
        }
    }
}

/// Defaults in code of definitions.
fn defaults(o: &mut CustomResourceDefinition) {
    let names = &mut o.spec.names;
    if names.singular.is_empty() {
        names.singular = names.kind.to_lowercase();
    }
    if names.list_kind.is_empty() && !names.kind.is_empty() {
        names.list_kind = format!("{}List", names.kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read_defaulted, text};

    #[test]
    fn names_follow_from_the_kind() {
        let mut o: CustomResourceDefinition =
            read_defaulted(r#"{"spec":{"names":{"plural":"things","kind":"Thing"}}}"#);
        defaults(&mut o);
        assert_eq!(
            text(&o.spec.names),
            r#"{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"}"#
        );
        assert_eq!(o.spec.conversion.unwrap().strategy, "None");
    }

    #[test]
    fn names_of_the_resource_stay() {
        let definition = |spec: &str, established: &str| -> CustomResourceDefinition {
            read_defaulted(&format!(
                r#"{{"spec":{spec},"status":{{"conditions":[{{"type":"Established","status":"{established}"}}]}}}}"#
            ))
        };
        let spec = r#"{"group":"g","scope":"Cluster","names":{"plural":"p","kind":"K"}}"#;
        for (from, to, before, after) in [
            ("\"g\"", "\"h\"", "spec.group", "spec.group"),
            ("\"p\"", "\"q\"", "spec.names.plural", "spec.names.plural"),
            ("\"K\"", "\"L\"", "", "spec.names.kind"),
            ("Cluster", "Namespaced", "", "spec.scope"),
        ] {
            for (established, expected) in [("False", before), ("True", after)] {
                let (old, new) = (
                    definition(spec, established),
                    definition(&spec.replace(from, to), established),
                );
                let found = lines(&CustomResourceDefinitionStrategy.validate_update(&context(), &new, &old));
                assert_eq!(found.split(": ").next().unwrap(), expected, "{to} {established}");
            }
        }
    }

    #[test]
    fn stored_versions_only_grow() {
        let mut o: CustomResourceDefinition = read_defaulted(
            r#"{"spec":{"versions":[{"name":"v1","storage":true},{"name":"v2"}]},"status":{"storedVersions":["v0"]}}"#,
        );
        CustomResourceDefinitionStrategy.prepare_for_create(&context(), &mut o);
        assert_eq!(o.status.stored_versions, ["v0", "v1"]);
        let old = o.clone();
        CustomResourceDefinitionStrategy.prepare_for_update(&context(), &mut o, &old);
        assert_eq!(o.status.stored_versions, ["v0", "v1"]);
    }
}
