//! Bindings of roles, in a namespace and in the cluster.

use keelson_machinery::object::Object;

use crate::api::rbac_authorization_k8s_io::v1::{ClusterRoleBinding, RoleBinding, Subject};
use crate::kube::typed::typed_mut;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Defaults in code of role bindings.
pub fn defaults(object: &mut dyn Object) {
    if let Some(o) = typed_mut::<RoleBinding>(object) {
        of_subjects(&mut o.subjects);
    }
}

/// Defaults in code of cluster role bindings.
pub fn cluster_defaults(object: &mut dyn Object) {
    if let Some(o) = typed_mut::<ClusterRoleBinding>(object) {
        of_subjects(&mut o.subjects);
    }
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
    use crate::kube::testing::read_defaulted;

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
