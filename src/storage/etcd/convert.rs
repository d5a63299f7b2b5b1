//! etcd's words in the store's.

use std::error::Error as _;

use bytes::Bytes;
use etcd_client::{
    Compare, CompareOp, Error, EventType, GetOptions, GetResponse, KeyValue, PutOptions, ResponseHeader, TxnOp,
    TxnOpResponse, TxnResponse, WatchResponse,
};

use super::api::{ApiError, Condition, FailureKind, Header, Range, Ranged, Refusal, Status, Txn, TxnDone, WatchAnswer};
use crate::{Entry, Event, LeaseId, Revision, Version, Write};

/// gRPC's code for a server that can't be reached or has no leader.
const UNAVAILABLE: i32 = 14;

pub(super) fn header(header: Option<&ResponseHeader>) -> Header {
    header.map_or_else(Header::default, |header| Header {
        revision: Revision(header.revision() as u64),
        raft_term: header.raft_term(),
        cluster_id: header.cluster_id(),
        member_id: header.member_id(),
    })
}

fn entry(kv: &KeyValue) -> Result<Entry, ApiError> {
    let key = kv
        .key_str()
        .map_err(|_| corrupt(format!("key {:?} is not UTF-8", kv.key())))?;
    let value = Bytes::copy_from_slice(kv.value());
    let (created, modified) = (kv.create_revision() as u64, kv.mod_revision() as u64);
    let held = Version::new(value, Revision(created), Revision(modified), kv.version() as u64);
    let lease = Some(kv.lease()).filter(|id| *id != 0).map(LeaseId);
    Ok(Entry::new(key, held.with_lease(lease)))
}

fn event(event: &etcd_client::Event) -> Result<Event, ApiError> {
    let kv = event.kv().ok_or_else(|| corrupt("an event without a key".to_owned()))?;
    let previous = event.prev_kv().map(entry).transpose()?;
    let entry = entry(kv)?;
    Ok(match event.event_type() {
        EventType::Put => Event::Put { entry, previous },
        EventType::Delete => Event::Delete {
            revision: entry.mod_revision,
            key: entry.key,
            previous,
        },
    })
}

fn corrupt(text: String) -> ApiError {
    ApiError::new(FailureKind::Corrupt, text)
}

pub(super) fn range_options(range: &Range<'_>) -> GetOptions {
    let mut options = GetOptions::new()
        .with_limit(range.limit as i64)
        .with_revision(range.revision.0 as i64);
    if let Some(end) = range.end {
        options = options.with_range(end);
    }
    if range.keys_only {
        options = options.with_keys_only();
    }
    options
}

pub(super) fn ranged(got: &GetResponse) -> Result<Ranged, ApiError> {
    Ok(Ranged {
        header: header(got.header()),
        entries: got.kvs().iter().map(entry).collect::<Result<_, _>>()?,
        count: got.count() as usize,
        more: got.more(),
    })
}

pub(super) fn put_options(lease: Option<LeaseId>) -> PutOptions {
    PutOptions::new().with_lease(lease.map_or(0, |lease| lease.0))
}

pub(super) fn txn(txn: &Txn<'_>) -> etcd_client::Txn {
    let compare = match txn.when {
        Condition::Modified(revision) => Compare::mod_revision(txn.key, CompareOp::Equal, revision.0 as i64),
        Condition::Version(version) => Compare::version(txn.key, CompareOp::Equal, version as i64),
    };
    let write = match txn.write {
        Write::Put { value, lease } => TxnOp::put(txn.key, value.as_ref(), Some(put_options(*lease))),
        Write::Delete => TxnOp::delete(txn.key, None),
    };
    etcd_client::Txn::new()
        .when([compare])
        .and_then([write])
        .or_else([TxnOp::get(txn.key, None)])
}

pub(super) fn txn_done(done: &TxnResponse) -> Result<TxnDone, ApiError> {
    let current = match done.op_responses().first() {
        Some(TxnOpResponse::Get(got)) if !done.succeeded() => got.kvs().first().map(entry).transpose()?,
        _ => None,
    };
    Ok(TxnDone {
        header: header(done.header()),
        succeeded: done.succeeded(),
        current,
    })
}

pub(super) fn status(status: &etcd_client::StatusResponse) -> Status {
    Status {
        header: header(status.header()),
        version: status.version().to_owned(),
        bytes: u64::try_from(status.db_size()).unwrap_or(0),
    }
}

pub(super) fn watch_answer(answer: &WatchResponse) -> Result<WatchAnswer, ApiError> {
    Ok(WatchAnswer {
        header: header(answer.header()),
        created: answer.created(),
        canceled: answer.canceled(),
        cancel_reason: answer.cancel_reason().to_owned(),
        compact_revision: Revision(answer.compact_revision() as u64),
        events: answer.events().iter().map(event).collect::<Result<_, _>>()?,
    })
}

pub(super) fn api_error(error: &Error) -> ApiError {
    let kind = match (refusal(error), never_sent(error)) {
        (_, true) => FailureKind::NeverSent,
        (refusal, false) if is_unavailable(error) && refusal == Refusal::Other => FailureKind::Unavailable,
        (refusal, false) => FailureKind::Refused(refusal),
    };
    ApiError::new(kind, text(error))
}

fn text(error: &Error) -> String {
    match error {
        Error::GRpcStatus(status) => match status.source() {
            Some(source) => format!("{}: {source}", status.message()),
            None => status.message().to_owned(),
        },
        other => other.to_string(),
    }
}

fn refusal(error: &Error) -> Refusal {
    let Error::GRpcStatus(status) = error else {
        return Refusal::Other;
    };
    match status.message() {
        "etcdserver: mvcc: required revision has been compacted" => Refusal::Compacted,
        "etcdserver: mvcc: required revision is a future revision" => Refusal::Future,
        "etcdserver: requested lease not found" => Refusal::LeaseNotFound,
        _ => Refusal::Other,
    }
}

fn is_unavailable(error: &Error) -> bool {
    match error {
        Error::GRpcStatus(status) => status.code() as i32 == UNAVAILABLE,
        Error::TransportError(_) => true,
        _ => false,
    }
}

/// The member could not be reached at all.
fn never_sent(error: &Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = match error {
        Error::GRpcStatus(status) => status.source(),
        Error::TransportError(error) => Some(error),
        _ => None,
    };
    while let Some(error) = cause {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = error.source();
    }
    false
}
