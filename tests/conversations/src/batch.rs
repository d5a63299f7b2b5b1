//! Batches: many cases against one server, several at once unless they must be alone.

use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{self, StreamExt};

use crate::case::Recorded;
use crate::play::{Played, Player};
use crate::report::Outcome;

/// How a batch is played.
#[derive(Clone)]
pub struct Batch {
    /// Cases that are played at once.
    pub jobs: usize,
    /// Whether a case ends with its first problem.
    pub first_only: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

/// Plays the cases, and those that must be alone after all others; the outcomes in that order.
pub async fn play(player: Arc<Player>, cases: Vec<Arc<Recorded>>, batch: &Batch) -> Vec<Outcome> {
    let (alone, beside): (Vec<_>, Vec<_>) = cases.into_iter().partition(|recorded| recorded.case.serial);
    let one = |recorded| spawned(player.clone(), recorded, batch.first_only.clone());
    let mut outcomes: Vec<Outcome> = stream::iter(beside).map(one).buffered(batch.jobs).collect().await;
    for recorded in alone {
        outcomes.push(spawned(player.clone(), recorded, batch.first_only.clone()).await);
    }
    outcomes
}

/// Plays on whatever thread is free; a case that panics must not stop the others.
async fn spawned(
    player: Arc<Player>,
    recorded: Arc<Recorded>,
    first: Arc<dyn Fn(&str) -> bool + Send + Sync>,
) -> Outcome {
    let (case, begin) = (recorded.label(), Instant::now());
    let first_only = first(&case);
    let playing = tokio::spawn(async move { player.compare(&recorded, first_only).await });
    let played = playing.await.unwrap_or_else(|error| Played {
        problems: vec![error.to_string()],
        wording: Vec::new(),
    });
    Outcome {
        case,
        played,
        time: begin.elapsed(),
    }
}
