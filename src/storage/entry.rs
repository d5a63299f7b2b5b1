//! Entries: keys and what they hold, shared and never copied.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::{LeaseId, Revision};

/// What a key held from one revision on. One value in memory serves the current state, its past, every list and every
/// watch.
pub struct Version {
    pub value: Bytes,
    pub create_revision: Revision,
    pub mod_revision: Revision,
    /// 1 after the key was made, +1 for each change.
    pub version: u64,
    pub lease: Option<LeaseId>,
    derived: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Version {
    pub fn new(value: Bytes, create_revision: Revision, mod_revision: Revision, version: u64) -> Version {
        Version {
            value,
            create_revision,
            mod_revision,
            version,
            lease: None,
            derived: OnceLock::new(),
        }
    }

    /// This version, put under a lease.
    #[must_use]
    pub fn with_lease(self, lease: Option<LeaseId>) -> Version {
        Version { lease, ..self }
    }

    /// What a reader derives from the value: made by the first who asks, kept as long as the version. `None`: someone
    /// keeps a value of another type here.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.derived.get_or_init(|| Box::new(make())).downcast_ref()
    }
}

/// Versions are the same if they hold the same; what was derived from them does not count.
impl PartialEq for Version {
    fn eq(&self, other: &Version) -> bool {
        let same = self.mod_revision == other.mod_revision && self.create_revision == other.create_revision;
        same && self.version == other.version && self.lease == other.lease && self.value == other.value
    }
}

impl Eq for Version {}

impl fmt::Debug for Version {
    /// Without the value, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Version")
            .field("bytes", &self.value.len())
            .field("create_revision", &self.create_revision.0)
            .field("mod_revision", &self.mod_revision.0)
            .field("version", &self.version)
            .field("lease", &self.lease)
            .finish()
    }
}

/// One key and what it held at some revision; a clone shares both. Fields of the version are read through it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub key: Arc<str>,
    pub held: Arc<Version>,
}

impl Entry {
    pub fn new(key: impl Into<Arc<str>>, held: Version) -> Entry {
        Entry {
            key: key.into(),
            held: Arc::new(held),
        }
    }
}

impl Deref for Entry {
    type Target = Version;

    fn deref(&self) -> &Version {
        &self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(value: &'static str) -> Version {
        Version::new(Bytes::from_static(value.as_bytes()), Revision(2), Revision(3), 2)
    }

    #[test]
    fn what_is_derived_is_made_once_and_shared_by_clones() {
        let entry = Entry::new("/a", version("x"));
        let other = entry.clone();
        let make = |n: u32| move || n;
        assert_eq!(entry.derived(make(1)), Some(&1));
        assert_eq!(other.derived(make(2)), Some(&1));
        assert_eq!(other.derived(|| "text"), None);
    }

    #[test]
    fn values_do_not_show_in_debug_output() {
        assert!(!format!("{:?}", Entry::new("/a", version("canary"))).contains("canary"));
    }
}
