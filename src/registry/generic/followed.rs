//! Followed: values that are made of the objects of a resource, by namespace and name, and brought up to date from the
//! store's memory before they are read.
//!
//! Plug-ins decide by them: whatever this server has written to a store of its own is seen by the next request, and
//! nobody reads the store for it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use keelson_access::lister::{Change, Feed, Listers};
use keelson_machinery::object::Object;

/// What is made of the objects of one namespace, by name.
type ByName<T> = BTreeMap<Box<str>, Arc<T>>;

/// Values made of all objects of a resource.
pub struct Followed<T> {
    feed: OnceLock<Option<Box<dyn Feed>>>,
    make: fn(&dyn Object) -> Option<T>,
    held: RwLock<HashMap<Box<str>, ByName<T>>>,
    version: AtomicU64,
}

impl<T> Followed<T> {
    /// `make`: what is kept of an object; `None`: nothing. Empty until [`Followed::attach`].
    pub fn new(make: fn(&dyn Object) -> Option<T>) -> Followed<T> {
        Followed {
            feed: OnceLock::new(),
            make,
            held: RwLock::default(),
            version: AtomicU64::new(0),
        }
    }

    /// Follows the objects of this resource, if the server has it.
    pub fn attach(&self, listers: &dyn Listers, group: &str, plural: &str) {
        self.feed.get_or_init(|| listers.feed(group, plural));
    }

    /// What is made of one object.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.now().get(namespace)?.get(name).cloned()
    }

    /// What is made of the objects of a namespace, in the order of their names.
    pub fn of_namespace(&self, namespace: &str) -> Vec<Arc<T>> {
        let now = self.now();
        let held = now.get(namespace);
        held.into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// What is made of all objects, in the order of their names within each namespace.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.now().values().flat_map(BTreeMap::values).cloned().collect()
    }

    /// A number that is another one whenever anything has changed: what was made of all values holds as long as it
    /// stays.
    pub fn version(&self) -> u64 {
        // Whoever changes a value counts before the lock is free again.
        let _now = self.now();
        self.version.load(Ordering::Relaxed)
    }

    fn now(&self) -> RwLockReadGuard<'_, HashMap<Box<str>, ByName<T>>> {
        if let Some(Some(feed)) = self.feed.get() {
            feed.catch_up(&mut |changes| {
                let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
                self.version.fetch_add(1, Ordering::Relaxed);
                for change in changes {
                    self.take(&mut held, change);
                }
            });
        }
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, held: &mut HashMap<Box<str>, ByName<T>>, change: Change) {
        match change {
            Change::Reset => held.clear(),
            Change::Put(place, object) => match (self.make)(&*object) {
                Some(value) => {
                    let names = held.entry(place.namespace).or_default();
                    names.insert(place.name, Arc::new(value));
                }
                None => remove(held, &place.namespace, &place.name),
            },
            Change::Gone(place) => remove(held, &place.namespace, &place.name),
        }
    }
}

fn remove<T>(held: &mut HashMap<Box<str>, ByName<T>>, namespace: &str, name: &str) {
    let Some(names) = held.get_mut(namespace) else { return };
    names.remove(name);
    if names.is_empty() {
        held.remove(namespace);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use keelson_access::lister::{Getter, Place};
    use keelson_codegen_sample::api::shop_example_com::v1::Order;

    use super::*;

    /// Tells what was put here.
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Vec<Change>>>);

    impl Feed for Told {
        fn catch_up(&self, take: &mut dyn FnMut(Vec<Change>)) {
            let changes = std::mem::take(&mut *self.0.lock().unwrap());
            if !changes.is_empty() {
                take(changes);
            }
        }
    }

    impl Listers for Told {
        fn feed(&self, _group: &str, plural: &str) -> Option<Box<dyn Feed>> {
            (plural == "orders").then(|| Box::new(self.clone()) as Box<dyn Feed>)
        }
        fn getter(&self, _group: &str, _plural: &str) -> Option<Box<dyn Getter>> {
            None
        }
    }

    fn place(namespace: &str, name: &str) -> Place {
        Place {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    fn put(namespace: &str, name: &str, customer: &str) -> Change {
        let mut order = Order::default();
        order.spec.customer = customer.to_owned();
        Change::Put(place(namespace, name), Box::new(order))
    }

    #[test]
    fn values_are_those_of_the_objects_that_are_there() {
        let told = Told::default();
        let customer = |object: &dyn Object| {
            let order = object.downcast_ref::<Order>()?;
            Some(order.spec.customer.clone()).filter(|customer| customer != "nobody")
        };
        let followed = Followed::new(customer);
        followed.attach(&told, "shop.example.com", "orders");
        let tell = |changes: Vec<Change>| told.0.lock().unwrap().extend(changes);
        let of = |namespace: &str| {
            let values = followed.of_namespace(namespace);
            values.iter().map(|value| value.to_string()).collect::<Vec<_>>()
        };
        assert!(of("a").is_empty());
        assert_eq!((followed.version(), followed.version()), (0, 0));
        tell(vec![
            Change::Reset,
            put("a", "2", "bob"),
            put("a", "1", "ann"),
            put("b", "1", "eve"),
        ]);
        assert_eq!(
            (of("a"), of("b")),
            (vec!["ann".to_owned(), "bob".to_owned()], vec!["eve".to_owned()])
        );
        tell(vec![
            put("a", "1", "nobody"),
            Change::Gone(place("b", "1")),
            Change::Gone(place("c", "1")),
        ]);
        assert_eq!(
            (of("a"), of("b").len(), followed.all().len()),
            (vec!["bob".to_owned()], 0, 1)
        );
        assert_eq!(followed.version(), 2);
        assert_eq!(followed.get("a", "2").as_deref().map(String::as_str), Some("bob"));
        assert!(followed.get("a", "1").is_none());
        tell(vec![Change::Reset]);
        assert!(followed.all().is_empty());
        let nothing = Followed::new(customer);
        nothing.attach(&told, "shop.example.com", "absent");
        assert!(nothing.all().is_empty());
    }
}
