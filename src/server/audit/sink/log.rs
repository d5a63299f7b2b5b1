//! The log: one event a line, in a file or on standard output, written by a thread of its own.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use keelson_machinery::env::Clock;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;

use super::queue::{self, Batch, Batching, Delivery, Message};
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

/// Opens the log, and starts the thread that writes what comes through `receiver`. It ends when all senders are gone.
pub fn start(
    settings: LogSettings,
    clock: Arc<dyn Clock>,
    receiver: mpsc::Receiver<Message>,
    errors: Counter,
) -> io::Result<()> {
    let target = match settings.path {
        Some(path) => Target::File(LogFile::open(path, settings.rotation, clock)?),
        None => Target::Stdout,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let (mode, batching) = (settings.mode, settings.batching);
    let writing = move || {
        let mut writer = Writer {
            target,
            lines: Vec::new(),
            failing: false,
        };
        runtime.block_on(queue::run(receiver, mode, batching, errors, &mut writer));
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
    /// The lines of a batch; kept for its memory.
    lines: Vec<u8>,
    /// The last write failed: that has been said.
    failing: bool,
}

/// Memory for lines that is kept from one batch to the next.
const KEPT_BYTES: usize = 1 << 20;

impl Delivery for Writer {
    async fn deliver(&mut self, batch: Batch) {
        self.lines.clear();
        self.lines.shrink_to(KEPT_BYTES);
        for text in batch.texts() {
            self.lines.extend_from_slice(text);
            self.lines.push(b'\n');
        }
        let written = match &mut self.target {
            Target::File(file) => file.write(&self.lines),
            Target::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(&self.lines).and_then(|()| out.flush())
            }
        };
        match &written {
            Err(error) if !self.failing => tracing::error!(%error, "audit events are lost: the log can't be written"),
            _ => {}
        }
        self.failing = written.is_err();
        batch.finish(written.is_ok());
    }

    async fn settle(&mut self) {}
}
