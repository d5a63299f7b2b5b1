//! The listers of a server ([`keelson_access::lister`]): what decisions read, out of the memory of its store.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use keelson_access::flowcontrol::work::Collection;
use keelson_access::lister::{Feed, Getter, GetterError, Got, Listers, Place};
use keelson_machinery::object::Object;
use keelson_storage::Store;
use keelson_storage::encryption::ForResource;

use super::reflector::Reflector;
use super::{Client, Resource, Verbs};

/// The objects that the server's own decisions are made by.
pub struct ServerListers {
    verbs: Arc<Verbs>,
    held: RefCell<Vec<Held>>,
}

/// Keys that a store has to hold in memory, see [`Store::snapshot`].
pub struct Held {
    /// Which store.
    pub store: Arc<dyn Store>,
    /// The part that is common to the keys.
    pub prefix: String,
    /// What decrypts the values.
    pub transformer: ForResource,
}

impl ServerListers {
    /// The objects of the server that these are the verbs of.
    pub fn new(verbs: Arc<Verbs>) -> ServerListers {
        ServerListers {
            verbs,
            held: RefCell::default(),
        }
    }

    /// Has the store hold the objects of a resource, if the server has it.
    pub fn hold(&self, group: &str, plural: &str) {
        self.resource(group, plural);
    }

    /// What the store has to hold for those who asked, each once.
    pub fn into_held(self) -> Vec<Held> {
        self.held.into_inner()
    }

    fn resource(&self, group: &str, plural: &str) -> Option<Arc<Resource>> {
        let resource = self.verbs.registry.resource(group, plural)?;
        let mut held = self.held.borrow_mut();
        if held.iter().all(|one| one.prefix != resource.key_prefix) {
            held.push(Held {
                store: resource.backend.store.clone(),
                prefix: resource.key_prefix.clone(),
                transformer: resource.transformer().clone(),
            });
        }
        Some(resource)
    }
}

impl Listers for ServerListers {
    fn feed(&self, group: &str, plural: &str) -> Option<Box<dyn Feed>> {
        let resource = self.resource(group, plural)?;
        Some(Box::new(Reflector::of(resource)))
    }

    fn getter(&self, group: &str, plural: &str) -> Option<Box<dyn Getter>> {
        let resource = self.resource(group, plural)?;
        let verbs = Arc::downgrade(&self.verbs);
        Some(Box::new(ResourceGetter { resource, verbs }))
    }
}

/// The objects of one resource: read from the store's memory, from the store only if that has none.
struct ResourceGetter {
    resource: Arc<Resource>,
    /// To write; who decides may outlive the server.
    verbs: Weak<Verbs>,
}

impl ResourceGetter {
    async fn find(&self, namespace: &str, name: &str) -> Result<Option<Box<dyn Object>>, GetterError> {
        let resource = &self.resource;
        let key = resource.key(namespace, name).map_err(GetterError::of)?;
        let held = resource.backend.store.held(&resource.key_prefix);
        if let Some(entry) = held.and_then(|held| held.get(&key)) {
            resource.prepare(&entry).await.map_err(GetterError::of)?;
            return resource.decode(&entry).map(Some).map_err(GetterError::of);
        }
        let found = resource.find(namespace, name).await.map_err(GetterError::of)?;
        Ok(found.map(|stored| stored.object))
    }

    async fn set_label(&self, place: &Place, label: &str, value: &str, manager: &str) -> Result<(), GetterError> {
        let Some(verbs) = self.verbs.upgrade() else {
            return Ok(());
        };
        let resource = &self.resource;
        let client = Client::of_server(verbs, manager);
        let Some(objects) = client.objects(&resource.group, &resource.plural, &place.namespace) else {
            return Ok(());
        };
        let mut updater = |stored: Option<&dyn Object>| {
            let stored = stored.ok_or_else(|| resource.not_found(&place.name))?;
            let mut object = stored.clone_object();
            object.meta_mut().labels.insert(label.to_owned(), value.to_owned());
            Ok(object)
        };
        let updated = objects.update(&place.name, &mut updater).await;
        updated.map(drop).map_err(GetterError::of)
    }
}

impl Getter for ResourceGetter {
    fn get<'a>(&'a self, namespace: &'a str, name: &'a str) -> Got<'a, Option<Box<dyn Object>>> {
        Box::pin(self.find(namespace, name))
    }

    fn label<'a>(&'a self, place: &'a Place, label: &'a str, value: &'a str, manager: &'static str) -> Got<'a, ()> {
        Box::pin(self.set_label(place, label, value, manager))
    }
}

impl Collection for Resource {
    fn prefix(&self) -> &str {
        &self.key_prefix
    }

    fn count(&self) -> Option<u64> {
        let held = self.backend.store.held(&self.key_prefix)?;
        Some(held.count(&self.key_prefix) as u64)
    }

    fn average_bytes(&self, sample: usize) -> u64 {
        let Some(held) = self.backend.store.held(&self.key_prefix) else {
            return 0;
        };
        let sample = held.range(&self.key_prefix, &self.key_prefix).take(sample);
        let (count, bytes) = sample.fold((0, 0), |(count, bytes), entry| {
            (count + 1, bytes + entry.value.len() as u64)
        });
        bytes / u64::max(count, 1)
    }
}
