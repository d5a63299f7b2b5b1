//! The plan: which cases are played against which servers.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::case::{Recorded, case_files};
use crate::fault::Fault;

/// Areas that are the same on every store, and played on each.
const ON_EVERY_STORE: [&str; 2] = ["list", "watch"];
/// The area that looks into etcd.
const IN_ETCD: &str = "storage";

/// Where cases come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// `tests/data/conversations`.
    Own,
    /// Beside the project.
    Outside,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Store {
    Memory,
    Embedded,
    Etcd,
}

/// Cases that are played against one server.
pub struct Group {
    origin: Origin,
    pub store: Store,
    /// The folder whose file `FLAGS` says how the server is started.
    pub flags: Option<PathBuf>,
    /// Whether the stub's port is fixed.
    pub has_fixed_stub: bool,
    pub cases: Vec<Arc<Recorded>>,
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = match self.origin {
            Origin::Own => "own cases",
            Origin::Outside => "cases beside the project",
        };
        let area = self.flags.as_ref().and_then(|folder| folder.file_name());
        let area = area
            .map(|area| format!(", server of {}", area.to_string_lossy()))
            .unwrap_or_default();
        write!(f, "{origin}, {:?} store{area}", self.store)
    }
}

impl Group {
    fn new(origin: Origin, store: Store, cases: Vec<Arc<Recorded>>) -> Group {
        Group {
            origin,
            store,
            flags: None,
            has_fixed_stub: false,
            cases,
        }
    }

    /// The names of its cases.
    pub fn labels(&self) -> impl Iterator<Item = String> {
        self.cases.iter().map(|case| case.label())
    }
}

/// The groups of the areas in a folder; only cases whose names contain a filter, if there are filters.
pub fn groups(origin: Origin, folder: &Path, filters: &[String]) -> Result<Vec<Group>, Fault> {
    let mut areas = areas(folder, filters)?;
    let of_store = |areas: &Areas, names: &[&str]| {
        let wanted = areas
            .iter()
            .filter(|(path, _)| names.iter().any(|name| path.ends_with(name)));
        wanted.flat_map(|(_, cases)| cases.clone()).collect::<Vec<_>>()
    };
    let mut groups = vec![
        Group::new(origin, Store::Memory, of_store(&areas, &ON_EVERY_STORE)),
        Group::new(
            origin,
            Store::Etcd,
            of_store(&areas, &[ON_EVERY_STORE[0], ON_EVERY_STORE[1], IN_ETCD]),
        ),
    ];
    areas.retain(|path, _| !path.ends_with(IN_ETCD));
    let (own_server, plain): (Areas, Areas) = areas.into_iter().partition(|(path, _)| path.join("FLAGS").exists());
    groups.push(Group::new(
        origin,
        Store::Embedded,
        plain.into_values().flatten().collect(),
    ));
    groups.extend(own_server.into_iter().map(|(path, cases)| Group {
        has_fixed_stub: path.join("STUB").exists(),
        flags: Some(path),
        ..Group::new(origin, Store::Memory, cases)
    }));
    Ok(groups)
}

type Areas = BTreeMap<PathBuf, Vec<Arc<Recorded>>>;

fn areas(folder: &Path, filters: &[String]) -> Result<Areas, Fault> {
    let files = case_files(&[folder.to_path_buf()]);
    let files = files.map_err(|error| Fault::unusable(format!("{}: {error}", folder.display())))?;
    let mut areas = Areas::new();
    for file in files {
        let recorded = Recorded::read(&file).map_err(Fault::Unusable)?;
        let label = recorded.label();
        if filters.is_empty() || filters.iter().any(|filter| label.contains(filter.as_str())) {
            areas
                .entry(recorded.folder.clone())
                .or_default()
                .push(Arc::new(recorded));
        }
    }
    Ok(areas)
}
