//! Reads: one object, a list, the start of a watch.

use std::time::Duration;

use keelson_base::cooperative::Slices;
use keelson_machinery::field::text::quote;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_storage::{Entry, ListOptions, Revision, StoreError, WatchStream};

use super::{NamespacedName, Resource};

/// How long a read waits for a revision that has not come yet, in seconds, as kube-apiserver's watch cache does.
const FUTURE_REVISION_WAIT: Duration = Duration::from_secs(3);
const FUTURE_REVISION_POLL: Duration = Duration::from_millis(50);

/// An object and the revision it was read at.
pub struct Stored {
    /// The object, of the hub version.
    pub object: Box<dyn Object>,
    /// As the store has it.
    pub entry: Entry,
}

/// Why a name cannot be one segment of a path.
fn unfit_for_path(name: &str) -> Option<String> {
    if matches!(name, "." | "..") {
        return Some(format!("may not be '{name}'"));
    }
    let bad = ['/', '%'].into_iter().find(|c| name.contains(*c))?;
    Some(format!("may not contain '{bad}'"))
}

/// A text that is no resource version, in Go's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RevisionError {
    /// No number.
    #[error("strconv.ParseUint: parsing {}: invalid syntax", quote(.0))]
    Syntax(String),
    /// A number that 64 bits don't hold.
    #[error("strconv.ParseUint: parsing {}: value out of range", quote(.0))]
    Range(String),
}

/// A resource version as clients write it; "" and zero are none.
///
/// # Errors
/// It is no number of 64 bits.
pub fn parse_revision(text: &str) -> Result<Option<Revision>, RevisionError> {
    if text.is_empty() {
        return Ok(None);
    }
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(RevisionError::Syntax(text.to_owned()));
    }
    let number: u64 = text.parse().map_err(|_| RevisionError::Range(text.to_owned()))?;
    Ok((number > 0).then_some(Revision(number)))
}

impl Resource {
    /// `ns/name` below the key prefix. Names were checked by then or come from a path: what could leave the prefix is
    /// refused as kube-apiserver refuses it.
    pub fn key(&self, namespace: &str, name: &str) -> Result<String, StatusError> {
        if self.hub.namespaced && namespace.is_empty() {
            return Err(StatusError::bad_request("Namespace parameter required."));
        }
        if name.is_empty() {
            return Err(StatusError::bad_request("Name parameter required."));
        }
        if let Some(why) = unfit_for_path(name) {
            return Err(StatusError::bad_request(format!(
                "Name parameter invalid: {}: {why}",
                quote(name)
            )));
        }
        if !self.hub.namespaced {
            return Ok(format!("{}{name}", self.key_prefix));
        }
        self.check_namespace(namespace, &format!("/{name}"))?;
        Ok(format!("{}{namespace}/{name}", self.key_prefix))
    }

    /// A namespace out of a path must not lead out of the resource's prefix. `rest`: what follows it in the key.
    fn check_namespace(&self, namespace: &str, rest: &str) -> Result<(), StatusError> {
        if !matches!(namespace, "." | "..") && !namespace.contains('/') {
            return Ok(());
        }
        let path = &self.storage.storage_path;
        Err(StatusError::unknown(format!(
            "invalid key: \"/{path}/{namespace}{rest}\""
        )))
    }

    /// The prefix of all objects, or of those in one namespace.
    pub fn prefix(&self, namespace: &str) -> Result<String, StatusError> {
        if !self.hub.namespaced || namespace.is_empty() {
            return Ok(self.key_prefix.clone());
        }
        self.check_namespace(namespace, "")?;
        Ok(format!("{}{namespace}/", self.key_prefix))
    }

    /// One object in the hub version; 404 if it is absent.
    pub async fn get(&self, namespace: &str, name: &str) -> Result<Stored, StatusError> {
        self.find(namespace, name).await?.ok_or_else(|| self.not_found(name))
    }

    /// The stored form of one object; 404 if it is absent.
    pub(crate) async fn entry(&self, namespace: &str, name: &str) -> Result<Entry, StatusError> {
        self.find_entry(namespace, name)
            .await?
            .ok_or_else(|| self.not_found(name))
    }

    /// The same, converted anew where others do that; 404 if it is absent.
    pub(crate) async fn entry_anew(&self, namespace: &str, name: &str) -> Result<Entry, StatusError> {
        if !self.converts_ahead() {
            return self.entry(namespace, name).await;
        }
        let key = self.key(namespace, name)?;
        let got = self.backend.store.get(&key).await.map_err(|e| self.store_error(e))?;
        let entry = got.entry.ok_or_else(|| self.not_found(name))?;
        self.convert_anew(&entry).await?;
        self.check_readable(&entry)?;
        Ok(entry)
    }

    /// One object in the hub version; `None`: it is absent.
    pub async fn find(&self, namespace: &str, name: &str) -> Result<Option<Stored>, StatusError> {
        let Some(entry) = self.find_entry(namespace, name).await? else {
            return Ok(None);
        };
        Ok(Some(Stored {
            object: self.decode(&entry)?,
            entry,
        }))
    }

    /// Whether an object is marked as deleted; `None`: there is none. That it is there unmarked may have been true a
    /// moment ago, before another server marked it (see [`keelson_storage::Store::recall`]).
    pub async fn find_deleted(&self, namespace: &str, name: &str) -> Result<Option<bool>, StatusError> {
        let recalled = self.backend.store.recall(&self.key_prefix, &self.key(namespace, name)?);
        if let Some(entry) = recalled {
            self.prepare(&entry).await?;
            if self.meta(&entry).is_ok_and(|meta| !meta.deleted) {
                return Ok(Some(false));
            }
        }
        let entry = self.find_entry(namespace, name).await?;
        entry
            .map(|entry| self.meta(&entry).map(|meta| meta.deleted))
            .transpose()
    }

    /// The stored form of one object; `None`: there is none.
    pub(super) async fn find_entry(&self, namespace: &str, name: &str) -> Result<Option<Entry>, StatusError> {
        let key = self.key(namespace, name)?;
        let got = self.backend.store.get(&key).await.map_err(|e| self.store_error(e))?;
        if let Some(entry) = &got.entry {
            self.prepare(entry).await?;
            self.check_readable(entry)?;
        }
        Ok(got.entry)
    }

    /// Which object a key is that of; `None`: of none that this resource can have.
    pub(super) fn name_of(&self, key: &str) -> Option<NamespacedName> {
        let rest = key.strip_prefix(&*self.key_prefix)?;
        let (namespace, name) = match self.hub.namespaced {
            true => rest.split_once('/')?,
            false => ("", rest),
        };
        Some(NamespacedName {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Waits until the store has reached `revision`; 504 when it does not come.
    pub async fn wait_for(&self, revision: Revision) -> Result<(), StatusError> {
        let mut waited = Duration::ZERO;
        loop {
            let current = self
                .backend
                .store
                .current_revision()
                .await
                .map_err(|e| self.store_error(e))?;
            if current >= revision {
                return Ok(());
            }
            if waited >= FUTURE_REVISION_WAIT {
                return Err(StatusError::too_large_resource_version(revision.0, current.0));
            }
            tokio::time::sleep(FUTURE_REVISION_POLL).await;
            waited += FUTURE_REVISION_POLL;
        }
    }

    /// All objects of a namespace in the hub version, or of all namespaces.
    pub async fn all(&self, namespace: &str) -> Result<Vec<Box<dyn Object>>, StatusError> {
        let prefix = self.prefix(namespace)?;
        let listed = self.backend.store.list(&prefix, ListOptions::default()).await;
        let listed = listed.map_err(|e| self.store_error(e))?;
        let mut slices = Slices::begin();
        let mut all = Vec::with_capacity(listed.entries.len());
        let mut entries = self.readable(listed.entries.into_iter());
        while let Some(entry) = entries.next().await? {
            all.push(self.decode(&entry)?);
            slices.between().await;
        }
        Ok(all)
    }

    /// Whether there is an object of this name, as far as memory knows at this moment; `None`: it knows nothing now.
    pub fn is_held(&self, namespace: &str, name: &str) -> Option<bool> {
        let held = self.backend.store.held(&self.key_prefix)?;
        Some(held.get(&self.key(namespace, name).ok()?).is_some())
    }

    /// Has memory know what is there: a store that lies elsewhere holds these objects in memory from then on.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn hold(&self) -> Result<(), StatusError> {
        if self.backend.store.held_position(&self.key_prefix).is_some() {
            return Ok(());
        }
        let held = self.backend.store.snapshot(&self.key_prefix).await;
        held.map(drop).map_err(|e| self.store_error(e))
    }

    /// The newest revision of the store that has this resource (linearizable).
    pub async fn revision(&self) -> Result<Revision, StatusError> {
        let newest = self.backend.store.current_revision().await;
        newest.map_err(|e| self.store_error(e))
    }

    /// Events after a revision.
    pub async fn watch(&self, prefix: &str, after: Revision) -> Result<WatchStream, StoreError> {
        self.backend.store.watch(prefix, after).await
    }

    /// 404 for an object of this resource.
    pub fn not_found(&self, name: &str) -> StatusError {
        StatusError::not_found(&self.group, &self.plural, name)
    }

    /// A store's failure as clients see it.
    pub fn store_error(&self, error: StoreError) -> StatusError {
        match error {
            StoreError::Compacted { .. } => {
                StatusError::expired("The resourceVersion for the provided list is too old.")
            }
            StoreError::Future { wanted, current } => StatusError::too_large_resource_version(wanted.0, current.0),
            StoreError::Unavailable(_) | StoreError::Closed => StatusError::service_unavailable(error.to_string()),
            StoreError::Corrupt(_) | StoreError::LeaseNotFound(_) => StatusError::internal_error(error.to_string()),
        }
    }
}
