//! Corrupt objects: entries of the store that can't be decrypted or decoded.
//!
//! One hurts itself alone: reads and writes of it fail by name, a list or a watch that has it fails with its key, and
//! all others go on. Each version that is met is logged once with its key and counted. What is known to be corrupt is
//! remembered, since a long list meets it only when much of the answer is on its way: the next one is refused before.
//! Whoever may do so removes it with `ignoreStoreReadErrorWithClusterBreakingPotential`, as with kube-apiserver's
//! feature `AllowUnsafeMalformedObjectDeletion`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keelson_access::request_info::RequestInfo;
use keelson_base::cooperative::Slices;
use keelson_machinery::field::text::quote;
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_machinery::status::{Cause, STALE, StatusError};
use keelson_storage::{Entry, Expect, Revision, Write, Written};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::Resource;
use super::delete::Deleted;
use super::verbs::Target;
use crate::cache::Items;

/// How many are remembered, and named in one answer, as kube-apiserver names them.
const MAX_NAMED: usize = 100;
/// How often a removal is tried while others write.
const MAX_ATTEMPTS: usize = 64;
/// The right to remove one.
const VERB: &str = "unsafe-delete-ignore-read-errors";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    group: String,
    resource: String,
}

/// The corrupt objects that a server has met.
#[derive(Clone, Default)]
pub struct CorruptObjects {
    known: Arc<Known>,
    errors: Family<Labels, Counter>,
}

#[derive(Default)]
struct Known {
    /// Whether there is any: all that a list of good objects looks at.
    any: AtomicBool,
    by_key: Mutex<BTreeMap<String, Found>>,
}

struct Found {
    revision: Revision,
    reason: String,
}

impl CorruptObjects {
    /// Shows how often decoding failed, by resource.
    pub fn register(&self, registry: &mut Registry) {
        let text = "Objects that were read from the store and could not be decoded";
        registry.register("apiserver_storage_decode_errors", text, self.errors.clone());
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Found>> {
        self.known.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers one; whether this version of it is new.
    fn add(&self, entry: &Entry, reason: &str) -> bool {
        let mut known = self.known();
        let seen = known
            .get(&*entry.key)
            .is_some_and(|found| found.revision == entry.mod_revision);
        if seen {
            return false;
        }
        if known.len() >= MAX_NAMED && !known.contains_key(&*entry.key) {
            known.pop_first();
        }
        let found = Found {
            revision: entry.mod_revision,
            reason: reason.to_owned(),
        };
        known.insert(entry.key.to_string(), found);
        self.known.any.store(true, Ordering::Release);
        true
    }

    fn remove(&self, key: &str) {
        let mut known = self.known();
        known.remove(key);
        self.known.any.store(!known.is_empty(), Ordering::Release);
    }

    fn any_below(&self, prefix: &str) -> bool {
        let below = || {
            let known = self.known();
            known
                .range(prefix.to_owned()..)
                .next()
                .is_some_and(|(key, _)| key.starts_with(prefix))
        };
        self.known.any.load(Ordering::Acquire) && below()
    }

    /// Why this very version of an object can't be read, if that is known.
    fn reason(&self, entry: &Entry) -> Option<String> {
        let known = self.known();
        let found = known.get(&*entry.key)?;
        (found.revision == entry.mod_revision).then(|| found.reason.clone())
    }
}

impl Resource {
    /// Tells that an entry can't be decoded, for a reason that lies in the entry alone; the error of whoever reads it.
    pub(super) fn corrupt(&self, entry: &Entry, reason: &str) -> StatusError {
        let corrupt = &self.backend.corrupt;
        let labels = Labels {
            group: self.group.to_string(),
            resource: self.plural.to_string(),
        };
        corrupt.errors.get_or_create(&labels).inc();
        if corrupt.add(entry, reason) {
            tracing::error!(key = &*entry.key, reason, "an object in the store can't be decoded");
        }
        StatusError::internal_error(format!("unable to decode {}: {reason}", entry.key))
    }

    /// Refuses a list that holds objects which can't be decoded, where it is known that the resource has any: with the
    /// key of each.
    ///
    /// # Errors
    /// 500 `StoreReadError` with a cause for each.
    pub async fn check_none_corrupt(&self, items: &Items) -> Result<(), StatusError> {
        if !self.backend.corrupt.any_below(&self.key_prefix) {
            return Ok(());
        }
        let (mut causes, mut slices) = (Vec::new(), Slices::begin());
        for entry in items.clone().entries() {
            slices.between().await;
            if self.decode(&entry).is_ok() {
                continue;
            }
            let Some(reason) = self.backend.corrupt.reason(&entry) else {
                continue;
            };
            if causes.len() == MAX_NAMED {
                causes.push(cause(
                    "FieldValueTooMany",
                    "",
                    "too many errors, the list is truncated".to_owned(),
                ));
                break;
            }
            causes.push(cause("UnexpectedServerResponse", &entry.key, text(&entry, &reason)));
        }
        match causes.is_empty() {
            true => Ok(()),
            false => Err(StatusError::store_read_error(&self.group, &self.plural, causes)),
        }
    }

    /// Deletes an object that can't be read, for whoever may: without preconditions, finalizers and plug-ins, as all of
    /// these would have to read it. One that can be read is deleted as always.
    ///
    /// # Errors
    /// 403, 404, 409 where others keep writing it.
    pub(super) async fn delete_unread(
        &self,
        target: &Target<'_>,
        options: &DeleteOptions,
    ) -> Result<Deleted, StatusError> {
        let key = self.key(&target.context.namespace, target.name)?;
        for _ in 0..MAX_ATTEMPTS {
            let got = self.backend.store.get(&key).await.map_err(|e| self.store_error(e))?;
            let Some(entry) = got.entry else {
                return Err(self.not_found(target.name));
            };
            self.prepare(&entry).await?;
            if self.decode(&entry).is_ok() {
                return self.delete(target, options).await;
            }
            self.confirm_unread(target).await?;
            if target.context.dry_run {
                return Ok(self.deleted_unread(target));
            }
            let write = self
                .backend
                .store
                .write(&key, Expect::Revision(entry.mod_revision), Write::Delete);
            if let Written::Done { .. } = write.await.map_err(|e| self.store_error(e))? {
                tracing::warn!(key, "an object that can't be decoded was removed, as a client insisted");
                self.backend.corrupt.remove(&key);
                return Ok(self.deleted_unread(target));
            }
        }
        Err(StatusError::conflict(&self.group, &self.plural, target.name, STALE))
    }

    async fn confirm_unread(&self, target: &Target<'_>) -> Result<(), StatusError> {
        let context = target.context;
        context.annotate("apiserver.k8s.io/unsafe-delete-ignore-read-error", String::new);
        let wanted = RequestInfo {
            verb: VERB.into(),
            ..(*context.asked).clone()
        };
        context.confirm(&wanted).await
    }

    /// Nothing is known of it but its name.
    fn deleted_unread(&self, target: &Target<'_>) -> Deleted {
        let mut object = self.hub.new_object();
        target.name.clone_into(&mut object.meta_mut().name);
        target.context.namespace.clone_into(&mut object.meta_mut().namespace);
        Deleted { object, gone: true }
    }
}

fn cause(reason: &'static str, field: &str, message: String) -> Cause {
    Cause {
        reason: reason.into(),
        field: field.into(),
        message,
    }
}

fn text(entry: &Entry, reason: &str) -> String {
    format!("unable to decode {}: {reason}", quote(&entry.key))
}
