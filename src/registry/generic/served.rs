//! The catalog of a server: the groups, versions and kinds that it serves, for discovery and OpenAPI.
//!
//! A catalog is a value. A kind that comes or goes makes another one, which shares all versions that it does not
//! change; what is made of a version is kept under its generation.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use keelson_machinery::reflect::{Desc, Id, Name};
use keelson_machinery::scheme::{KindDesc, KindRef, Names, Scheme, TypeDesc};

use super::RuntimeConfig;

/// The groups of discovery, by priority. The versions of one group come by priority too, the preferred one first; the
/// resources of a version by name.
#[derive(Clone)]
pub struct Served {
    /// A number that no other catalog has.
    pub generation: u64,
    /// By priority.
    pub groups: Vec<Arc<ServedGroup>>,
    schemes: Vec<&'static Scheme>,
}

/// A group of which something is served.
#[derive(Clone)]
pub struct ServedGroup {
    /// "" is the legacy group.
    pub name: Name,
    /// Groups with a higher one come first.
    pub priority: i32,
    /// Never empty.
    pub versions: Vec<Arc<ServedVersion>>,
}

/// A version of which something is served.
#[derive(Clone)]
pub struct ServedVersion {
    /// A number that no version with other kinds has.
    pub generation: u64,
    /// `v1`.
    pub version: Name,
    /// Versions with a higher one come first.
    pub priority: i32,
    /// Never empty.
    pub kinds: Vec<ServedKind>,
}

/// A kind in a version that is served.
#[derive(Clone)]
pub struct ServedKind {
    /// What it is called and made of.
    pub desc: KindRef,
    /// Group and version in which its objects are stored.
    pub storage_version: (Name, Name),
    /// What OpenAPI has of it; `None`: definitions of the build.
    pub definitions: Option<Arc<dyn OwnDefinitions>>,
}

/// The OpenAPI definitions of a kind that is made at run time.
pub trait OwnDefinitions: Send + Sync {
    /// `{"<definition>": <schema>}` as JSON text without white space between tokens, as documents of this form have it;
    /// they may refer to definitions of the build. Asked for when a document is made.
    fn definitions(&self, form: OpenApiForm) -> Vec<u8>;
}

/// The documents of OpenAPI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenApiForm {
    /// The one of all groups.
    V2,
    /// Those of single versions.
    V3,
}

impl ServedKind {
    /// It is made at run time: discovery says of it what the API extensions server says, in its order.
    pub fn is_custom(&self) -> bool {
        self.definitions.is_some()
    }
}

impl Deref for ServedKind {
    type Target = KindDesc;

    fn deref(&self) -> &KindDesc {
        &self.desc
    }
}

/// Where a catalog comes from.
pub trait Catalog: Send + Sync {
    /// What is served now.
    fn served(&self) -> Arc<Served>;
}

impl Catalog for Arc<Served> {
    fn served(&self) -> Arc<Served> {
        self.clone()
    }
}

impl Served {
    /// Everything in `schemes` that `config` leaves on. Groups and versions that occur in several schemes are joined.
    pub fn new(schemes: &[&'static Scheme], config: &RuntimeConfig) -> Served {
        let mut served = Served {
            generation: Id::fresh(),
            groups: Vec::new(),
            schemes: schemes.to_vec(),
        };
        for group in schemes.iter().flat_map(|s| s.groups) {
            for version in group.versions {
                let kinds = version.kinds.iter();
                let kinds = kinds.filter(|kind| config.serves(group.name, version, &kind.plural));
                let kinds = kinds.map(|kind| ServedKind {
                    desc: KindRef::from(kind),
                    storage_version: storage_version(schemes, kind),
                    definitions: None,
                });
                served.add(
                    (group.name.into(), group.priority),
                    (version.version.into(), version.priority),
                    kinds.collect(),
                );
            }
        }
        served
    }

    /// A catalog that always says this.
    pub fn fixed(self) -> Arc<dyn Catalog> {
        Arc::new(Arc::new(self))
    }

    /// The builds whose kinds these are, served or not.
    pub fn schemes(&self) -> &[&'static Scheme] {
        &self.schemes
    }

    /// The group of this name.
    pub fn group(&self, name: &str) -> Option<&ServedGroup> {
        self.groups.iter().find(|g| g.name == name).map(AsRef::as_ref)
    }

    /// The version of this name in a group.
    pub fn version(&self, group: &str, version: &str) -> Option<&Arc<ServedVersion>> {
        self.group(group)?.versions.iter().find(|v| v.version == version)
    }

    /// The kind behind a resource; `plural` as in paths, without a subresource.
    pub fn kind(&self, group: &str, version: &str, plural: &str) -> Option<&KindRef> {
        let mut kinds = self.version(group, version)?.kinds.iter();
        kinds.find(|k| k.plural == plural).map(|found| &found.desc)
    }

    /// The table of the fields of a kind of the build, served or not.
    pub fn message(&self, group: &str, version: &str, kind: &str) -> Option<&Desc> {
        let groups = self.schemes.iter().flat_map(|s| s.groups);
        let versions = groups.filter(|g| g.name == group).flat_map(|g| g.versions);
        let mut kinds = versions.filter(|v| v.version == version).flat_map(|v| v.kinds);
        let resource = kinds.find(|k| k.kind == kind).map(|k| &k.message);
        let is = |t: &&TypeDesc| (t.group, t.version, t.kind) == (group, version, kind);
        resource.or_else(|| self.schemes.iter().flat_map(|s| s.types).find(is).map(|t| &t.message))
    }

    /// Adds kinds to a version, which takes its place by its priority if there was none of this name.
    pub(super) fn add(
        &mut self,
        (name, priority): (Name, i32),
        (version, version_priority): (Name, i32),
        kinds: Vec<ServedKind>,
    ) {
        if kinds.is_empty() {
            return;
        }
        let place = self.groups.iter().position(|g| g.name == name);
        let mut group = match place {
            Some(place) => Arc::unwrap_or_clone(self.groups.remove(place)),
            None => ServedGroup {
                name,
                priority,
                versions: Vec::new(),
            },
        };
        let place = group.versions.iter().position(|v| v.version == version);
        let known = place.map(|place| Arc::unwrap_or_clone(group.versions.remove(place)));
        let mut all = known.unwrap_or(ServedVersion {
            generation: 0,
            version,
            priority: version_priority,
            kinds: Vec::new(),
        });
        all.kinds.extend(kinds);
        all.kinds.sort_by(|a, b| a.plural.cmp(&b.plural));
        group.put(all);
        self.put(group);
    }

    /// Takes a resource out of all versions.
    pub(super) fn remove(&mut self, name: &str, plural: &str) {
        let Some(place) = self.groups.iter().position(|g| g.name == name) else {
            return;
        };
        let mut group = Arc::unwrap_or_clone(self.groups.remove(place));
        let (with, mut without) = group.versions.into_iter().partition::<Vec<_>, _>(|version| {
            let mut kinds = version.kinds.iter();
            kinds.any(|kind| kind.plural == plural)
        });
        group.versions = std::mem::take(&mut without);
        for mut version in with.into_iter().map(Arc::unwrap_or_clone) {
            version.kinds.retain(|kind| kind.plural != plural);
            group.put(version);
        }
        self.put(group);
    }

    /// Says that a resource has these verbs, in all versions; false: it said so before.
    pub(super) fn set_verbs(&mut self, name: &str, plural: &str, verbs: &Names) -> bool {
        let is_other = |kind: &ServedKind| kind.plural == plural && kind.verbs != *verbs;
        let group = self.groups.iter().position(|g| g.name == name);
        let Some(place) = group.filter(|place| {
            let group = self.groups.get(*place);
            let mut kinds = group
                .into_iter()
                .flat_map(|group| &group.versions)
                .flat_map(|v| &v.kinds);
            kinds.any(is_other)
        }) else {
            return false;
        };
        let mut group = Arc::unwrap_or_clone(self.groups.remove(place));
        for version in std::mem::take(&mut group.versions) {
            let mut version = Arc::unwrap_or_clone(version);
            for kind in version.kinds.iter_mut().filter(|kind| is_other(kind)) {
                kind.desc = KindRef::Shared(Arc::new(KindDesc {
                    verbs: verbs.clone(),
                    ..KindDesc::clone(&kind.desc)
                }));
            }
            group.put(version);
        }
        self.put(group);
        true
    }

    fn put(&mut self, group: ServedGroup) {
        self.generation = Id::fresh();
        if !group.versions.is_empty() {
            let place = self.groups.partition_point(|known| known.place() < group.place());
            self.groups.insert(place, Arc::new(group));
        }
    }

    /// What several servers serve; of a version that more than one has, what the first of them says.
    fn merged(all: &[Arc<Served>]) -> Arc<Served> {
        let Some((first, others)) = all.split_first() else {
            return Arc::new(Served::new(&[], &RuntimeConfig::default()));
        };
        if others.is_empty() {
            return first.clone();
        }
        let mut schemes = first.schemes.clone();
        let by_name = |group: &Arc<ServedGroup>| (group.name.clone(), group.clone());
        let mut groups: HashMap<Name, Arc<ServedGroup>> = first.groups.iter().map(by_name).collect();
        for served in others {
            schemes.extend(&served.schemes);
            for group in &served.groups {
                let joined = match groups.get(&group.name) {
                    None => group.clone(),
                    Some(known) => Arc::new(known.joined(group)),
                };
                groups.insert(group.name.clone(), joined);
            }
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort_unstable_by(|a, b| a.place().cmp(&b.place()));
        Arc::new(Served {
            generation: Id::fresh(),
            groups,
            schemes,
        })
    }
}

impl ServedGroup {
    /// What groups are ordered by.
    fn place(&self) -> (Reverse<i32>, &Name) {
        (Reverse(self.priority), &self.name)
    }

    /// With those versions of another server that this one does not have.
    fn joined(&self, other: &ServedGroup) -> ServedGroup {
        let mut joined = self.clone();
        for version in &other.versions {
            if joined.versions.iter().all(|known| known.version != version.version) {
                joined.versions.push(version.clone());
            }
        }
        joined.sort();
        joined
    }

    fn put(&mut self, mut version: ServedVersion) {
        if !version.kinds.is_empty() {
            version.generation = Id::fresh();
            self.versions.push(Arc::new(version));
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.versions.sort_by(|a, b| {
            let key = |v: &ServedVersion| (Reverse(v.priority), Reverse(maturity(&v.version)));
            key(a).cmp(&key(b)).then_with(|| a.version.cmp(&b.version))
        });
    }
}

/// How the names of versions are ordered, the preferred ones greater: `v2`, `v1`, `v1beta1`; others come last, by name.
pub fn maturity_order(a: &str, b: &str) -> std::cmp::Ordering {
    let order = maturity(a).cmp(&maturity(b));
    order.then_with(|| b.cmp(a))
}

/// How versions without a priority are ordered, the preferred ones greater: `v10`, `v2`, `v1`, `v11beta2`, `v3beta1`,
/// `v1alpha1`; `None` for others, which come last.
fn maturity(version: &str) -> Option<(u8, u32, u32)> {
    let number = |text: &str| {
        let plain = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| text.parse::<u32>().ok()).flatten()
    };
    let rest = version.strip_prefix('v')?;
    let staged = |stage: &str, rank: u8| {
        let (major, minor) = rest.split_once(stage)?;
        Some((rank, number(major)?, number(minor)?))
    };
    let stable = number(rest).map(|major| (2, major, 0));
    stable.or_else(|| staged("beta", 1)).or_else(|| staged("alpha", 0))
}

/// The storage version of a kind: group and version, of whatever scheme has it.
fn storage_version(schemes: &[&'static Scheme], kind: &KindDesc) -> (Name, Name) {
    let versions = schemes.iter().flat_map(|s| s.groups).flat_map(|g| g.versions);
    let (group, name) = match &kind.same_as {
        Some(same) => (&same.group, &same.kind),
        None => (&kind.group, &kind.kind),
    };
    let mut all = versions.flat_map(|v| v.kinds);
    let stored = all.find(|k| k.storage && k.group == *group && k.kind == *name);
    let stored = stored.unwrap_or(kind);
    (stored.group.clone(), stored.version.clone())
}

/// The catalogs of several servers as one, merged anew when one of them has changed.
pub struct MergedCatalog {
    servers: Vec<Arc<dyn Catalog>>,
    last: ArcSwapOption<Merged>,
}

struct Merged {
    of: Vec<u64>,
    served: Arc<Served>,
}

impl MergedCatalog {
    /// `servers` in the order in which they are asked.
    pub fn new(servers: Vec<Arc<dyn Catalog>>) -> MergedCatalog {
        MergedCatalog {
            servers,
            last: ArcSwapOption::empty(),
        }
    }
}

impl Catalog for MergedCatalog {
    fn served(&self) -> Arc<Served> {
        let all: Vec<Arc<Served>> = self.servers.iter().map(|server| server.served()).collect();
        let of = all.iter().map(|served| served.generation);
        let last = self.last.load();
        if let Some(last) = last.as_ref().filter(|last| last.of.iter().copied().eq(of.clone())) {
            return last.served.clone();
        }
        let served = Served::merged(&all);
        self.last.store(Some(Arc::new(Merged {
            of: of.collect(),
            served: served.clone(),
        })));
        served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_without_priorities_are_ordered_by_maturity() {
        let mut versions = [
            "foo10", "v1alpha1", "v3beta1", "v11beta2", "v1", "v10", "v2", "foo1", "v01",
        ];
        versions.sort_by(|a, b| maturity(b).cmp(&maturity(a)).then_with(|| a.cmp(b)));
        assert_eq!(
            versions,
            [
                "v10", "v2", "v1", "v11beta2", "v3beta1", "v1alpha1", "foo1", "foo10", "v01"
            ]
        );
    }
}
