//! Roles: nobody may write one that gives more than they hold.

use keelson_machinery::field::ErrorList;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_server::authz::rbac::{GROUP, Rule};
use keelson_server::registry::{Answer, Context, Strategy};

use super::reader::to_rules;
use super::{checked, is_only_collected, is_trusted, may, roles, validate};
use crate::api::rbac_authorization_k8s_io::v1::{ClusterRole, PolicyRule, Role};
use crate::kube::typed::typed;

/// The rules of roles in namespaces.
pub struct RoleStrategy;
/// The rules of cluster roles.
pub struct ClusterRoleStrategy;

impl Strategy for RoleStrategy {
    fn authorize<'a>(
        &'a self,
        context: &'a Context,
        new: &'a dyn Object,
        old: Option<&'a dyn Object>,
    ) -> Option<Answer<'a, ()>> {
        let role = typed::<Role>(new)?;
        Some(Box::pin(confirm(context, "roles", &role.rules, false, new, old)))
    }

    fn validate(&self, _context: &Context, object: &dyn Object) -> ErrorList {
        checked(object, validate::role)
    }

    fn validate_update(&self, _context: &Context, new: &dyn Object, _old: &dyn Object) -> ErrorList {
        checked(new, validate::role)
    }
}

impl Strategy for ClusterRoleStrategy {
    fn authorize<'a>(
        &'a self,
        context: &'a Context,
        new: &'a dyn Object,
        old: Option<&'a dyn Object>,
    ) -> Option<Answer<'a, ()>> {
        let role = typed::<ClusterRole>(new)?;
        let aggregates =
            |object: &dyn Object| typed::<ClusterRole>(object).is_some_and(|r| r.aggregation_rule.is_some());
        let aggregates = aggregates(new) || old.is_some_and(aggregates);
        Some(Box::pin(confirm(
            context,
            "clusterroles",
            &role.rules,
            aggregates,
            new,
            old,
        )))
    }

    fn validate(&self, _context: &Context, object: &dyn Object) -> ErrorList {
        checked(object, validate::cluster_role)
    }

    fn validate_update(&self, _context: &Context, new: &dyn Object, _old: &dyn Object) -> ErrorList {
        checked(new, validate::cluster_role)
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
        .map_err(forbidden)?;
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
