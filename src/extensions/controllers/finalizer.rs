//! Finalizer of definitions: deletes the objects of a definition that is being deleted, and then lets it go.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use keelson_api::apiextensions_k8s_io::v1::{CustomResourceDefinition, CustomResourceDefinitionCondition as Condition};
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_registry::NamespacedName;
use keelson_registry::controller::{Controller, ControllerContext, Failure, GroupResource, Next};
use tokio::time::Instant;

use super::{MANAGER, read, status};
use crate::DEFINITIONS;
use crate::conditions::{self, CLEANUP_FINALIZER, ESTABLISHED, TERMINATING, condition, is_true};
use crate::serving::Serving;

/// How long objects that stay are waited for before that is said.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often to look whether they have gone: at first, and at last.
const POLLS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

/// Deletes objects of definitions that go.
pub struct DefinitionFinalizer {
    serving: Arc<Serving>,
    /// Since when objects are waited for, by definition.
    waiting: RefCell<HashMap<String, Waiting>>,
}

struct Waiting {
    since: Instant,
    /// It is looked at again then.
    next: Instant,
    pause: Duration,
}

/// What became of the objects.
enum Objects {
    /// There are none.
    Gone,
    /// Some wait for their finalizers.
    Stay,
}

impl DefinitionFinalizer {
    /// Nothing is made of a definition on this server when its objects are deleted.
    pub fn new(serving: Arc<Serving>) -> DefinitionFinalizer {
        DefinitionFinalizer {
            serving,
            waiting: RefCell::default(),
        }
    }

    /// How long it is until the objects of a definition are to be looked at again.
    fn pause(&self, name: &str) -> Option<Duration> {
        let waiting = self.waiting.borrow();
        let left = waiting.get(name)?.next.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Objects stay: says how long to wait, and whether it is too long already.
    fn wait(&self, name: &str) -> (Duration, bool) {
        let now = Instant::now();
        let mut all = self.waiting.borrow_mut();
        let [first, last] = POLLS;
        let waiting = all.entry(name.to_owned()).or_insert(Waiting {
            since: now,
            next: now,
            pause: first,
        });
        let pause = waiting.pause;
        waiting.next = now + pause;
        waiting.pause = last.min(pause * 2);
        let is_over = now.duration_since(waiting.since) > PATIENCE;
        if is_over {
            waiting.since = now;
        }
        (pause, is_over)
    }

    async fn finalize(&self, name: &str, context: &ControllerContext) -> Result<Next, Failure> {
        let key = NamespacedName {
            name: name.to_owned(),
            ..NamespacedName::default()
        };
        let Some(definition) = read(context, &key).await?.filter(is_going) else {
            return Ok(Next::Done);
        };
        let text = "CustomResource deletion is in progress";
        let begun = condition(TERMINATING, true, "InstanceDeletionInProgress", text);
        let Some(definition) = tell(context, definition, begun).await? else {
            return Ok(Next::Done);
        };
        if !is_true(&definition, ESTABLISHED) {
            let text = "resource was never established";
            let told = condition(TERMINATING, false, "NeverEstablished", text);
            return let_go(context, definition, told).await;
        }
        let lister = context.lister(&DEFINITIONS).ok_or("the server has no definitions")?;
        self.serving.follow(&key, &lister).await?;
        match delete_objects(&definition, context).await {
            Ok(Objects::Gone) => {
                self.waiting.borrow_mut().remove(name);
                let text = "removed all instances";
                let told = condition(TERMINATING, false, "InstanceDeletionCompleted", text);
                let_go(context, definition, told).await
            }
            Ok(Objects::Stay) => {
                let (pause, is_over) = self.wait(name);
                if is_over {
                    let text = "could not confirm zero CustomResources remaining: timed out waiting for the condition";
                    let told = condition(TERMINATING, true, "InstanceDeletionCheck", text);
                    tell(context, definition, told).await?;
                }
                Ok(Next::After(pause))
            }
            Err(error) => {
                let text = format!("could not issue all deletes: {error}");
                let (pause, _) = self.wait(name);
                tracing::warn!(definition = name, %error, "objects of a definition that goes can't be deleted");
                tell(
                    context,
                    definition,
                    condition(TERMINATING, true, "InstanceDeletionFailed", text),
                )
                .await?;
                Ok(Next::After(pause))
            }
        }
    }
}

fn is_going(definition: &CustomResourceDefinition) -> bool {
    let meta = &definition.metadata;
    meta.deletion_timestamp.is_some() && meta.finalizers.iter().any(|finalizer| finalizer == CLEANUP_FINALIZER)
}

/// Sets a condition; `None`: the definition has changed meanwhile and comes again.
async fn tell(
    context: &ControllerContext,
    definition: CustomResourceDefinition,
    told: Condition,
) -> Result<Option<CustomResourceDefinition>, Failure> {
    let known = conditions::find(&definition, TERMINATING);
    if known.is_some_and(|known| conditions::says_same(known, &told)) {
        return Ok(Some(definition));
    }
    let written = status::write(context, &definition, |new, now| {
        conditions::set(&mut new.status.conditions, told.clone(), now);
    });
    Ok(written.await?)
}

/// Takes the finalizer away.
async fn let_go(
    context: &ControllerContext,
    definition: CustomResourceDefinition,
    told: Condition,
) -> Result<Next, Failure> {
    let written = status::write(context, &definition, |new, now| {
        conditions::set(&mut new.status.conditions, told.clone(), now);
        new.metadata
            .finalizers
            .retain(|finalizer| finalizer != CLEANUP_FINALIZER);
    });
    written.await?;
    Ok(Next::Done)
}

/// Deletes the objects of all namespaces. Nobody else is asked: who deletes a definition deletes them.
async fn delete_objects(
    definition: &CustomResourceDefinition,
    context: &ControllerContext,
) -> Result<Objects, Failure> {
    let (group, plural) = (&definition.spec.group, &definition.spec.names.plural);
    let client = context.client().clone().nested();
    let all = GroupResource {
        group: group.as_str().into(),
        resource: plural.as_str().into(),
    };
    let Some(lister) = context.lister(&all) else {
        return Ok(Objects::Gone);
    };
    let mut left = false;
    for name in lister.names("").await? {
        let Some(objects) = client.objects(group, plural, &name.namespace) else {
            return Ok(Objects::Gone);
        };
        match objects.delete(&name.name, &DeleteOptions::default()).await {
            Ok(deleted) => left |= !deleted.gone,
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error.into()),
        }
    }
    match left {
        true => Ok(Objects::Stay),
        false => Ok(Objects::Gone),
    }
}

impl Controller for DefinitionFinalizer {
    fn name(&self) -> &'static str {
        "crd_finalizer"
    }

    fn manager(&self) -> &'static str {
        MANAGER
    }

    fn reconciles(&self) -> GroupResource {
        DEFINITIONS
    }

    async fn reconcile(&self, key: &NamespacedName, context: &ControllerContext) -> Result<Next, Failure> {
        let lister = context.lister(&DEFINITIONS).ok_or("the server has no definitions")?;
        let going = lister.metadata(key).await?;
        if going.is_none_or(|metadata| metadata.deletion_timestamp.is_none()) {
            self.waiting.borrow_mut().remove(&key.name);
            return Ok(Next::Done);
        }
        match self.pause(&key.name) {
            Some(left) => Ok(Next::After(left)),
            None => self.finalize(&key.name, context).await,
        }
    }

    fn workers(&self) -> usize {
        5
    }
}
