//! Records of a run.

/// Microseconds since the run began.
pub type Moment = u64;
/// An object, by number.
pub type Key = u32;
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
    Update {
        id: Id,
        expected: Option<u64>,
    },
    /// Makes the object what this write puts, whether it is there or not (server-side apply by force).
    Apply(Id),
    Delete {
        expected: Option<u64>,
    },
    Read,
}

impl Action {
    /// What it puts.
    pub fn puts(&self) -> Option<Id> {
        match self {
            Action::Create(id) | Action::Update { id, .. } | Action::Apply(id) => Some(*id),
            Action::Delete { .. } | Action::Read => None,
        }
    }
}

/// What the server answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A write is done, or a read found this. The answer to a deletion has no version.
    Done(Option<Version>),
    /// The object is absent.
    Absent,
    /// A creation found an object, or an upsert that it had lost a race.
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
    /// When the client learned where to begin; of no matter where a watch begins with the state.
    pub from: Moment,
    pub begin: Moment,
    /// When the client stopped reading, whoever ended the stream.
    pub end: Moment,
    pub deliveries: Vec<(Moment, Delivery)>,
}

/// The store was put back to an earlier state: one timeline of it ends, and another one begins, with revisions that the
/// earlier one may have used for other changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Border {
    /// What was done by now is of the earlier timeline.
    pub down: Moment,
    /// What begins from now on sees the later one. Between the two, either may be seen.
    pub up: Moment,
    /// From now on the later one has changes of its own. Its revisions may reach those of the earlier one, so that no
    /// server can tell of which a position is.
    pub written: Moment,
    /// Up to this revision both are the same; 0: they have nothing in common.
    pub common: u64,
}

/// All that happened to the objects of one kind in a run.
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
    /// Objects end by themselves this long after their creation, or later.
    pub lifetime: Option<Moment>,
    /// Contents follow from more than what was put: who wrote them is not checked.
    pub untracked: bool,
    /// In the order of time.
    pub borders: Vec<Border>,
    /// Changes before the first operation: revision, object, and what was put; `None`: it was deleted.
    pub before: Vec<(u64, Key, Option<Id>)>,
    /// What lies before this revision may be gone at any time, …
    pub floor: u64,
    /// … and what was heard of up to this moment: by then every server has noticed that the store was put back, and
    /// what it told before that may be of either timeline.
    pub settled: Option<Moment>,
    /// From this moment on everything may be gone.
    pub until: Option<Moment>,
    /// When streams of etcd may have broken: what had come by then, but not to a server's memory, is in doubt for a
    /// while.
    pub doubts: Vec<Moment>,
}
