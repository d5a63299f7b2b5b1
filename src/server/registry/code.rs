//! Code that belongs to kinds, as the server is handed it: strategies, defaults, checks, handlers, cells.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use keelson_machinery::table::CellFunctions;

use super::admission::Admission;
use super::handler::Handler;
use super::kept::Kept;
use super::strategy::{CodeDefaults, MetadataChecks, Strategy};

/// Code that belongs to kinds, by group and plural; handed in by the server that is built.
#[derive(Default)]
pub struct KindCode {
    pub(super) strategies: HashMap<(&'static str, &'static str), Arc<dyn Strategy>>,
    pub(super) metadata_checks: HashMap<(&'static str, &'static str), MetadataChecks>,
    pub(super) admission: Admission,
    pub(super) kept: HashMap<(&'static str, &'static str), &'static [Kept]>,
    pub(super) defaults: HashMap<(&'static str, &'static str, &'static str), CodeDefaults>,
    /// By group, plural and subresource.
    handlers: BTreeMap<(&'static str, &'static str, &'static str), Arc<dyn Handler>>,
    pub(super) cells: CellFunctions,
}

impl KindCode {
    /// Sets the strategy of a resource.
    pub fn strategy(&mut self, group: &'static str, plural: &'static str, strategy: impl Strategy + 'static) {
        self.strategies.insert((group, plural), Arc::new(strategy));
    }

    /// Sets what a resource checks of its metadata beside the rules that every resource has; without it nothing.
    pub fn metadata_checks(&mut self, group: &'static str, plural: &'static str, checks: MetadataChecks) {
        self.metadata_checks.insert((group, plural), checks);
    }

    /// Sets the fields that an object of a resource keeps from its making on.
    pub fn kept(&mut self, group: &'static str, plural: &'static str, fields: &'static [Kept]) {
        self.kept.insert((group, plural), fields);
    }

    /// Sets the admission plug-ins of the server.
    pub fn admission(&mut self, admission: Admission) {
        self.admission = admission;
    }

    /// Makes a resource one without storage: `handler` answers for it.
    pub fn resource(&mut self, group: &'static str, plural: &'static str, handler: impl Handler + 'static) {
        self.subresource(group, plural, "", handler);
    }

    /// Sets what answers for a subresource that creates or connects. One that only reads and writes its object needs
    /// none: its rules are [`Strategy::prepare_for_subresource`] and [`Strategy::validate_subresource`].
    pub fn subresource(
        &mut self,
        group: &'static str,
        plural: &'static str,
        name: &'static str,
        handler: impl Handler + 'static,
    ) {
        self.handlers.insert((group, plural, name), Arc::new(handler));
    }

    /// Adds all that `other` has.
    pub fn merge(&mut self, other: KindCode) {
        self.handlers.extend(other.handlers);
        self.strategies.extend(other.strategies);
        self.metadata_checks.extend(other.metadata_checks);
        self.kept.extend(other.kept);
        self.defaults.extend(other.defaults);
    }

    pub(super) fn handlers_of(&self, group: &str, plural: &str) -> HashMap<&'static str, Arc<dyn Handler>> {
        let own = self
            .handlers
            .iter()
            .filter(|((g, p, _), _)| *g == group && *p == plural);
        own.map(|((_, _, name), handler)| (*name, handler.clone())).collect()
    }

    /// Sets the cell functions that the definitions' columns name.
    pub fn cells(&mut self, cells: CellFunctions) {
        self.cells = cells;
    }

    /// Sets the defaults in code of one version of a resource.
    pub fn defaults(&mut self, group: &'static str, version: &'static str, plural: &'static str, f: CodeDefaults) {
        self.defaults.insert((group, version, plural), f);
    }
}
