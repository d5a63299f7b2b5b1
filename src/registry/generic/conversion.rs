//! Conversion: objects of one version of a resource as those of another. What asks others (a webhook) may have to wait:
//! stored objects are converted before they are read, many at once, and what came of it is kept with them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use keelson_machinery::json;
use keelson_machinery::managedfields::VersionError;
use keelson_machinery::object::Object;
use keelson_machinery::scheme::{KindDesc, KindRef};
use keelson_machinery::status::StatusError;
use keelson_storage::Entry;

use super::informer::{Change, Informer};
use super::{Resource, codec};
use crate::cache::{Derived, KindKey};

/// Objects that are converted together at most.
const BATCH_OBJECTS: usize = 500;
/// Entries that are prepared before it is known whether they are wanted.
const READ_AHEAD: usize = 100;
/// Bytes of them, as they are stored, from which on a batch is full.
const BATCH_BYTES: usize = 4 << 20;
/// How long a reader waits for what is converted ahead of it, before it asks itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// How objects of a resource get from one of its versions to another.
#[derive(Clone, Default)]
pub enum ConversionStrategy {
    /// By code of the build, through the hub version, which all versions share.
    #[default]
    Code,
    /// They differ in nothing but the version that they name. Each version is its own hub.
    None,
    /// Others do it. Each version is its own hub.
    Webhook(Arc<dyn Converter>),
}

/// Who converts.
pub trait Converter: Send + Sync {
    /// Objects of one resource, each of some other version of it, in this version: as many, in their order. They are as
    /// they are stored, with neither resource version nor defaults of the wanted version.
    fn convert(&self, objects: Vec<Box<dyn Object>>, to: &KindRef) -> Converted;
}

/// What comes of it; an error is told to the client.
pub type Converted = BoxFuture<'static, Result<Vec<Box<dyn Object>>, StatusError>>;

impl ConversionStrategy {
    /// Whether code sees objects in the version of the request, not in one that all versions share.
    pub fn has_hub_per_version(&self) -> bool {
        !matches!(self, ConversionStrategy::Code)
    }

    /// Who has to be asked.
    pub(super) fn converter(&self) -> Option<&Arc<dyn Converter>> {
        match self {
            ConversionStrategy::Webhook(converter) => Some(converter),
            ConversionStrategy::Code | ConversionStrategy::None => None,
        }
    }
}

/// An object in another version that has the same fields.
pub(super) fn renamed(object: &dyn Object, to: &KindDesc) -> Result<Box<dyn Object>, StatusError> {
    let text = text_of(object);
    let mut renamed = to.new_object();
    json::read(&text, renamed.as_reflect_mut()).map_err(|e| StatusError::internal_error(e.to_string()))?;
    Ok(renamed)
}

/// One object in another version, by whoever has to be asked.
pub(super) async fn ask(
    converter: &Arc<dyn Converter>,
    mut object: Box<dyn Object>,
    to: &KindRef,
) -> Result<Box<dyn Object>, StatusError> {
    let version = std::mem::take(&mut object.meta_mut().resource_version);
    let mut answer = converter.convert(vec![object], to).await?;
    let mut converted = answer.pop().ok_or_else(too_few)?;
    converted.meta_mut().resource_version = version;
    Ok(converted)
}

/// JSON of an object, a version, and what became of it there.
type KnownConversion = (Vec<u8>, KindRef, Box<dyn Object>);

/// Conversions for code that can't wait: what it lacks is asked for when it has ended, and it is run again.
#[derive(Default)]
pub(crate) struct ConversionMemo {
    /// JSON of objects, versions, and what became of them.
    known: RefCell<Vec<KnownConversion>>,
    wanted: RefCell<Option<(Box<dyn Object>, KindRef)>>,
}

impl ConversionMemo {
    /// The object in another version. An error means nothing where something is wanted behind it.
    pub fn find(&self, object: Box<dyn Object>, to: &KindRef) -> Result<Box<dyn Object>, VersionError> {
        let text = text_of(&*object);
        let known = self.known.borrow();
        if let Some((_, _, converted)) = known.iter().find(|(of, kind, _)| kind.is(to) && *of == text) {
            return Ok(converted.clone_object());
        }
        *self.wanted.borrow_mut() = Some((object, to.clone()));
        Err(VersionError::Missing)
    }

    /// Asks for what was missing. `false`: nothing was.
    pub async fn complete(&self, converter: Option<&Arc<dyn Converter>>) -> Result<bool, StatusError> {
        let wanted = self.wanted.borrow_mut().take();
        let (Some((object, to)), Some(converter)) = (wanted, converter) else {
            return Ok(false);
        };
        let text = text_of(&*object);
        let converted = ask(converter, object, &to).await?;
        self.known.borrow_mut().push((text, to, converted));
        Ok(true)
    }
}

fn text_of(object: &dyn Object) -> Vec<u8> {
    let mut text = Vec::new();
    json::write_kind(object, &mut text);
    text
}

fn too_few() -> StatusError {
    StatusError::internal_error("a conversion gave back fewer objects than it was given")
}

/// A stored object that has to be converted before it can be read.
struct Unconverted {
    entry: Entry,
    object: Box<dyn Object>,
}

impl Resource {
    /// An object of a version of this resource in another one, without waiting. Who has to be asked is a fault here.
    pub(super) fn converted_now(
        &self,
        object: Box<dyn Object>,
        from: &KindRef,
        to: &KindRef,
    ) -> Result<Box<dyn Object>, StatusError> {
        if from.is(to) {
            return Ok(object);
        }
        match &self.conversion {
            ConversionStrategy::Code => from
                .to_hub(object)
                .and_then(|hub| to.from_hub(hub))
                .map_err(codec::internal),
            ConversionStrategy::None => renamed(&*object, to),
            ConversionStrategy::Webhook(_) => Err(StatusError::internal_error(format!(
                "an object of version {} was to be converted to {} first",
                from.version, to.version
            ))),
        }
    }

    /// An object of a version of this resource in another one. Versions of [`Resource::hub`] are what code works with.
    ///
    /// # Errors
    /// There is no such conversion, or whoever converts fails.
    pub async fn converted(
        &self,
        object: Box<dyn Object>,
        from: &KindRef,
        to: &KindRef,
    ) -> Result<Box<dyn Object>, StatusError> {
        match self.conversion.converter() {
            Some(converter) if !from.is(to) => ask(converter, object, to).await,
            _ => self.converted_now(object, from, to),
        }
    }

    /// What others made of the object that an entry holds, in the hub version; `None`: nothing yet, or it needs nobody.
    pub(super) fn known_conversion(&self, entry: &Entry) -> Option<Bytes> {
        self.conversion.converter()?;
        Derived::of(entry)?.conversion(KindKey::of(&self.hub))
    }

    /// What is to be awaited before an entry can be decoded in the hub version: an answer of who converts. `None`:
    /// nothing. What can't be read at all is not waited for.
    pub(super) fn unconverted(&self, entry: &Entry) -> Option<BoxFuture<'static, Result<(), StatusError>>> {
        let converter = self.conversion.converter()?.clone();
        let batch = vec![self.to_convert(entry)?];
        Some(convert_and_keep(converter, batch, self.hub.clone()).boxed())
    }

    /// Whether reading objects may take asking somebody who converts.
    pub(super) fn asks_for_conversions(&self) -> bool {
        self.conversion.converter().is_some()
    }

    /// An empty batch.
    pub(super) fn batch(&self) -> Batch<'_> {
        Batch {
            resource: self,
            unconverted: Vec::new(),
            bytes: 0,
            is_ahead: false,
        }
    }

    /// Entries in their order, each when it can be decoded.
    pub(super) fn readable<I: Iterator<Item = Entry>>(&self, entries: I) -> Readable<'_, I> {
        Readable {
            resource: self,
            entries,
            ready: VecDeque::new(),
        }
    }

    /// Has an entry converted anew that a client asks for by name: by now others may make something else of it. What
    /// they make takes the place of what was kept.
    pub(super) async fn convert_anew(&self, entry: &Entry) -> Result<(), StatusError> {
        let Some(converter) = self.conversion.converter() else {
            return Ok(());
        };
        if let Some(asked) = self.undecrypted(entry) {
            asked.await;
        }
        match self.foreign(entry) {
            Some(one) => convert_and_keep(converter.clone(), vec![one], self.hub.clone()).await,
            None => Ok(()),
        }
    }

    /// Whether its objects are converted before they are asked for: others do it, and they are stored in another
    /// version.
    pub(super) fn converts_ahead(&self) -> bool {
        self.asks_for_conversions() && !self.hub.is(&self.storage)
    }

    /// Has objects converted as they are written, so that lists and watches find them converted. Returns when the
    /// resource is not served any more.
    pub async fn convert_ahead(self: Arc<Self>) {
        let mut retired = self.retired.subscribe();
        let mut informer = Informer::new(self.clone());
        loop {
            let changes = tokio::select! {
                _ = retired.wait_for(|retired| *retired) => return,
                changes = informer.next() => changes,
            };
            let Some(changes) = changes else { return };
            let _busy = self.converting.lock().await;
            let mut batch = self.batch();
            batch.is_ahead = true;
            for change in &changes.all {
                if let Err(error) = batch.add_change(change).await {
                    tracing::debug!(%error, resource = %self.plural, "objects could not be converted ahead");
                }
            }
            if let Err(error) = batch.convert().await {
                tracing::debug!(%error, resource = %self.plural, "objects could not be converted ahead");
            }
        }
    }

    fn to_convert(&self, entry: &Entry) -> Option<Unconverted> {
        match self.known_conversion(entry) {
            Some(_) => None,
            None => self.foreign(entry),
        }
    }

    /// An entry that others have to convert, be it converted or not.
    fn foreign(&self, entry: &Entry) -> Option<Unconverted> {
        self.conversion.converter()?;
        let value = self.plain_value(entry).ok()?;
        let (kind, object) = self.decode_stored(&value).ok()?;
        (!kind.is(&self.hub)).then(|| Unconverted {
            entry: entry.clone(),
            object,
        })
    }
}

/// Stored objects that are converted together. Who needs no conversion takes no place in it.
pub(super) struct Batch<'a> {
    resource: &'a Resource,
    unconverted: Vec<Unconverted>,
    bytes: usize,
    /// Nobody has asked for them yet.
    is_ahead: bool,
}

impl Batch<'_> {
    /// Adds what an object has become.
    async fn add_change(&mut self, change: &Change) -> Result<(), StatusError> {
        let Some(entry) = change.entry() else {
            return Ok(());
        };
        if let Some(asked) = self.resource.undecrypted(entry) {
            asked.await;
        }
        self.add(entry).await
    }

    /// Adds what an entry holds, which can be decrypted by now. Converts the batch when it is full.
    pub async fn add(&mut self, entry: &Entry) -> Result<(), StatusError> {
        if let Some(unconverted) = self.resource.to_convert(entry) {
            self.unconverted.push(unconverted);
            self.bytes += entry.value.len();
        }
        match self.unconverted.len() >= BATCH_OBJECTS || self.bytes >= BATCH_BYTES {
            true => self.convert().await,
            false => Ok(()),
        }
    }

    /// Converts what is in it.
    pub async fn convert(&mut self) -> Result<(), StatusError> {
        let mut batch = std::mem::take(&mut self.unconverted);
        self.bytes = 0;
        if !self.is_ahead && !batch.is_empty() && self.resource.converts_ahead() {
            // What is converted just now is not asked for twice, unless that takes long.
            let waited = tokio::time::timeout(PATIENCE, self.resource.converting.lock()).await;
            drop(waited);
            batch.retain(|one| self.resource.known_conversion(&one.entry).is_none());
        }
        match self.resource.conversion.converter() {
            Some(converter) if !batch.is_empty() => {
                convert_and_keep(converter.clone(), batch, self.resource.hub.clone()).await
            }
            _ => Ok(()),
        }
    }
}

/// Entries that are prepared when it is their turn, a few ahead where that takes asking.
pub(super) struct Readable<'a, I> {
    resource: &'a Resource,
    entries: I,
    ready: VecDeque<Entry>,
}

impl<I: Iterator<Item = Entry>> Readable<'_, I> {
    /// The next one. An error is one of the conversion.
    pub async fn next(&mut self) -> Result<Option<Entry>, StatusError> {
        if let Some(ready) = self.ready.pop_front() {
            return Ok(Some(ready));
        }
        if !self.resource.asks_for_conversions() {
            let Some(entry) = self.entries.next() else {
                return Ok(None);
            };
            self.resource.prepare(&entry).await?;
            return Ok(Some(entry));
        }
        self.ready.extend(self.entries.by_ref().take(READ_AHEAD));
        let mut batch = self.resource.batch();
        for entry in &self.ready {
            if let Some(asked) = self.resource.undecrypted(entry) {
                asked.await;
            }
            batch.add(entry).await?;
        }
        batch.convert().await?;
        Ok(self.ready.pop_front())
    }
}

async fn convert_and_keep(
    converter: Arc<dyn Converter>,
    batch: Vec<Unconverted>,
    to: KindRef,
) -> Result<(), StatusError> {
    let (entries, objects): (Vec<Entry>, Vec<_>) = batch.into_iter().map(|one| (one.entry, one.object)).unzip();
    let converted = converter.convert(objects, &to).await?;
    if converted.len() != entries.len() {
        return Err(too_few());
    }
    for (entry, object) in entries.iter().zip(converted) {
        if let Some(derived) = Derived::of(entry) {
            derived.renew_conversion(KindKey::of(&to), text_of(&*object).into());
        }
    }
    Ok(())
}
