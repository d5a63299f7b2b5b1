//! `managedFields`: which writer owns which fields of an object.
//!
//! An owner is known by its name, the operation it writes with, the subresource it writes through and, for updates, the
//! version it writes in. Reading and writing keeps the text of sets that did not change.

pub mod apply;
mod empties;
mod limit;
mod scale;
#[cfg(test)]
mod tests;
mod track;

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::fmt;

pub use empties::written_empty;
pub use limit::MAX_UPDATERS;
pub use track::{Change, Conflict, VersionError, Versions, Writer, track, track_new};
pub(crate) use track::{transfer, untracked};

use crate::fieldset::{FieldSet, FieldsError, Overlap, is_usual};
use crate::json::Cursor;
use crate::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use crate::reflect::raw::RawJson;
use crate::reflect::time::Time;
use crate::reflect::{Reflect, Slot};

/// The only format of field sets.
pub const FIELDS_V1: &str = "FieldsV1";

/// How an owner came to its fields.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operation {
    Apply,
    Update,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// One owner and what it owns.
#[derive(Clone, Debug)]
pub struct Owner {
    pub manager: String,
    pub operation: Operation,
    /// The version in which `fields` are paths.
    pub api_version: String,
    pub subresource: String,
    pub time: Option<Time>,
    /// Read when they are looked at, where there is a text.
    fields: OnceCell<FieldSet>,
    /// The text that `fields` were or would be read from, as long as they are what it says.
    text: Option<RawJson>,
}

impl Owner {
    /// An owner of nothing so far.
    pub fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Owner {
        Owner {
            manager: manager.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
            time: None,
            fields: OnceCell::new(),
            text: None,
        }
    }

    pub fn fields(&self) -> &FieldSet {
        self.fields.get_or_init(|| match &self.text {
            // It was found to be one when the owner was made.
            Some(text) => FieldSet::read(text.as_bytes()).unwrap_or_default(),
            None => FieldSet::EMPTY,
        })
    }

    pub fn set_fields(&mut self, fields: FieldSet) {
        if fields != *self.fields() {
            self.change(fields);
        }
    }

    /// Takes fields away.
    pub fn lose(&mut self, fields: &FieldSet) {
        if fields.is_empty() || self.unread().is_some_and(|text| !Overlap::of(text, fields).any) {
            return;
        }
        if !self.fields().is_disjoint(fields) {
            let kept = self.take_fields().difference(fields);
            self.change(kept);
        }
    }

    /// Gives fields in addition.
    pub fn gain(&mut self, fields: FieldSet) {
        if fields.is_empty() || self.unread().is_some_and(|text| Overlap::of(text, &fields).all) {
            return;
        }
        let before = self.fields().len();
        let all = self.take_fields().union(fields);
        match all.len() == before {
            true => self.fields = OnceCell::from(all),
            false => self.change(all),
        }
    }

    /// Whether it owns nothing.
    pub fn is_empty(&self) -> bool {
        self.unread().is_none() && self.fields().is_empty()
    }

    /// The text of fields that nobody has looked at; there is at least one in it.
    fn unread(&self) -> Option<&[u8]> {
        match self.fields.get() {
            Some(_) => None,
            None => self.text.as_ref().map(RawJson::as_bytes),
        }
    }

    fn take_fields(&mut self) -> FieldSet {
        self.fields();
        self.fields.take().unwrap_or_default()
    }

    /// Fields that are not empty, by their text in the usual form.
    fn set_text(&mut self, text: RawJson) {
        self.fields = OnceCell::new();
        self.text = Some(text);
    }

    /// Other fields than the text says.
    fn change(&mut self, fields: FieldSet) {
        self.fields = OnceCell::from(fields);
        self.text = None;
    }

    /// Whether the other is the same writer in the same role.
    pub fn is_same(&self, other: &Owner) -> bool {
        self.operation == other.operation
            && self.manager == other.manager
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    fn read(entry: &ManagedFieldsEntry) -> Result<Owner, ManagedError> {
        let operation = match entry.operation.as_str() {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(ManagedError::Operation),
        };
        if entry.api_version.is_empty() {
            return Err(ManagedError::ApiVersion);
        }
        if entry.fields_type != FIELDS_V1 {
            return Err(ManagedError::FieldsType);
        }
        let mut owner = Owner::new(&entry.manager, operation, &entry.api_version, &entry.subresource);
        owner.time = entry.time;
        if let Some(text) = entry.fields_v1.as_ref().filter(|t| !t.as_bytes().is_empty()) {
            if !is_usual(text.as_bytes()) {
                owner.fields = OnceCell::from(FieldSet::read(text.as_bytes())?);
            }
            owner.text = Some(text.clone());
        }
        Ok(owner)
    }

    fn write(self) -> ManagedFieldsEntry {
        let text = self.text.clone().unwrap_or_else(|| {
            let mut json = Vec::with_capacity(256);
            self.fields().write(&mut json);
            RawJson::from(json)
        });
        ManagedFieldsEntry {
            manager: self.manager,
            operation: self.operation.as_str().to_owned(),
            api_version: self.api_version,
            time: self.time,
            fields_type: FIELDS_V1.to_owned(),
            fields_v1: Some(text),
            subresource: self.subresource,
        }
    }

    /// The order in which owners are listed.
    fn cmp(&self, other: &Owner) -> Ordering {
        let key = |o: &Owner| (o.operation, seconds(o.time));
        key(self)
            .cmp(&key(other))
            .then_with(|| self.manager.cmp(&other.manager))
            .then_with(|| self.api_version.cmp(&other.api_version))
            .then_with(|| self.subresource.cmp(&other.subresource))
    }
}

/// As conflicts name an owner: `"kubectl" with subresource "scale" using apps/v1`.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = crate::field::text::quote;
        f.write_str(&quote(&self.manager))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", quote(&self.subresource))?;
        }
        if self.operation == Operation::Update {
            write!(f, " using {}", self.api_version)?;
        }
        Ok(())
    }
}

/// A missing time counts as the oldest.
fn seconds(time: Option<Time>) -> i64 {
    time.map_or(0, |t| t.unix_seconds())
}

/// Why a list of entries can't be read. Writers that send one keep what the object had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ManagedError {
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    #[error("apiVersion must not be empty")]
    ApiVersion,
    #[error("fieldsType must be `FieldsV1`")]
    FieldsType,
    #[error(transparent)]
    Fields(#[from] FieldsError),
}

/// All owners of an object.
#[derive(Clone, Default, Debug)]
pub struct Managed {
    owners: Vec<Owner>,
}

impl Managed {
    /// Reads the entries of an object's metadata. Of entries of one owner the last wins.
    pub fn read(entries: &[ManagedFieldsEntry]) -> Result<Managed, ManagedError> {
        let mut managed = Managed {
            owners: Vec::with_capacity(entries.len() + 1),
        };
        for entry in entries {
            let owner = Owner::read(entry)?;
            match managed.find_mut(&owner) {
                Some(old) => *old = owner,
                None => managed.owners.push(owner),
            }
        }
        Ok(managed)
    }

    /// As [`Managed::read`], of entries that a client sends: their sets are written anew, in the usual form.
    pub fn read_given(entries: &[ManagedFieldsEntry]) -> Result<Managed, ManagedError> {
        let mut managed = Managed::read(entries)?;
        for owner in &mut managed.owners {
            let fields = owner.take_fields();
            owner.change(fields);
        }
        Ok(managed)
    }

    /// The entries in their order; owners of nothing are left out.
    pub fn write(mut self) -> Vec<ManagedFieldsEntry> {
        self.owners.retain(|o| !o.is_empty());
        self.owners.sort_by(Owner::cmp);
        self.owners.into_iter().map(Owner::write).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    pub fn owners(&self) -> &[Owner] {
        &self.owners
    }

    pub fn owners_mut(&mut self) -> &mut Vec<Owner> {
        &mut self.owners
    }

    /// The owner that is the same writer in the same role.
    pub fn find(&self, like: &Owner) -> Option<&Owner> {
        self.owners.iter().find(|o| o.is_same(like))
    }

    pub fn find_mut(&mut self, like: &Owner) -> Option<&mut Owner> {
        self.owners.iter_mut().find(|o| o.is_same(like))
    }

    /// The owner that is the same writer in the same role, made if there was none.
    pub fn entry(&mut self, like: Owner) -> &mut Owner {
        match self.owners.iter().position(|o| o.is_same(&like)) {
            Some(at) => &mut self.owners[at],
            None => self.owners.push_mut(like),
        }
    }
}

impl Managed {
    /// An update gives its writer fields beside those that it changed; others lose them.
    pub fn take(&mut self, writer: &Writer, fields: FieldSet) {
        let own = writer.owner(Operation::Update);
        let others = self.owners.iter_mut().filter(|o| !o.is_same(&own));
        others.for_each(|o| o.lose(&fields));
        self.owners.retain(|o| !o.is_empty());
        let owner = self.entry(own);
        owner.gain(fields);
        owner.time = writer.now;
    }
}

/// Whether an update that carries these entries asks for all owners to be forgotten: a single empty entry. A list that
/// is there but empty asks for the same; decoders turn it into a single empty entry, because here it looks like none.
pub fn is_reset(entries: &[ManagedFieldsEntry]) -> bool {
    match entries {
        [only] => {
            only.manager.is_empty()
                && only.operation.is_empty()
                && only.api_version.is_empty()
                && only.time.is_none()
                && only.fields_type.is_empty()
                && only.fields_v1.is_none()
                && only.subresource.is_empty()
        }
        _ => false,
    }
}

/// Makes an empty list of entries in the JSON of an object a single empty entry; see [`is_reset`]. The JSON must be
/// valid.
pub fn mark_reset(json: &[u8], object: &mut dyn Reflect) {
    const KEY: &str = "managedFields";
    let Some(meta) = metadata(object) else { return };
    // Most documents do not have it anywhere. Bytes that are no text may stand within strings.
    let may_name = || std::str::from_utf8(json).map_or(true, |text| text.contains(KEY));
    if meta.managed_fields.is_empty() && may_name() {
        let list = member(json, "metadata").and_then(|metadata| member(metadata, KEY));
        let mut cursor = Cursor::new(list.unwrap_or_default());
        if cursor.peek() == Some(b'[') {
            cursor.open();
            if !cursor.more() {
                meta.managed_fields.push(ManagedFieldsEntry::default());
            }
        }
    }
}

/// The metadata of a message that has such, be it an object or a kind like Scale.
pub fn metadata(object: &mut dyn Reflect) -> Option<&mut ObjectMeta> {
    let (index, _) = object.desc().field("metadata")?;
    match object.get_mut(index) {
        Some(Slot::Message(meta)) => meta.as_any_mut().downcast_mut(),
        _ => None,
    }
}

/// The last member of this name of a JSON object.
pub(super) fn member<'a>(json: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut cursor = Cursor::new(json);
    let mut found = None;
    if cursor.peek() == Some(b'{') {
        cursor.open();
        while cursor.more() {
            let key = cursor.key();
            let value = cursor.skip();
            if key.decode() == name {
                found = Some(value);
            }
        }
    }
    found
}

/// The name of a writer that gives none: what stands in front of the first slash of its `User-Agent`, without what
/// can't be printed, at most 128 bytes; `unknown` if nothing is left.
pub fn manager_of_agent(agent: &str) -> String {
    const MAX_BYTES: usize = 128;
    let mut name = String::new();
    for c in agent.split('/').next().unwrap_or_default().chars() {
        if c.is_control() {
            continue;
        }
        if name.len() + c.len_utf8() > MAX_BYTES {
            break;
        }
        name.push(c);
    }
    if name.is_empty() { UNKNOWN.to_owned() } else { name }
}

const UNKNOWN: &str = "unknown";

/// Takes the times of the old entries where nothing else differs.
pub fn keep_times(new: &mut [ManagedFieldsEntry], old: &[ManagedFieldsEntry]) {
    new.iter_mut().zip(old).for_each(|(new, old)| new.time = old.time);
}

/// Whether two lists of entries are the same.
pub fn is_same(a: &[ManagedFieldsEntry], b: &[ManagedFieldsEntry]) -> bool {
    same_but_times(a, b) && a.iter().zip(b).all(|(a, b)| a.time == b.time)
}

/// Whether two lists of entries differ in times alone (or not at all).
pub fn same_but_times(a: &[ManagedFieldsEntry], b: &[ManagedFieldsEntry]) -> bool {
    fn key(e: &ManagedFieldsEntry) -> impl PartialEq + '_ {
        let fields = e.fields_v1.as_ref().map(RawJson::as_bytes);
        (
            &e.manager,
            &e.operation,
            &e.api_version,
            &e.fields_type,
            fields,
            &e.subresource,
        )
    }
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| key(a) == key(b))
}
