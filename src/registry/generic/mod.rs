//! The resources that a server has: which kinds, in which versions, under which strategy, stored where.

pub mod admission;
pub mod apply;
mod client;
mod code;
pub mod codec;
mod conversion;
mod corrupt;
mod create;
pub mod delete;
mod encryption;
mod endpoint;
mod error_order;
mod followed;
pub mod handler;
mod immutable_fields;
mod informer;
mod install;
mod key_space;
mod lister;
mod listers;
pub mod managed;
pub mod outcome;
pub mod owners;
mod record;
pub mod reservation;
mod runtime_config;
mod served;
mod snapshot;
mod storage_migration;
pub mod strategy;
mod typed;
mod update;
pub mod verbs;
pub mod write;

mod derive;
mod grace;
mod mark_and_remove;
mod placement;
pub mod presentation;
mod read;
mod reflector;
pub mod select;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use keelson_machinery::env::{Clock, Entropy};
use keelson_machinery::object::{Gvk, Kind};
use keelson_machinery::reflect::Name;
use keelson_machinery::scheme::{KindRef, Scheme};
use keelson_machinery::table::TableColumns;
use keelson_machinery::validation::declarative::TypeChecks;
use keelson_storage::Store;
use keelson_storage::encryption::{Encryption, ForResource};
use tokio::sync::watch;

use crate::cache::{Budget, Indexes};
use admission::Chains;
use install::{Parts, resources_of};
use key_space::KeySpace;
use snapshot::Snapshot;
use typed::CodeDefaults;

pub use client::{Client, Objects, TypedObjects};
pub use code::{CodeError, CodeFault, KindCode, KindEntry, NamedCell, RegistryError, ResourceCode};
pub use conversion::{ConversionStrategy, Converted, Converter};
pub use corrupt::CorruptObjects;
pub use derive::LIST_ITEMS;
pub use endpoint::Endpoint;
pub use followed::Followed;
pub use handler::{Call, Handler, Reply};
pub use immutable_fields::Kept;
pub use informer::{Change, Changes, Informer, NamespacedName};
pub use install::{CodeOf, Definition, InstallError, VersionDefinition};
pub use lister::{Lister, TypedLister};
pub use listers::{Held, ServerListers};
pub use outcome::{Answer, Outcome};
pub use placement::{Media, Placement, StoreOverride};
pub use read::{RevisionError, Stored, parse_revision};
pub use record::{Record, Recorded, Replaced};
#[cfg(test)]
pub(crate) use reflector::Reflector;
pub use runtime_config::{RuntimeConfig, RuntimeConfigError};
pub use served::{
    Catalog, MergedCatalog, OpenApiForm, OwnDefinitions, Served, ServedGroup, ServedKind, ServedVersion, maturity_order,
};
pub use strategy::{
    Annotate, AnyStrategy, ChangeOrder, Confirming, Context, DefaultStrategy, LongValidation, MetadataChecks,
    RepeatedChecks, Reserving, Strategy, Warnings,
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

/// All resources of one server: a snapshot of them, in whose place another one is put when one comes, changes or goes.
pub struct Registry {
    current: ArcSwap<Snapshot>,
    /// Held while the next one is made.
    turn: Mutex<()>,
    changes: watch::Sender<()>,
    parts: Parts,
    /// Where the server listens.
    own_address: OnceLock<SocketAddr>,
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
    /// Code that checks messages of a type, wherever they stand.
    checks: Arc<TypeChecks>,
    /// Defaults in code, by [`KindDesc::id`](keelson_machinery::scheme::KindDesc::id).
    code_defaults: Vec<(u64, CodeDefaults)>,
    /// Code that answers instead of storage, by subresource; "" is the resource itself.
    handlers: HashMap<&'static str, Arc<dyn Handler>>,
    key_space: Arc<KeySpace>,
    /// It is not served any more.
    retired: watch::Sender<bool>,
    /// Key prefix with a slash at its end: `/registry/services/specs/`.
    pub key_prefix: String,
    /// The field labels of all versions: selectors see the hub version.
    selectable: Vec<String>,
    /// A digest of these: what was read from an entry is kept under it.
    selectable_id: u64,
    indexes: Indexes,
    custom: bool,
    transformer: ForResource,
    conversion: ConversionStrategy,
    /// Held while objects are converted that nobody has asked for yet.
    converting: tokio::sync::Mutex<()>,
    /// What it shares with the others.
    pub backend: Backend,
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
    /// Objects that can't be decoded.
    pub corrupt: CorruptObjects,
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
    pub fn stores(&self) -> impl Iterator<Item = &Arc<dyn Store>> {
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

impl Registry {
    /// Of everything in `schemes`; what `config` leaves on is served. `prefix` is that of the store, `/registry`.
    ///
    /// # Errors
    /// A column that can't be made, or code that does not fit the definitions.
    pub fn new(
        schemes: &[&'static Scheme],
        code: &KindCode,
        backend: &Backend,
        prefix: &str,
        config: &RuntimeConfig,
    ) -> Result<Registry, RegistryError> {
        let parts = Parts::new(schemes, code, backend, prefix)?;
        let mut snapshot = Snapshot::new(Served::new(schemes, config));
        let mut resources = Vec::new();
        for (scheme, versions) in resources_of(schemes) {
            let descriptions = install::descriptions(scheme);
            let installed = parts.install(
                &snapshot,
                (versions, false),
                |resource| code.of(resource),
                &descriptions,
            )?;
            resources.push(installed.resource.clone());
            snapshot.put(installed);
        }
        code.confirm_known(&resources)?;
        Ok(Registry {
            current: ArcSwap::from_pointee(snapshot),
            turn: Mutex::default(),
            changes: watch::Sender::new(()),
            parts,
            own_address: OnceLock::new(),
        })
    }

    /// The server listens there from now on.
    pub fn listens_at(&self, address: SocketAddr) {
        self.own_address.get_or_init(|| address);
    }

    /// Where the server listens; `None`: nowhere yet.
    pub fn own_address(&self) -> Option<SocketAddr> {
        self.own_address.get().copied()
    }

    /// What is served at this group, version and plural.
    pub fn lookup(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Endpoint>> {
        self.current.load().endpoint(group, version, plural).cloned()
    }

    /// Tells of every change of what is served.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// The plural under which a kind is served.
    pub fn plural_of(&self, group: &str, version: &str, kind: &str) -> Option<Name> {
        let current = self.current.load();
        let mut all = current.group(group).flat_map(|installed| &installed.endpoints);
        let served = all.find(|e| e.kind.version == version && e.kind.kind == kind);
        served.map(|e| e.kind.plural.clone())
    }

    /// Whether a resource of the build is served of this group, in any version.
    pub fn serves_group(&self, group: &str) -> bool {
        let current = self.current.load();
        let mut built = current.group(group).filter(|installed| !installed.resource.custom);
        built.any(|installed| !installed.endpoints.is_empty())
    }

    /// Whether the build has this version of a group, served or not: no other resource can be of it.
    pub fn is_of_the_build(&self, group: &str, version: &str) -> bool {
        self.parts.has_version(group, version)
    }

    /// All resources, whatever versions of them are served, in the order of their keys.
    pub fn resources(&self) -> Vec<Arc<Resource>> {
        let current = self.current.load();
        let mut all: Vec<_> = current.all().map(|installed| installed.resource.clone()).collect();
        all.sort_unstable_by(|a, b| a.key_prefix.cmp(&b.key_prefix));
        all
    }

    /// The resource of a group, whatever versions of it are served.
    pub fn resource(&self, group: &str, plural: &str) -> Option<Arc<Resource>> {
        self.current.load().resource(group, plural).cloned()
    }

    /// The resource whose hub version is this kind.
    pub fn resource_of(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>> {
        let current = self.current.load();
        let mut all = current.group(group).map(|installed| &installed.resource);
        all.find(|r| r.hub.version == version && r.hub.kind == kind).cloned()
    }

    /// A new object of a kind, with a resource or without one (Scale, DeleteOptions …).
    pub fn new_type(&self, group: &str, version: &str, kind: &str) -> Option<Box<dyn Kind>> {
        if let Some(desc) = self.parts.type_of(group, version, kind) {
            return Some(desc.new_kind());
        }
        let current = self.current.load();
        let mut kinds = current.group(group).flat_map(|installed| &installed.resource.versions);
        let found = kinds.find(|k| k.group == group && k.version == version && k.kind == kind);
        Some(found?.new_object())
    }

    /// What a Table shows of a kind that has no resource.
    pub fn type_columns(&self, gvk: &Gvk) -> Option<&TableColumns> {
        self.parts.type_columns.get(gvk)
    }

    /// Whether the server knows this kind at all.
    pub fn knows(&self, group: &str, version: &str, kind: &str) -> bool {
        let current = self.current.load();
        let mut kinds = current.group(group).flat_map(|installed| &installed.resource.versions);
        let is_shared = SHARED_KINDS.contains(&kind);
        let named = |k: &KindRef| k.version == version && (is_shared || k.kind == kind || k.list_kind == kind);
        kinds.any(named) || self.parts.type_of(group, version, kind).is_some()
    }
}

impl Catalog for Registry {
    fn served(&self) -> Arc<Served> {
        self.current.load().served.clone()
    }
}
