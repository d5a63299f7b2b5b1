//! Last changes: of each prefix that somebody follows, the revision in which something of it changed last. Followers are
//! many and writes mostly about something else, so they ask for this before they look through history.

use super::version::Change;

/// Of the prefixes that were asked about.
#[derive(Default)]
pub(super) struct LastChanges(Vec<(Box<str>, u64)>);

impl LastChanges {
    /// Nothing of a prefix has changed after this revision; `None`: the prefix is not followed.
    pub fn of(&self, prefix: &str) -> Option<u64> {
        let found = self.0.iter().find(|(known, _)| **known == *prefix);
        found.map(|(_, revision)| *revision)
    }

    /// Follows a prefix, of which nothing is known but that it has not changed after this revision.
    pub fn follow(&mut self, prefix: &str, revision: u64) {
        if self.of(prefix).is_none() {
            self.0.push((prefix.into(), revision));
        }
    }

    pub fn note(&mut self, change: &Change) {
        let changed = self
            .0
            .iter_mut()
            .filter(|(prefix, _)| change.key.starts_with(&**prefix));
        changed.for_each(|(_, revision)| *revision = change.revision);
    }

    /// Follows neither this prefix nor those below it any longer.
    pub fn forget(&mut self, prefix: &str) {
        self.0.retain(|(known, _)| !known.starts_with(prefix));
    }
}
