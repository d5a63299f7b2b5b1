//! Faults of roles and bindings.

use keelson_access::authz::rbac::GROUP;
use keelson_api::rbac_authorization_k8s_io::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path, text};
use keelson_machinery::selector::label::{LabelSelector, validate_label_selector};
use keelson_machinery::validation::names;
use serde_json::json;

pub fn role(role: &Role) -> ErrorList {
    rules(&role.rules, true)
}

pub fn cluster_role(role: &ClusterRole) -> ErrorList {
    let mut errors = rules(&role.rules, false);
    let Some(aggregation) = &role.aggregation_rule else {
        return errors;
    };
    let path = Path::new("aggregationRule").child("clusterRoleSelectors");
    if aggregation.cluster_role_selectors.is_empty() {
        let text = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(&path, text));
    }
    for (place, selector) in aggregation.cluster_role_selectors.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(place);
        errors.extend(validate_label_selector(selector, &path));
        if LabelSelector::from_message(Some(selector)).is_err() {
            errors.push(FieldError::invalid(&path, BadValue::null(), "invalid label selector."));
        }
    }
    errors
}

pub fn binding(binding: &RoleBinding) -> ErrorList {
    let mut errors = role_ref(&binding.role_ref, &["Role", "ClusterRole"]);
    errors.extend(subjects(&binding.subjects, true));
    errors
}

pub fn cluster_binding(binding: &ClusterRoleBinding) -> ErrorList {
    let mut errors = role_ref(&binding.role_ref, &["ClusterRole"]);
    errors.extend(subjects(&binding.subjects, false));
    errors
}

/// A binding is of one role for ever.
pub fn same_role(new: &RoleRef, old: &RoleRef) -> Option<FieldError> {
    let same = (&new.api_group, &new.kind, &new.name) == (&old.api_group, &old.kind, &old.name);
    let shown = || json!({ "APIGroup": new.api_group, "Kind": new.kind, "Name": new.name }).to_string();
    (!same).then(|| FieldError::invalid(&Path::new("roleRef"), BadValue::json(shown()), "cannot change roleRef"))
}

fn rules(rules: &[PolicyRule], namespaced: bool) -> ErrorList {
    let path = Path::new("rules");
    let mut errors = ErrorList::new();
    for (place, one) in rules.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        errors.extend(rule(one, namespaced, &path.index(place)));
    }
    errors
}

fn rule(rule: &PolicyRule, namespaced: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if rule.verbs.is_empty() {
        errors.push(FieldError::required(
            &path.child("verbs"),
            "verbs must contain at least one value",
        ));
    }
    if !rule.non_resource_urls.is_empty() {
        let paths = text::json_list(rule.non_resource_urls.iter().map(String::as_str));
        let invalid = |why| FieldError::invalid(&path.child("nonResourceURLs"), BadValue::json(paths.clone()), why);
        if namespaced {
            errors.push(invalid("namespaced rules cannot apply to non-resource URLs"));
        }
        if !(rule.api_groups.is_empty() && rule.resources.is_empty() && rule.resource_names.is_empty()) {
            errors.push(invalid(
                "rules cannot apply to both regular resources and non-resource URLs",
            ));
        }
        return errors;
    }
    if rule.api_groups.is_empty() {
        let text = "resource rules must supply at least one api group";
        errors.push(FieldError::required(&path.child("apiGroups"), text));
    }
    if rule.resources.is_empty() {
        let text = "resource rules must supply at least one resource";
        errors.push(FieldError::required(&path.child("resources"), text));
    }
    errors
}

fn role_ref(role: &RoleRef, kinds: &[&str]) -> ErrorList {
    let path = Path::new("roleRef");
    let mut errors = ErrorList::new();
    if role.api_group != GROUP {
        errors.push(FieldError::not_supported(
            &path.child("apiGroup"),
            &role.api_group,
            &[GROUP],
        ));
    }
    if !kinds.contains(&role.kind.as_str()) {
        errors.push(FieldError::not_supported(&path.child("kind"), &role.kind, kinds));
    }
    let name = path.child("name");
    if role.name.is_empty() {
        errors.push(FieldError::required(&name, ""));
    } else {
        let faults = names::path_segment(&role.name).into_iter();
        errors.extend(faults.map(|fault| FieldError::invalid(&name, &role.name, fault)));
    }
    errors
}

fn subjects(subjects: &[Subject], namespaced: bool) -> ErrorList {
    let path = Path::new("subjects");
    let mut errors = ErrorList::new();
    for (place, one) in subjects.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        errors.extend(subject(one, namespaced, &path.index(place)));
    }
    errors
}

fn subject(subject: &Subject, namespaced: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = path.child("name");
    if subject.name.is_empty() {
        errors.push(FieldError::required(&name, ""));
    }
    let group = |wanted: &str| {
        let wrong = subject.api_group != wanted;
        wrong.then(|| FieldError::not_supported(&path.child("apiGroup"), &subject.api_group, &[wanted]))
    };
    match subject.kind.as_str() {
        "ServiceAccount" => {
            if !subject.name.is_empty() {
                let faults = names::dns_subdomain(&subject.name).into_iter();
                errors.extend(faults.map(|fault| FieldError::invalid(&name, &subject.name, fault)));
            }
            errors.extend(group(""));
            if !namespaced && subject.namespace.is_empty() {
                errors.push(FieldError::required(&path.child("namespace"), ""));
            }
        }
        "User" | "Group" => errors.extend(group(GROUP)),
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(&path.child("kind"), other, &kinds));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lines, read, read_defaulted};

    /// Recorded from kube-apiserver v1.36.3.
    #[test]
    fn rules_are_about_resources_or_about_paths() {
        let cases = [
            (
                r#"{"verbs":["get"],"apiGroups":[""],"resources":["*"],"resourceNames":["a"]}"#,
                "",
            ),
            (
                "{}",
                "rules[0].verbs: Required value: verbs must contain at least one value\n\
                 rules[0].apiGroups: Required value: resource rules must supply at least one api group\n\
                 rules[0].resources: Required value: resource rules must supply at least one resource",
            ),
            (
                r#"{"verbs":["get"],"nonResourceURLs":["/a"]}"#,
                r#"rules[0].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot apply to non-resource URLs"#,
            ),
            (
                r#"{"nonResourceURLs":["/a"],"resources":["x"]}"#,
                "rules[0].verbs: Required value: verbs must contain at least one value\n\
                 rules[0].nonResourceURLs: Invalid value: [\"/a\"]: namespaced rules cannot apply to non-resource URLs\n\
                 rules[0].nonResourceURLs: Invalid value: [\"/a\"]: rules cannot apply to both regular resources and \
                 non-resource URLs",
            ),
        ];
        for (rule, want) in cases {
            let object: Role = read(&format!(r#"{{"rules":[{rule}]}}"#));
            assert_eq!(lines(&role(&object)), want, "{rule}");
        }
        let object: ClusterRole = read(r#"{"rules":[{"verbs":["get"],"nonResourceURLs":["a*b","*"]}]}"#);
        assert_eq!(lines(&cluster_role(&object)), "");
    }

    #[test]
    fn aggregation_needs_selectors() {
        let object: ClusterRole = read(r#"{"aggregationRule":{}}"#);
        assert_eq!(
            lines(&cluster_role(&object)),
            "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if \
             aggregationRule is non-nil"
        );
        let object: ClusterRole = read(
            r#"{"aggregationRule":{"clusterRoleSelectors":[{},{"matchExpressions":[{"key":"a","operator":"In"}]}]}}"#,
        );
        assert_eq!(
            lines(&cluster_role(&object)),
            "aggregationRule.clusterRoleSelectors[1].matchExpressions[0].values: Required value: must be specified when \
             `operator` is 'In' or 'NotIn'\n\
             aggregationRule.clusterRoleSelectors[1]: Invalid value: null: invalid label selector."
        );
    }

    #[test]
    fn bindings_name_a_role_and_subjects() {
        let object: ClusterRoleBinding = read_defaulted(
            r#"{"roleRef":{"kind":"Role","name":"a/b"},"subjects":[{"kind":"ServiceAccount","name":"a"},
            {"kind":"ServiceAccount","name":"x","apiGroup":"z","namespace":"x"},
            {"kind":"Group","apiGroup":"rbac.authorization.k8s.io"},{"kind":"User","name":"x","apiGroup":"y"},
            {"kind":"Pod","name":"x"}]}"#,
        );
        assert_eq!(
            lines(&cluster_binding(&object)),
            "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"\n\
             roleRef.name: Invalid value: \"a/b\": may not contain '/'\n\
             subjects[0].namespace: Required value\n\
             subjects[1].apiGroup: Unsupported value: \"z\": supported values: \"\"\n\
             subjects[2].name: Required value\n\
             subjects[3].apiGroup: Unsupported value: \"y\": supported values: \"rbac.authorization.k8s.io\"\n\
             subjects[4].kind: Unsupported value: \"Pod\": supported values: \"ServiceAccount\", \"User\", \"Group\""
        );
        let other: RoleRef = read_defaulted(r#"{"kind":"Role","name":"b"}"#);
        assert_eq!(
            same_role(&other, &object.role_ref).unwrap().to_string(),
            "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"b\"}: \
             cannot change roleRef"
        );
        assert!(same_role(&other, &other).is_none());
    }
}
