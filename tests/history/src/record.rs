//! What a run leaves behind.

/// Microseconds since the run began.
pub type Moment = u64;
/// One of a few objects that all clients work on.
pub type Key = u16;
/// What a write puts; no two writes put the same.
pub type Id = u32;

/// Objects have one of so many colors, a label that follows from their content.
pub const COLORS: u32 = 3;

/// The content of an object and the revision that made it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Version {
    pub revision: u64,
    pub id: Id,
}

/// What a client asked of one object. `expected`: only if it is at this revision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    Create(Id),
    Update { id: Id, expected: Option<u64> },
    Delete { expected: Option<u64> },
    Read,
}

/// What the server answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A write is done, or a read found this. The answer to a deletion has no version.
    Done(Option<Version>),
    /// The object is absent.
    Absent,
    /// A creation found an object.
    Exists,
    /// The object is not at the revision that was expected.
    Conflict,
    /// Certainly not done, for a reason that tells nothing about the object.
    Refused,
    /// No answer, or one that leaves open whether it was done.
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    pub client: usize,
    pub server: usize,
    pub key: Key,
    pub action: Action,
    pub begin: Moment,
    pub end: Moment,
    pub outcome: Outcome,
}

/// Which objects a list or watch is about.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Filter {
    pub key: Option<Key>,
    pub color: Option<u32>,
}

impl Filter {
    pub fn selects(&self, key: Key, id: Id) -> bool {
        self.key.is_none_or(|wanted| wanted == key) && self.color.is_none_or(|color| color == color_of(id))
    }
}

/// The color of what a write puts.
pub fn color_of(id: Id) -> u32 {
    id % COLORS
}

/// Which revision a list asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    Newest,
    /// Whatever is at hand.
    Any,
    AtLeast(u64),
    Exactly(u64),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Listed {
    Done {
        revision: u64,
        items: Vec<(Key, Version)>,
    },
    /// 410: history does not reach back so far.
    Gone,
    /// No answer, or one that tells nothing.
    Failed,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct List {
    pub client: usize,
    pub server: usize,
    pub filter: Filter,
    pub ask: Ask,
    pub begin: Moment,
    /// When the revision was known: after the first page.
    pub end: Moment,
    pub listed: Listed,
}

/// Where a watch begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// Changes after this revision.
    After(u64),
    /// All objects first, then a bookmark, then changes.
    State,
}

/// What a watch delivers. The version of a deletion has its revision, and the content that went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    Added(Key, Version),
    Modified(Key, Version),
    Deleted(Key, Version),
    Bookmark(u64),
    /// The bookmark after the initial objects.
    InitialEnd(u64),
    /// 410: history does not reach back so far.
    Gone,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stream {
    pub client: usize,
    pub server: usize,
    pub filter: Filter,
    pub start: Start,
    pub begin: Moment,
    pub deliveries: Vec<(Moment, Delivery)>,
}

/// All that happened in a run.
#[derive(Clone, Default, Debug)]
pub struct History {
    pub operations: Vec<Operation>,
    pub lists: Vec<List>,
    pub streams: Vec<Stream>,
    /// Compactions that were asked for: when, and up to which revision.
    pub compactions: Vec<(Moment, u64)>,
    /// Servers forget history that is older than this by themselves; `None`: not within a run.
    pub retention: Option<Moment>,
    /// A watch of everything was followed from the first write to the last, so that a change that no watch told of did
    /// not happen.
    pub complete: bool,
}
