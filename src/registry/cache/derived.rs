//! Derived values: what is made of one version of an object, once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use keelson_machinery::object::MetaVersion;
use keelson_machinery::scheme::KindDesc;
use keelson_machinery::table::RowTemplate;
use keelson_storage::{Entry, Revision, Version};

use super::{Block, Budget};

/// What is asked of an object without having it decoded.
#[derive(Debug, Default)]
pub struct Meta {
    /// The fields that it has the values of.
    pub of: u64,
    /// It is marked as deleted.
    pub deleted: bool,
    /// Sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Values of the kind's selectable fields, in their order.
    pub fields: Box<[Box<str>]>,
    /// The same for other fields: a kind that was replaced while the entry stayed may have others.
    pub next: OnceLock<Box<Meta>>,
}

impl PartialEq for Meta {
    fn eq(&self, other: &Meta) -> bool {
        let told = |meta: &Meta| (meta.of, meta.deleted);
        told(self) == told(other) && self.labels == other.labels && self.fields == other.fields
    }
}

impl Meta {
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        self.labels.get(at).map(|(_, value)| &**value)
    }
}

/// Which version of a kind: the number of its description, which no other one will have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KindKey(u64);

impl KindKey {
    pub fn of(kind: &KindDesc) -> KindKey {
        KindKey(kind.id())
    }
}

/// A form in which an object goes out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// The JSON object without kind and apiVersion, as it stands in a list.
    Json,
    /// The protobuf message without its envelope.
    Protobuf,
    /// PartialObjectMetadata as JSON, with its type.
    Metadata(MetaVersion),
    /// PartialObjectMetadata in protobuf without its envelope, the same in all versions.
    MetadataProtobuf,
}

impl Shape {
    pub fn is_protobuf(self) -> bool {
        matches!(self, Shape::Protobuf | Shape::MetadataProtobuf)
    }
}

/// What is made of one version of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Made {
    Shape(Shape),
    /// With the resource version at which the object went, as watches show it.
    Gone(Shape),
    /// As an item of a list (in protobuf with tag and length), as a block of gzip.
    Gzip(Shape),
    /// What a Table shows of it beside the object.
    Row,
    /// The same with the resource version at which the object went.
    RowGone,
    /// The stored value, decrypted.
    Decrypted,
}

impl Made {
    /// With the revision at which the object went, if it did.
    pub fn shape(shape: Shape, gone: Option<Revision>) -> Made {
        match gone {
            Some(_) => Made::Gone(shape),
            None => Made::Shape(shape),
        }
    }
}

/// Bytes, or nearly.
#[derive(Clone)]
pub enum Rendition {
    Plain(Bytes),
    Gzip(Block),
    Row(Arc<RowTemplate>),
}

impl Rendition {
    fn size(&self) -> usize {
        /// What keeping one costs beside its bytes.
        const OVERHEAD: usize = 96;
        OVERHEAD
            + match self {
                Rendition::Plain(bytes) => bytes.len(),
                Rendition::Gzip(block) => block.bytes.len(),
                Rendition::Row(row) => row.size(),
            }
    }
}

/// Kept with a version in the store's memory; see [`Entry::derived`].
#[derive(Default)]
pub struct Derived {
    meta: OnceLock<Meta>,
    kept: Mutex<Kept>,
    used: AtomicBool,
}

#[derive(Default)]
struct Kept {
    /// By version of the kind.
    renditions: Vec<(KindKey, Made, Rendition)>,
    /// JSON that others made of the stored object, by version of the kind. To make it again would be to ask again, so
    /// it stays as long as the version does.
    conversions: Vec<(KindKey, Bytes)>,
    budget: Option<Arc<Budget>>,
}

impl Kept {
    fn size(&self) -> usize {
        self.renditions.iter().map(|(_, _, rendition)| rendition.size()).sum()
    }
}

impl Derived {
    /// What is derived from an entry; `None` if something else is kept there, which no code of this server does.
    pub fn of(entry: &Entry) -> Option<&Derived> {
        entry.derived(Derived::default)
    }

    /// With the values of these fields.
    pub fn meta(&self, of: u64) -> Option<&Meta> {
        let mut meta = self.meta.get()?;
        while meta.of != of {
            meta = meta.next.get()?;
        }
        Some(meta)
    }

    /// Keeps it, unless it is there; there are as many as the kind has had lists of fields while the version stood.
    pub fn set_meta(&self, meta: Meta) -> &Meta {
        let of = meta.of;
        let mut new = Some(meta);
        let mut held = self.meta.get_or_init(|| new.take().unwrap_or_default());
        while held.of != of {
            held = held.next.get_or_init(|| Box::new(new.take().unwrap_or_default()));
        }
        held
    }

    pub fn rendition(&self, kind: KindKey, made: Made) -> Option<Rendition> {
        let kept = self.kept();
        let found = kept.renditions.iter().find(|(v, m, _)| (*v, *m) == (kind, made));
        let found = found.map(|(_, _, rendition)| rendition.clone());
        if found.is_some() && !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        found
    }

    /// Keeps a rendition, unless another thread did so first.
    pub fn keep(&self, of: &Arc<Version>, kind: KindKey, made: Made, rendition: Rendition, budget: &Arc<Budget>) {
        let bytes = rendition.size();
        // Counted before it is there, so that whoever lets it go finds it counted; nothing is locked here.
        budget.charge(bytes);
        let mut kept = self.kept();
        if kept.renditions.iter().any(|(v, m, _)| (*v, *m) == (kind, made)) {
            budget.release(bytes);
            return;
        }
        kept.renditions.push((kind, made, rendition));
        let first = kept.budget.is_none();
        if first {
            kept.budget = Some(budget.clone());
        }
        drop(kept);
        if first {
            budget.enter(of);
        }
    }

    /// What others made of the stored object, in a version of its kind.
    pub fn conversion(&self, kind: KindKey) -> Option<Bytes> {
        let kept = self.kept();
        let found = kept.conversions.iter().find(|(of, _)| *of == kind);
        found.map(|(_, text)| text.clone())
    }

    /// Keeps what others made of the stored object now. What was made of it before goes, if it is another text.
    pub fn renew_conversion(&self, kind: KindKey, text: Bytes) {
        let mut kept = self.kept();
        let Some(known) = kept.conversions.iter_mut().find(|(of, _)| *of == kind) else {
            kept.conversions.push((kind, text));
            return;
        };
        if known.1 == text {
            return;
        }
        known.1 = text;
        let before = kept.size();
        kept.renditions.retain(|(of, _, _)| *of != kind);
        let released = before - kept.size();
        if let Some(budget) = &kept.budget {
            budget.release(released);
        }
    }

    /// Lets the renditions go and says how large they were; `None`: they were used since the last call.
    pub(super) fn take_unless_used(&self) -> Option<usize> {
        if self.used.swap(false, Ordering::Relaxed) {
            return None;
        }
        let mut kept = self.kept();
        let bytes = kept.size();
        kept.renditions = Vec::new();
        kept.budget = None;
        Some(bytes)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Derived {
    fn drop(&mut self) {
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = kept.budget.take() {
            budget.leave(kept.size());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 1000;
    const JSON: Made = Made::Shape(Shape::Json);

    fn entry(n: usize) -> Entry {
        Entry::new(format!("/{n}"), Version::new(Bytes::new(), Revision(2), Revision(2), 1))
    }

    fn render(entry: &Entry, budget: &Arc<Budget>) {
        let bytes = Bytes::from(vec![b'x'; SIZE]);
        let derived = Derived::of(entry).unwrap();
        derived.keep(&entry.held, KindKey(0), JSON, Rendition::Plain(bytes), budget);
    }

    fn has(entry: &Entry) -> bool {
        Derived::of(entry).unwrap().rendition(KindKey(0), JSON).is_some()
    }

    #[test]
    fn renditions_stay_within_the_budget_and_the_used_ones_stay_longest() {
        let budget = Budget::new(10 * (SIZE + 200));
        let entries: Vec<Entry> = (0..10).map(entry).collect();
        entries.iter().for_each(|entry| render(entry, &budget));
        assert!(has(&entries[0]), "used");
        let more: Vec<Entry> = (10..15).map(entry).collect();
        more.iter().for_each(|entry| render(entry, &budget));
        assert!(budget.used() <= budget.limit(), "{}", budget.used());
        assert!(has(&entries[0]) && has(&more[4]));
        assert!(!has(&entries[1]));
        render(&entries[1], &budget);
        assert!(has(&entries[1]), "made again");
    }

    #[test]
    fn versions_that_go_leave_the_books() {
        let budget = Budget::new(usize::MAX);
        for n in 0..5000 {
            render(&entry(n), &budget);
        }
        assert_eq!(budget.used(), 0);
        let kept = entry(0);
        render(&kept, &budget);
        render(&kept, &budget);
        assert!((SIZE..2 * SIZE).contains(&budget.used()), "counted once");
    }
}
