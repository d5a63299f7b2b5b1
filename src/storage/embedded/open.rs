//! Opening: a folder is taken, looked at for damage, and read into memory.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::database::{Database, explain};
use super::folder::Folder;
use super::load::{self, Loaded};
use super::log::Log;
use super::main_file::MainFile;
use super::offline::{remove_all, unseen_copy};
use super::reserve::Reserve;
use super::shared::Shared;
use super::writer::{Command, Writer};
use crate::{Clock, StoreError};

impl Writer {
    /// The writer of a folder's store, which is made if it is missing. It does nothing before it is run.
    pub fn open(dir: &Path, clock: Arc<dyn Clock>, queue: mpsc::Receiver<Command>) -> Result<Writer, StoreError> {
        let folder = Folder::take(dir)?;
        let path = folder.database();
        let failed = |error| explain(&path, &error);
        let log = folder.check()?;
        folder.make_database()?;
        let file = MainFile::read(&path);
        let mut database = Database::open(&path)?;
        file.check(&database, &path)?;
        let loaded = load::load(&mut database, &path, clock.now())?;
        if log == Log::Torn {
            // What follows would be written over the rest, and then nobody could tell it from damage.
            database.empty_log().map_err(failed)?;
        }
        let timeline = match database.timeline().map_err(failed)? {
            Some(timeline) => timeline,
            None => database.begin_timeline().map_err(failed)?,
        };
        // What an earlier process left when it was killed.
        remove_all(&unseen_copy(&path));
        if let Err(error) = folder.note_open() {
            tracing::warn!(%error, "noting that the store is open");
        }
        Writer::of(loaded, database, folder, timeline, clock, queue)
    }

    fn of(
        loaded: Loaded,
        mut database: Database,
        folder: Folder,
        timeline: u64,
        clock: Arc<dyn Clock>,
        queue: mpsc::Receiver<Command>,
    ) -> Result<Writer, StoreError> {
        let path = folder.database();
        let shared = Arc::new(Shared::new(loaded.mvcc, clock));
        let told = shared.clone();
        let watched = database.on_commit(move |pages| told.progress.wrote(pages));
        watched.map_err(|error| explain(&path, &error))?;
        Ok(Writer {
            shared,
            database,
            timeline,
            folder,
            reserve: Reserve::beside(&path),
            path,
            queue,
            garbage: loaded.garbage.into(),
            expiring: Vec::new(),
            index: loaded.index,
            shrink: false,
            upkeep: None,
            woken: 0,
            suspect: false,
            ticks: 0,
        })
    }
}
