//! Registry snapshots: what a server has at one moment. One is never changed; another one takes its place.

use std::collections::HashMap;
use std::sync::Arc;

use keelson_machinery::reflect::Name;

use super::{Endpoint, Resource, Served};

/// All resources.
#[derive(Clone)]
pub(super) struct Snapshot {
    pub served: Arc<Served>,
    groups: HashMap<Name, Arc<Group>>,
}

/// By plural.
type Group = HashMap<Name, Installed>;

/// One resource, and the versions in which it is served.
#[derive(Clone)]
pub(super) struct Installed {
    /// That whose hub is the stored version, where each version has one.
    pub resource: Arc<Resource>,
    pub endpoints: Vec<Arc<Endpoint>>,
}

impl Installed {
    /// Ends the watches of its resources.
    pub fn retire(&self) {
        let mut resources: Vec<&Arc<Resource>> = vec![&self.resource];
        for endpoint in &self.endpoints {
            if !resources.iter().any(|known| Arc::ptr_eq(known, &endpoint.resource)) {
                resources.push(&endpoint.resource);
            }
        }
        resources.into_iter().for_each(|resource| resource.retire());
    }
}

impl Snapshot {
    /// Without resources.
    pub fn new(served: Served) -> Snapshot {
        Snapshot {
            served: Arc::new(served),
            groups: HashMap::new(),
        }
    }

    /// The resources of all groups.
    pub fn all(&self) -> impl Iterator<Item = &Installed> {
        self.groups.values().flat_map(|group| group.values())
    }

    /// The resources of a group.
    pub fn group(&self, name: &str) -> impl Iterator<Item = &Installed> {
        self.groups.get(name).into_iter().flat_map(|group| group.values())
    }

    pub fn resource(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        Some(&self.groups.get(group)?.get(plural)?.resource)
    }

    /// What is served of a resource.
    pub fn endpoints(&self, group: &str, plural: &str) -> &[Arc<Endpoint>] {
        let installed = self.groups.get(group).and_then(|group| group.get(plural));
        installed.map_or(&[], |installed| &installed.endpoints)
    }

    pub fn endpoint(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Endpoint>> {
        let mut endpoints = self.groups.get(group)?.get(plural)?.endpoints.iter();
        endpoints.find(|endpoint| endpoint.kind.version == version)
    }

    /// Adds a resource; gives back the one whose place it takes.
    pub fn put(&mut self, new: Installed) -> Option<Installed> {
        let (group, plural) = (new.resource.group.clone(), new.resource.plural.clone());
        Arc::make_mut(self.groups.entry(group).or_default()).insert(plural, new)
    }

    /// Takes a resource out.
    pub fn take(&mut self, group: &str, plural: &str) -> Option<Installed> {
        let resources = Arc::make_mut(self.groups.get_mut(group)?);
        let taken = resources.remove(plural);
        if resources.is_empty() {
            self.groups.remove(group);
        }
        taken
    }
}
