//! Names of definitions: accepts those that no other definition of the group has, then establishes the definition, and
//! says whether its group may be defined at all. A definition that loses a name is looked at again when the winner lets
//! it go.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use keelson_api::apiextensions_k8s_io::v1::{CustomResourceDefinition, CustomResourceDefinitionCondition as Condition};
use keelson_registry::NamespacedName;
use keelson_registry::controller::{Controller, ControllerContext, Failure, GroupResource, Next};

use super::{MANAGER, read, status};
use crate::DEFINITIONS;
use crate::conditions::{self, ESTABLISHED, INVALID_CA_BUNDLE, NAMES_ACCEPTED, condition, is_true};
use crate::definition;
use crate::names::{Accepted, Names};
use crate::serving::Serving;

/// Definitions that are written at a time: writes to a store share its commits.
const WORKERS: usize = 16;

/// Accepts names and establishes.
pub struct DefinitionNames {
    serving: Arc<Serving>,
    /// What each definition has, or will have once it is written.
    accepted: RefCell<Accepted>,
    /// The resource version in which a definition was left, by its name.
    settled: RefCell<HashMap<String, String>>,
    /// All definitions that were there at the beginning are noted.
    begun: Cell<bool>,
    /// One decides at a time as long as not all are noted.
    beginning: tokio::sync::Mutex<()>,
}

impl DefinitionNames {
    /// Whose resources are served here before they are said to be established.
    pub fn new(serving: Arc<Serving>) -> DefinitionNames {
        DefinitionNames {
            serving,
            accepted: RefCell::default(),
            settled: RefCell::default(),
            begun: Cell::new(false),
            beginning: tokio::sync::Mutex::default(),
        }
    }

    /// Notes what all definitions have, before anything is decided.
    async fn begin(&self, context: &ControllerContext) -> Result<(), Failure> {
        let _one = self.beginning.lock().await;
        if self.begun.get() {
            return Ok(());
        }
        let lister = context.lister(&DEFINITIONS).ok_or("the server has no definitions")?;
        for key in lister.names("").await? {
            if let Some(definition) = read(context, &key).await? {
                self.accepted.borrow_mut().note(&definition);
            }
        }
        self.begun.set(true);
        Ok(())
    }

    /// Settles one definition; says which others may get names that it had.
    async fn settle(&self, name: &str, context: &ControllerContext) -> Result<Vec<String>, Failure> {
        let Some(definition) = read(context, &key_of(name)).await? else {
            self.settled.borrow_mut().remove(name);
            return Ok(self.accepted.borrow_mut().release(name));
        };
        let mut waiting = self.accepted.borrow_mut().note(&definition);
        let Some(definition) = self.establish(definition, context, &mut waiting).await? else {
            return Ok(waiting);
        };
        if let Some(definition) = approve(definition, context).await? {
            let version = definition.metadata.resource_version;
            self.settled.borrow_mut().insert(definition.metadata.name, version);
        }
        Ok(waiting)
    }

    /// Whether a definition is as it was left: what is told of then is a write of this controller.
    async fn is_settled(&self, name: &str, context: &ControllerContext) -> Result<bool, Failure> {
        let lister = context.lister(&DEFINITIONS).ok_or("the server has no definitions")?;
        let Some(version) = lister.resource_version(&key_of(name)).await? else {
            return Ok(false);
        };
        Ok(self.settled.borrow().get(name) == Some(&version))
    }

    /// Gives it the names that it can have, and establishes it where these are all. One write says both. `None`: it has
    /// changed meanwhile and comes again.
    async fn establish(
        &self,
        mut definition: CustomResourceDefinition,
        context: &ControllerContext,
        waiting: &mut Vec<String>,
    ) -> Result<Option<CustomResourceDefinition>, Failure> {
        let had = Names::from(&definition.status.accepted_names);
        let decision = self.accepted.borrow().decide(&definition);
        let mut told = Vec::new();
        if let Some(decision) = decision {
            definition.status.accepted_names = decision.names.into();
            // Noted before it is written: others decide meanwhile.
            waiting.extend(self.accepted.borrow_mut().note(&definition));
            told.extend([decision.accepted, decision.established]);
        }
        note(&mut definition, &told, context);
        if is_true(&definition, NAMES_ACCEPTED) && !is_true(&definition, ESTABLISHED) {
            told.extend(self.serve(&definition).await);
        }
        if told.is_empty() {
            return Ok(Some(definition));
        }
        // Its resource is served by now: that is said as soon as can be, whoever else writes to the status meanwhile.
        let (meta, status) = (&definition.metadata, &definition.status);
        let fits = |current: &CustomResourceDefinition| {
            let is_the_same = current.metadata.uid == meta.uid && current.metadata.generation == meta.generation;
            is_the_same && Names::from(&current.status.accepted_names) == had
        };
        let written = status::write_if(context, &definition, fits, |new, _| {
            new.status.accepted_names = status.accepted_names.clone();
            note(new, &told, context);
        });
        let written = written.await;
        let lister = context.lister(&DEFINITIONS).ok_or("the server has no definitions")?;
        self.serving
            .catch_up(&key_of(&definition.metadata.name), &lister)
            .await?;
        Ok(written?)
    }

    /// Serves a definition that has its names; what is to be said of it then, if it was not said before.
    async fn serve(&self, definition: &CustomResourceDefinition) -> Option<Condition> {
        let told = if definition::has_ca_bundle(definition) {
            self.serving.see_ahead(definition).await;
            let text = "the initial names have been accepted";
            condition(ESTABLISHED, true, "InitialNamesAccepted", text)
        } else {
            let text = "The conversion webhook CABundle is invalid";
            condition(ESTABLISHED, false, INVALID_CA_BUNDLE, text)
        };
        let known = conditions::find(definition, ESTABLISHED);
        Some(told).filter(|told| known.is_none_or(|known| !conditions::says_same(known, told)))
    }
}

fn key_of(definition: &str) -> NamespacedName {
    NamespacedName {
        name: definition.to_owned(),
        ..NamespacedName::default()
    }
}

fn note(definition: &mut CustomResourceDefinition, told: &[Condition], context: &ControllerContext) {
    for told in told {
        conditions::set(&mut definition.status.conditions, told.clone(), context.now());
    }
}

/// Says of a definition in a group of Kubernetes itself whether it may be there. `None`: it has changed meanwhile.
async fn approve(
    definition: CustomResourceDefinition,
    context: &ControllerContext,
) -> Result<Option<CustomResourceDefinition>, Failure> {
    let Some(told) = definition::approval_condition(&definition) else {
        return Ok(Some(definition));
    };
    let known = conditions::find(&definition, &told.r#type);
    if known.is_some_and(|known| conditions::says_same(known, &told)) {
        return Ok(Some(definition));
    }
    let written = status::write(context, &definition, |new, now| {
        conditions::set(&mut new.status.conditions, told.clone(), now);
    });
    Ok(written.await?)
}

impl Controller for DefinitionNames {
    fn name(&self) -> &'static str {
        "crd_naming_condition_controller"
    }

    fn manager(&self) -> &'static str {
        MANAGER
    }

    fn reconciles(&self) -> GroupResource {
        DEFINITIONS
    }

    async fn reconcile(&self, key: &NamespacedName, context: &ControllerContext) -> Result<Next, Failure> {
        if !self.begun.get() {
            self.begin(context).await?;
        }
        if self.is_settled(&key.name, context).await? {
            return Ok(Next::Done);
        }
        let mut todo = vec![key.name.clone()];
        while let Some(name) = todo.pop() {
            todo.extend(self.settle(&name, context).await?);
        }
        Ok(Next::Done)
    }

    fn workers(&self) -> usize {
        WORKERS
    }
}
