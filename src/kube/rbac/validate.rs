//! Faults of roles and bindings.

use keelson_access::authz::rbac::GROUP;
use keelson_api::rbac_authorization_k8s_io::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use keelson_machinery::field::{BadValue, ErrorList, text};
use keelson_machinery::selector::label::{LabelSelector, validate_label_selector};
use serde_json::json;

use crate::faults::{self, Faults, given};

pub fn role(role: &Role) -> ErrorList {
    faults::of_object(|f| f.each("rules", &role.rules, |f, one| rule(f, one, true)))
}

pub fn cluster_role(role: &ClusterRole) -> ErrorList {
    faults::of_object(|f| {
        f.each("rules", &role.rules, |f, one| rule(f, one, false));
        let Some(aggregation) = &role.aggregation_rule else {
            return;
        };
        let (mut f, selectors) = (f.at("aggregationRule"), &aggregation.cluster_role_selectors);
        let text = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        f.at("clusterRoleSelectors").required_if(selectors.is_empty(), text);
        f.each("clusterRoleSelectors", selectors, |f, selector| {
            let found = validate_label_selector(selector, &f.path());
            f.extend(found);
            let is_readable = LabelSelector::from_message(Some(selector)).is_ok();
            f.invalid_if(!is_readable, BadValue::null(), "invalid label selector.");
        });
    })
}

pub fn binding(binding: &RoleBinding) -> ErrorList {
    faults::of_object(|f| {
        role_ref(&mut f.at("roleRef"), &binding.role_ref, &["Role", "ClusterRole"]);
        f.each("subjects", &binding.subjects, |f, one| subject(f, one, true));
    })
}

pub fn cluster_binding(binding: &ClusterRoleBinding) -> ErrorList {
    faults::of_object(|f| {
        role_ref(&mut f.at("roleRef"), &binding.role_ref, &["ClusterRole"]);
        f.each("subjects", &binding.subjects, |f, one| subject(f, one, false));
    })
}

/// A binding is of one role for ever.
pub fn same_role(new: &RoleRef, old: &RoleRef) -> ErrorList {
    let same = (&new.api_group, &new.kind, &new.name) == (&old.api_group, &old.kind, &old.name);
    let shown = || json!({ "APIGroup": new.api_group, "Kind": new.kind, "Name": new.name }).to_string();
    faults::of_object(|f| {
        if !same {
            f.at("roleRef")
                .invalid(BadValue::json(shown()), "cannot change roleRef");
        }
    })
}

fn rule(f: &mut Faults<'_>, rule: &PolicyRule, namespaced: bool) {
    f.at("verbs")
        .required_if(rule.verbs.is_empty(), "verbs must contain at least one value");
    if !rule.non_resource_urls.is_empty() {
        let paths = BadValue::json(text::json_list(rule.non_resource_urls.iter().map(String::as_str)));
        let mut f = f.at("nonResourceURLs");
        let text = "namespaced rules cannot apply to non-resource URLs";
        f.invalid_if(namespaced, paths.clone(), text);
        let is_both = !(rule.api_groups.is_empty() && rule.resources.is_empty() && rule.resource_names.is_empty());
        let text = "rules cannot apply to both regular resources and non-resource URLs";
        return f.invalid_if(is_both, paths, text);
    }
    let text = "resource rules must supply at least one api group";
    f.at("apiGroups").required_if(rule.api_groups.is_empty(), text);
    let text = "resource rules must supply at least one resource";
    f.at("resources").required_if(rule.resources.is_empty(), text);
}

fn role_ref(f: &mut Faults<'_>, role: &RoleRef, kinds: &[&str]) {
    f.at("apiGroup").one_of(&role.api_group, &[GROUP]);
    f.at("kind").one_of(&role.kind, kinds);
    f.at("name").filled_segment(&role.name);
}

fn subject(f: &mut Faults<'_>, subject: &Subject, namespaced: bool) {
    f.at("name").filled(&subject.name);
    match subject.kind.as_str() {
        "ServiceAccount" => {
            f.at("name").subdomain(given(&subject.name));
            f.at("apiGroup").one_of(&subject.api_group, &[""]);
            f.at("namespace")
                .required_if(!namespaced && subject.namespace.is_empty(), "");
        }
        "User" | "Group" => f.at("apiGroup").one_of(&subject.api_group, &[GROUP]),
        other => f.at("kind").not_supported(other, &["ServiceAccount", "User", "Group"]),
    }
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
            same_role(&other, &object.role_ref).to_string(),
            "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"b\"}: \
             cannot change roleRef"
        );
        assert!(same_role(&other, &other).is_empty());
    }
}
