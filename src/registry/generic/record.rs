//! Records: what a server keeps for itself in the store of a resource, as an object to which no path leads.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use keelson_machinery::object::Kind;
use keelson_machinery::reflect::Reflect;
use keelson_machinery::status::StatusError;
use keelson_machinery::{json, protobuf, yaml};
use keelson_storage::{Entry, Expect, ListOptions, Revision, StoreError, Write, Written};

use super::Resource;
use super::codec::StoredError;
use super::encryption::unreadable;
use super::write::MAX_LEASES;

/// One record. It is stored as the objects of its resource are: in the same store and form, encrypted like them.
pub struct Record<T> {
    resource: Arc<Resource>,
    key: String,
    kind: PhantomData<fn() -> T>,
}

/// A record as it was read or written.
pub struct Recorded<T> {
    /// What it holds.
    pub value: T,
    revision: Revision,
}

/// What became of a write.
pub enum Replaced<T> {
    /// It is durable.
    Done(Recorded<T>),
    /// Another writer was faster, and this is there now.
    Overtaken(Option<Recorded<T>>),
}

impl<T: Kind + Reflect + Default> Record<T> {
    /// The record at a path below the prefix of all keys: `ranges/servicenodeports`.
    pub fn new(resource: Arc<Resource>, path: &str) -> Record<T> {
        let own = format!("{}/", resource.storage.storage_path);
        let prefix = resource.key_prefix.strip_suffix(&own).unwrap_or(&resource.key_prefix);
        let key = format!("{prefix}{path}");
        Record {
            resource,
            key,
            kind: PhantomData,
        }
    }

    /// What is there; `None`: nothing.
    ///
    /// # Errors
    /// The store can't be read, or the record.
    pub async fn read(&self) -> Result<Option<Recorded<T>>, StatusError> {
        let got = self.resource.backend.store.get(&self.key).await;
        let got = got.map_err(|error| self.resource.store_error(error))?;
        self.recorded(got.entry).await
    }

    /// Writes it in the place of what was read or written before; `None`: there is nothing yet.
    ///
    /// # Errors
    /// The store fails, and it is not known whether it was written.
    pub async fn replace(&self, replaced: Option<&Recorded<T>>, value: T) -> Result<Replaced<T>, StatusError> {
        self.put(replaced, value, None).await
    }

    /// As [`Record::replace`]; it goes by itself when it has not been written for so long.
    ///
    /// # Errors
    /// As of that.
    pub async fn replace_for(
        &self,
        time: Duration,
        replaced: Option<&Recorded<T>>,
        value: T,
    ) -> Result<Replaced<T>, StatusError> {
        self.put(replaced, value, Some(time)).await
    }

    async fn put(
        &self,
        replaced: Option<&Recorded<T>>,
        value: T,
        time: Option<Duration>,
    ) -> Result<Replaced<T>, StatusError> {
        let expect = expected(replaced);
        let encoded = self.resource.encode_stored(&value)?;
        let sealed = self.resource.seal(&self.key, &encoded)?;
        let store = &self.resource.backend.store;
        let mut attempts = 0;
        let written = loop {
            attempts += 1;
            let lease = match time {
                Some(time) => Some(
                    store
                        .grant(time)
                        .await
                        .map_err(|error| self.resource.store_error(error))?,
                ),
                None => None,
            };
            let put = Write::Put {
                value: sealed.clone(),
                lease,
            };
            match store.write(&self.key, expect, put).await {
                Err(StoreError::LeaseNotFound(_)) if attempts < MAX_LEASES => {}
                done => break done.map_err(|error| self.resource.store_error(error))?,
            }
        };
        match written {
            Written::Done { revision } => Ok(Replaced::Done(Recorded { value, revision })),
            Written::Conflict { current, .. } => self.recorded(current).await.map(Replaced::Overtaken),
        }
    }

    /// Removes what was read or written before; false: another writer was faster.
    ///
    /// # Errors
    /// The store fails, and it is not known whether it was removed.
    pub async fn remove(&self, removed: &Recorded<T>) -> Result<bool, StatusError> {
        let expect = expected(Some(removed));
        let written = self
            .resource
            .backend
            .store
            .write(&self.key, expect, Write::Delete)
            .await;
        let written = written.map_err(|error| self.resource.store_error(error))?;
        Ok(matches!(written, Written::Done { .. }))
    }

    /// All records below this one, which is a folder, in the order of their paths.
    ///
    /// # Errors
    /// The store can't be read, or one of them.
    pub async fn below(&self) -> Result<Vec<T>, StatusError> {
        let prefix = format!("{}/", self.key);
        let listed = self.resource.backend.store.list(&prefix, ListOptions::default()).await;
        let listed = listed.map_err(|error| self.resource.store_error(error))?;
        let mut found = Vec::with_capacity(listed.entries.len());
        for entry in listed.entries {
            found.extend(self.recorded(Some(entry)).await?.map(|recorded| recorded.value));
        }
        Ok(found)
    }

    async fn recorded(&self, entry: Option<Entry>) -> Result<Option<Recorded<T>>, StatusError> {
        let Some(entry) = entry else { return Ok(None) };
        self.resource.prepare(&entry).await?;
        let stored = self.resource.plain_value(&entry);
        let stored = stored.map_err(|error| unreadable(&entry, &error))?;
        let value = decode(&stored).map_err(|error| {
            let key = &*entry.key;
            StatusError::internal_error(format!("unable to decode {key}: {error}"))
        })?;
        let revision = entry.mod_revision;
        Ok(Some(Recorded { value, revision }))
    }
}

fn expected<T>(there: Option<&Recorded<T>>) -> Expect {
    there.map_or(Expect::Absent, |recorded| Expect::Revision(recorded.revision))
}

fn decode<T: Reflect + Default>(stored: &[u8]) -> Result<T, StoredError> {
    let mut value = T::default();
    if protobuf::has_envelope(stored) {
        let unknown = protobuf::decode_envelope(stored)?;
        protobuf::read_message(unknown.raw, &mut value)?;
    } else if stored.starts_with(b"{") {
        json::read(stored, &mut value)?;
    } else {
        let text = yaml::to_json(stored)?;
        json::read(&text, &mut value)?;
    }
    Ok(value)
}
