//! etcd's API as far as the store uses it: one request or one stream at a time, in the store's own types. Retries, time
//! limits and paging are the business of whoever asks, so that they are the same over a network that is simulated.

use futures_util::future::BoxFuture;

use crate::{Entry, Event, LeaseId, Revision, StoreError, Write};

/// Single requests and watches.
pub(crate) trait Api: Send + Sync + 'static {
    /// A linearizable read.
    fn range<'a>(&'a self, range: &'a Range<'a>) -> BoxFuture<'a, Result<Ranged, ApiError>>;

    /// Compares and writes.
    fn txn<'a>(&'a self, txn: &'a Txn<'a>) -> BoxFuture<'a, Result<TxnDone, ApiError>>;

    /// Puts a key whatever it holds.
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: &'a [u8],
        lease: Option<LeaseId>,
    ) -> BoxFuture<'a, Result<Header, ApiError>>;

    /// Forgets history before a revision.
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), ApiError>>;

    /// A lease of so many seconds.
    fn grant(&self, seconds: i64) -> BoxFuture<'_, Result<LeaseId, ApiError>>;

    /// The seconds that a lease has left; not above zero: it is gone.
    fn time_to_live(&self, id: LeaseId) -> BoxFuture<'_, Result<i64, ApiError>>;

    /// Of the member that answers.
    fn status(&self) -> BoxFuture<'_, Result<Status, ApiError>>;

    /// Of each member of the configuration, by its endpoint. Waits for all of them.
    fn statuses(&self) -> BoxFuture<'_, Vec<(String, Result<Status, ApiError>)>>;

    /// Why writes are refused.
    fn alarms(&self) -> BoxFuture<'_, Result<Vec<Alarm>, ApiError>>;

    /// A stream with one watch, which has not been confirmed yet.
    fn watch<'a>(&'a self, watch: &'a WatchRequest<'a>) -> BoxFuture<'a, Result<Box<dyn Answers>, ApiError>>;
}

/// The stream of a watch. Dropped, it ends.
pub(crate) trait Answers: Send + 'static {
    /// The next answer; `None`: the stream has ended. Nothing is lost when the future is dropped.
    fn message(&mut self) -> BoxFuture<'_, Result<Option<WatchAnswer>, ApiError>>;

    /// Asks how far the watch is; an answer without events says so.
    fn request_progress(&mut self) -> BoxFuture<'_, Result<(), ApiError>>;
}

/// What stands at the head of each answer.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    /// Of the member that answers, when it did; 0 if the answer does not tell.
    pub revision: Revision,
    /// Rises with each election, and never goes back in one life of a cluster.
    pub raft_term: u64,
    pub cluster_id: u64,
    pub member_id: u64,
}

/// Keys from `key` on.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Range<'a> {
    pub key: &'a str,
    /// The first key beyond; `None`: `key` alone; a single zero byte: all that follow.
    pub end: Option<&'a [u8]>,
    /// As of this revision; 0: now.
    pub revision: Revision,
    /// At most so many; 0: all.
    pub limit: usize,
    /// Without values.
    pub keys_only: bool,
}

#[derive(Clone, Default, Debug)]
pub(crate) struct Ranged {
    pub header: Header,
    pub entries: Vec<Entry>,
    /// Keys of the range, including those beyond the limit.
    pub count: usize,
    /// More keys follow.
    pub more: bool,
}

/// A write of a key if a condition holds, else a read of the key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Txn<'a> {
    pub key: &'a str,
    pub when: Condition,
    pub write: &'a Write,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// The key was last changed at this revision; 0: it is absent.
    Modified(Revision),
    /// The key has been written so often since it was made; 0: it is absent.
    Version(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct TxnDone {
    pub header: Header,
    /// The condition held.
    pub succeeded: bool,
    /// What the key holds, if the condition did not hold.
    pub current: Option<Entry>,
}

/// What a member says of itself.
#[derive(Clone, Default, Debug)]
pub(crate) struct Status {
    pub header: Header,
    /// Such as `3.5.13`.
    pub version: String,
    /// Of the database file.
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Alarm {
    pub member_id: u64,
    /// Such as `Nospace`.
    pub kind: String,
}

/// All changes of keys from a revision on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchRequest<'a> {
    pub key: &'a str,
    /// Not the key alone: all that start with it.
    pub prefix: bool,
    /// The first one told.
    pub start: Revision,
    /// Events say what their keys held before.
    pub previous: bool,
    /// Progress is told from time to time if nothing happens.
    pub progress: bool,
}

/// One message of a watch's stream.
#[derive(Clone, Default, Debug)]
pub(crate) struct WatchAnswer {
    pub header: Header,
    /// The watch is confirmed.
    pub created: bool,
    /// The watch is over.
    pub canceled: bool,
    /// Why.
    pub cancel_reason: String,
    /// If that is because the start is forgotten: the oldest revision that is not; else 0.
    pub compact_revision: Revision,
    /// In the order of revisions. None, unless the watch was confirmed or is over: everything up to the header's
    /// revision has been told.
    pub events: Vec<Event>,
}

/// What etcd answers instead of doing it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    Compacted,
    Future,
    LeaseNotFound,
    Other,
}

/// How a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FailureKind {
    /// No member could be reached at all.
    NeverSent,
    /// A member went away, or has no leader: the request may have been carried out.
    Unavailable,
    /// etcd refused it.
    Refused(Refusal),
    /// The answer can't be understood.
    Corrupt,
}

#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct ApiError {
    pub kind: FailureKind,
    pub text: String,
}

impl ApiError {
    pub fn new(kind: FailureKind, text: impl Into<String>) -> ApiError {
        let text = text.into();
        ApiError { kind, text }
    }

    pub fn refusal(&self) -> Refusal {
        match self.kind {
            FailureKind::Refused(refusal) => refusal,
            FailureKind::NeverSent | FailureKind::Unavailable | FailureKind::Corrupt => Refusal::Other,
        }
    }

    /// Another attempt may find another member.
    pub fn worth_a_retry(&self) -> bool {
        matches!(self.kind, FailureKind::NeverSent | FailureKind::Unavailable)
    }

    /// Even a write can be tried again.
    pub fn never_sent(&self) -> bool {
        self.kind == FailureKind::NeverSent
    }

    pub fn store_error(&self) -> StoreError {
        let text = format!("etcd: {}", self.text);
        match self.kind {
            FailureKind::Corrupt => StoreError::Corrupt(text),
            FailureKind::NeverSent | FailureKind::Unavailable | FailureKind::Refused(_) => {
                StoreError::Unavailable(text)
            }
        }
    }
}
