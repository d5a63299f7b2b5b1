//! The group rbac.authorization.k8s.io.

pub mod binding;
mod reader;
pub mod role;
mod validate;

use keelson_access::authz::rbac::{GROUP, Rbac};
use keelson_access::request_info::RequestInfo;
use keelson_access::user::GROUP_MASTERS;
use keelson_machinery::equality;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_registry::{Context, KindCode};

pub use reader::Reader;
pub(super) use reader::to_rules;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    role::register(code);
    binding::register(code);
}

/// Who may give rights to whom, whatever rights they hold themselves.
fn is_trusted(context: &Context) -> bool {
    context.user.in_group(GROUP_MASTERS)
}

/// Roles and bindings of this server.
fn roles(context: &Context) -> Result<&Rbac, StatusError> {
    let missing = || StatusError::internal_error("this server has no roles to compare with");
    context.authorization.roles().ok_or_else(missing)
}

/// Whether an authorizer allows this verb on a role, which no request has.
async fn may(context: &Context, verb: &str, plural: &str, name: &str) -> bool {
    let info = RequestInfo {
        is_resource: true,
        verb: verb.to_owned(),
        group: GROUP.to_owned(),
        version: "*".to_owned(),
        namespace: context.namespace.clone(),
        resource: plural.to_owned(),
        name: name.to_owned(),
        ..RequestInfo::default()
    };
    context.authorization.allows(&context.user, &info).await
}

/// Whether a write only lets go of an object, or holds it: what the garbage collector does, who need not hold its
/// rights.
pub(crate) fn is_only_collected(new: &dyn Object, old: Option<&dyn Object>) -> bool {
    let Some(old) = old else { return false };
    let mut with_old = new.clone_object();
    let (meta, old_meta) = (with_old.meta_mut(), old.meta());
    meta.owner_references.clone_from(&old_meta.owner_references);
    meta.finalizers.clone_from(&old_meta.finalizers);
    meta.managed_fields.clone_from(&old_meta.managed_fields);
    equality::equal(with_old.as_reflect(), old.as_reflect())
}
