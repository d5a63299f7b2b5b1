//! Readers: gets, lists, snapshots and what memory says without asking.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::simulation::plan::Plan;
use crate::simulation::servers::Server;
use crate::simulation::truth::{self, Now, Truth};
use crate::simulation::world::World;
use crate::{Entry, ListOptions, Position, Revision, Store};

/// What is recalled was there not longer ago than this: the mirror has heard of etcd within 10 s, from a member that
/// may lag for 4 s, by an answer that may take a while.
const RECALLED: Duration = Duration::from_secs(17);

/// Checks what a linearizable read of a whole prefix has shown that began at `before`. Returns the timeline that it
/// shows.
pub fn check_all(
    world: &World,
    truth: &Truth,
    before: Now,
    prefix: &str,
    revision: Revision,
    entries: &[Entry],
) -> Option<usize> {
    let after = truth.now();
    if before.timeline == after.timeline && revision < before.revision {
        let what = format!("{prefix} at {revision}, asked for at {before:?}");
        world.fail("a list shows what was written before it", what);
    }
    let shown = matching(truth, before.timeline..=after.timeline, prefix, revision, entries);
    if shown.is_none() {
        let expected = truth.keys(after.timeline, revision).unwrap_or_default();
        let what = format!(
            "{prefix} at {revision}, asked for at {before:?}, now {after:?}: {} keys: {:?}; expected {:?}",
            entries.len(),
            versions(entries),
            versions(&truth::below(&expected, prefix)),
        );
        world.fail("a list shows one revision whole", what);
    }
    shown
}

fn versions(entries: &[Entry]) -> Vec<String> {
    let shown = entries.iter().take(12);
    shown
        .map(|entry| format!("{}@{}", entry.key, entry.mod_revision))
        .collect()
}

/// The newest of these timelines in which a prefix held these entries at a revision.
fn matching(
    truth: &Truth,
    timelines: impl DoubleEndedIterator<Item = usize>,
    prefix: &str,
    revision: Revision,
    entries: &[Entry],
) -> Option<usize> {
    timelines.rev().find(|timeline| {
        let keys = truth.keys(*timeline, revision);
        keys.is_some_and(|keys| truth::below(&keys, prefix) == entries)
    })
}

/// A client that reads from a server.
pub struct Reader {
    pub world: Arc<World>,
    pub truth: Arc<Truth>,
    pub servers: Arc<Vec<Server>>,
    pub plan: Plan,
}

impl Reader {
    pub async fn run(self) {
        while self.world.is_busy() {
            let server = self.world.dice.pick(&self.servers);
            let prefix = self.plan.prefix(&self.world.dice);
            match self.world.dice.below(7) {
                0 => self.get(server, prefix).await,
                1 => {
                    let limit = *self.world.dice.pick(&[0, 3, 100]);
                    self.list(server, prefix, limit).await;
                }
                2 | 3 => self.snapshot(server, prefix).await,
                4 => self.held(server, prefix),
                5 => self.recall(server, prefix),
                _ => self.events(server, prefix),
            }
            self.world.pause().await;
        }
    }

    /// Lists again and again, with less than 5 s between two lists.
    pub async fn greedy(self, server: usize, prefix: &'static str) {
        loop {
            self.snapshot(&self.servers[server], prefix).await;
            sleep(Duration::from_millis(500) + self.world.dice.millis(2500)).await;
        }
    }

    async fn get(&self, server: &Server, prefix: &str) {
        let key = self.plan.key(&self.world.dice, prefix);
        let before = self.truth.now();
        let Ok(got) = server.store().get(&key).await else {
            return;
        };
        let after = self.truth.now();
        if before.timeline != after.timeline {
            return;
        }
        let held = self.truth.keys(after.timeline, got.revision);
        let expected = held.as_ref().and_then(|keys| keys.get(&*key));
        if got.revision < before.revision || held.is_none() || expected != got.entry.as_ref() {
            let what = format!("{got:?}, asked for at {before:?}; expected {expected:?}");
            self.world.fail("a get shows what was written before it", what);
        }
    }

    /// Page by page, as continue tokens go: the timeline of the first page is that of all.
    pub async fn list(&self, server: &Server, prefix: &str, limit: usize) {
        let (store, before) = (server.store(), self.truth.now());
        let timeline = store.timeline();
        let mut options = ListOptions {
            limit,
            ..ListOptions::default()
        };
        let mut entries = Vec::new();
        loop {
            let page = store.list(prefix, options.clone()).await;
            self.world.say(|| {
                let page = page.as_ref().map(|page| (page.revision, versions(&page.entries)));
                format!("{prefix} from {:?} at {:?}: {page:?}", options.from, options.revision)
            });
            let Ok(page) = page else { return };
            // A store that holds nothing of a prefix has nothing to find out by that lost files are others.
            if self.plan.files && store.held(prefix).is_none() {
                return;
            }
            // Looked at behind each page, whose reading may be what finds out that etcd was put back.
            if timeline.is_some_and(|timeline| store.is_other_timeline(timeline)) {
                return;
            }
            entries.extend(page.entries);
            if !page.more {
                check_all(&self.world, &self.truth, before, prefix, page.revision, &entries);
                return;
            }
            options.revision = Some(page.revision);
            options.from = entries.last().map(|last: &Entry| format!("{}\0", last.key));
            self.world.pause().await;
        }
    }

    async fn snapshot(&self, server: &Server, prefix: &str) {
        let before = self.truth.now();
        let Ok(snapshot) = server.store().snapshot(prefix).await else {
            return;
        };
        let entries: Vec<Entry> = snapshot.range(prefix, prefix).collect();
        check_all(&self.world, &self.truth, before, prefix, snapshot.revision(), &entries);
        if snapshot.count(prefix) != entries.len() {
            let what = format!("{} of {}", snapshot.count(prefix), entries.len());
            self.world.fail("folders are counted right", what);
        }
    }

    /// It may be old, but never a mixture.
    fn held(&self, server: &Server, prefix: &str) {
        let Some(held) = server.store().held(prefix) else {
            return;
        };
        let entries: Vec<Entry> = held.range(prefix, prefix).collect();
        let now = self.truth.now();
        if matching(&self.truth, 0..=now.timeline, prefix, held.revision(), &entries).is_none() {
            let what = format!("{prefix} at {}, now {now:?}: {:?}", held.revision(), versions(&entries));
            self.world.fail("memory shows one revision whole", what);
        }
    }

    fn recall(&self, server: &Server, prefix: &str) {
        let key = self.plan.key(&self.world.dice, prefix);
        let Some(entry) = server.store().recall(prefix, &key) else {
            return;
        };
        let now = self.truth.now();
        let own = server.wrote(&key).filter(|own| own.timeline == now.timeline);
        if own.is_some_and(|own| entry.mod_revision < own.revision) {
            let what = format!("{key}@{}, written at {own:?}", entry.mod_revision);
            self.world.fail("what is recalled is not older than own writes", what);
        }
        let was = (0..=now.timeline).rev().find(|timeline| {
            let keys = self.truth.keys(*timeline, entry.mod_revision);
            keys.is_some_and(|keys| keys.get(&*key) == Some(&entry))
        });
        let stale = was.map(|timeline| self.truth.stale_for(timeline, &key, entry.mod_revision));
        if stale.is_none_or(|stale| stale > RECALLED) {
            let what = format!("{key}@{} of {was:?}, stale for {stale:?}", entry.mod_revision);
            self.world.fail("what is recalled was there a moment ago", what);
        }
    }

    fn events(&self, server: &Server, prefix: &str) {
        let Some(held) = server.store().held_position(prefix) else {
            return;
        };
        let back = self.world.dice.below(20) as u64;
        let after = Revision(held.revision.0.saturating_sub(back).max(1));
        let from = Position {
            revision: after,
            ..held
        };
        let held = held.revision;
        let Some(events) = server.store().events(prefix, from, held, 10_000) else {
            return;
        };
        let now = self.truth.now();
        let known = (0..=now.timeline).rev();
        let mut expected = known.map(|timeline| self.truth.events(timeline, prefix, after, held));
        if !expected.any(|expected| expected == events) {
            let what = format!("{prefix} from {after} to {held}: {} events, now {now:?}", events.len());
            self.world.fail("events from memory are those that were", what);
        }
    }
}
