//! The log: one event a line, in a file or on standard output, written by a thread of its own.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use keelson_machinery::env::Clock;

use super::queue::{self, Batching, Delivery, Queue, Taken};
use super::rotation::{LogFile, Rotation};
use super::{Mode, Truncation};

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    /// Words and quoted values, without objects.
    Legacy,
}

/// The log as the command line describes it.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// `None`: standard output.
    pub path: Option<PathBuf>,
    pub format: Format,
    pub mode: Mode,
    pub batching: Batching,
    pub truncation: Option<Truncation>,
    pub rotation: Rotation,
}

impl LogSettings {
    /// Bytes of an event that a file has room for, beside the end of its line.
    pub(super) fn room(&self) -> usize {
        let file = self.path.as_ref().map(|_| self.rotation.max_bytes.saturating_sub(1));
        file.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX)
    }
}

/// Opens the log, and starts the thread that writes what is in the queue until that is closed.
pub fn start(settings: LogSettings, clock: Arc<dyn Clock>, queue: Arc<Queue>) -> io::Result<()> {
    let target = match settings.path {
        Some(path) => Target::File(LogFile::open(path, settings.rotation, clock)?),
        None => Target::Stdout,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let writing = move || {
        let mut writer = Writer { target, failing: false };
        runtime.block_on(queue::run(queue, &mut writer));
    };
    std::thread::Builder::new()
        .name("keelson-audit".to_owned())
        .spawn(writing)?;
    Ok(())
}

enum Target {
    File(LogFile),
    Stdout,
}

struct Writer {
    target: Target,
    /// The last write failed: that has been said.
    failing: bool,
}

impl Delivery for Writer {
    async fn deliver(&mut self, taken: Taken) {
        let lines = taken.batch.lines();
        let written = match &mut self.target {
            Target::File(file) => file.write(lines),
            Target::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(lines).and_then(|()| out.flush())
            }
        };
        match &written {
            Err(error) if !self.failing => tracing::error!(%error, "audit events are lost: the log can't be written"),
            _ => {}
        }
        self.failing = written.is_err();
        taken.finish(written.is_ok());
    }

    async fn settle(&mut self) {}
}
