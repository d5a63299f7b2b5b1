//! The resources that a server has: which kinds, in which versions, under which strategy, stored where.

pub mod admission;
pub mod apply;
mod client;
mod code;
pub mod codec;
mod create;
pub mod delete;
pub mod handler;
mod informer;
mod kept;
mod lister;
pub mod managed;
pub mod outcome;
pub(crate) mod owners;
pub mod reservation;
pub mod strategy;
mod update;
pub mod verbs;
pub mod write;

mod derive;
mod grace;
mod mark_and_remove;
mod placement;
mod read;
mod sealed;
mod select;
mod shown;
mod typed;

use std::collections::HashMap;
use std::sync::Arc;

use keelson_machinery::env::{Clock, Entropy};
use keelson_machinery::object::{Gvk, Kind};
use keelson_machinery::protobuf::Mask;
use keelson_machinery::reflect::Name;
use keelson_machinery::scheme::{KindDesc, KindRef, Scheme, SubresourceDesc, TypeDesc};
use keelson_machinery::table::{CellFunctions, Descriptions, TableColumns};
use keelson_storage::Store;
use keelson_storage::encryption::{Encryption, ForResource};

use crate::cache::{Budget, Indexes};
use admission::Chains;
use code::Described;
use typed::CodeDefaults;

pub use client::{Client, Objects, TypedObjects};
pub use code::{CodeError, CodeFault, KindCode, KindEntry, RegistryError};
pub(crate) use derive::LIST_ITEMS;
pub use handler::{Call, Handler, Reply};
pub use informer::{Change, Changes, Informer, NamespacedName};
pub use kept::Kept;
pub use lister::{Lister, TypedLister};
pub use outcome::{Answer, Outcome};
pub use placement::{Media, Placement, StoreOverride};
pub use read::{Stored, parse_revision};
pub(crate) use select::{Next, Query};
pub(crate) use shown::Shown;
pub use strategy::{
    Again, Annotate, AnyStrategy, Confirming, Context, DefaultStrategy, MetadataChecks, Reserving, Strategy, Warnings,
};
pub use verbs::{Target, Verbs};

/// Kinds that every version of every group has.
pub const SHARED_KINDS: [&str; 10] = [
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "List",
    "ListOptions",
    "PatchOptions",
    "Status",
    "Table",
    "UpdateOptions",
    "WatchEvent",
];

/// All resources of one server.
pub struct Registry {
    resources: Vec<Arc<Resource>>,
    /// What is served, by plural.
    endpoints: HashMap<Name, Vec<Endpoint>>,
    types: Vec<&'static TypeDesc>,
    /// Of the types that have columns, by group, version and kind.
    type_columns: HashMap<Gvk, Arc<TableColumns>>,
}

/// One resource in all its versions.
pub struct Resource {
    /// "" for the legacy group.
    pub group: Name,
    /// `pods`.
    pub plural: Name,
    /// The version that code works with.
    pub hub: KindRef,
    /// The version that is stored.
    pub storage: KindRef,
    /// Every version that the build knows, served or not: stored objects may be of any.
    pub versions: Vec<KindRef>,
    /// The rules that no definition can say.
    pub strategy: Arc<AnyStrategy>,
    pub(crate) metadata_checks: MetadataChecks,
    /// The admission plug-ins that handle something of it.
    pub(crate) chains: Chains,
    kept: Arc<[Kept]>,
    /// Defaults in code, by [`KindDesc::id`].
    code_defaults: Vec<(u64, CodeDefaults)>,
    /// Code that answers instead of storage, by subresource; "" is the resource itself.
    handlers: HashMap<&'static str, Arc<dyn Handler>>,
    /// Key prefix with a slash at its end: `/registry/services/specs/`.
    pub key_prefix: String,
    /// The field labels of all versions: selectors see the hub version.
    selectable: Vec<String>,
    indexes: Indexes,
    transformer: ForResource,
    pub(crate) backend: Backend,
}

/// What resources share.
#[derive(Clone)]
pub struct Backend {
    /// Where objects are.
    pub store: Arc<dyn Store>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Of uids and generated names.
    pub entropy: Arc<dyn Entropy>,
    /// Of what is derived from entries.
    pub budget: Arc<Budget>,
    /// How values are stored.
    pub encryption: Arc<Encryption>,
    /// Where and how objects are stored beside that.
    pub placement: Arc<Placement>,
}

impl Backend {
    /// With the store of one resource.
    fn of(&self, group: &str, resource: &str) -> Backend {
        let mut backend = self.clone();
        if let Some(own) = self.placement.store_of(group, resource) {
            backend.store = own.clone();
        }
        backend
    }

    /// All stores, the one that most resources share first.
    pub(crate) fn stores(&self) -> impl Iterator<Item = &Arc<dyn Store>> {
        let own = self.placement.overrides.iter().map(|own| &own.store);
        std::iter::once(&self.store).chain(own)
    }

    /// A random uid.
    pub fn new_uid(&self) -> String {
        let mut random = [0u8; 16];
        self.entropy.fill(&mut random);
        uuid::Builder::from_random_bytes(random).into_uuid().to_string()
    }
}

/// What a path leads to: a resource in one version.
#[derive(Clone)]
pub struct Endpoint {
    /// In all its versions.
    pub resource: Arc<Resource>,
    /// In this one.
    pub kind: KindRef,
    /// What a Table of this version shows.
    pub columns: Arc<TableColumns>,
    /// What of a stored object its row is made of; `None`: all.
    row_mask: Option<Arc<Mask>>,
}

impl Endpoint {
    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&SubresourceDesc> {
        self.kind.subresources.iter().find(|s| s.name == name)
    }

    /// The code that answers for a subresource, or with "" for the resource; `None`: the generic handlers do.
    pub fn handler(&self, subresource: &str) -> Option<&dyn Handler> {
        self.resource.handlers.get(subresource).map(|h| &**h)
    }
}

/// Whose objects a kind's are: those of another group's kind, or its own.
fn owner(kind: &KindDesc) -> (&str, &str) {
    match &kind.same_as {
        Some(same) => (&same.group, &same.kind),
        None => (&kind.group, &kind.kind),
    }
}

/// The paths of the field labels of all kinds with these objects: selectors see the hub version, whatever version asks.
fn selectable(of: &KindDesc, schemes: &[&'static Scheme]) -> Vec<String> {
    let groups = schemes.iter().flat_map(|scheme| scheme.groups);
    let kinds = groups
        .flat_map(|group| group.versions)
        .flat_map(|version| version.kinds);
    let mut fields: Vec<_> = kinds
        .filter(|kind| owner(kind) == owner(of))
        .flat_map(|kind| kind.selectable_fields.iter())
        .map(|field| field.split_once('=').map_or(field, |(_, paths)| paths).to_owned())
        .collect();
    fields.sort_unstable();
    fields.dedup();
    fields
}

/// What all resources are made with; see [`Registry::new`].
struct Parts<'a> {
    schemes: &'a [&'static Scheme],
    code: &'a KindCode,
    backend: &'a Backend,
    prefix: &'a str,
    served: &'a dyn Fn(&str, &str, &str) -> bool,
}

impl Registry {
    /// Builds the table. `prefix` is that of the store, `/registry`; `served` says whether a group, version and
    /// plural is switched on.
    ///
    /// # Errors
    /// A column that can't be made, or code that does not fit the definitions.
    pub fn new(
        schemes: &[&'static Scheme],
        code: &KindCode,
        backend: &Backend,
        prefix: &str,
        served: &dyn Fn(&str, &str, &str) -> bool,
    ) -> Result<Registry, RegistryError> {
        let parts = Parts {
            schemes,
            code,
            backend,
            prefix,
            served,
        };
        let mut registry = Registry {
            resources: Vec::new(),
            endpoints: HashMap::new(),
            types: Vec::new(),
            type_columns: HashMap::new(),
        };
        let mut all: Vec<(Vec<KindRef>, Descriptions)> = Vec::new();
        for scheme in schemes {
            registry.types.extend(scheme.types);
            let descriptions = Descriptions {
                name: scheme.name_description.into(),
                creation_timestamp: scheme.creation_description.into(),
            };
            for t in scheme.types.iter().filter(|t| !t.columns.is_empty()) {
                let columns = TableColumns::new(t.kind, t.columns, &CellFunctions::default(), &descriptions)?;
                registry
                    .type_columns
                    .insert(Gvk::new_static(t.group, t.version, t.kind), Arc::new(columns));
            }
            for group in scheme.groups {
                let kinds: Vec<&'static KindDesc> = group.versions.iter().flat_map(|v| v.kinds).collect();
                let mut plurals: Vec<&str> = kinds.iter().map(|k| k.plural.as_str()).collect();
                plurals.sort_unstable();
                plurals.dedup();
                for plural in plurals {
                    let versions = kinds.iter().copied().filter(|k| k.plural == plural);
                    let versions: Vec<_> = versions.map(KindRef::from).collect();
                    all.push((versions, descriptions.clone()));
                }
            }
        }
        // Kinds whose objects are those of another group come last: their stored version is with that one.
        all.sort_by_key(|(versions, _)| versions.iter().any(|k| k.same_as.is_some()));
        for (versions, descriptions) in all {
            registry.add(&parts, versions, &descriptions)?;
        }
        code.confirm_known(&registry.resources)?;
        Ok(registry)
    }

    fn add(
        &mut self,
        parts: &Parts<'_>,
        mut versions: Vec<KindRef>,
        descriptions: &Descriptions,
    ) -> Result<(), RegistryError> {
        let Parts {
            schemes,
            code,
            backend,
            prefix,
            served,
        } = *parts;
        let Some(first) = versions.first().cloned() else {
            return Ok(());
        };
        let (group, plural) = (first.group.as_str(), first.plural.as_str());
        let own = versions.clone();
        if let Some(same) = &first.same_as {
            let other = self
                .resources
                .iter()
                .find(|r| r.group == same.group && r.hub.kind == same.kind);
            versions.extend(other.iter().flat_map(|r| &r.versions).cloned());
        }
        let find = |is: fn(&KindDesc) -> bool| versions.iter().find(|k| is(k)).cloned();
        let storage = find(|k| k.storage).unwrap_or_else(|| first.clone());
        let hub = find(|k| k.hub).unwrap_or_else(|| storage.clone());
        let code = code.of(&Described {
            own: &own,
            all: &versions,
            hub: &hub,
        })?;
        let resource = Arc::new(Resource {
            group: first.group.clone(),
            plural: first.plural.clone(),
            hub: hub.clone(),
            strategy: code.strategy(),
            metadata_checks: code.metadata_checks(),
            chains: parts.code.admission.chains_of(&versions, |name| {
                let handler = code.handlers.get(name);
                handler.is_none_or(|handler| handler.needs_namespace())
            }),
            kept: code.kept(),
            code_defaults: code.defaults,
            handlers: code.handlers,
            key_prefix: format!("{prefix}/{}/", storage.storage_path),
            transformer: backend.encryption.resource(&storage.group, &storage.plural),
            backend: backend.of(&storage.group, &storage.plural),
            selectable: selectable(&first, schemes),
            storage,
            indexes: Indexes::default(),
            versions,
        });
        // What is not stored is served by code of its own.
        let own = own
            .into_iter()
            .filter(|k| !k.unstored || resource.handlers.contains_key(""));
        for kind in own.filter(|k| served(group, &k.version, plural)) {
            let columns = Arc::new(TableColumns::new(&kind.kind, &kind.columns, &code.cells, descriptions)?);
            let endpoint = Endpoint {
                resource: resource.clone(),
                kind,
                row_mask: columns.mask(&hub.message)?.map(Arc::new),
                columns,
            };
            self.endpoints.entry(first.plural.clone()).or_default().push(endpoint);
        }
        self.resources.push(resource);
        Ok(())
    }

    /// What is served at this group, version and plural.
    pub fn endpoint(&self, group: &str, version: &str, plural: &str) -> Option<&Endpoint> {
        self.endpoints
            .get(plural)?
            .iter()
            .find(|e| e.kind.group == group && e.kind.version == version)
    }

    /// The plural under which a kind is served.
    pub fn plural_of(&self, group: &str, version: &str, kind: &str) -> Option<&str> {
        let mut all = self.endpoints.values().flatten();
        let served = all.find(|e| e.kind.group == group && e.kind.version == version && e.kind.kind == kind);
        served.map(|e| e.kind.plural.as_str())
    }

    /// Whether anything of this group is served, in any version.
    pub fn serves_group(&self, group: &str) -> bool {
        self.endpoints.values().flatten().any(|e| e.kind.group == group)
    }

    /// The resource of a group, whatever versions of it are served.
    pub fn resource(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.iter().find(|r| r.group == group && r.plural == plural)
    }

    /// The resource whose hub version is this kind.
    pub fn resource_of(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let mut all = self.resources.iter();
        all.find(|r| r.hub.group == group && r.hub.version == version && r.hub.kind == kind)
    }

    /// A new object of a kind, with a resource or without one (Scale, DeleteOptions …).
    pub fn new_type(&self, group: &str, version: &str, kind: &str) -> Option<Box<dyn Kind>> {
        let desc = self
            .types
            .iter()
            .find(|t| t.group == group && t.version == version && t.kind == kind);
        if let Some(desc) = desc {
            return Some(desc.new_kind());
        }
        let kinds = self.resources.iter().flat_map(|r| r.versions.iter());
        let mut found = kinds.filter(|k| k.group == group && k.version == version && k.kind == kind);
        Some(found.next()?.new_object())
    }

    /// What a Table shows of a kind that has no resource.
    pub fn type_columns(&self, gvk: &Gvk) -> Option<&TableColumns> {
        self.type_columns.get(gvk).map(AsRef::as_ref)
    }

    /// Whether the build knows this kind at all.
    pub fn knows(&self, group: &str, version: &str, kind: &str) -> bool {
        let served = |r: &Arc<Resource>| r.group == group && r.versions.iter().any(|k| k.version == version);
        if SHARED_KINDS.contains(&kind) && self.resources.iter().any(served) {
            return true;
        }
        let is_resource = |k: &KindRef| k.version == version && (k.kind == kind || k.list_kind == kind);
        self.resources
            .iter()
            .any(|r| r.group == group && r.versions.iter().any(is_resource))
            || self
                .types
                .iter()
                .any(|t| t.group == group && t.version == version && t.kind == kind)
    }
}
