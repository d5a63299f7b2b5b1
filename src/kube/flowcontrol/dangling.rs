//! The status of flow schemas: a controller that says of each whether the priority level that it names is there.

use std::collections::HashSet;

use keelson_access::flowcontrol::spec::{GROUP, LEVELS, SCHEMAS};
use keelson_api::flowcontrol_apiserver_k8s_io::v1::{FlowSchema, FlowSchemaCondition, PriorityLevelConfiguration};
use keelson_machinery::status::StatusError;
use keelson_registry::controller::{Controller, ControllerContext, Failure, GroupResource, Next};
use keelson_registry::{Change, Client, NamespacedName};
use keelson_server::server::HookContext;
use serde_json::json;

/// Owns the condition.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
const DANGLING: &str = "Dangling";

/// Keeps the condition current.
pub struct FlowSchemaStatus;

impl Controller for FlowSchemaStatus {
    /// That of kube-apiserver's queue.
    fn name(&self) -> &'static str {
        "priority_and_fairness_config_queue"
    }

    fn manager(&self) -> &'static str {
        MANAGER
    }

    fn reconciles(&self) -> GroupResource {
        GroupResource::new(GROUP, SCHEMAS)
    }

    fn watches(&self) -> Vec<GroupResource> {
        vec![GroupResource::new(GROUP, LEVELS)]
    }

    /// A level that was made or deleted concerns the schemas that name it.
    async fn affected(&self, change: &Change, context: &ControllerContext) -> Result<Vec<NamespacedName>, Failure> {
        if change.is_update() {
            return Ok(Vec::new());
        }
        let schemas = context.typed_lister::<FlowSchema>()?.list("").await?;
        let concerned = schemas.into_iter().filter(|schema| *level(schema) == change.key.name);
        Ok(concerned.map(|schema| NamespacedName::of(&schema)).collect())
    }

    async fn reconcile(&self, key: &NamespacedName, context: &ControllerContext) -> Result<Next, Failure> {
        let Some(schema) = context.typed_lister::<FlowSchema>()?.get(key).await? else {
            return Ok(Next::Done);
        };
        let named = NamespacedName {
            name: level(&schema).to_owned(),
            ..NamespacedName::default()
        };
        let levels = context.typed_lister::<PriorityLevelConfiguration>()?.lister;
        let is_there = !named.name.is_empty() && levels.exists(&named).await?;
        settle_one(context.client(), &schema, is_there).await?;
        Ok(Next::Done)
    }
}

/// The name of the level that a schema is about.
fn level(schema: &FlowSchema) -> &str {
    &schema.spec.priority_level_configuration.name
}

/// Whether the server has flow schemas.
pub fn is_served(context: &HookContext) -> bool {
    [SCHEMAS, LEVELS]
        .iter()
        .all(|plural| context.registry.resource(GROUP, plural).is_some())
}

/// Puts all conditions right.
///
/// # Errors
/// The store cannot be read or written.
pub async fn settle(context: &HookContext) -> Result<(), StatusError> {
    let client = context.client(MANAGER);
    let levels = client.of::<PriorityLevelConfiguration>("")?.all().await?;
    let levels: HashSet<&str> = levels.iter().map(|level| level.metadata.name.as_str()).collect();
    for schema in client.of::<FlowSchema>("")?.all().await? {
        settle_one(&client, &schema, levels.contains(level(&schema))).await?;
    }
    Ok(())
}

/// Puts the condition of one schema right.
async fn settle_one(client: &Client, schema: &FlowSchema, is_there: bool) -> Result<(), StatusError> {
    let wanted = condition(level(schema), is_there);
    if schema.status.conditions.iter().any(|known| same(known, &wanted)) {
        return Ok(());
    }
    match apply(client, &schema.metadata.name, &wanted).await {
        // It was deleted meanwhile.
        Err(error) if error.code == 404 => Ok(()),
        done => done,
    }
}

fn condition(level: &str, is_there: bool) -> FlowSchemaCondition {
    let (status, reason, end) = match is_there {
        true => ("False", "Found", "and it exists"),
        false => ("True", "NotFound", "but there is no such object"),
    };
    FlowSchemaCondition {
        r#type: DANGLING.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?} {end}"),
        ..FlowSchemaCondition::default()
    }
}

/// Whether they say the same, whenever it was that they began to.
fn same(a: &FlowSchemaCondition, b: &FlowSchemaCondition) -> bool {
    let said = |c: &FlowSchemaCondition| (c.r#type.clone(), c.status.clone(), c.reason.clone(), c.message.clone());
    said(a) == said(b)
}

async fn apply(client: &Client, name: &str, condition: &FlowSchemaCondition) -> Result<(), StatusError> {
    let objects = client.of::<FlowSchema>("")?.subresource("status")?.objects;
    let document = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": name},
        "status": {"conditions": [{
            "type": condition.r#type,
            "status": condition.status,
            "lastTransitionTime": objects.now().to_string(),
            "reason": condition.reason,
            "message": condition.message,
        }]},
    });
    objects.apply(name, &document).await.map(drop)
}
