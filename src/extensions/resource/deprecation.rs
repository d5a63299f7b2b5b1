//! Deprecated versions: the warning that every answer carries.

use keelson_api::apiextensions_k8s_io::v1::{CustomResourceDefinition, CustomResourceDefinitionVersion as Version};
use keelson_registry::maturity_order;

/// The words of a definition, or those that name the version to be used; empty for a version that is not deprecated.
pub fn warning(definition: &CustomResourceDefinition, version: &Version) -> String {
    if !version.deprecated {
        return String::new();
    }
    if let Some(words) = &version.deprecation_warning {
        return words.clone();
    }
    let spec = &definition.spec;
    let named = |version: &Version| format!("{}/{} {}", spec.group, version.name, spec.names.kind);
    let better = |other: &&Version| {
        other.served && !other.deprecated && maturity_order(&other.name, &version.name) == std::cmp::Ordering::Greater
    };
    let best = spec.versions.iter().filter(better);
    match best.max_by(|a, b| maturity_order(&a.name, &b.name)) {
        Some(best) => format!("{} is deprecated; use {}", named(version), named(best)),
        None => format!("{} is deprecated", named(version)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_better_version_is_named() {
        let version = |name: &str, served: bool, deprecated: bool| Version {
            name: name.to_owned(),
            served,
            deprecated,
            ..Version::default()
        };
        let mut definition = CustomResourceDefinition::default();
        definition.spec.group = "example.com".to_owned();
        definition.spec.names.kind = "Widget".to_owned();
        definition.spec.versions = vec![
            version("v1alpha1", true, true),
            version("v1beta1", true, false),
            version("v1", true, true),
            version("v2", false, false),
            version("v1beta2", true, false),
        ];
        let told = |place: usize| warning(&definition, &definition.spec.versions[place]);
        assert_eq!(
            told(0),
            "example.com/v1alpha1 Widget is deprecated; use example.com/v1beta2 Widget"
        );
        assert_eq!(told(1), "");
        assert_eq!(told(2), "example.com/v1 Widget is deprecated");
        let own = Version {
            deprecation_warning: Some("own words".to_owned()),
            ..version("v1", true, true)
        };
        assert_eq!(warning(&definition, &own), "own words");
    }
}
