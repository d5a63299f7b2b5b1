//! Serving: keeps the registry of one server in line with the definitions that it sees. Whoever says that a definition
//! is established has its resource installed here before, so that clients find on this server what they were told of.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use keelson_api::apiextensions_k8s_io::v1::CustomResourceDefinition;
use keelson_registry::{Registry, Resource};
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedSender;

use crate::conditions::{ESTABLISHED, INVALID_CA_BUNDLE, NAMES_ACCEPTED, TERMINATING, find, is_true};
use crate::conversion::Outside;
use crate::names::Names;
use crate::resource::{Shared, resource, verbs};

/// What a server serves of definitions.
pub struct Serving {
    registry: Arc<Registry>,
    outside: Outside,
    /// Takes those whose objects are to be converted before anybody asks for them.
    ahead: UnboundedSender<Arc<Resource>>,
    /// By the name of the definition.
    known: Mutex<HashMap<String, Known>>,
}

/// A definition as it was seen.
struct Known {
    /// Of the definition; nothing has changed where it is the same.
    resource_version: String,
    /// `None`: it is not served.
    served: Option<Served>,
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

    /// Whether a definition was seen as it was at this resource version.
    pub async fn has_seen(&self, name: &str, resource_version: &str) -> bool {
        let known = self.known.lock().await;
        known
            .get(name)
            .is_some_and(|known| known.resource_version == resource_version)
    }

    /// Whether a definition with this metadata and status, whatever else it says, is served as it is to be, or not at
    /// all; then that is noted.
    pub async fn is_settled(&self, part: &CustomResourceDefinition) -> bool {
        let mut all = self.known.lock().await;
        let (name, resource_version) = (&part.metadata.name, part.metadata.resource_version.clone());
        match all.get_mut(name).and_then(|known| known.served.as_ref()) {
            None if is_served(part) => return false,
            None => {
                let served = None;
                let known = Known {
                    resource_version,
                    served,
                };
                all.insert(name.clone(), known);
                return true;
            }
            Some(served) if !is_served(part) || served.state != State::of(part) => return false,
            Some(served) => self.end(served, is_true(part, TERMINATING)),
        }
        if let Some(known) = all.get_mut(name) {
            known.resource_version = resource_version;
        }
        true
    }

    /// Serves what a definition says, or serves it no more.
    pub async fn see(&self, definition: &CustomResourceDefinition) {
        let mut all = self.known.lock().await;
        let name = &definition.metadata.name;
        let resource_version = definition.metadata.resource_version.clone();
        let served = all.remove(name).and_then(|known| known.served);
        let served = match is_served(definition) {
            true => self.serve(definition, served).await,
            false => {
                self.remove(served).await;
                None
            }
        };
        let known = Known {
            resource_version,
            served,
        };
        all.insert(name.clone(), known);
    }

    /// The definition is not there any more.
    pub async fn forget(&self, name: &str) {
        let mut all = self.known.lock().await;
        let known = all.remove(name);
        self.remove(known.and_then(|known| known.served)).await;
    }

    async fn remove(&self, served: Option<Served>) {
        if let Some(Served { group, plural, .. }) = served {
            self.registry.remove(&group, &plural).await;
        }
    }

    async fn serve(&self, definition: &CustomResourceDefinition, served: Option<Served>) -> Option<Served> {
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
