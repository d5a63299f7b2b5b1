//! Encryption at rest: between what a store keeps and the bytes of objects.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use keelson_base::cooperative::Slices;
use keelson_machinery::field::text::quote;
use keelson_machinery::status::StatusError;
use keelson_storage::Entry;
use keelson_storage::encryption::{ForResource, PREFIX, TransformError, Transformer};

use super::Resource;
use crate::cache::{Derived, Items, KindKey, Made, Rendition};

impl Resource {
    /// What stands between this resource's objects and what the store keeps of them.
    pub(crate) fn transformer(&self) -> &ForResource {
        &self.transformer
    }

    /// What is to be awaited before an entry is read, so that a key management service that has not answered yet holds
    /// up nobody but who needs it. `None`: nothing.
    pub(super) fn undecrypted(&self, entry: &Entry) -> Option<BoxFuture<'static, ()>> {
        if !self.backend.encryption.has_services() || !entry.value.starts_with(PREFIX) {
            return None;
        }
        let derived = Derived::of(entry);
        if derived.is_some_and(|derived| derived.rendition(KindKey::of(&self.storage), Made::Decrypted).is_some()) {
            return None;
        }
        self.transformer.prepare(&entry.value)
    }

    /// What is to be awaited before an entry is read: what decrypts it, then what converts it. To be asked again behind
    /// that, for what comes next; an error is one of the conversion. `None`: nothing.
    pub fn unprepared(&self, entry: &Entry) -> Option<BoxFuture<'static, Result<(), StatusError>>> {
        match self.undecrypted(entry) {
            Some(asked) => Some(asked.map(Ok).boxed()),
            None => self.unconverted(entry),
        }
    }

    /// Returns when an entry can be read at once, or can't be. An error is one of the conversion.
    pub(crate) async fn prepare(&self, entry: &Entry) -> Result<(), StatusError> {
        if let Some(asked) = self.undecrypted(entry) {
            asked.await;
        }
        match self.unconverted(entry) {
            Some(asked) => asked.await,
            None => Ok(()),
        }
    }

    /// The same for each of many; those that have to be converted are so together.
    pub async fn prepare_all(&self, items: &Items) -> Result<(), StatusError> {
        if !self.backend.encryption.has_services() && !self.asks_for_conversions() {
            return Ok(());
        }
        let mut batch = self.batch();
        let mut slices = Slices::begin();
        for entry in items.clone().entries() {
            if let Some(asked) = self.undecrypted(&entry) {
                asked.await;
            }
            batch.add(&entry).await?;
            slices.between().await;
        }
        batch.convert().await
    }

    /// The bytes of the object that an entry holds. What is decrypted is kept in memory with the renditions of its
    /// version, so that this is done once.
    pub(super) fn plain_value(&self, entry: &Entry) -> Result<Bytes, TransformError> {
        if !entry.value.starts_with(PREFIX) {
            return Ok(self.transformer.open(&entry.value, &entry.key)?.value);
        }
        let kind = KindKey::of(&self.storage);
        let derived = Derived::of(entry);
        if let Some(Rendition::Plain(known)) = derived.and_then(|derived| derived.rendition(kind, Made::Decrypted)) {
            return Ok(known);
        }
        let opened = self.transformer.open(&entry.value, &entry.key)?.value;
        if let Some(derived) = derived {
            let kept = Rendition::Plain(opened.clone());
            derived.keep(&entry.held, kind, Made::Decrypted, kept, &self.backend.budget);
        }
        Ok(opened)
    }

    /// Whether an entry holds this value, in the way in which it would be stored today.
    pub(super) fn holds(&self, entry: &Entry, value: &[u8]) -> Result<bool, StatusError> {
        if self.plain_value(entry).map_err(StatusError::internal_error)? != value {
            return Ok(false);
        }
        let opened = self.transformer.open(&entry.value, &entry.key);
        Ok(!opened.map_err(StatusError::internal_error)?.stale)
    }

    /// What is to be stored of a value under this key.
    pub(super) fn seal(&self, key: &str, value: &[u8]) -> Result<Bytes, StatusError> {
        let sealed = self.transformer.seal(value, key);
        sealed.map(Bytes::from).map_err(StatusError::internal_error)
    }

    /// Refuses an entry that was read by itself and can't be decrypted.
    pub(super) fn check_readable(&self, entry: &Entry) -> Result<(), StatusError> {
        let read = self.plain_value(entry);
        read.map(drop).map_err(StatusError::internal_error)
    }

    /// Refuses a list with an entry that can't be decrypted or converted, or is known to be corrupt, before anything of
    /// it is sent.
    pub async fn check_all_readable(&self, items: &Items) -> Result<(), StatusError> {
        self.prepare_all(items).await?;
        self.check_none_corrupt(items).await?;
        if !self.backend.encryption.is_configured() {
            return Ok(());
        }
        let mut slices = Slices::begin();
        for entry in items.clone().entries() {
            self.plain_value(&entry).map_err(|error| unreadable(&entry, &error))?;
            slices.between().await;
        }
        Ok(())
    }
}

/// One of several entries can't be decrypted: says which.
pub(super) fn unreadable(entry: &Entry, error: &TransformError) -> StatusError {
    StatusError::internal_error(format!("unable to transform key {}: {error}", quote(&entry.key)))
}
