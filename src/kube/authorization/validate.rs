//! Faults of questions about permissions.

use keelson_api::authorization_k8s_io::v1::{NonResourceAttributes, ResourceAttributes, SubjectAccessReviewSpec};
use keelson_machinery::field::{BadValue, ErrorList};
use keelson_machinery::meta::v1::ObjectMeta;

use crate::faults::{self, Faults};
use crate::typed::{shown, shown_internal};

/// Exactly one kind of attributes, with usable selectors.
pub fn attributes(resource: Option<&ResourceAttributes>, path: Option<&NonResourceAttributes>) -> ErrorList {
    faults::of_spec(|f| one_kind(f, resource, path))
}

fn one_kind(f: &mut Faults<'_>, resource: Option<&ResourceAttributes>, path: Option<&NonResourceAttributes>) {
    match (resource, path) {
        (Some(_), Some(path)) => {
            let text = "cannot be specified in combination with resourceAttributes";
            f.at("nonResourceAttributes").invalid(shown_internal(path), text);
        }
        (None, None) => {
            let text = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            f.at("resourceAttributes").invalid(BadValue::null(), text);
        }
        _ => {}
    }
    f.some("resourceAttributes", resource, selectors);
}

/// As [`attributes`], of a named subject.
pub fn subject(spec: &SubjectAccessReviewSpec) -> ErrorList {
    faults::of_spec(|f| {
        one_kind(
            f,
            spec.resource_attributes.as_deref(),
            spec.non_resource_attributes.as_deref(),
        );
        let is_nobody = spec.user.is_empty() && spec.groups.is_empty();
        f.at("user")
            .invalid_if(is_nobody, "", "at least one of user or group must be specified");
    })
}

/// A question within a namespace is about resources in it.
pub fn within(spec: &SubjectAccessReviewSpec, namespace: &str) -> ErrorList {
    faults::of_spec(|f| {
        f.some("resourceAttributes", spec.resource_attributes.as_deref(), |f, of| {
            let is_other = of.namespace != namespace;
            f.at("namespace")
                .invalid_if(is_other, &of.namespace, "must match metadata.namespace");
        });
        f.some(
            "nonResourceAttributes",
            spec.non_resource_attributes.as_deref(),
            |f, of| {
                f.invalid(shown_internal(of), "disallowed on this kind of request");
            },
        );
    })
}

/// A question has no metadata but its namespace.
pub fn metadata(meta: &ObjectMeta, namespace: &str) -> ErrorList {
    let mut rest = meta.clone();
    if rest.namespace == namespace {
        rest.namespace.clear();
    }
    rest.managed_fields.clear();
    let empty = keelson_machinery::equality::equal(&rest, &ObjectMeta::default());
    faults::of_object(|f| {
        if !empty {
            f.at("metadata").invalid(shown(meta), "must be empty");
        }
    })
}

fn selectors(f: &mut Faults<'_>, resource: &ResourceAttributes) {
    f.some("fieldSelector", resource.field_selector.as_deref(), |f, selector| {
        form(f, &selector.raw_selector, selector.requirements.is_empty());
        f.each("requirements", &selector.requirements, |f, term| {
            f.at("key").required_if(term.key.is_empty(), "must be specified");
            values(&mut f.at("values"), &term.operator, term.values.is_empty());
        });
    });
    f.some("labelSelector", resource.label_selector.as_deref(), |f, selector| {
        form(f, &selector.raw_selector, selector.requirements.is_empty());
        f.each("requirements", &selector.requirements, |f, term| {
            values(&mut f.at("values"), &term.operator, term.values.is_empty());
            f.at("key").qualified(&term.key);
            f.each("values", &term.values, |f, value| f.label_value(value));
        });
    });
}

/// Text or requirements, not both and not none.
fn form(f: &mut Faults<'_>, text: &str, no_requirements: bool) {
    let both = "may not specified at the same time as requirements";
    match (text.is_empty(), no_requirements) {
        (false, false) => f.at("rawSelector").invalid(text, both),
        (true, true) => {
            let text = format!(
                "when {} is specified, requirements or rawSelector is required",
                f.path()
            );
            f.at("requirements").required(text);
        }
        _ => {}
    }
}

/// The values that an operator must or must not have; operators that are not known have no rule.
fn values(f: &mut Faults<'_>, operator: &str, none: bool) {
    match (operator, none) {
        ("In" | "NotIn", true) => f.required("must be specified when `operator` is 'In' or 'NotIn'"),
        ("Exists" | "DoesNotExist", false) => {
            f.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        _ => {}
    }
}
