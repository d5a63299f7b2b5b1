//! Bindings of roles, in a namespace and in the cluster: nobody may give a role that holds more than they do.

use keelson_access::authz::rbac::{GROUP, Unresolved};
use keelson_api::rbac_authorization_k8s_io::v1::{ClusterRoleBinding, RoleBinding, RoleRef, Subject};
use keelson_machinery::field::ErrorList;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_registry::{Answer, Context, KindCode, Strategy};

use super::reader::to_role_ref;
use super::{is_only_collected, is_trusted, may, roles, validate};
use crate::{cells, metadata};

/// Registers the rules of bindings.
pub fn register(code: &mut KindCode) {
    code.kind::<RoleBinding>()
        .strategy(RoleBindingStrategy)
        .metadata_checks(metadata::WHOLE_FIRST)
        .defaults(defaults)
        .cells(cells::access::ROLE_BINDING);
    code.kind::<ClusterRoleBinding>()
        .strategy(ClusterRoleBindingStrategy)
        .metadata_checks(metadata::WHOLE_FIRST)
        .defaults(cluster_defaults)
        .cells(cells::access::CLUSTER_ROLE_BINDING);
}

/// The rules of bindings in namespaces.
struct RoleBindingStrategy;
/// The rules of cluster role bindings.
struct ClusterRoleBindingStrategy;

impl Strategy for RoleBindingStrategy {
    type Object = RoleBinding;

    fn authorize<'a>(
        &'a self,
        context: &'a Context,
        new: &'a RoleBinding,
        old: Option<&'a RoleBinding>,
    ) -> Option<Answer<'a, ()>> {
        let old = old.map(|old| old as &dyn Object);
        Some(Box::pin(confirm(context, "rolebindings", &new.role_ref, new, old)))
    }

    fn validate(&self, _context: &Context, new: &RoleBinding, _old: Option<&RoleBinding>) -> ErrorList {
        validate::binding(new)
    }

    fn validate_change(&self, _context: &Context, new: &RoleBinding, old: &RoleBinding) -> ErrorList {
        validate::same_role(&new.role_ref, &old.role_ref)
    }
}

impl Strategy for ClusterRoleBindingStrategy {
    type Object = ClusterRoleBinding;

    fn authorize<'a>(
        &'a self,
        context: &'a Context,
        new: &'a ClusterRoleBinding,
        old: Option<&'a ClusterRoleBinding>,
    ) -> Option<Answer<'a, ()>> {
        let old = old.map(|old| old as &dyn Object);
        Some(Box::pin(confirm(
            context,
            "clusterrolebindings",
            &new.role_ref,
            new,
            old,
        )))
    }

    fn validate(&self, _context: &Context, new: &ClusterRoleBinding, _old: Option<&ClusterRoleBinding>) -> ErrorList {
        validate::cluster_binding(new)
    }

    fn validate_change(&self, _context: &Context, new: &ClusterRoleBinding, old: &ClusterRoleBinding) -> ErrorList {
        validate::same_role(&new.role_ref, &old.role_ref)
    }
}

async fn confirm(
    context: &Context,
    plural: &str,
    role: &RoleRef,
    new: &dyn Object,
    old: Option<&dyn Object>,
) -> Result<(), StatusError> {
    if is_trusted(context) || is_only_collected(new, old) {
        return Ok(());
    }
    let of_role = match role.kind.as_str() {
        "Role" => "roles",
        "ClusterRole" => "clusterroles",
        _ => "",
    };
    if !of_role.is_empty() && may(context, "bind", of_role, &role.name).await {
        return Ok(());
    }
    let namespace = context.namespace.as_str();
    if of_role == "roles" && namespace.is_empty() {
        return Err(StatusError::bad_request("Namespace parameter required."));
    }
    let (held, role) = (roles(context)?, to_role_ref(role));
    let rules = match held.policy().resolve(namespace, &role) {
        Ok(rules) => rules.to_vec(),
        Err(_) if !of_role.is_empty() => return Err(StatusError::not_found(GROUP, plural, &role.name)),
        Err(Unresolved(role)) => return Err(StatusError::unknown(Unresolved(role).text(None))),
    };
    let name = &new.meta().name;
    held.confirm_held(&context.user, namespace, &rules, plural)
        .map_err(|escalation| StatusError::forbidden(GROUP, plural, name, escalation.to_string()))
}

/// Defaults in code of role bindings.
fn defaults(o: &mut RoleBinding) {
    of_subjects(&mut o.subjects);
}

/// Defaults in code of cluster role bindings.
fn cluster_defaults(o: &mut ClusterRoleBinding) {
    of_subjects(&mut o.subjects);
}

/// Users and groups are names in this API group; service accounts are objects of the legacy group, which is "".
fn of_subjects(subjects: &mut [Subject]) {
    for subject in subjects.iter_mut().filter(|s| s.api_group.is_empty()) {
        if matches!(subject.kind.as_str(), "User" | "Group") {
            subject.api_group = GROUP.to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read_defaulted;

    #[test]
    fn subjects_have_the_group_of_their_kind() {
        let mut o: RoleBinding = read_defaulted(
            r#"{"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"u"},{"kind":"Group","name":"g"},
            {"kind":"ServiceAccount","name":"s"},{"kind":"User","apiGroup":"x","name":"u"}]}"#,
        );
        defaults(&mut o);
        let groups: Vec<&str> = o.subjects.iter().map(|s| s.api_group.as_str()).collect();
        assert_eq!(groups, [GROUP, GROUP, "", "x"]);
        assert_eq!(o.role_ref.api_group, GROUP);
    }
}
