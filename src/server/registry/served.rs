//! Served resources: the groups, versions and kinds of the schemes that are switched on.

use std::cmp::Reverse;

use keelson_machinery::reflect::Desc;
use keelson_machinery::scheme::{KindDesc, KindRef, Scheme, TypeDesc};

use super::RuntimeConfig;

/// The groups of discovery, by priority. The versions of one group come by priority too, the preferred one first; the
/// resources of a version by name.
pub struct Served {
    pub groups: Vec<ServedGroup>,
    schemes: Vec<&'static Scheme>,
}

pub struct ServedGroup {
    /// "" is the legacy group.
    pub name: &'static str,
    pub priority: i32,
    /// Never empty.
    pub versions: Vec<ServedVersion>,
}

pub struct ServedVersion {
    pub version: &'static str,
    pub priority: i32,
    /// Never empty.
    pub kinds: Vec<KindRef>,
}

impl Served {
    /// Everything in `schemes` that `config` leaves on. Groups and versions that occur in several schemes are joined.
    pub fn new(schemes: &[&'static Scheme], config: &RuntimeConfig) -> Served {
        let mut groups: Vec<ServedGroup> = Vec::new();
        for group in schemes.iter().flat_map(|s| s.groups) {
            for version in group.versions {
                let kinds = version
                    .kinds
                    .iter()
                    .filter(|k| config.serves(group.name, version, &k.plural))
                    .map(KindRef::from);
                add(
                    &mut groups,
                    (group.name, group.priority),
                    (version.version, version.priority),
                    kinds,
                );
            }
        }
        groups.sort_by_key(|g| (Reverse(g.priority), g.name));
        for group in &mut groups {
            group.versions.sort_by_key(|v| (Reverse(v.priority), v.version));
            group
                .versions
                .iter_mut()
                .for_each(|v| v.kinds.sort_by(|a, b| a.plural.cmp(&b.plural)));
        }
        Served {
            groups,
            schemes: schemes.to_vec(),
        }
    }

    pub fn group(&self, name: &str) -> Option<&ServedGroup> {
        self.groups.iter().find(|g| g.name == name)
    }

    pub fn version(&self, group: &str, version: &str) -> Option<&ServedVersion> {
        self.group(group)?.versions.iter().find(|v| v.version == version)
    }

    /// The kind behind a resource; `plural` as in paths, without a subresource.
    pub fn kind(&self, group: &str, version: &str, plural: &str) -> Option<&KindRef> {
        self.version(group, version)?.kinds.iter().find(|k| k.plural == plural)
    }

    /// The table of a kind's fields, served or not.
    pub fn message(&self, group: &str, version: &str, kind: &str) -> Option<&Desc> {
        let kinds = self
            .schemes
            .iter()
            .flat_map(|s| s.groups)
            .filter(|g| g.name == group)
            .flat_map(|g| g.versions);
        let mut kinds = kinds.filter(|v| v.version == version).flat_map(|v| v.kinds);
        let resource = kinds.find(|k| k.kind == kind).map(|k| &k.message);
        let is = |t: &&TypeDesc| (t.group, t.version, t.kind) == (group, version, kind);
        resource.or_else(|| self.schemes.iter().flat_map(|s| s.types).find(is).map(|t| &t.message))
    }

    /// The storage version of a kind: group and version, of whatever scheme has it.
    pub(super) fn storage_version<'k>(&self, kind: &'k KindDesc) -> (&'k str, &'k str) {
        let all = self
            .schemes
            .iter()
            .flat_map(|s| s.groups)
            .flat_map(|g| g.versions)
            .flat_map(|v| v.kinds);
        let (group, name) = match &kind.same_as {
            Some(same) => (&same.group, &same.kind),
            None => (&kind.group, &kind.kind),
        };
        let mut stored = all.filter(|k| k.storage && k.group == *group && k.kind == *name);
        stored
            .next()
            .map_or((&kind.group, &kind.version), |k| (&k.group, &k.version))
    }
}

fn add(
    groups: &mut Vec<ServedGroup>,
    (name, priority): (&'static str, i32),
    (version, version_priority): (&'static str, i32),
    kinds: impl Iterator<Item = KindRef>,
) {
    let kinds: Vec<_> = kinds.collect();
    if kinds.is_empty() {
        return;
    }
    let group = match groups.iter().position(|g| g.name == name) {
        Some(at) => &mut groups[at],
        None => groups.push_mut(ServedGroup {
            name,
            priority,
            versions: Vec::new(),
        }),
    };
    match group.versions.iter_mut().find(|v| v.version == version) {
        Some(known) => known.kinds.extend(kinds),
        None => group.versions.push(ServedVersion {
            version,
            priority: version_priority,
            kinds,
        }),
    }
}
