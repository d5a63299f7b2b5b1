//! The flow schemas and priority levels that every server has. Two of each are mandatory: whatever else their
//! specification says is put right. The others are kept up to date as long as their annotation asks for it, and go when
//! a server no longer has them.

use std::time::Duration;

use keelson_access::flowcontrol::spec::{CATCH_ALL, EXEMPT, GROUP, LEVELS, SCHEMAS};
use keelson_api::flowcontrol_apiserver_k8s_io::v1::{FlowSchema, PriorityLevelConfiguration};
use keelson_machinery::equality;
use keelson_machinery::meta::v1::{DeleteOptions, ObjectMeta};
use keelson_machinery::object::Object;
use keelson_machinery::reflect::Reflect;
use keelson_machinery::status::StatusError;
use keelson_server::server::{HookContext, HookError};
use tokio::sync::oneshot;

use super::maker::{DataError, Maker, Wanted, read, retried};
use crate::flowcontrol::dangling::{self, FlowSchemaStatus};
use crate::typed::typed;

const LEVEL_DATA: &str = include_str!("data/prioritylevelconfigurations.jsonl");
const SCHEMA_DATA: &str = include_str!("data/flowschemas.jsonl");
/// Owns the specifications.
const MANAGER: &str = "api-priority-and-fairness-config-producer-v1";
const AUTOUPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
/// How often the objects are looked at again.
const PERIOD: Duration = Duration::from_secs(60);

/// Makes the objects, says so, and goes on looking after them.
pub(super) async fn produce(context: HookContext, made: oneshot::Sender<()>) -> Result<(), HookError> {
    let wanted = wanted()?;
    let maker = Maker {
        context: &context,
        manager: MANAGER,
    };
    maker.make_all(&wanted).await?;
    // Nobody may be waiting.
    let _ = made.send(());
    let context = context.clone();
    tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(PERIOD).await;
            if let Err(error) = ensure(&context, &wanted).await {
                tracing::warn!(%error, "objects of flow control could not be looked after; it is tried again");
            }
        }
    });
    Ok(())
}

/// Has the schemas say whether their levels are there, when these have been made, and from then on.
pub(super) async fn consume(context: HookContext, made: oneshot::Receiver<()>) -> Result<(), HookError> {
    // Where they could not be made, that hook says so.
    let _ = made.await;
    if !dangling::is_served(&context) {
        return Ok(());
    }
    retried(|| Box::pin(dangling::settle(&context))).await?;
    context.run(FlowSchemaStatus).map_err(HookError::from)
}

pub(super) fn wanted() -> Result<Vec<Wanted>, DataError> {
    let (levels, schemas) = (
        read::<PriorityLevelConfiguration>(LEVEL_DATA)?,
        read::<FlowSchema>(SCHEMA_DATA)?,
    );
    let level = |level| Wanted {
        group: GROUP,
        plural: LEVELS,
        object: Box::new(level),
        reconcile: |stored, wanted| {
            reconciled::<PriorityLevelConfiguration>(stored, wanted, |new, wanted| {
                let exempt = new.spec.exempt.take();
                new.spec = wanted.spec.clone();
                // What is exempt may have shares to lend.
                if new.metadata.name == EXEMPT && exempt.is_some() {
                    new.spec.exempt = exempt;
                }
            })
        },
    };
    let schema = |schema| Wanted {
        group: GROUP,
        plural: SCHEMAS,
        object: Box::new(schema),
        reconcile: |stored, wanted| {
            reconciled::<FlowSchema>(stored, wanted, |new, wanted| new.spec = wanted.spec.clone())
        },
    };
    Ok(levels
        .into_iter()
        .map(level)
        .chain(schemas.into_iter().map(schema))
        .collect())
}

/// Puts right what is there, makes what is missing, deletes what no server of this version makes.
pub(super) async fn ensure(context: &HookContext, wanted: &[Wanted]) -> Result<(), StatusError> {
    let maker = Maker {
        context,
        manager: MANAGER,
    };
    for one in wanted {
        maker.make(one).await?;
    }
    for plural in [SCHEMAS, LEVELS] {
        let Some(objects) = maker.objects(GROUP, plural, "") else {
            continue;
        };
        for object in objects.all().await? {
            let meta = object.meta();
            let is_ours = |one: &Wanted| one.plural == plural && one.object.meta().name == meta.name;
            let is_old = meta.annotations.get(AUTOUPDATE).is_some_and(|value| value == "true");
            if is_old && !wanted.iter().any(is_ours) {
                match objects.delete(&meta.name, &DeleteOptions::default()).await {
                    Err(error) if error.code == 404 => {}
                    done => drop(done?),
                }
            }
        }
    }
    Ok(())
}

/// Whether an object is to be kept up to date. One without the annotation is as long as nobody has changed it since it
/// was made.
fn is_kept(meta: &ObjectMeta) -> bool {
    match meta.annotations.get(AUTOUPDATE).map(String::as_str) {
        Some(value) => value == "true",
        None => meta.generation == 1,
    }
}

/// The annotation says from then on what became of the object.
fn reconciled<T: Object + Reflect>(
    stored: &dyn Object,
    wanted: &dyn Object,
    update: fn(&mut T, &T),
) -> Option<Box<dyn Object>> {
    let mandatory = [EXEMPT, CATCH_ALL].contains(&stored.meta().name.as_str());
    let kept = mandatory || is_kept(stored.meta());
    let mut new = stored.clone_object();
    if kept {
        update(new.downcast_mut::<T>()?, typed::<T>(wanted)?);
    }
    let value = if kept { "true" } else { "false" };
    new.meta_mut()
        .annotations
        .insert(AUTOUPDATE.to_owned(), value.to_owned());
    (!equality::equal(new.as_reflect(), stored.as_reflect())).then_some(new)
}
