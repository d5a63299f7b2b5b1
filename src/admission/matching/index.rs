//! Index: what rules say about requests of each kind, kept until a configuration or what is served changes.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use keelson_machinery::scheme::{KindDesc, KindRef};
use keelson_registry::admission::{Attributes, Operation};
use keelson_registry::{Catalog, Served};

use super::rules::Asked;

/// What has rules.
pub(crate) trait Ruled {
    /// What they say about requests of one kind.
    type Outcome;

    /// What they say; `None`: no request of the kind is meant. `others` are the kinds that show the same objects.
    fn outcome(&self, asked: &Asked<'_>, own: &KindRef, others: &[KindRef]) -> Option<Self::Outcome>;
}

/// A configuration that may mean requests of a kind.
pub(crate) struct Candidate<H: Ruled> {
    pub hook: Arc<H>,
    /// Its place among all configurations.
    pub place: usize,
    pub outcome: H::Outcome,
}

/// Those that may mean a request.
pub(crate) type Candidates<H> = Arc<[Candidate<H>]>;

/// A kind, an operation, and whether a namespace is named.
type Key = (u64, Operation, bool);

/// What rules say of one kind, by subresource.
type BySubresource<H> = Vec<(Box<str>, Candidates<H>)>;

struct Kept<H: Ruled> {
    /// Of the configurations, and of what is served.
    versions: (u64, u64),
    known: HashMap<Key, BySubresource<H>>,
}

/// What rules say, by kind.
pub(crate) struct Index<H: Ruled> {
    kept: RwLock<Kept<H>>,
}

impl<H: Ruled> Default for Index<H> {
    fn default() -> Self {
        Index {
            kept: RwLock::new(Kept {
                versions: (0, 0),
                known: HashMap::new(),
            }),
        }
    }
}

impl<H: Ruled> Index<H> {
    /// Those of the configurations whose rules may mean a request. `version` is theirs, see
    /// [`keelson_registry::Followed::version`]; `all` gives them in their order.
    pub fn candidates(
        &self,
        attributes: &Attributes<'_>,
        version: u64,
        all: impl FnOnce() -> Vec<Arc<H>>,
    ) -> Candidates<H> {
        let served = attributes.registry().map(Catalog::served);
        let versions = (version, served.as_ref().map_or(0, |served| served.generation));
        let in_namespace = !attributes.requested_namespace().is_empty();
        let key = (attributes.kind.id(), attributes.operation, in_namespace);
        if let Some(found) = self.known(versions, &key, attributes.subresource) {
            return found;
        }
        let found = candidates(attributes, served.as_deref(), all());
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if kept.versions != versions {
            kept.versions = versions;
            kept.known.clear();
        }
        let of_kind = kept.known.entry(key).or_default();
        of_kind.push((attributes.subresource.into(), found.clone()));
        found
    }

    fn known(&self, versions: (u64, u64), key: &Key, subresource: &str) -> Option<Candidates<H>> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let of_kind = kept.known.get(key).filter(|_| kept.versions == versions)?;
        let found = of_kind.iter().find(|(name, _)| **name == *subresource);
        found.map(|(_, candidates)| candidates.clone())
    }
}

fn candidates<H: Ruled>(attributes: &Attributes<'_>, served: Option<&Served>, all: Vec<Arc<H>>) -> Candidates<H> {
    let Some(own) = own_kind(attributes, served) else {
        return Arc::from([]);
    };
    let others = equivalents(attributes, served);
    let asked = Asked {
        operation: attributes.operation,
        group: &own.group,
        version: &own.version,
        plural: &own.plural,
        subresource: attributes.subresource,
        in_namespace: !attributes.requested_namespace().is_empty(),
    };
    let candidates = all.into_iter().enumerate().filter_map(|(place, hook)| {
        let outcome = hook.outcome(&asked, &own, &others)?;
        Some(Candidate { hook, place, outcome })
    });
    candidates.collect()
}

/// The kind of the resource in the version of the request.
fn own_kind(attributes: &Attributes<'_>, served: Option<&Served>) -> Option<KindRef> {
    let asked = attributes.kind;
    let known = attributes.resource.versions.iter().find(|kind| kind.id() == asked.id());
    let served = || served?.kind(&asked.group, &asked.version, &asked.plural);
    known.or_else(served).cloned()
}

/// The other kinds under which the same objects are served with this subresource.
fn equivalents(attributes: &Attributes<'_>, served: Option<&Served>) -> Vec<KindRef> {
    let asked = attributes.kind;
    let has_subresource = |kind: &KindDesc| {
        let mut subresources = kind.subresources.iter();
        attributes.subresource.is_empty() || subresources.any(|known| known.name == attributes.subresource)
    };
    let groups = served.into_iter().flat_map(|served| &served.groups);
    let kinds = groups
        .flat_map(|group| &group.versions)
        .flat_map(|version| &version.kinds);
    let same = kinds.filter(|kind| {
        kind.storage_path == asked.storage_path && kind.id() != asked.id() && !kind.unstored && has_subresource(kind)
    });
    same.map(|kind| kind.desc.clone()).collect()
}
