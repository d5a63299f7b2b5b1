//! Tracking of managedFields through writes.

use super::{Managed, Operation, Owner};
use crate::fieldset::{FieldPath, FieldSet};
use crate::managedfields::apply::{Changed, compare_without, created};
use crate::reflect::Reflect;
use crate::reflect::object::Object;
use crate::reflect::raw::RawJson;
use crate::reflect::time::Time;

/// Why an object is not there in another version.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VersionError {
    /// There is no such version.
    #[error("{0}")]
    Unknown(String),
    /// The conversion refuses the object.
    #[error("{0}")]
    Refused(String),
    /// Somebody else has to be asked first.
    #[error("a conversion is missing")]
    Missing,
}

/// The versions of a kind, between which objects can be converted.
pub trait Versions {
    /// Whether there is such a version (`v1`, `apps/v1`) of the kind.
    fn knows(&self, api_version: &str) -> bool;
    /// The object in another version. Errors are told to the client.
    fn convert(&self, object: &dyn Reflect, api_version: &str) -> Result<Box<dyn Object>, VersionError>;
}

/// Who writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Writer {
    pub manager: String,
    /// The version of the request, `apps/v1`.
    pub api_version: String,
    /// Empty for writes to the object itself.
    pub subresource: String,
    /// `None`: the entry gets no time.
    pub now: Option<Time>,
}

impl Writer {
    /// The owner that this writer is.
    pub fn owner(&self, operation: Operation) -> Owner {
        Owner::new(&self.manager, operation, &self.api_version, &self.subresource)
    }
}

/// A change of an object, both ends in the version of the request.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    pub old: &'a dyn Reflect,
    pub new: &'a dyn Reflect,
    /// Paths that this endpoint puts back whatever the writer says, so that writing them does not count.
    pub ignored: &'a FieldSet,
    pub versions: &'a dyn Versions,
}

/// Fields that someone else owns and that would change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The owner as messages name it.
    pub owner: String,
    pub fields: FieldSet,
}

impl Conflict {
    /// The paths as messages show them, in their order.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::with_capacity(self.fields.len());
        self.fields
            .for_each(&mut |path| paths.push(FieldPath(path).to_string()));
        paths
    }
}

/// Fields of metadata that nobody owns.
pub(crate) fn untracked() -> &'static FieldSet {
    static SET: std::sync::LazyLock<FieldSet> = std::sync::LazyLock::new(|| {
        let mut set = FieldSet::of_fields(&["apiVersion", "kind", "metadata"]);
        for name in [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ] {
            set = set.union(FieldSet::of_names(&["metadata", name]));
        }
        set
    });
    &SET
}

/// Records an update: its writer owns what it added or changed, others lose that and what was removed.
pub fn track(managed: &mut Managed, change: Change<'_>, writer: &Writer) -> Result<(), VersionError> {
    let changed = differences(change.old, change.new, change.ignored);
    let own = writer.owner(Operation::Update);
    let conflicts = transfer(managed, change, &writer.api_version, &changed, Some(&own), true)?;
    debug_assert!(conflicts.is_empty());
    let Changed { fields, removed } = changed;
    let taken = fields.clone().difference(&removed).difference(untracked());
    if let Some(owner) = managed.find_mut(&own) {
        // What is its own stays so with another value.
        owner.lose(&fields.difference(&taken));
        owner.lose(&removed);
    }
    if !taken.is_empty() {
        let owner = managed.entry(own);
        owner.gain(taken);
        owner.time = writer.now;
    }
    managed.owners.retain(|owner| !owner.is_empty());
    managed.limit_updaters();
    Ok(())
}

/// As [`track`], of an object that is made: `change.old` has no content.
pub fn track_new(managed: &mut Managed, change: Change<'_>, writer: &Writer) -> Result<(), VersionError> {
    if managed.is_empty()
        && let Some(text) = created(change.old, change.new, change.ignored, untracked())
    {
        if text != b"{}" {
            let owner = managed.entry(writer.owner(Operation::Update));
            owner.set_text(RawJson::from(text));
            owner.time = writer.now;
        }
        return Ok(());
    }
    track(managed, change, writer)
}

fn differences(old: &dyn Reflect, new: &dyn Reflect, ignored: &FieldSet) -> Changed {
    compare_without(old, new, ignored).into_changed()
}

/// Takes away from all owners but `but` what the change gave another value and what it removed. Without `force`,
/// values that others own are conflicts and nothing is taken.
pub(crate) fn transfer(
    managed: &mut Managed,
    change: Change<'_>,
    api_version: &str,
    changed: &Changed,
    but: Option<&Owner>,
    force: bool,
) -> Result<Vec<Conflict>, VersionError> {
    let others = |o: &Owner| !but.is_some_and(|b| b.is_same(o));
    let versions = change.versions;
    managed
        .owners
        .retain(|o| !others(o) || o.api_version == api_version || versions.knows(&o.api_version));
    if changed.is_empty() {
        // Then nothing differs in other versions either.
        return Ok(Vec::new());
    }
    let mut converted: Vec<(String, Changed)> = Vec::new();
    for owner in managed.owners.iter().filter(|o| others(o)) {
        let version = &owner.api_version;
        if version != api_version && !converted.iter().any(|(v, _)| v == version) {
            let old = versions.convert(change.old, version)?;
            let new = versions.convert(change.new, version)?;
            let changed = differences(old.as_reflect(), new.as_reflect(), change.ignored);
            converted.push((version.clone(), changed));
        }
    }
    let of = |owner: &Owner| match owner.api_version == api_version {
        true => Some(changed),
        false => converted.iter().find(|(v, _)| *v == owner.api_version).map(|(_, c)| c),
    };
    if !force {
        let mut conflicts = Vec::new();
        for owner in managed.owners.iter().filter(|o| others(o)) {
            let Some(changed) = of(owner) else { continue };
            let fields = owner.fields().intersection(&changed.fields);
            if !fields.is_empty() {
                conflicts.push(Conflict {
                    owner: owner.to_string(),
                    fields,
                });
            }
        }
        if !conflicts.is_empty() {
            return Ok(conflicts);
        }
    }
    for owner in managed.owners.iter_mut().filter(|o| others(o)) {
        if let Some(changed) = of(owner) {
            owner.lose(&changed.fields);
            owner.lose(&changed.removed);
        }
    }
    managed.owners.retain(|o| !o.is_empty());
    Ok(Vec::new())
}
