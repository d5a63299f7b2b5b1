//! The engine of a simulated local store: upkeep, the writer of a folder, and the end of the process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Run;
use crate::embedded::stepped::{Fate, Stepped};
use crate::memory::MemoryStore;
use crate::simulation::actors::readers::check_all;
use crate::{HistoryLimits, ListOptions, Revision, SystemClock};

/// Leases and history are looked at so often.
const TICK: Duration = Duration::from_millis(500);
/// Milliseconds that the writer of a folder leaves between two transactions at most.
const BETWEEN_COMMITS: usize = 30;

/// Runs stores in memory one after the other: each has forgotten what the one before held.
pub(super) async fn in_memory(run: Arc<Run>, limits: HistoryLimits) {
    loop {
        let (store, mut upkeep) = MemoryStore::without_upkeep(limits, Arc::new(SystemClock::new()));
        run.begin(Arc::new(store));
        loop {
            sleep(TICK).await;
            run.learn();
            upkeep();
            run.learn();
            if run.world.is_busy() && run.world.dice.chance(15) {
                break;
            }
        }
        run.world.say(|| "memory is forgotten".to_owned());
        if let Some(store) = run.store() {
            store.close().await;
        }
        run.forget();
    }
}

/// Runs the store of a folder, which is begun anew after its process was asked to end, or killed.
pub(super) async fn in_folder(run: Arc<Run>, limits: HistoryLimits) {
    let parent = parent();
    loop {
        let dir = parent.path().join("store");
        let behind = run.world.dice.between(1, 8);
        let opened = Stepped::open(&dir, limits, Arc::new(SystemClock::new()), behind);
        let (store, mut writer) = match opened {
            Ok(opened) => opened,
            Err(error) => return run.world.fail("a folder opens again", error.to_string()),
        };
        run.begin(Arc::new(store));
        check_reopened(&run).await;
        write(&run, &mut writer).await;
        match run.world.dice.chance(500) {
            true => {
                run.world.say(|| "the process is killed".to_owned());
                writer.kill();
            }
            false => {
                run.world.say(|| "the process ends".to_owned());
                writer.close();
            }
        }
    }
}

/// Writes until the process ends.
async fn write(run: &Run, writer: &mut Stepped) {
    let dice = &run.world.dice;
    let mut ticked = Instant::now();
    loop {
        sleep(dice.millis(BETWEEN_COMMITS)).await;
        if ticked.elapsed() >= TICK {
            ticked = Instant::now();
            writer.tick();
        }
        if writer.is_due() {
            run.learn();
            writer.turn(fate(run));
            run.learn();
        }
        if dice.chance(5) {
            writer.checkpoint();
        }
        if run.world.is_busy() && dice.chance(4) {
            return;
        }
    }
}

fn fate(run: &Run) -> Fate {
    match run.world.dice.below(40) {
        0 if run.world.is_busy() => Fate::Undone,
        1 if run.world.is_busy() => Fate::Durable,
        _ => Fate::Done,
    }
}

/// What was seen before is there.
async fn check_reopened(run: &Run) {
    let Some(store) = run.store() else { return };
    let before = run.truth.now();
    let held = store.held("").map_or(Revision(0), |held| held.revision());
    if held < before.revision {
        let what = format!("{held} after {before:?}");
        return run.world.fail("what was answered outlives the process", what);
    }
    run.learn();
    if let Ok(listed) = store.list("/", ListOptions::default()).await {
        check_all(&run.world, &run.truth, before, "/", listed.revision, &listed.entries);
    }
}

/// A folder in memory, if the system has one.
fn parent() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}
