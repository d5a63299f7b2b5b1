//! Roles and bindings as authorization sees them.

use keelson_access::authz::rbac::{Binding, ReadPolicy, RoleRef, Rule, Subject, SubjectKind};
use keelson_api::rbac_authorization_k8s_io::v1;
use keelson_machinery::object::Object;

use crate::typed::typed;

/// Reads the kinds of this build.
pub struct Reader;

impl ReadPolicy for Reader {
    fn rules(&self, role: &dyn Object) -> Option<Vec<Rule>> {
        let rules = typed::<v1::Role>(role).map(|role| &role.rules);
        rules
            .or_else(|| typed::<v1::ClusterRole>(role).map(|role| &role.rules))
            .map(|r| to_rules(r))
    }

    fn binding(&self, binding: &dyn Object) -> Option<Binding> {
        if let Some(binding) = typed::<v1::RoleBinding>(binding) {
            return Some(to_binding(&binding.role_ref, &binding.subjects));
        }
        let binding = typed::<v1::ClusterRoleBinding>(binding)?;
        Some(to_binding(&binding.role_ref, &binding.subjects))
    }
}

pub fn to_rules(rules: &[v1::PolicyRule]) -> Vec<Rule> {
    let rules = rules.iter().map(|rule| Rule {
        verbs: rule.verbs.clone(),
        groups: rule.api_groups.clone(),
        resources: rule.resources.clone(),
        names: rule.resource_names.clone(),
        paths: rule.non_resource_urls.clone(),
    });
    rules.collect()
}

pub(super) fn to_role_ref(role: &v1::RoleRef) -> RoleRef {
    RoleRef {
        kind: role.kind.clone(),
        name: role.name.clone(),
    }
}

/// Subjects of other kinds are nobody.
fn to_binding(role: &v1::RoleRef, subjects: &[v1::Subject]) -> Binding {
    let subjects = subjects.iter().filter_map(|subject| {
        Some(Subject {
            kind: match subject.kind.as_str() {
                "User" => SubjectKind::User,
                "Group" => SubjectKind::Group,
                "ServiceAccount" => SubjectKind::ServiceAccount,
                _ => return None,
            },
            name: subject.name.clone(),
            namespace: subject.namespace.clone(),
        })
    });
    Binding {
        role: to_role_ref(role),
        subjects: subjects.collect(),
    }
}
