//! Lister: reads the objects of a resource for the server's own code, from the memory that clients are answered from.

use std::marker::PhantomData;
use std::sync::Arc;

use keelson_base::cooperative::Slices;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::Object;
use keelson_machinery::reflect::Reflect;
use keelson_machinery::selector::{FieldSelector, LabelSelector};
use keelson_machinery::status::StatusError;
use keelson_storage::{Entry, Revision};

use super::Resource;
use super::client::typed;
use super::informer::{NamespacedName, Progress};
use super::select::Query;

/// Reads objects of one resource, of the hub version. What it shows is not older than what its informer has told of,
/// nor than what this server has written; a list shows every write that was answered before, whichever server did it.
#[derive(Clone)]
pub struct Lister {
    resource: Arc<Resource>,
    /// Of its informer.
    progress: Option<Arc<Progress>>,
}

impl Lister {
    /// One without an informer.
    pub fn new(resource: Arc<Resource>) -> Lister {
        let progress = None;
        Lister { resource, progress }
    }

    pub(super) fn following(resource: Arc<Resource>, progress: Arc<Progress>) -> Lister {
        let progress = Some(progress);
        Lister { resource, progress }
    }

    /// Whose objects it reads.
    pub fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    /// One object; `None`: there is none. Where memory can say what is there, nobody else is asked.
    ///
    /// # Errors
    /// The store can't be read, or the object.
    pub async fn get(&self, key: &NamespacedName) -> Result<Option<Box<dyn Object>>, StatusError> {
        match self.entry(key).await? {
            Some(entry) => self.resource.decode(&entry).map(Some),
            None => Ok(None),
        }
    }

    /// The resource version of one object, which is not read for it; `None`: there is none.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn resource_version(&self, key: &NamespacedName) -> Result<Option<String>, StatusError> {
        let entry = self.entry(key).await?;
        Ok(entry.map(|entry| entry.mod_revision.to_string()))
    }

    /// The metadata of one object, without a look at the rest where that is possible; `None`: there is none.
    ///
    /// # Errors
    /// The store can't be read, or the object.
    pub async fn metadata(&self, key: &NamespacedName) -> Result<Option<ObjectMeta>, StatusError> {
        match self.entry(key).await? {
            Some(entry) => self.resource.decode_metadata(&entry).map(Some),
            None => Ok(None),
        }
    }

    /// The metadata of one object and one of its other fields, a message, without a look at the rest where that is
    /// possible, and without defaults then; `None`: there is no such object.
    ///
    /// # Errors
    /// The store can't be read, or the object.
    pub async fn part<T: Reflect + Default>(
        &self,
        key: &NamespacedName,
        field: &str,
    ) -> Result<Option<(ObjectMeta, T)>, StatusError> {
        match self.entry(key).await? {
            Some(entry) => self.resource.decode_part(&entry, field).map(Some),
            None => Ok(None),
        }
    }

    /// Whether there is such an object.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn exists(&self, key: &NamespacedName) -> Result<bool, StatusError> {
        self.entry(key).await.map(|entry| entry.is_some())
    }

    /// The stored form of one object; `None`: there is none.
    pub(crate) async fn entry(&self, key: &NamespacedName) -> Result<Option<Entry>, StatusError> {
        let path = self.resource.key(&key.namespace, &key.name)?;
        let Some(progress) = &self.progress else {
            return self.read(key, &path, Revision::default()).await;
        };
        loop {
            let reading = Reading::begin(progress, &path);
            let entry = self.read(key, &path, reading.told).await?;
            if reading.end(entry.is_some()) {
                return Ok(entry);
            }
        }
    }

    /// Not older than `told`.
    async fn read(&self, key: &NamespacedName, path: &str, told: Revision) -> Result<Option<Entry>, StatusError> {
        let (resource, store) = (&self.resource, &self.resource.backend.store);
        // Asked first: memory goes forward between this question and the next.
        let at = store.held_position(&resource.key_prefix);
        if at.is_some_and(|at| at.revision >= told)
            && let Some(entry) = store.recall(&resource.key_prefix, path)
        {
            resource.prepare(&entry).await?;
            return Ok(Some(entry));
        }
        resource.find_entry(&key.namespace, &key.name).await
    }

    /// All objects of a namespace; "": of all namespaces.
    ///
    /// # Errors
    /// The store can't be read, or an object.
    pub async fn list(&self, namespace: &str) -> Result<Vec<Box<dyn Object>>, StatusError> {
        self.resource.all(namespace).await
    }

    /// Those of them that a label selector selects. What is selected repeatedly has an index.
    ///
    /// # Errors
    /// The store can't be read, or an object.
    pub async fn select(&self, namespace: &str, labels: &LabelSelector) -> Result<Vec<Box<dyn Object>>, StatusError> {
        let query = Query {
            namespace,
            labels,
            fields: &FieldSelector::default(),
            limit: 0,
            revision: None,
            from: None,
            left: None,
        };
        let chosen = self.resource.select(&query).await?;
        let mut slices = Slices::begin();
        let mut all = Vec::new();
        let mut entries = self.resource.readable(chosen.items.entries());
        while let Some(entry) = entries.next().await? {
            all.push(self.resource.decode(&entry)?);
            slices.between().await;
        }
        Ok(all)
    }

    /// The names of all objects of a namespace; "": of all namespaces. No object is read for it.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn names(&self, namespace: &str) -> Result<Vec<NamespacedName>, StatusError> {
        let resource = &self.resource;
        let prefix = resource.prefix(namespace)?;
        let snapshot = resource.backend.store.snapshot(&resource.key_prefix).await;
        let snapshot = snapshot.map_err(|error| resource.store_error(error))?;
        let names = snapshot.range(&prefix, &prefix);
        Ok(names.filter_map(|entry| resource.name_of(&entry.key)).collect())
    }

    /// The same for values of a type.
    pub fn typed<T: Reflect + Clone>(self) -> TypedLister<T> {
        TypedLister {
            lister: self,
            kind: PhantomData,
        }
    }
}

/// A reader of one key, whose informer has to know what it was shown.
struct Reading<'a> {
    progress: &'a Progress,
    path: &'a str,
    /// When it began.
    told: Revision,
}

impl<'a> Reading<'a> {
    fn begin(progress: &'a Progress, path: &'a str) -> Reading<'a> {
        progress.begins_to_read(path);
        let told = progress.told();
        Reading { progress, path, told }
    }

    /// False: it has to be read again.
    fn end(self, found: bool) -> bool {
        let (progress, path, told) = (self.progress, self.path, self.told);
        std::mem::forget(self);
        progress.has_read(path, found, told)
    }
}

impl Drop for Reading<'_> {
    /// Given up.
    fn drop(&mut self) {
        self.progress.has_read(self.path, false, self.told);
    }
}

/// Reads objects of one resource as values of their type.
#[derive(Clone)]
pub struct TypedLister<T> {
    /// The same without the type.
    pub lister: Lister,
    kind: PhantomData<fn() -> T>,
}

impl<T: Reflect + Clone> TypedLister<T> {
    /// As [`Lister::get`].
    ///
    /// # Errors
    /// The store can't be read, or the object, or it is of another type.
    pub async fn get(&self, key: &NamespacedName) -> Result<Option<T>, StatusError> {
        let found = self.lister.get(key).await?;
        found.map(|object| typed(&*object)).transpose()
    }

    /// As [`Lister::list`].
    ///
    /// # Errors
    /// The store can't be read, or an object, or one is of another type.
    pub async fn list(&self, namespace: &str) -> Result<Vec<T>, StatusError> {
        let all = self.lister.list(namespace).await?;
        all.iter().map(|object| typed(&**object)).collect()
    }

    /// As [`Lister::select`].
    ///
    /// # Errors
    /// The store can't be read, or an object, or one is of another type.
    pub async fn select(&self, namespace: &str, labels: &LabelSelector) -> Result<Vec<T>, StatusError> {
        let all = self.lister.select(namespace, labels).await?;
        all.iter().map(|object| typed(&**object)).collect()
    }
}
