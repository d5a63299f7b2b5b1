//! The one thread that writes: takes what is queued, makes one transaction of it, and answers after its fsync.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Thread;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::database::{Database, explain, is_full};
use super::folder::Folder;
use super::index::Index;
use super::load::missed;
use super::reserve::Reserve;
use super::shared::Shared;
use super::writing::Writing;
use crate::maintenance::{Due, EXPIRE};
use crate::mvcc::{Batch, Change};
use crate::{Expect, LeaseId, Revision, StoreError, Write, Written};

/// Commands in one transaction at most.
const BATCH: usize = 512;
/// A transaction takes no more commands once its values have so many bytes.
const BATCH_BYTES: usize = 8 << 20;
/// Rows that a transaction deletes for compaction, beyond twice the number it adds.
const FORGET: usize = 256;
/// The same for the transaction of a tick, when there is time.
const FORGET_AT_TICK: usize = 4096;
/// Pages given back to the file system at a tick.
const SHRINK: u32 = 256;
/// Upkeep is woken when so many pages of the log wait for the database file.
pub(super) const MOVE_PAGES: u64 = 4 << 10;
/// A log of so many pages is begun anew (space that is there is written faster than space that has to be found) …
pub(super) const ROUND_PAGES: u64 = 8 << 10;
/// … once no more than these wait, which the writer then moves itself.
pub(super) const REST_PAGES: u64 = 256;
/// All of a longer log is moved by the writer, since upkeep can't keep up.
const LOG_LIMIT_PAGES: u64 = 32 << 10;
/// On a full disk each tick of so many tries to set space aside again.
const RESERVE_AT_TICK: u32 = 4;

pub(super) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

pub(super) enum Command {
    Write {
        key: String,
        expect: Expect,
        write: Write,
        answer: Answer<Written>,
    },
    Grant {
        ttl: Duration,
        answer: Answer<LeaseId>,
    },
    Compact {
        revision: Revision,
        answer: Answer<()>,
    },
    Tick(Due),
    Close {
        answer: oneshot::Sender<()>,
    },
    #[cfg(test)]
    Fault {
        pages: i64,
    },
}

impl Command {
    fn bytes(&self) -> usize {
        match self {
            Command::Write {
                write: Write::Put { value, .. },
                ..
            } => value.len(),
            _ => 0,
        }
    }
}

pub(super) struct Writer {
    pub shared: Arc<Shared>,
    pub database: Database,
    /// See [`Database::timeline`].
    pub timeline: u64,
    /// Held until the last write is done.
    pub folder: Folder,
    pub path: PathBuf,
    pub queue: mpsc::Receiver<Command>,
    /// Rows to be deleted for compaction.
    pub garbage: VecDeque<u64>,
    /// Leases that have expired and still have keys.
    pub expiring: Vec<LeaseId>,
    pub index: Index,
    pub reserve: Reserve,
    /// Rows were deleted: the file may have pages to give back.
    pub shrink: bool,
    /// `None`: nobody moves the log beside the writer.
    pub upkeep: Option<Thread>,
    /// Pages of the log when upkeep was last woken.
    pub woken: u64,
    /// The last transaction failed.
    pub suspect: bool,
    /// Ticks on a full disk so far.
    pub ticks: u32,
}

/// What one transaction does, and whom to tell.
struct Plan<'a> {
    batch: Batch<'a>,
    written: Vec<(Answer<Written>, Result<Written, StoreError>)>,
    granted: Vec<(Answer<LeaseId>, LeaseId, Duration)>,
    expired: Vec<LeaseId>,
    compact: Option<Revision>,
    compacted: Vec<Answer<()>>,
    tick: bool,
}

impl Writer {
    /// Returns when the store is closed or dropped.
    pub fn run(mut self) {
        let mut closing = None;
        while closing.is_none() {
            let mut first = None;
            if self.expiring.is_empty() {
                first = self.queue.blocking_recv();
                if first.is_none() {
                    break;
                }
            }
            closing = self.turn(first);
        }
        self.close();
        if let Some(answer) = closing {
            let _ = answer.send(());
        }
    }

    /// One round with what is queued, after `first`.
    pub(super) fn turn(&mut self, first: Option<Command>) -> Option<oneshot::Sender<()>> {
        let mut bytes = first.as_ref().map_or(0, Command::bytes);
        let mut commands: Vec<Command> = first.into_iter().collect();
        while commands.len() < BATCH && bytes < BATCH_BYTES {
            let Ok(command) = self.queue.try_recv() else { break };
            bytes += command.bytes();
            commands.push(command);
        }
        self.handle(commands)
    }

    /// Leaves a folder whose database file has everything.
    pub(super) fn close(mut self) {
        self.shared.mvcc.close();
        self.queue.close();
        match self.empty_log() {
            Ok(()) => {
                if let Err(error) = self.folder.note_closed() {
                    tracing::warn!(%error, "noting that the store is closed");
                }
            }
            Err(error) => tracing::warn!(%error, "emptying the log of the store; the next start does it"),
        }
    }

    /// Empties the log. A copy that is being made would be in the way.
    fn empty_log(&self) -> rusqlite::Result<()> {
        self.shared.end_copy();
        self.database.empty_log()
    }

    /// One round: makes a transaction of the commands and of what else is due, and answers.
    pub(super) fn handle(&mut self, commands: Vec<Command>) -> Option<oneshot::Sender<()>> {
        let shared = self.shared.clone();
        let mut closing = None;
        let prepared = self.catch_up().and_then(|()| Batch::new(&shared.mvcc));
        let mut plan = match prepared {
            Ok(batch) => Plan::new(batch),
            Err(error) => {
                self.expiring.clear();
                return refuse(commands, &error);
            }
        };
        for command in commands {
            match command {
                Command::Write {
                    key,
                    expect,
                    write,
                    answer,
                } => {
                    let planned = match write {
                        Write::Put { .. } if shared.is_full() => Err(self.full()),
                        _ => plan.batch.write(&key, expect, write),
                    };
                    plan.written.push((answer, planned));
                }
                Command::Grant { ttl, answer } => {
                    let id = shared.mvcc.leases().next_id();
                    plan.granted.push((answer, id, ttl));
                }
                Command::Compact { revision, answer } => match shared.mvcc.check_compaction(revision) {
                    Ok(true) => {
                        plan.compact = plan.compact.max(Some(revision));
                        plan.compacted.push(answer);
                    }
                    done => drop(answer.send(done.map(drop))),
                },
                Command::Tick(due) => {
                    self.expiring = due.expired;
                    // The tick may come late: what is forgotten by now stays so.
                    let compact = due
                        .compact
                        .filter(|to| shared.mvcc.check_compaction(*to).unwrap_or(false));
                    plan.compact = plan.compact.max(compact);
                    plan.tick = true;
                }
                Command::Close { answer } => closing = Some(answer),
                #[cfg(test)]
                Command::Fault { pages } => self.database.limit_pages(pages),
            }
        }
        let ended = plan.batch.expire(&self.expiring, EXPIRE);
        plan.expired = self.expiring.drain(..ended).collect();
        self.perform(plan);
        closing
    }

    /// After a failure: takes in what reached the disk nevertheless.
    fn catch_up(&mut self) -> Result<(), StoreError> {
        if self.shared.fault().is_some() {
            let changes = missed(&self.database, &self.path, self.shared.mvcc.view()?)?;
            self.shared.mvcc.apply(&changes);
            changes.iter().for_each(|change| self.index.note(change));
        }
        Ok(())
    }

    fn perform(&mut self, plan: Plan<'_>) {
        let Plan {
            batch,
            written,
            granted,
            expired,
            compact,
            compacted,
            tick,
        } = plan;
        let revision = batch.revision();
        let changes = batch.into_changes();
        let room = if tick {
            FORGET_AT_TICK
        } else {
            2 * changes.len() + FORGET
        };
        let forget = room.min(self.garbage.len());
        let faulty = self.shared.fault().is_some();
        let indexes = compact.is_some() || self.index.is_due();
        let work = !(changes.is_empty() && granted.is_empty() && expired.is_empty() && compact.is_none());
        let done = if work || (tick && (forget > 0 || faulty)) {
            let last = changes.last().map(|change| change.revision);
            self.commit(forget, |writing, index| {
                if faulty {
                    writing.probe()?;
                }
                changes.iter().try_for_each(|change| writing.change(change))?;
                last.map_or(Ok(()), |last| writing.set_last_revision(last))?;
                granted
                    .iter()
                    .try_for_each(|(_, id, ttl)| writing.grant(*id, ttl.as_millis() as u64))?;
                expired.iter().try_for_each(|id| writing.revoke(*id))?;
                compact.map_or(Ok(()), |revision| writing.set_compact_revision(revision.0))?;
                indexes.then(|| index.write(writing, &changes, revision)).transpose()
            })
        } else {
            Ok(None)
        };
        let done = done.map(|indexed| {
            self.index.committed(&changes, indexed);
            self.publish(&changes, &granted, &expired, compact);
        });
        for (answer, planned) in written {
            let _ = answer.send(done.clone().and(planned));
        }
        for (answer, id, _) in granted {
            let _ = answer.send(done.clone().map(|()| id));
        }
        for answer in compacted {
            let _ = answer.send(done.clone());
        }
        match done {
            Ok(()) => self.tidy(tick),
            // They are found again at the next tick.
            Err(_) => self.expiring.clear(),
        }
        if tick && self.shared.is_full() {
            self.leave_full();
        }
    }

    /// One transaction; on return it is on disk or has not happened. What `work` returns is passed on from a
    /// transaction that is committed, and from no other.
    fn commit<T>(
        &mut self,
        forget: usize,
        work: impl FnOnce(&Writing<'_>, &Index) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let (garbage, index) = (&self.garbage, &self.index);
        // What a failed transaction left in the log must not be taken for damage, nor what the disk lost be relied on.
        let ready = match self.suspect {
            true => self.empty_log(),
            false => Ok(()),
        };
        let done = ready.and_then(|()| self.database.begin()).and_then(|writing| {
            let worked = work(&writing, index)?;
            writing.forget(garbage.iter().take(forget))?;
            writing.commit()?;
            Ok(worked)
        });
        self.suspect = done.is_err();
        if done.as_ref().is_err_and(is_full) {
            self.make_room();
        }
        let done = done.map_err(|error| explain(&self.path, &error));
        let full = self.shared.is_full().then(|| self.full());
        self.shared.set_fault(done.as_ref().err().or(full.as_ref()));
        if done.is_ok() {
            self.garbage.drain(..forget);
            self.shrink |= forget > 0;
        }
        done
    }

    /// Why nothing can be put.
    fn full(&self) -> StoreError {
        let path = self.path.display();
        StoreError::Unavailable(format!("{path}: the disk is full: objects can be deleted only"))
    }

    /// The disk is full: uses the space set aside for what is in the log, and then the log for deletions.
    fn make_room(&mut self) {
        self.shared.set_full(true);
        self.reserve.give_up();
        if let Err(error) = self.empty_log() {
            tracing::warn!(%error, "moving the log of the store into its file, on a full disk");
        }
    }

    /// The disk is no longer full when space can be set aside again.
    fn leave_full(&mut self) {
        self.ticks = self.ticks.wrapping_add(1);
        // What the log holds may be what keeps the file from being cut.
        if self.ticks.is_multiple_of(RESERVE_AT_TICK) && self.empty_log().is_ok() && self.reserve.take().is_ok() {
            self.shared.set_full(false);
            self.shared.set_fault(None);
        }
    }

    fn publish(
        &mut self,
        changes: &[Arc<Change>],
        granted: &[(Answer<LeaseId>, LeaseId, Duration)],
        expired: &[LeaseId],
        compact: Option<Revision>,
    ) {
        let mvcc = &self.shared.mvcc;
        mvcc.apply(changes);
        let now = self.shared.clock.now();
        let mut leases = mvcc.leases();
        granted.iter().for_each(|(_, id, ttl)| leases.insert(*id, now + *ttl));
        expired.iter().for_each(|id| leases.remove(*id));
        drop(leases);
        if let Some(revision) = compact {
            self.garbage.extend(mvcc.compact(revision));
        }
    }

    /// Keeps the log short: upkeep moves most of it, the writer what is left when the log shall begin anew.
    fn move_log(&mut self) -> rusqlite::Result<()> {
        let pages = self.shared.progress.now();
        let little = (1..=REST_PAGES).contains(&pages.waiting());
        if pages.written > LOG_LIMIT_PAGES && pages.waiting() > 0 || pages.written > ROUND_PAGES && little {
            self.shared.progress.checkpoint(&self.database)?;
        } else if pages.waiting() > MOVE_PAGES && pages.written.abs_diff(self.woken) > REST_PAGES {
            // Not at each commit: somebody who copies the store keeps what was written since from being moved.
            self.woken = pages.written;
            if let Some(upkeep) = &self.upkeep {
                upkeep.unpark();
            }
        }
        Ok(())
    }

    /// What can wait until the answers are sent.
    fn tidy(&mut self, tick: bool) {
        let moved = self.move_log();
        let shrunk = match tick && self.shrink && self.garbage.is_empty() {
            true => {
                let any = self.shared.is_full();
                self.database.shrink(SHRINK, any).map(|more| self.shrink = more)
            }
            false => Ok(()),
        };
        if let Err(error) = moved.and(shrunk) {
            tracing::warn!(%error, "upkeep of the store's file; it is tried again");
        }
    }
}

impl<'a> Plan<'a> {
    fn new(batch: Batch<'a>) -> Self {
        Plan {
            batch,
            written: Vec::new(),
            granted: Vec::new(),
            expired: Vec::new(),
            compact: None,
            compacted: Vec::new(),
            tick: false,
        }
    }
}

fn refuse(commands: Vec<Command>, error: &StoreError) -> Option<oneshot::Sender<()>> {
    let mut closing = None;
    for command in commands {
        match command {
            Command::Write { answer, .. } => drop(answer.send(Err(error.clone()))),
            Command::Grant { answer, .. } => drop(answer.send(Err(error.clone()))),
            Command::Compact { answer, .. } => drop(answer.send(Err(error.clone()))),
            Command::Close { answer } => closing = Some(answer),
            _ => {}
        }
    }
    closing
}
