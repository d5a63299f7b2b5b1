//! The count of open watches: a write is work for each of those that are told of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};

use crate::request_info::RequestInfo;

/// Open watches. They are kept by hashes: where two are equal an estimate is a little too high.
#[derive(Debug, Default)]
pub struct Watchers {
    hasher: RandomState,
    open: Mutex<HashMap<u64, u32>>,
}

/// An open watch; dropped, it is one no longer.
#[derive(Debug)]
pub struct OpenWatch {
    watchers: Arc<Watchers>,
    key: u64,
}

impl Watchers {
    /// Counts this watch in.
    pub fn open(self: &Arc<Watchers>, info: &RequestInfo) -> OpenWatch {
        let key = self.key(info, &info.namespace, &info.name);
        let mut open = self.open.lock().unwrap_or_else(|e| e.into_inner());
        *open.entry(key).or_default() += 1;
        OpenWatch {
            watchers: self.clone(),
            key,
        }
    }

    /// The watches that see what this write changes.
    pub fn interested(&self, info: &RequestInfo) -> u32 {
        let (namespace, name) = (info.namespace.as_str(), info.name.as_str());
        // Each place once: of what has no namespace, or no name, there are fewer.
        let places = [
            Some(("", "")),
            (!namespace.is_empty()).then_some((namespace, "")),
            (!name.is_empty()).then_some(("", name)),
            (!namespace.is_empty() && !name.is_empty()).then_some((namespace, name)),
        ];
        let keys = places
            .into_iter()
            .flatten()
            .map(|(namespace, name)| self.key(info, namespace, name));
        let open = self.open.lock().unwrap_or_else(|e| e.into_inner());
        keys.filter_map(|key| open.get(&key)).sum()
    }

    fn key(&self, info: &RequestInfo, namespace: &str, name: &str) -> u64 {
        self.hasher.hash_one((&info.group, &info.resource, namespace, name))
    }
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        let mut open = self.watchers.open.lock().unwrap_or_else(|e| e.into_inner());
        if let Entry::Occupied(mut count) = open.entry(self.key) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_info::Query;

    fn info(method: &str, target: &str) -> RequestInfo {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        RequestInfo::parse(method, path, &Query::parse(query)).unwrap()
    }

    #[test]
    fn a_write_interests_those_who_see_it() {
        let watchers = Arc::new(Watchers::default());
        let watches = [
            "/api/v1/pods?watch=1",
            "/api/v1/namespaces/a/pods?watch=1",
            "/api/v1/namespaces/a/pods?watch=1",
            "/api/v1/namespaces/b/pods?watch=1",
            "/api/v1/namespaces/a/pods?watch=1&fieldSelector=metadata.name%3Dx",
            "/api/v1/pods?watch=1&fieldSelector=metadata.name%3Dx",
            "/api/v1/nodes?watch=1",
        ];
        let mut open: Vec<_> = watches.map(|target| watchers.open(&info("GET", target))).into();
        for (method, target, expected) in [
            ("PUT", "/api/v1/namespaces/a/pods/x", 5),
            ("PUT", "/api/v1/namespaces/a/pods/y", 3),
            ("POST", "/api/v1/namespaces/a/pods", 3),
            ("DELETE", "/api/v1/namespaces/c/pods/x", 2),
            ("PATCH", "/api/v1/nodes/n/status", 1),
            ("PUT", "/api/v1/namespaces/a/secrets/x", 0),
        ] {
            assert_eq!(
                watchers.interested(&info(method, target)),
                expected,
                "{method} {target}"
            );
        }
        open.truncate(1);
        assert_eq!(watchers.interested(&info("PUT", "/api/v1/namespaces/a/pods/x")), 1);
        open.clear();
        assert!(watchers.open.lock().unwrap().is_empty());
    }
}
