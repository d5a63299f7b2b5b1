//! Cells of role bindings.

use keelson_api::rbac_authorization_k8s_io::v1::{ClusterRoleBinding, RoleBinding, RoleRef, Subject};

cells! { pub const ROLE_BINDING: RoleBinding =
    "role_binding_groups" => |o| subjects(&o.subjects, "Group"),
    "role_binding_role" => |o| role(&o.role_ref),
    "role_binding_service_accounts" => |o| subjects(&o.subjects, "ServiceAccount"),
    "role_binding_users" => |o| subjects(&o.subjects, "User"),
}
cells! { pub const CLUSTER_ROLE_BINDING: ClusterRoleBinding =
    "cluster_role_binding_groups" => |o| subjects(&o.subjects, "Group"),
    "cluster_role_binding_role" => |o| role(&o.role_ref),
    "cluster_role_binding_service_accounts" => |o| subjects(&o.subjects, "ServiceAccount"),
    "cluster_role_binding_users" => |o| subjects(&o.subjects, "User"),
}

fn role(role: &RoleRef) -> String {
    format!("{}/{}", role.kind, role.name)
}

/// Names of the subjects of one kind, accounts with their namespace.
fn subjects(all: &[Subject], kind: &str) -> String {
    let name = |s: &Subject| match kind {
        "ServiceAccount" => format!("{}/{}", s.namespace, s.name),
        _ => s.name.clone(),
    };
    all.iter()
        .filter(|s| s.kind == kind)
        .map(name)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_told_apart_by_kind() {
        let subject = |kind: &str, namespace: &str, name: &str| Subject {
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
            ..Subject::default()
        };
        let all = [
            subject("User", "", "u1"),
            subject("ServiceAccount", "n", "s"),
            subject("User", "", "u2"),
        ];
        assert_eq!(subjects(&all, "User"), "u1, u2");
        assert_eq!(subjects(&all, "ServiceAccount"), "n/s");
        assert_eq!(subjects(&all, "Group"), "");
    }
}
