//! Space set aside for the day when the disk is full: given up then, it lets deletions and compaction be written, which
//! free more. Once there is room to set it aside again, the disk is no longer full.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::folder;

/// As much as upkeep lets the log grow while writes go on: what is in the log has to fit into the database, before
/// the log can be used again.
pub(super) const BYTES: usize = 16 << 20;
/// Bytes written at a time.
const PIECE: usize = 1 << 20;

/// The file that takes the space.
#[derive(Clone)]
pub(super) struct Reserve(PathBuf);

impl Reserve {
    /// Of the folder that holds a database file.
    pub fn beside(database: &Path) -> Self {
        Reserve(database.with_file_name("reserve"))
    }

    pub fn is_there(&self) -> bool {
        self.0.metadata().is_ok_and(|file| file.len() >= BYTES as u64)
    }

    /// Its size; 0 where it is not there.
    pub fn bytes(&self) -> u64 {
        self.0.metadata().map_or(0, |file| file.len())
    }

    /// Takes the space; all of it or none.
    pub fn take(&self) -> io::Result<()> {
        let taken = self.fill();
        if taken.is_err() {
            self.give_up();
        }
        taken
    }

    fn fill(&self) -> io::Result<()> {
        let mut file = folder::create(&self.0)?;
        // File systems that compress would keep zeros in no space at all.
        let mut noise = 0x9e37_79b9_7f4a_7c15u64;
        let mut piece = Vec::with_capacity(PIECE);
        for _ in 0..BYTES / PIECE {
            piece.clear();
            while piece.len() < PIECE {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                piece.extend_from_slice(&noise.to_le_bytes());
            }
            file.write_all(&piece)?;
        }
        file.sync_all()
    }

    /// Gives the space back. What is not there need not go.
    pub fn give_up(&self) {
        let _ = fs::remove_file(&self.0);
    }
}
