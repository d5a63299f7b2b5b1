//! The form in which definitions are validated: what all versions have in common stands above them. Clients are told
//! the paths of this form.

use keelson_api::apiextensions_k8s_io::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinitionSpec, CustomResourceDefinitionVersion,
    CustomResourceSubresources, CustomResourceValidation, SelectableField,
};
use keelson_machinery::equality;
use keelson_machinery::reflect::Reflect;

/// A specification in that form.
pub struct Spec<'a> {
    pub spec: &'a CustomResourceDefinitionSpec,
    /// What the versions have in common.
    pub common: Parts<'a>,
    pub versions: Vec<Version<'a>>,
    /// Some version has subresources for itself.
    own_subresources: bool,
}

/// A version, and what it has for itself.
pub struct Version<'a> {
    pub version: &'a CustomResourceDefinitionVersion,
    pub own: Parts<'a>,
}

/// What stands in one place.
#[derive(Clone, Copy, Default)]
pub struct Parts<'a> {
    pub schema: Option<&'a CustomResourceValidation>,
    pub subresources: Option<&'a CustomResourceSubresources>,
    pub columns: &'a [CustomResourceColumnDefinition],
    pub selectable_fields: &'a [SelectableField],
}

impl<'a> Parts<'a> {
    fn of(version: &'a CustomResourceDefinitionVersion) -> Parts<'a> {
        Parts {
            schema: version.schema.as_deref(),
            subresources: version.subresources.as_deref(),
            columns: &version.additional_printer_columns,
            selectable_fields: &version.selectable_fields,
        }
    }

    /// Whether there is a status that is written apart.
    pub fn has_status(&self) -> bool {
        self.subresources.is_some_and(|all| all.status.is_some())
    }
}

impl<'a> Spec<'a> {
    /// Of the form in which clients send it.
    pub fn of(spec: &'a CustomResourceDefinitionSpec) -> Spec<'a> {
        let mut versions: Vec<Version<'a>> = spec
            .versions
            .iter()
            .map(|version| Version {
                version,
                own: Parts::of(version),
            })
            .collect();
        let first = versions.first().map(|version| version.own).unwrap_or_default();
        let all = |same: fn(&Parts<'_>, &Parts<'_>) -> bool| versions.iter().all(|version| same(&version.own, &first));
        let schema = all(|a, b| same(a.schema, b.schema));
        let subresources = all(|a, b| same(a.subresources, b.subresources));
        let columns = all(|a, b| same_list(a.columns, b.columns));
        let selectable = all(|a, b| same_list(a.selectable_fields, b.selectable_fields));
        for Version { own, .. } in &mut versions {
            own.schema = own.schema.filter(|_| !schema);
            own.subresources = own.subresources.filter(|_| !subresources);
            own.columns = if columns { &[] } else { own.columns };
            own.selectable_fields = if selectable { &[] } else { own.selectable_fields };
        }
        let common = Parts {
            schema: first.schema.filter(|_| schema),
            subresources: first.subresources.filter(|_| subresources),
            columns: if columns { first.columns } else { &[] },
            selectable_fields: if selectable { first.selectable_fields } else { &[] },
        };
        let own_subresources = versions.iter().any(|version| version.own.subresources.is_some());
        Spec {
            spec,
            common,
            versions,
            own_subresources,
        }
    }

    /// Whether a version has a status that is written apart.
    pub fn has_status(&self, version: &Version<'_>) -> bool {
        match self.own_subresources {
            true => version.own.has_status(),
            false => self.common.has_status(),
        }
    }
}

fn same<T: Reflect>(a: Option<&T>, b: Option<&T>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => std::ptr::eq(a, b) || equality::equal(a, b),
        _ => false,
    }
}

fn same_list<T: Reflect>(a: &[T], b: &[T]) -> bool {
    std::ptr::eq(a, b) || a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equality::equal(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::tests::read;

    #[test]
    fn what_versions_have_in_common_stands_above_them() {
        let version = |name: &str, schema: &str, columns: &str| {
            format!(
                r#"{{"name":"{name}","schema":{{"openAPIV3Schema":{schema}}},"subresources":{{"status":{{}}}},
                "additionalPrinterColumns":{columns}}}"#
            )
        };
        let column = r#"[{"name":"A","type":"string","jsonPath":".a"}]"#;
        let of = |versions: &[String]| read(&format!(r#"{{"spec":{{"versions":[{}]}}}}"#, versions.join(",")));
        let one = of(&[version("v1", r#"{"type":"object"}"#, column)]);
        let one = Spec::of(&one.spec);
        assert!(one.common.schema.is_some() && one.common.has_status() && one.common.columns.len() == 1);
        assert!(one.versions[0].own.schema.is_none() && one.has_status(&one.versions[0]));
        let two = of(&[
            version("v1", r#"{"type":"object"}"#, column),
            version("v2", r#"{"type":"string"}"#, "[]"),
        ]);
        let two = Spec::of(&two.spec);
        assert!(two.common.schema.is_none() && two.common.has_status() && two.common.columns.is_empty());
        assert!(two.versions.iter().all(|version| version.own.schema.is_some()));
        assert_eq!(
            two.versions.iter().map(|v| v.own.columns.len()).collect::<Vec<_>>(),
            [1, 0]
        );
    }
}
