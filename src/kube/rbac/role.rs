//! Roles: nobody may write one that gives more than they hold.

use keelson_access::authz::rbac::{GROUP, Rule};
use keelson_api::rbac_authorization_k8s_io::v1::{ClusterRole, PolicyRule, Role};
use keelson_machinery::field::ErrorList;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_registry::{Answer, Context, KindCode, Strategy};

use super::reader::to_rules;
use super::{is_only_collected, is_trusted, may, roles, validate};
use crate::metadata;

/// Registers the rules of roles.
pub fn register(code: &mut KindCode) {
    code.kind::<Role>()
        .strategy(RoleStrategy)
        .metadata_checks(metadata::WHOLE_FIRST);
    code.kind::<ClusterRole>()
        .strategy(ClusterRoleStrategy)
        .metadata_checks(metadata::WHOLE_FIRST);
}

/// The rules of roles in namespaces.
struct RoleStrategy;
/// The rules of cluster roles.
struct ClusterRoleStrategy;

impl Strategy for RoleStrategy {
    type Object = Role;

    fn authorize<'a>(&'a self, context: &'a Context, new: &'a Role, old: Option<&'a Role>) -> Option<Answer<'a, ()>> {
        let old = old.map(|old| old as &dyn Object);
        Some(Box::pin(confirm(context, "roles", &new.rules, false, new, old)))
    }

    fn validate(&self, _context: &Context, new: &Role, _old: Option<&Role>) -> ErrorList {
        validate::role(new)
    }
}

impl Strategy for ClusterRoleStrategy {
    type Object = ClusterRole;

    fn authorize<'a>(
        &'a self,
        context: &'a Context,
        new: &'a ClusterRole,
        old: Option<&'a ClusterRole>,
    ) -> Option<Answer<'a, ()>> {
        let aggregates = |role: &ClusterRole| role.aggregation_rule.is_some();
        let aggregates = aggregates(new) || old.is_some_and(aggregates);
        let old = old.map(|old| old as &dyn Object);
        Some(Box::pin(confirm(
            context,
            "clusterroles",
            &new.rules,
            aggregates,
            new,
            old,
        )))
    }

    fn validate(&self, _context: &Context, new: &ClusterRole, _old: Option<&ClusterRole>) -> ErrorList {
        validate::cluster_role(new)
    }
}

/// `aggregates`: the role collects rules that nobody can know now, which only those may ask for who may do everything.
async fn confirm(
    context: &Context,
    plural: &str,
    rules: &[PolicyRule],
    aggregates: bool,
    new: &dyn Object,
    old: Option<&dyn Object>,
) -> Result<(), StatusError> {
    if is_trusted(context) {
        return Ok(());
    }
    let name = new.meta().name.as_str();
    // A new object has no name yet as far as rules about names go.
    let known = if old.is_some() { name } else { "" };
    if may(context, "escalate", plural, known).await || is_only_collected(new, old) {
        return Ok(());
    }
    let forbidden = |why: String| StatusError::forbidden(GROUP, plural, name, why);
    let held = roles(context)?;
    held.confirm_held(&context.user, &context.namespace, &to_rules(rules), plural)
        .map_err(|escalation| forbidden(escalation.to_string()))?;
    let everything = || held.confirm_held(&context.user, &context.namespace, &full_authority(), plural);
    if aggregates && everything().is_err() {
        return Err(forbidden(
            "must have cluster-admin privileges to use the aggregationRule".to_owned(),
        ));
    }
    Ok(())
}

fn full_authority() -> [Rule; 2] {
    let any = || vec!["*".to_owned()];
    [
        Rule {
            verbs: any(),
            groups: any(),
            resources: any(),
            ..Rule::default()
        },
        Rule {
            verbs: any(),
            paths: any(),
            ..Rule::default()
        },
    ]
}
