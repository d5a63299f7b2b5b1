//! Names of definitions: accepts those that no other definition of the group has, then establishes the definition, and says
//! whether its group may be defined at all. A definition that loses a name is looked at again when the winner lets it go.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use keelson_api::apiextensions_k8s_io::v1::CustomResourceDefinition;
use keelson_registry::NamespacedName;
use keelson_registry::controller::{Controller, ControllerContext, Failure, GroupResource, Next};

use super::{MANAGER, read, status};
use crate::DEFINITIONS;
use crate::conditions::{self, ESTABLISHED, INVALID_CA_BUNDLE, NAMES_ACCEPTED, condition, is_true};
use crate::definition;
use crate::names::Accepted;
use crate::serving::Serving;

/// Definitions that are written at a time: writes to a store share its commits.
const WORKERS: usize = 16;

/// Accepts names and establishes.
pub struct DefinitionNames {
    serving: Arc<Serving>,
    /// What each definition has, or will have once it is written.
    accepted: RefCell<Accepted>,
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
        let key = NamespacedName {
            name: name.to_owned(),
            ..NamespacedName::default()
        };
        let Some(definition) = read(context, &key).await? else {
            return Ok(self.accepted.borrow_mut().release(name));
        };
        let mut waiting = self.accepted.borrow_mut().note(&definition);
        let Some(definition) = self.accept(definition, context, &mut waiting).await? else {
            return Ok(waiting);
        };
        if let Some(definition) = self.establish(definition, context).await? {
            approve(definition, context).await?;
        }
        Ok(waiting)
    }

    /// `None`: it has changed meanwhile and comes again.
    async fn accept(
        &self,
        definition: CustomResourceDefinition,
        context: &ControllerContext,
        waiting: &mut Vec<String>,
    ) -> Result<Option<CustomResourceDefinition>, Failure> {
        let Some(decision) = self.accepted.borrow().decide(&definition) else {
            return Ok(Some(definition));
        };
        // Noted before it is written: others decide meanwhile.
        let mut assumed = definition.clone();
        assumed.status.accepted_names = decision.names.clone().into();
        waiting.extend(self.accepted.borrow_mut().note(&assumed));
        let written = status::write(context, &definition, |new, now| {
            new.status.accepted_names = decision.names.clone().into();
            for told in [&decision.accepted, &decision.established] {
                conditions::set(&mut new.status.conditions, told.clone(), now);
            }
        });
        Ok(written.await?)
    }

    async fn establish(
        &self,
        definition: CustomResourceDefinition,
        context: &ControllerContext,
    ) -> Result<Option<CustomResourceDefinition>, Failure> {
        if !is_true(&definition, NAMES_ACCEPTED) || is_true(&definition, ESTABLISHED) {
            return Ok(Some(definition));
        }
        let told = if definition::has_ca_bundle(&definition) {
            self.serving.see(&definition).await;
            let text = "the initial names have been accepted";
            condition(ESTABLISHED, true, "InitialNamesAccepted", text)
        } else {
            let text = "The conversion webhook CABundle is invalid";
            condition(ESTABLISHED, false, INVALID_CA_BUNDLE, text)
        };
        let known = conditions::find(&definition, ESTABLISHED);
        if known.is_some_and(|known| conditions::says_same(known, &told)) {
            return Ok(Some(definition));
        }
        // Its resource is served by now: it is said as soon as can be, whoever else writes to the status meanwhile.
        let meta = &definition.metadata;
        let fits = |current: &CustomResourceDefinition| {
            let is_the_same = current.metadata.uid == meta.uid && current.metadata.generation == meta.generation;
            is_the_same && is_true(current, NAMES_ACCEPTED)
        };
        let written = status::write_if(context, &definition, fits, |new, now| {
            conditions::set(&mut new.status.conditions, told.clone(), now);
        });
        let Some(definition) = written.await? else {
            return Ok(None);
        };
        self.serving.see(&definition).await;
        Ok(Some(definition))
    }
}

/// Says of a definition in a group of Kubernetes itself whether it may be there.
async fn approve(definition: CustomResourceDefinition, context: &ControllerContext) -> Result<(), Failure> {
    let Some(told) = definition::approval_condition(&definition) else {
        return Ok(());
    };
    let known = conditions::find(&definition, &told.r#type);
    if known.is_some_and(|known| conditions::says_same(known, &told)) {
        return Ok(());
    }
    let written = status::write(context, &definition, |new, now| {
        conditions::set(&mut new.status.conditions, told.clone(), now);
    });
    written.await?;
    Ok(())
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
