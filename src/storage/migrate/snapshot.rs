//! A snapshot of etcd as source: its database, followed by the SHA-256 of it.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use ring::digest;

use super::bolt::Bolt;
use super::{Filler, Options, Progress};
use crate::{Entry, LeaseId, Revision, StoreError, Version};

/// Bytes of the checksum at the end.
const CHECKSUM: u64 = 32;
/// A database's length is a multiple of this.
const SECTOR: u64 = 512;
/// A key of the history: the revision, an underscore, the place within it, and …
const REVISION: usize = 17;
/// … this if the key was deleted.
const DELETED: &[u8] = b"t";
/// Keys added at once.
const PAGE: usize = 1000;

/// Reads the newest state; returns its revision.
pub(super) fn read(
    path: &Path,
    options: &Options,
    filler: &mut Filler,
    progress: Progress<'_>,
) -> Result<Revision, StoreError> {
    let failed = |error: io::Error| {
        let text = format!("{}: {error}", path.display());
        match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => StoreError::Corrupt(text),
            _ => StoreError::Unavailable(text),
        }
    };
    check(path).map_err(failed)?;
    let bolt = File::open(path).and_then(Bolt::open).map_err(failed)?;
    let (entries, revision) = newest(&bolt, options).map_err(failed)?;
    filler.leases = leases(&bolt).map_err(failed)?;
    let mut entries = entries.into_values().peekable();
    while entries.peek().is_some() {
        filler.add(entries.by_ref().take(PAGE).collect())?;
        progress(filler.keys);
    }
    Ok(revision)
}

/// The checksum tells a snapshot from a database that was copied while etcd wrote to it.
fn check(path: &Path) -> io::Result<()> {
    let length = path.metadata()?.len();
    if length % SECTOR != CHECKSUM {
        let what = "not a snapshot of etcd, or not a whole one (etcdctl snapshot save makes one)";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let mut file = File::open(path)?;
    let mut context = digest::Context::new(&digest::SHA256);
    let mut buffer = vec![0; 1 << 20];
    let mut left = length - CHECKSUM;
    while left > 0 {
        let chunk = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        file.read_exact(&mut buffer[..chunk])?;
        context.update(&buffer[..chunk]);
        left -= chunk as u64;
    }
    let mut wanted = Vec::new();
    file.read_to_end(&mut wanted)?;
    if context.finish().as_ref() != wanted {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum is wrong"));
    }
    Ok(())
}

fn invalid(what: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

/// What each key of the prefix holds, and the newest revision of all keys.
fn newest(bolt: &Bolt, options: &Options) -> io::Result<(BTreeMap<String, Entry>, Revision)> {
    let mut entries = BTreeMap::new();
    let mut revision = 0;
    let found = bolt.bucket("key", &mut |key, value| {
        let (at, mark) = key
            .split_at_checked(REVISION)
            .ok_or_else(|| invalid("a short revision"))?;
        revision = revision.max(main_revision(at)?);
        let kv = KeyValue::decode(value).map_err(invalid)?;
        if !kv.key.starts_with(options.prefix.as_bytes()) {
            return Ok(());
        }
        let key = String::from_utf8(kv.key).map_err(|_| invalid("a key is not UTF-8"))?;
        if mark == DELETED {
            entries.remove(&key);
            return Ok(());
        }
        let held = Version::new(
            kv.value,
            Revision(kv.create_revision as u64),
            Revision(kv.mod_revision as u64),
            kv.version as u64,
        );
        let held = held.with_lease(Some(kv.lease).filter(|id| *id != 0).map(LeaseId));
        entries.insert(key.clone(), Entry::new(key, held));
        Ok(())
    })?;
    if !found {
        return Err(invalid("a database without keys"));
    }
    // Compaction may have removed the newest entry of all.
    bolt.bucket("meta", &mut |key, value| {
        if key == b"finishedCompactRev" {
            revision = revision.max(main_revision(value)?);
        }
        Ok(())
    })?;
    Ok((entries, Revision(revision)))
}

fn main_revision(bytes: &[u8]) -> io::Result<u64> {
    let bytes = bytes.first_chunk::<8>().ok_or_else(|| invalid("a short revision"))?;
    Ok(u64::from_be_bytes(*bytes))
}

/// A value of the history. Does not print, since what it holds may be a secret.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(int64, tag = "2")]
    create_revision: i64,
    #[prost(int64, tag = "3")]
    mod_revision: i64,
    #[prost(int64, tag = "4")]
    version: i64,
    #[prost(bytes = "bytes", tag = "5")]
    value: Bytes,
    #[prost(int64, tag = "6")]
    lease: i64,
}

impl std::fmt::Debug for KeyValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyValue(***)")
    }
}

#[derive(Clone, PartialEq, Message)]
struct Lease {
    #[prost(int64, tag = "1")]
    id: i64,
    #[prost(int64, tag = "2")]
    ttl: i64,
    /// Zero: not known.
    #[prost(int64, tag = "3")]
    remaining: i64,
}

/// How long leases last that were granted when the snapshot was made, in the worst case: their whole time.
fn leases(bolt: &Bolt) -> io::Result<HashMap<LeaseId, Duration>> {
    let mut leases = HashMap::new();
    bolt.bucket("lease", &mut |_, value| {
        let lease = Lease::decode(value).map_err(invalid)?;
        let seconds = if lease.remaining > 0 {
            lease.remaining
        } else {
            lease.ttl
        };
        let left = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        leases.insert(LeaseId(lease.id), left);
        Ok(())
    })?;
    Ok(leases)
}
