//! Values that were used recently, as many as there is room for.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Forgets what was not used for longest.
pub struct Recent<K, V> {
    room: usize,
    /// With the time of their last use.
    values: HashMap<K, (u64, V)>,
    by_use: BTreeMap<u64, K>,
    uses: u64,
}

impl<K: Hash + Eq + Clone, V> Recent<K, V> {
    /// Room for so many.
    pub fn new(room: usize) -> Recent<K, V> {
        Recent {
            room,
            values: HashMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
        }
    }

    /// The value of a key, which is used thereby.
    pub fn get(&mut self, key: &K) -> Option<&mut V> {
        let (used, value) = self.values.get_mut(key)?;
        let key = self.by_use.remove(used)?;
        self.uses += 1;
        *used = self.uses;
        self.by_use.insert(self.uses, key);
        Some(value)
    }

    /// Keeps a value.
    pub fn put(&mut self, key: K, value: V) {
        self.uses += 1;
        if let Some((used, _)) = self.values.insert(key.clone(), (self.uses, value)) {
            self.by_use.remove(&used);
        }
        self.by_use.insert(self.uses, key);
        while self.values.len() > self.room.max(1) {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                return;
            };
            self.values.remove(&oldest);
        }
    }

    /// Uses the value of a key; what is not there is made.
    pub fn with<R>(&mut self, key: &K, make: impl FnOnce() -> V, then: impl FnOnce(&mut V) -> R) -> R {
        if let Some(value) = self.get(key) {
            return then(value);
        }
        let mut value = make();
        let result = then(&mut value);
        self.put(key.clone(), value);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_is_forgotten() {
        let mut recent = Recent::new(2);
        recent.put("a", 1);
        recent.put("b", 2);
        assert_eq!(recent.get(&"a"), Some(&mut 1));
        recent.put("c", 3);
        assert_eq!(recent.get(&"b"), None);
        assert_eq!(recent.get(&"a"), Some(&mut 1));
        recent.put("a", 4);
        assert_eq!(recent.with(&"a", || 9, |value| *value), 4);
        assert_eq!(recent.with(&"d", || 9, |value| *value), 9);
        assert_eq!(recent.get(&"c"), None);
        assert_eq!((recent.values.len(), recent.by_use.len()), (2, 2));
    }
}
