//! The flow schemas and priority levels that every server has. Two of each are mandatory: whatever else their
//! specification says is put right. The others are kept up to date as long as their annotation asks for it.

use keelson_machinery::equality;
use keelson_machinery::object::Object;
use keelson_machinery::time::Time;
use keelson_server::registry::write::Part;
use keelson_server::server::HookContext;

use super::maker::{Maker, Wanted, read, retried};
use crate::api::flowcontrol_apiserver_k8s_io::v1::{FlowSchema, FlowSchemaCondition, PriorityLevelConfiguration};
use crate::kube::typed::typed;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const LEVELS: &str = include_str!("data/prioritylevelconfigurations.jsonl");
const SCHEMAS: &str = include_str!("data/flowschemas.jsonl");
/// Owns the specifications.
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
/// Owns the status.
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";
const AUTOUPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

pub(super) async fn run(context: HookContext) -> Result<(), String> {
    let (levels, schemas) = (
        read::<PriorityLevelConfiguration>(LEVELS)?,
        read::<FlowSchema>(SCHEMAS)?,
    );
    let names: Vec<String> = schemas.iter().map(|schema| schema.metadata.name.clone()).collect();
    let mut wanted: Vec<Wanted> = levels.into_iter().map(level).collect();
    wanted.extend(schemas.into_iter().map(schema));
    let context = &context;
    let producer = Maker {
        context,
        manager: PRODUCER,
    };
    producer.make_all(&wanted).await?;
    let Some(resource) = context.registry.resource(GROUP, "flowschemas") else {
        return Ok(());
    };
    let consumer = &Maker {
        context,
        manager: CONSUMER,
    };
    let conditions = || {
        let one = async |name: &String| {
            let request = consumer.request(resource, "", "status");
            let now = request.now;
            consumer
                .update(resource, &request, name, Part::Status, &|stored| found(stored, now))
                .await
        };
        let all = names.iter().map(one);
        futures_util::future::try_join_all(all)
    };
    retried(|| Box::pin(async { conditions().await.map(drop) })).await
}

fn level(level: PriorityLevelConfiguration) -> Wanted {
    Wanted {
        group: GROUP,
        plural: "prioritylevelconfigurations",
        object: Box::new(level),
        reconcile: |stored, wanted| {
            let mut new = typed::<PriorityLevelConfiguration>(stored)?.clone();
            new.spec = typed::<PriorityLevelConfiguration>(wanted)?.spec.clone();
            changed(stored, Box::new(new))
        },
    }
}

fn schema(schema: FlowSchema) -> Wanted {
    Wanted {
        group: GROUP,
        plural: "flowschemas",
        object: Box::new(schema),
        reconcile: |stored, wanted| {
            let mut new = typed::<FlowSchema>(stored)?.clone();
            new.spec = typed::<FlowSchema>(wanted)?.spec.clone();
            changed(stored, Box::new(new))
        },
    }
}

/// An object without the annotation is up to date as long as nobody has changed it since it was made.
fn changed(stored: &dyn Object, new: Box<dyn Object>) -> Option<Box<dyn Object>> {
    let meta = stored.meta();
    let kept = match meta.annotations.get(AUTOUPDATE).map(String::as_str) {
        Some(value) => value == "true",
        None => meta.generation == 1,
    };
    let ours = kept || MANDATORY.contains(&meta.name.as_str());
    (ours && !equality::equal(new.as_reflect(), stored.as_reflect())).then_some(new)
}

/// The priority levels of these schemas were made before.
fn found(stored: &dyn Object, now: Time) -> Option<Box<dyn Object>> {
    let mut schema = typed::<FlowSchema>(stored)?.clone();
    let conditions = &mut schema.status.conditions;
    if conditions
        .iter()
        .any(|condition| condition.r#type == "Dangling" && condition.status == "False")
    {
        return None;
    }
    let level = &schema.spec.priority_level_configuration.name;
    conditions.retain(|condition| condition.r#type != "Dangling");
    conditions.push(FlowSchemaCondition {
        r#type: "Dangling".to_owned(),
        status: "False".to_owned(),
        last_transition_time: now.truncate_to_seconds(),
        reason: "Found".to_owned(),
        message: format!(
            "This FlowSchema references the PriorityLevelConfiguration object named {level:?} and it exists"
        ),
    });
    Some(Box::new(schema))
}
