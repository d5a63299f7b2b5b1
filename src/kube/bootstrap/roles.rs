//! The default roles and bindings.

use keelson_access::authz::rbac::{GROUP, Rule};
use keelson_api::rbac_authorization_k8s_io::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use keelson_machinery::object::Object;
use keelson_server::server::{HookContext, HookError};

use super::maker::{DataError, Maker, Reconcile, Wanted, read};
use super::{MANAGER, reconcile};
use crate::rbac::to_rules;

const CLUSTER_ROLES: &str = include_str!("data/clusterroles.jsonl");
const CLUSTER_ROLE_BINDINGS: &str = include_str!("data/clusterrolebindings.jsonl");
const ROLES: &str = include_str!("data/roles.jsonl");
const ROLE_BINDINGS: &str = include_str!("data/rolebindings.jsonl");

pub(super) async fn run(context: HookContext) -> Result<(), HookError> {
    let mut wanted = of::<ClusterRole>("clusterroles", CLUSTER_ROLES, reconcile::cluster_role)?;
    wanted.extend(of::<ClusterRoleBinding>(
        "clusterrolebindings",
        CLUSTER_ROLE_BINDINGS,
        reconcile::cluster_role_binding,
    )?);
    wanted.extend(of::<Role>("roles", ROLES, reconcile::role)?);
    wanted.extend(of::<RoleBinding>(
        "rolebindings",
        ROLE_BINDINGS,
        reconcile::role_binding,
    )?);
    let maker = Maker {
        context: &context,
        manager: MANAGER,
    };
    maker.make_all(&wanted).await
}

fn of<T: Object + Default>(plural: &'static str, lines: &str, reconcile: Reconcile) -> Result<Vec<Wanted>, DataError> {
    let objects = read::<T>(lines)?.into_iter();
    let wanted = objects.map(|object| Wanted {
        group: GROUP,
        plural,
        object: Box::new(object),
        reconcile,
    });
    Ok(wanted.collect())
}

/// What every node may do, beside what its pods decide: the rules of a default role.
pub fn node_rules() -> Result<Vec<Rule>, DataError> {
    let roles = read::<ClusterRole>(CLUSTER_ROLES)?;
    let role = roles.iter().find(|role| role.metadata.name == "system:node");
    Ok(role.map(|role| to_rules(&role.rules)).unwrap_or_default())
}
