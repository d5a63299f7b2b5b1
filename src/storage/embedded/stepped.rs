//! A store whose writer and upkeep do something when they are told to, and not before: for simulations.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::database::CommitFault;
use super::writer::{Command, Writer};
use super::{EmbeddedStore, QUEUE};
use crate::maintenance::Schedule;
use crate::{Clock, HistoryLimits, StoreError};

/// What becomes of the next transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Done,
    /// It fails, and nothing of it stays.
    Undone,
    /// It is durable, and reported as failed.
    Durable,
}

/// The writer of an open store.
pub(crate) struct Stepped {
    writer: Writer,
    schedule: Schedule,
    queue: mpsc::WeakSender<Command>,
}

impl Stepped {
    /// A store whose table of current keys may be so many keys behind.
    pub fn open(
        dir: &Path,
        limits: HistoryLimits,
        clock: Arc<dyn Clock>,
        behind: usize,
    ) -> Result<(EmbeddedStore, Stepped), StoreError> {
        let (queue, commands) = mpsc::channel(QUEUE);
        let mut writer = Writer::open(dir, clock.clone(), commands)?;
        writer.index.limit(behind);
        let stepped = Stepped {
            schedule: Schedule::new(writer.shared.mvcc.clone(), clock, limits),
            queue: queue.downgrade(),
            writer,
        };
        Ok((EmbeddedStore::over(&stepped.writer, queue), stepped))
    }

    /// Whether there is anything to write.
    pub fn is_due(&self) -> bool {
        !self.writer.queue.is_empty() || !self.writer.expiring.is_empty()
    }

    /// Has the writer do one round.
    pub fn turn(&mut self, fate: Fate) {
        self.writer.database.fault = match fate {
            Fate::Done => None,
            Fate::Undone => Some(CommitFault::Undone),
            Fate::Durable => Some(CommitFault::Durable),
        };
        self.writer.turn(None);
        self.writer.database.fault = None;
    }

    /// Does what upkeep does from time to time.
    pub fn tick(&mut self) {
        if let Some(queue) = self.queue.upgrade() {
            let _ = queue.try_send(Command::Tick(self.schedule.due()));
        }
    }

    /// Moves the log into the database file.
    pub fn checkpoint(&self) {
        let moved = self.writer.shared.progress.checkpoint(&self.writer.database);
        moved.unwrap();
    }

    /// Leaves the files as they are; whoever waits is told nothing.
    pub fn kill(self) {
        self.writer.shared.mvcc.close();
    }

    /// Ends as a server does that is asked to.
    pub fn close(self) {
        self.writer.close();
    }
}
