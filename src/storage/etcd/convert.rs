//! etcd's words in the store's.

use std::error::Error as _;

use bytes::Bytes;
use etcd_client::{Error, EventType, KeyValue, ResponseHeader};

use crate::{Entry, Event, LeaseId, Revision, StoreError, Version};

/// gRPC's code for a server that can't be reached or has no leader.
const UNAVAILABLE: i32 = 14;

pub(super) fn revision(header: Option<&ResponseHeader>) -> Revision {
    Revision(header.map_or(0, |header| header.revision() as u64))
}

pub(super) fn entry(kv: &KeyValue) -> Result<Entry, StoreError> {
    let key = kv
        .key_str()
        .map_err(|_| StoreError::Corrupt(format!("etcd: key {:?} is not UTF-8", kv.key())))?;
    let value = Bytes::copy_from_slice(kv.value());
    let (created, modified) = (kv.create_revision() as u64, kv.mod_revision() as u64);
    let held = Version::new(value, Revision(created), Revision(modified), kv.version() as u64);
    let lease = Some(kv.lease()).filter(|id| *id != 0).map(LeaseId);
    Ok(Entry::new(key, held.with_lease(lease)))
}

pub(super) fn event(event: &etcd_client::Event) -> Result<Event, StoreError> {
    let kv = event
        .kv()
        .ok_or_else(|| StoreError::Corrupt("etcd: an event without a key".to_owned()))?;
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

/// What etcd answers instead of doing it.
#[derive(PartialEq, Debug)]
pub(super) enum Refusal {
    Compacted,
    Future,
    LeaseNotFound,
    Other,
}

pub(super) fn refusal(error: &Error) -> Refusal {
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

pub(super) fn unavailable(error: &Error) -> StoreError {
    let text = match error {
        Error::GRpcStatus(status) => match status.source() {
            Some(source) => format!("{}: {source}", status.message()),
            None => status.message().to_owned(),
        },
        other => other.to_string(),
    };
    StoreError::Unavailable(format!("etcd: {text}"))
}

/// Another attempt may find another member.
pub(super) fn worth_a_retry(error: &Error) -> bool {
    match error {
        Error::GRpcStatus(status) => status.code() as i32 == UNAVAILABLE || never_sent(error),
        Error::TransportError(_) => true,
        _ => false,
    }
}

/// The member could not be reached at all, so that even a write can be tried again.
pub(super) fn never_sent(error: &Error) -> bool {
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
