//! The silence of a stream: when it is asked for a sign of life, and when it is given up.

use std::time::Duration;

use tokio::time::Instant;

use super::api::{Answers, ApiError};

/// After this time without an answer a watch asks how far it is.
const PROGRESS: Duration = Duration::from_secs(5);
/// A stream that leaves so many of these questions unanswered counts as broken, whatever the connection says.
const UNANSWERED: u32 = 2;

/// How long a stream has not answered, whatever it was asked meanwhile, and however often.
pub(super) struct Silence {
    /// When it is asked again, or given up.
    pub due: Instant,
    asked: u32,
}

impl Silence {
    pub fn begin() -> Silence {
        Silence {
            due: Instant::now() + PROGRESS,
            asked: 0,
        }
    }

    /// Begins to wait for another answer; false: there were enough.
    pub fn goes_on(&mut self) -> bool {
        self.asked += 1;
        self.due += PROGRESS;
        self.asked <= UNANSWERED
    }

    /// Asks how far the watch is, if the question goes out before the time is up: a connection that hangs takes no more
    /// at some point.
    pub async fn ask<T>(&self, stream: &mut dyn Answers) -> Result<Option<T>, ApiError> {
        let asked = tokio::time::timeout_at(self.due, stream.request_progress()).await;
        asked.unwrap_or(Ok(())).map(|()| None)
    }
}
