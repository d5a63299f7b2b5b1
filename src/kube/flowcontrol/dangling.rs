//! Keeps the status of flow schemas current: whether the priority level that each names is there.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::select_all;
use keelson_machinery::status::StatusError;
use keelson_server::flowcontrol::spec::{GROUP, LEVELS, SCHEMAS};
use keelson_server::registry::Resource;
use keelson_server::server::HookContext;
use keelson_storage::{Entry, Event, Revision, StoreError, WatchItem, WatchStream};
use serde_json::json;

use crate::api::flowcontrol_apiserver_k8s_io::v1::{FlowSchema, FlowSchemaCondition};
use crate::kube::typed::typed;

/// Owns the condition.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
const DANGLING: &str = "Dangling";
/// Between attempts while the store cannot be read or written.
const PAUSE: Duration = Duration::from_secs(1);

/// Both resources; `None`: the server has no flow control.
fn resources(context: &HookContext) -> Option<(&Resource, &Resource)> {
    let of = |plural| Some(&**context.registry.resource(GROUP, plural)?);
    Some((of(SCHEMAS)?, of(LEVELS)?))
}

/// Puts all conditions right. Returns the revisions of both resources' stores up to which everything was looked at.
///
/// # Errors
/// The store cannot be read or written.
pub async fn settle(context: &HookContext) -> Result<[Revision; 2], StatusError> {
    let Some((schemas, levels)) = resources(context) else {
        return Ok([Revision::default(); 2]);
    };
    let mut seen = [Revision::default(); 2];
    for (resource, seen) in [schemas, levels].into_iter().zip(&mut seen) {
        *seen = resource.revision().await?;
    }
    let levels = levels.all("").await?;
    let levels: HashSet<&str> = levels.iter().map(|level| level.meta().name.as_str()).collect();
    for schema in schemas.all("").await? {
        let Some(schema) = typed::<FlowSchema>(&*schema) else {
            continue;
        };
        let is_there = levels.contains(schema.spec.priority_level_configuration.name.as_str());
        settle_one(context, schemas, schema, is_there).await?;
    }
    Ok(seen)
}

/// Puts the condition of one schema right.
async fn settle_one(
    context: &HookContext,
    schemas: &Resource,
    schema: &FlowSchema,
    is_there: bool,
) -> Result<(), StatusError> {
    let wanted = condition(&schema.spec.priority_level_configuration.name, is_there);
    if schema.status.conditions.iter().any(|known| same(known, &wanted)) {
        return Ok(());
    }
    match apply(context, schemas, &schema.metadata.name, &wanted).await {
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

async fn apply(
    context: &HookContext,
    schemas: &Resource,
    name: &str,
    condition: &FlowSchemaCondition,
) -> Result<(), StatusError> {
    let objects = context.client(MANAGER).objects(GROUP, SCHEMAS, "");
    let objects = objects.ok_or_else(|| schemas.not_found(name))?.subresource("status")?;
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

/// Goes on doing that as schemas and levels change, until the store is closed.
pub async fn follow(context: HookContext) {
    loop {
        let Err(Stopped::Failed(error)) = settle_and_watch(&context).await else {
            return;
        };
        tracing::warn!(
            error,
            "the status of flow schemas could not be brought up to date; it is tried again"
        );
        tokio::time::sleep(PAUSE).await;
    }
}

/// Why nothing is watched any more.
enum Stopped {
    Closed,
    Failed(String),
}

impl From<StatusError> for Stopped {
    fn from(error: StatusError) -> Stopped {
        Stopped::Failed(error.to_string())
    }
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Stopped {
        match error {
            StoreError::Closed => Stopped::Closed,
            other => Stopped::Failed(other.to_string()),
        }
    }
}

async fn settle_and_watch(context: &HookContext) -> Result<Infallible, Stopped> {
    let (schemas, levels) = resources(context).ok_or(Stopped::Closed)?;
    let seen = settle(context).await?;
    let mut watches: Vec<WatchStream> = Vec::new();
    for (resource, seen) in [schemas, levels].into_iter().zip(seen) {
        watches.push(resource.watch(&resource.key_prefix, seen).await?);
    }
    let mut changes = select_all(watches);
    loop {
        let Some(item) = changes.next().await else {
            return Err(Stopped::Closed);
        };
        let WatchItem::Events(events) = item? else {
            continue;
        };
        for event in &events {
            match event {
                Event::Put { entry, .. } if entry.key.starts_with(&*schemas.key_prefix) => {
                    settle_entry(context, schemas, levels, entry).await?;
                }
                // Schemas may have waited for it.
                Event::Put { previous: None, .. } => drop(settle(context).await?),
                Event::Delete { key, .. } if key.starts_with(&*levels.key_prefix) => drop(settle(context).await?),
                Event::Put { .. } | Event::Delete { .. } => {}
            }
        }
    }
}

/// A schema as it was written.
async fn settle_entry(
    context: &HookContext,
    schemas: &Resource,
    levels: &Resource,
    entry: &Entry,
) -> Result<(), StatusError> {
    let object = schemas.decode(entry)?;
    let Some(schema) = typed::<FlowSchema>(&*object) else {
        return Ok(());
    };
    let level = &schema.spec.priority_level_configuration.name;
    let is_there = match levels.is_held("", level) {
        Some(is_there) => is_there,
        None => levels.find("", level).await?.is_some(),
    };
    settle_one(context, schemas, schema, is_there).await
}
