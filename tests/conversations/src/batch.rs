//! Batches: many cases against one server, several at once unless they must be alone.

use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{self, StreamExt};

use crate::case::Recorded;
use crate::play::{Played, Player, Thoroughness};
use crate::report::Outcome;

/// Cases at once that are known to fail: they mostly wait.
const BRIEF_ONES: usize = 16;

/// A case, and how much of it is played.
pub type Item = (Arc<Recorded>, Thoroughness);

/// Plays the cases, `jobs` at once, and those that must be alone after all others; the outcomes by name.
pub async fn play(player: &Arc<Player>, cases: Vec<Item>, jobs: usize) -> Vec<Outcome> {
    let (alone, beside): (Vec<_>, Vec<_>) = cases.into_iter().partition(|(recorded, _)| recorded.case.serial);
    let (brief, whole): (Vec<_>, Vec<_>) = beside.into_iter().partition(|(_, how)| *how == Thoroughness::Brief);
    let mut outcomes = Vec::new();
    for (cases, jobs) in [(whole, jobs), (brief, BRIEF_ONES), (alone, 1)] {
        let played = stream::iter(cases).map(|item| one(player.clone(), item));
        outcomes.extend(played.buffer_unordered(jobs).collect::<Vec<_>>().await);
    }
    outcomes.sort_by(|one, other| one.case.cmp(&other.case));
    outcomes
}

/// Plays on whatever thread is free; a case that panics must not stop the others.
async fn one(player: Arc<Player>, (recorded, how): Item) -> Outcome {
    let (case, begin) = (recorded.label(), Instant::now());
    let playing = tokio::spawn(async move { player.compare(&recorded, how).await });
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
