//! Resources that come, change and go while the server serves.
//!
//! Whoever looks a resource up sees the registry before or after a change, never between. A request keeps what it
//! found: it finishes on the resource as it was. Watches of that end when they have shown what had happened until then.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use keelson_machinery::object::Gvk;
use keelson_machinery::scheme::{KindDesc, KindRef, Names, Scheme, TypeDesc};
use keelson_machinery::table::{CellFunctions, Descriptions, TableColumns, TableError};
use keelson_machinery::validation::declarative::{self, TypeChecks};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::admission::Admission;
use super::code::Described;
use super::conversion::ConversionStrategy;
use super::key_space::KeySpaces;
use super::served::OwnDefinitions;
use super::snapshot::{Installed, Snapshot};
use super::{Backend, CodeError, Endpoint, KindCode, Registry, RegistryError, Resource, ResourceCode, ServedKind};
use crate::cache::Indexes;

/// A resource that is made at run time.
pub struct Definition {
    /// All its versions, of one group and plural; of its objects one version is stored.
    pub versions: Vec<VersionDefinition>,
    /// Where discovery lists its group, if it is a new one: groups with a higher priority come first.
    pub group_priority: i32,
    /// How its objects get from one version to another.
    pub conversion: ConversionStrategy,
    /// What no definition can say, of a resource with this hub version.
    pub code: CodeOf,
}

/// Says what code a resource has whose hub version this is.
pub type CodeOf = Box<dyn Fn(&KindDesc) -> ResourceCode + Send>;

/// One version of it.
pub struct VersionDefinition {
    /// What it is called and made of.
    pub kind: KindRef,
    /// Clients can ask for it; objects may be stored in others too.
    pub served: bool,
    /// Its place in the group, if it is a new version there; those with equal priorities are ordered by maturity.
    pub priority: i32,
    /// What OpenAPI has of it.
    pub definitions: Arc<dyn OwnDefinitions>,
}

/// Why a resource can't be served.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Its columns, code or rules.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// It has none.
    #[error("a resource needs a version")]
    NoVersion,
    /// Plural and group of two versions that are not of one resource.
    #[error("versions of {0}.{1} and {2}.{3} are no resource")]
    Mixed(String, String, String, String),
    /// Plural and group of a resource that never changes.
    #[error("{0}.{1} is a resource of the build")]
    OfTheBuild(String, String),
}

/// What one resource is made of.
struct ResourceParts {
    /// The versions that it has endpoints for, of one group.
    own: Vec<KindRef>,
    /// All in which its objects may be stored.
    all: Vec<KindRef>,
    storage: KindRef,
    hub: KindRef,
    conversion: ConversionStrategy,
    code: ResourceCode,
    /// See [`Resource::is_custom`].
    custom: bool,
}

/// What resources are made with.
pub(super) struct Parts {
    schemes: Vec<&'static Scheme>,
    /// Of the types that have columns, by group, version and kind.
    pub type_columns: HashMap<Gvk, TableColumns>,
    admission: Admission,
    backend: Backend,
    prefix: String,
    key_spaces: KeySpaces,
    checks: Arc<TypeChecks>,
}

impl Registry {
    /// Serves a resource from now on, in the place of the one of that group and plural if there is one. Returns when
    /// the watches of that have been told to end.
    ///
    /// # Errors
    /// Nothing has changed then.
    pub async fn install(&self, definition: Definition) -> Result<(), InstallError> {
        self.parts.check(&definition)?;
        let replaced = self.install_now(definition)?;
        if let Some(replaced) = replaced {
            retire(replaced).await;
        }
        Ok(())
    }

    /// Serves a resource that was installed no more; false: there is none. Its objects stay in the store. Returns when
    /// its watches have been told to end.
    pub async fn remove(&self, group: &str, plural: &str) -> bool {
        if self.parts.is_of_the_build(group, plural) {
            return false;
        }
        let Some(removed) = self.remove_now(group, plural) else {
            return false;
        };
        retire(removed).await;
        true
    }

    /// Those of a resource, by version, whose objects others convert: for [`Resource::convert_ahead`].
    pub fn converted_ahead(&self, group: &str, plural: &str) -> Vec<Arc<Resource>> {
        let current = self.current.load();
        let endpoints = current.endpoints(group, plural).iter();
        let resources = endpoints.map(|endpoint| &endpoint.resource);
        resources
            .filter(|resource| resource.converts_ahead())
            .cloned()
            .collect()
    }

    /// Has discovery say that a resource has these verbs, whatever is served of it.
    pub fn announce(&self, group: &str, plural: &str, verbs: &Names) {
        let _turn = self.turn();
        let mut snapshot = Snapshot::clone(&self.current.load());
        let mut served = (*snapshot.served).clone();
        if served.set_verbs(group, plural, verbs) {
            snapshot.served = Arc::new(served);
            self.put(snapshot);
        }
    }

    fn install_now(&self, definition: Definition) -> Result<Option<Installed>, InstallError> {
        let Definition {
            versions,
            group_priority,
            conversion,
            code,
        } = definition;
        let _turn = self.turn();
        let mut snapshot = Snapshot::clone(&self.current.load());
        let kinds: Vec<KindRef> = versions.iter().map(|version| version.kind.clone()).collect();
        let stored = kinds.iter().find(|kind| kind.storage).or(kinds.first());
        let storage_version = stored.map(|kind| (kind.group.clone(), kind.version.clone()));
        let mut served = (*snapshot.served).clone();
        if let Some(kind) = kinds.first() {
            served.remove(&kind.group, &kind.plural);
        }
        for version in versions.into_iter().filter(|version| version.served) {
            let kind = &version.kind;
            let (group, name) = (kind.group.clone(), kind.version.clone());
            let kinds = vec![ServedKind {
                desc: version.kind,
                storage_version: storage_version.clone().unwrap_or_default(),
                definitions: Some(version.definitions),
            }];
            served.add((group, group_priority), (name, version.priority), kinds);
        }
        snapshot.served = Arc::new(served);
        let installed = self.parts.install_own(&snapshot, kinds, &conversion, &code)?;
        let replaced = snapshot.put(installed);
        self.put(snapshot);
        Ok(replaced)
    }

    fn remove_now(&self, group: &str, plural: &str) -> Option<Installed> {
        let _turn = self.turn();
        let mut snapshot = Snapshot::clone(&self.current.load());
        let removed = snapshot.take(group, plural)?;
        let mut served = (*snapshot.served).clone();
        served.remove(group, plural);
        snapshot.served = Arc::new(served);
        self.put(snapshot);
        Some(removed)
    }

    fn put(&self, snapshot: Snapshot) {
        self.current.store(Arc::new(snapshot));
        self.changes.send_replace(());
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the watches of a resource that is not served any more. Those that are fed from memory are given what had
/// happened before: a store that lies elsewhere is asked.
async fn retire(installed: Installed) {
    let resource = &installed.resource;
    let (store, prefix) = (&resource.backend.store, &resource.key_prefix);
    if store.held_position(prefix).is_some()
        && let Err(error) = store.recent(prefix).await
    {
        tracing::warn!(%error, prefix, "the last events of a resource that goes may be missing in its watches");
    }
    installed.retire();
}

impl Parts {
    pub fn new(
        schemes: &[&'static Scheme],
        code: &KindCode,
        backend: &Backend,
        prefix: &str,
    ) -> Result<Parts, RegistryError> {
        let mut type_columns = HashMap::new();
        for scheme in schemes {
            for t in scheme.types.iter().filter(|t| !t.columns.is_empty()) {
                let columns = TableColumns::new(t.kind, t.columns, &CellFunctions::default(), &descriptions(scheme))?;
                type_columns.insert(Gvk::new_static(t.group, t.version, t.kind), columns);
            }
        }
        Ok(Parts {
            schemes: schemes.to_vec(),
            type_columns,
            admission: code.admission.clone(),
            backend: backend.clone(),
            prefix: prefix.to_owned(),
            key_spaces: KeySpaces::default(),
            checks: Arc::new(code.checks.clone()),
        })
    }

    /// The kind of the build that has no resource.
    pub fn type_of(&self, group: &str, version: &str, kind: &str) -> Option<&'static TypeDesc> {
        let mut types = self.schemes.iter().flat_map(|scheme| scheme.types);
        types.find(|t| (t.group, t.version, t.kind) == (group, version, kind))
    }

    /// Whether a scheme has this version of a group.
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        let groups = self.schemes.iter().flat_map(|scheme| scheme.groups);
        let mut versions = groups.filter(|g| g.name == group).flat_map(|g| g.versions);
        versions.any(|v| v.version == version)
    }

    fn is_of_the_build(&self, group: &str, plural: &str) -> bool {
        let groups = self.schemes.iter().flat_map(|scheme| scheme.groups);
        let mut kinds = groups.filter(|g| g.name == group).flat_map(kinds_of);
        kinds.any(|kind| kind.plural == plural)
    }

    fn check(&self, definition: &Definition) -> Result<(), InstallError> {
        let mut kinds = definition.versions.iter().map(|version| &version.kind);
        let first = kinds.next().ok_or(InstallError::NoVersion)?;
        let text = |name: &str| name.to_owned();
        if let Some(other) = kinds.find(|kind| (&kind.group, &kind.plural) != (&first.group, &first.plural)) {
            return Err(InstallError::Mixed(
                text(&first.plural),
                text(&first.group),
                text(&other.plural),
                text(&other.group),
            ));
        }
        match self.is_of_the_build(&first.group, &first.plural) {
            true => Err(InstallError::OfTheBuild(text(&first.plural), text(&first.group))),
            false => Ok(()),
        }
    }

    /// As [`Parts::install`], of a resource that is made at run time.
    fn install_own(
        &self,
        snapshot: &Snapshot,
        versions: Vec<KindRef>,
        conversion: &ConversionStrategy,
        code: &CodeOf,
    ) -> Result<Installed, RegistryError> {
        let descriptions = self.schemes.first().copied().map(descriptions).unwrap_or_default();
        if !conversion.has_hub_per_version() {
            let code = |resource: &Described<'_>| Ok(code(resource.hub));
            return self.install(snapshot, (versions, true), code, &descriptions);
        }
        let storage = versions.iter().find(|kind| kind.storage).or(versions.first());
        let storage = storage.cloned().ok_or(RegistryError::NoVersion)?;
        let served = |kind: &KindDesc| snapshot.served.kind(&kind.group, &kind.version, &kind.plural).is_some();
        let others = versions
            .iter()
            .filter(|kind| !kind.is(&storage) && served(kind))
            .cloned();
        let mut made: Option<Installed> = None;
        for hub in std::iter::once(storage.clone()).chain(others) {
            let parts = ResourceParts {
                own: vec![hub.clone()],
                all: versions.clone(),
                storage: storage.clone(),
                conversion: conversion.clone(),
                code: code(&hub),
                hub,
                custom: true,
            };
            let of_version = self.make(snapshot, parts, &descriptions).inspect_err(|_| {
                if let Some(made) = &made {
                    made.retire();
                }
            })?;
            match &mut made {
                Some(made) => made.endpoints.extend(of_version.endpoints),
                None => made = Some(of_version),
            }
        }
        made.ok_or(RegistryError::NoVersion)
    }

    /// Makes a resource of `own` versions with endpoints for those of them that the snapshot serves. `code_of` says
    /// what code it has; `custom`: see [`Resource::is_custom`].
    pub fn install(
        &self,
        snapshot: &Snapshot,
        (own, custom): (Vec<KindRef>, bool),
        code_of: impl FnOnce(&Described<'_>) -> Result<ResourceCode, CodeError>,
        descriptions: &Descriptions,
    ) -> Result<Installed, RegistryError> {
        let mut all = own.clone();
        if let Some(same) = own.first().and_then(|kind| kind.same_as.as_ref()) {
            let mut others = snapshot.group(&same.group).map(|installed| &installed.resource);
            let other = others.find(|resource| resource.hub.kind == same.kind);
            all.extend(other.iter().flat_map(|resource| &resource.versions).cloned());
        }
        let find = |is: fn(&KindDesc) -> bool| all.iter().find(|kind| is(kind));
        let storage = find(|kind| kind.storage).or(all.first());
        let storage = storage.cloned().ok_or(RegistryError::NoVersion)?;
        let hub = find(|kind| kind.hub).unwrap_or(&storage).clone();
        let code = code_of(&Described {
            own: &own,
            all: &all,
            hub: &hub,
        })?;
        let parts = ResourceParts {
            own,
            all,
            storage,
            hub,
            conversion: ConversionStrategy::Code,
            code,
            custom,
        };
        self.make(snapshot, parts, descriptions)
    }

    fn make(
        &self,
        snapshot: &Snapshot,
        parts: ResourceParts,
        descriptions: &Descriptions,
    ) -> Result<Installed, RegistryError> {
        declarative::compile(&parts.hub.message)?;
        let (own, cells) = (parts.own.clone(), parts.code.cells.clone());
        let resource = Arc::new(self.resource(parts));
        match endpoints(snapshot, &resource, own, &cells, descriptions) {
            Ok(endpoints) => Ok(Installed { resource, endpoints }),
            Err(error) => {
                resource.retire();
                Err(error.into())
            }
        }
    }

    fn resource(&self, parts: ResourceParts) -> Resource {
        let ResourceParts {
            own,
            all: versions,
            storage,
            hub,
            conversion,
            code,
            custom,
        } = parts;
        let first = own.first().unwrap_or(&storage);
        let backend = self.backend.of(&storage.group, &storage.plural);
        let key_prefix = format!("{}/{}/", self.prefix, storage.storage_path);
        // What is read from an object depends on the version that it is read in.
        let (readers, read_in) = match conversion.has_hub_per_version() {
            true => (std::slice::from_ref(&hub), hub.id()),
            false => (&*versions, 0),
        };
        let selectable = self.selectable(first, readers);
        Resource {
            group: first.group.clone(),
            plural: first.plural.clone(),
            hub,
            strategy: code.strategy(),
            metadata_checks: code.metadata_checks(),
            chains: self.admission.chains_of(&versions, |name| {
                let handler = code.handlers.get(name);
                handler.is_none_or(|handler| handler.needs_namespace())
            }),
            kept: code.kept(),
            checks: self.checks.clone(),
            code_defaults: code.defaults,
            handlers: code.handlers,
            key_space: self.key_spaces.take(&key_prefix, &backend.store),
            retired: watch::Sender::new(false),
            key_prefix,
            transformer: self.backend.encryption.resource(&storage.group, &storage.plural),
            backend,
            selectable_id: digest(&selectable, read_in),
            selectable,
            conversion,
            converting: tokio::sync::Mutex::default(),
            storage,
            indexes: Indexes::default(),
            versions,
            custom,
        }
    }

    /// The paths of the field labels of all kinds with these objects: selectors see the hub version, whatever version
    /// asks.
    fn selectable(&self, of: &KindDesc, versions: &[KindRef]) -> Vec<String> {
        let groups = self.schemes.iter().flat_map(|scheme| scheme.groups);
        let of_the_build = groups.flat_map(kinds_of).filter(|kind| owner(kind) == owner(of));
        let of_the_build = of_the_build.flat_map(|kind| kind.selectable_fields.iter());
        let own = versions.iter().flat_map(|kind| kind.selectable_fields.iter());
        let mut fields: Vec<_> = of_the_build
            .chain(own)
            .map(|field| field.split_once('=').map_or(field, |(_, paths)| paths).to_owned())
            .collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }
}

/// What is served of the kinds of a resource.
fn endpoints(
    snapshot: &Snapshot,
    resource: &Arc<Resource>,
    kinds: Vec<KindRef>,
    cells: &CellFunctions,
    descriptions: &Descriptions,
) -> Result<Vec<Arc<Endpoint>>, TableError> {
    let mut endpoints = Vec::new();
    // What is not stored is served by code of its own.
    let kinds = kinds
        .into_iter()
        .filter(|kind| !kind.unstored || resource.handlers.contains_key(""));
    for kind in kinds {
        let served = snapshot.served.kind(&kind.group, &kind.version, &kind.plural);
        if served.is_none() {
            continue;
        }
        let columns = Arc::new(TableColumns::new(&kind.kind, &kind.columns, cells, descriptions)?);
        endpoints.push(Arc::new(Endpoint {
            resource: resource.clone(),
            kind,
            row_mask: columns.mask(&resource.hub.message)?.map(Arc::new),
            columns,
        }));
    }
    Ok(endpoints)
}

/// The kinds of each resource of the schemes in all versions, with the scheme that has it. Kinds whose objects are
/// those of another group come last: their stored version is with that one.
pub(super) fn resources_of(schemes: &[&'static Scheme]) -> Vec<(&'static Scheme, Vec<KindRef>)> {
    let mut all = Vec::new();
    for scheme in schemes {
        for group in scheme.groups {
            let mut plurals: Vec<&str> = kinds_of(group).map(|kind| kind.plural.as_str()).collect();
            plurals.sort_unstable();
            plurals.dedup();
            for plural in plurals {
                let versions = kinds_of(group).filter(|kind| kind.plural == plural);
                all.push((*scheme, versions.map(KindRef::from).collect::<Vec<_>>()));
            }
        }
    }
    all.sort_by_key(|(_, versions)| versions.iter().any(|kind| kind.same_as.is_some()));
    all
}

fn kinds_of(group: &'static keelson_machinery::scheme::GroupDesc) -> impl Iterator<Item = &'static KindDesc> {
    group.versions.iter().flat_map(|version| version.kinds)
}

pub(super) fn descriptions(scheme: &Scheme) -> Descriptions {
    Descriptions {
        name: scheme.name_description.into(),
        creation_timestamp: scheme.creation_description.into(),
    }
}

/// Whose objects a kind's are: those of another group's kind, or its own.
fn owner(kind: &KindDesc) -> (&str, &str) {
    match &kind.same_as {
        Some(same) => (&same.group, &same.kind),
        None => (&kind.group, &kind.kind),
    }
}

/// A number that lists of the same paths have, and no others.
fn digest(paths: &[String], read_in: u64) -> u64 {
    let mut digest = Sha256::new();
    digest.update(read_in.to_le_bytes());
    for path in paths {
        digest.update(path);
        digest.update([0]);
    }
    let bytes: [u8; 32] = digest.finalize().into();
    bytes
        .iter()
        .take(8)
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
