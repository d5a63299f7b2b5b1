//! Serving: keeps the registry of one server in line with the definitions that it sees. Whoever says that a definition
//! is established has its resource installed here before, so that clients find on this server what they were told of.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use keelson_api::apiextensions_k8s_io::v1::CustomResourceDefinition;
use keelson_machinery::status::StatusError;
use keelson_registry::{Lister, NamespacedName, Registry, Resource};
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedSender;

use crate::conditions::{ESTABLISHED, INVALID_CA_BUNDLE, NAMES_ACCEPTED, TERMINATING, find, is_true};
use crate::conversion::Outside;
use crate::definition::into_definition;
use crate::names::Names;
use crate::resource::{Shared, resource, verbs};

/// What a server serves of definitions.
pub struct Serving {
    registry: Arc<Registry>,
    outside: Outside,
    /// Takes those whose objects are to be converted before anybody asks for them.
    ahead: UnboundedSender<Arc<Resource>>,
    known: Mutex<All>,
}

/// By the name of the definition.
type All = HashMap<String, Known>;

/// A definition as it was seen.
struct Known {
    /// Of the definition; nothing has changed where it is the same.
    resource_version: String,
    /// `None`: it is not served.
    served: Option<Served>,
    /// It is served as it will be, not as it is stored.
    is_ahead: bool,
}

impl Known {
    /// Not served at this resource version.
    fn at(resource_version: &str) -> Known {
        Known {
            resource_version: resource_version.to_owned(),
            served: None,
            is_ahead: false,
        }
    }
}

struct Served {
    state: State,
    group: String,
    plural: String,
    shared: Arc<Shared>,
}

/// What a resource depends on: another one takes its place when this is another. The generation counts the changes of a
/// specification.
#[derive(PartialEq, Eq)]
struct State {
    uid: String,
    generation: i64,
    names: Names,
}

impl State {
    /// By the metadata and the status.
    fn of(definition: &CustomResourceDefinition) -> State {
        let metadata = &definition.metadata;
        State {
            uid: metadata.uid.clone(),
            generation: metadata.generation,
            names: Names::from(&definition.status.accepted_names),
        }
    }
}

impl Serving {
    /// Of the resources of a server, whose webhooks are called in these ways. `ahead` takes those whose objects are to
    /// be converted before anybody asks for them.
    pub fn new(registry: Arc<Registry>, outside: Outside, ahead: UnboundedSender<Arc<Resource>>) -> Serving {
        Serving {
            registry,
            outside,
            ahead,
            known: Mutex::default(),
        }
    }

    /// Serves a definition as it will be once it is written. Until [`Serving::catch_up`] says that it was, or was not,
    /// what is stored is not looked at: it would take the resource away again.
    pub async fn see_ahead(&self, definition: &CustomResourceDefinition) {
        let mut all = self.known.lock().await;
        self.note(&mut all, definition, true).await;
    }

    /// Serves a definition as it is stored, or serves it no more, now that it was written ahead of this.
    ///
    /// # Errors
    /// It can't be read.
    pub async fn catch_up(&self, key: &NamespacedName, lister: &Lister) -> Result<(), StatusError> {
        let mut all = self.known.lock().await;
        let written = all.get_mut(&key.name).filter(|known| known.is_ahead);
        let shared = written.and_then(|known| {
            known.is_ahead = false;
            known.served.as_ref().map(|served| served.shared.clone())
        });
        let read = self.read(&mut all, key, lister).await;
        // Those who wait find what is served now.
        if let Some(shared) = shared {
            shared.ahead.send_replace(false);
        }
        read
    }

    /// Serves a definition as it is stored, or serves it no more. `false`: it was seen ahead of what is stored, and is
    /// to be asked for again.
    ///
    /// # Errors
    /// It can't be read.
    pub async fn follow(&self, key: &NamespacedName, lister: &Lister) -> Result<bool, StatusError> {
        let mut all = self.known.lock().await;
        if all.get(&key.name).is_some_and(|known| known.is_ahead) {
            return Ok(false);
        }
        self.read(&mut all, key, lister).await?;
        Ok(true)
    }

    /// Serves what is stored now. It is read under the lock: what was read before another one has looked is old.
    async fn read(&self, all: &mut All, key: &NamespacedName, lister: &Lister) -> Result<(), StatusError> {
        let version = lister.resource_version(key).await?;
        if version.is_some_and(|version| {
            all.get(&key.name)
                .is_some_and(|known| known.resource_version == version)
        }) {
            return Ok(());
        }
        let Some((metadata, status)) = lister.part(key, "status").await? else {
            self.forget(all, &key.name).await;
            return Ok(());
        };
        // Its schemas are read only where they may have changed.
        let part = CustomResourceDefinition {
            metadata,
            status,
            ..CustomResourceDefinition::default()
        };
        if self.is_settled(all, &part) {
            return Ok(());
        }
        match lister.get(key).await?.map(into_definition).transpose()? {
            Some(definition) => self.note(all, &definition, false).await,
            None => self.forget(all, &key.name).await,
        }
        Ok(())
    }

    /// Whether a definition with this metadata and status, whatever else it says, is served as it is to be, or not at
    /// all; then that is noted.
    fn is_settled(&self, all: &mut All, part: &CustomResourceDefinition) -> bool {
        let (name, resource_version) = (&part.metadata.name, &part.metadata.resource_version);
        let Some(known) = all.get_mut(name) else {
            let is_settled = !is_served(part);
            if is_settled {
                all.insert(name.clone(), Known::at(resource_version));
            }
            return is_settled;
        };
        let is_settled = match &known.served {
            None => !is_served(part),
            Some(served) => is_served(part) && served.state == State::of(part),
        };
        if is_settled {
            if let Some(served) = &known.served {
                self.end(served, is_true(part, TERMINATING));
            }
            known.resource_version.clone_from(resource_version);
        }
        is_settled
    }

    /// Serves what a definition says, or serves it no more.
    async fn note(&self, all: &mut All, definition: &CustomResourceDefinition, is_ahead: bool) {
        let metadata = &definition.metadata;
        let served = all.remove(&metadata.name).and_then(|known| known.served);
        let served = match is_served(definition) {
            true => self.serve(definition, served, is_ahead).await,
            false => {
                self.remove(served).await;
                None
            }
        };
        // What is not stored yet has no version.
        let version = if is_ahead { "" } else { &metadata.resource_version };
        let known = Known {
            served,
            is_ahead,
            ..Known::at(version)
        };
        all.insert(metadata.name.clone(), known);
    }

    /// The definition is not there any more.
    async fn forget(&self, all: &mut All, name: &str) {
        let known = all.remove(name);
        self.remove(known.and_then(|known| known.served)).await;
    }

    async fn remove(&self, served: Option<Served>) {
        if let Some(Served { group, plural, .. }) = served {
            self.registry.remove(&group, &plural).await;
        }
    }

    async fn serve(
        &self,
        definition: &CustomResourceDefinition,
        served: Option<Served>,
        is_ahead: bool,
    ) -> Option<Served> {
        let (metadata, spec) = (&definition.metadata, &definition.spec);
        let state = State::of(definition);
        let ending = is_true(definition, TERMINATING);
        let shared = match served {
            Some(served) if served.state == state => {
                self.end(&served, ending);
                return Some(served);
            }
            _ => Arc::new(Shared::default()),
        };
        shared.ahead.send_replace(is_ahead);
        let is_taken = |version: &str| self.registry.is_of_the_build(&spec.group, version);
        let installed = match resource(definition, &shared, &self.outside, is_taken) {
            Ok(resource) => self.registry.install(resource).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = installed {
            tracing::error!(definition = metadata.name, error, "a custom resource can't be served");
            self.remove(served).await;
            return None;
        }
        for resource in self.registry.converted_ahead(&spec.group, &spec.names.plural) {
            // Nobody takes them when the server ends.
            let _ = self.ahead.send(resource);
        }
        let served = Served {
            state,
            group: spec.group.clone(),
            plural: spec.names.plural.clone(),
            shared,
        };
        self.end(&served, ending);
        Some(served)
    }

    /// Has nothing made any more of a resource whose definition goes.
    fn end(&self, served: &Served, ending: bool) {
        if served.shared.ending.swap(ending, Ordering::AcqRel) != ending {
            self.registry.announce(&served.group, &served.plural, &verbs(ending));
        }
    }
}

/// Whether the resource has its names: then it is served, be it established or not yet; but not if it can't be.
fn is_served(definition: &CustomResourceDefinition) -> bool {
    let names = &definition.status.accepted_names;
    let has_names = [&names.plural, &names.singular, &names.kind, &names.list_kind]
        .iter()
        .all(|name| !name.is_empty());
    let established = find(definition, ESTABLISHED);
    let can_be = established.is_none_or(|established| established.reason != INVALID_CA_BUNDLE);
    has_names && can_be && (is_true(definition, NAMES_ACCEPTED) || is_true(definition, ESTABLISHED))
}

#[cfg(test)]
mod tests;
