//! Documents made of a catalog or of a part of it, kept until that changes.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The newest of its kind, made anew for another generation.
pub(crate) struct Newest<T>(Mutex<Option<(u64, Arc<T>)>>);

impl<T> Default for Newest<T> {
    fn default() -> Newest<T> {
        Newest(Mutex::default())
    }
}

impl<T> Newest<T> {
    /// That of a generation. Who asks while it is made waits for it.
    pub(crate) fn get<E>(&self, generation: u64, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((of, made)) if *of == generation => Ok(made.clone()),
            _ => {
                let made = Arc::new(make()?);
                *kept = Some((generation, made.clone()));
                Ok(made)
            }
        }
    }
}

/// One for each part of the catalog, by a key that another state of the part will not have.
pub(crate) struct Kept<K, T>(Mutex<HashMap<K, Arc<T>>>);

impl<K, T> Default for Kept<K, T> {
    fn default() -> Kept<K, T> {
        Kept(Mutex::default())
    }
}

impl<K: Eq + Hash, T> Kept<K, T> {
    /// That of a part.
    pub(crate) fn get<E>(&self, key: K, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        if let Some(kept) = self.lock().get(&key) {
            return Ok(kept.clone());
        }
        let made = Arc::new(make()?);
        self.lock().insert(key, made.clone());
        Ok(made)
    }

    /// Lets go of what was made of parts that are not among these.
    pub(crate) fn retain(&self, parts: impl Iterator<Item = K>) {
        let parts: HashSet<K> = parts.collect();
        self.lock().retain(|key, _| parts.contains(key));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_made_once_for_a_generation() {
        let (newest, parts) = (Newest::default(), Kept::default());
        let made = std::cell::Cell::new(0);
        let make = || {
            made.set(made.get() + 1);
            Ok::<_, ()>(made.get())
        };
        assert_eq!([1, 1, 2, 2].map(|g| *newest.get(g, make).unwrap()), [1, 1, 2, 2]);
        assert_eq!([1, 2, 1, 2].map(|g| *parts.get(g, make).unwrap()), [3, 4, 3, 4]);
        parts.retain([2_u64].into_iter());
        assert_eq!([1, 2].map(|g| *parts.get(g, make).unwrap()), [5, 4]);
        assert_eq!(newest.get(3, || Err::<i32, _>("fault")), Err("fault"));
        assert_eq!(*newest.get(3, make).unwrap(), 6);
    }
}
