//! Watches, which are checked item by item.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{sleep, timeout};

use super::readers::check_all;
use crate::simulation::truth::{self, Truth};
use crate::simulation::world::World;
use crate::{Event, ListOptions, Revision, Store, StoreError, WatchItem, WatchStream};

/// A watch that says nothing for so long is looked at: the run may be over.
const SILENCE: Duration = Duration::from_secs(3);

/// How far a watcher is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    pub timeline: usize,
    /// Everything up to this revision was told.
    pub told: Revision,
}

/// A client that lists a prefix and watches it from there, again and again.
pub struct Watcher {
    pub world: Arc<World>,
    pub truth: Arc<Truth>,
    pub prefix: String,
    /// It lists without having the prefix kept in memory.
    pub direct: bool,
    /// It does not hear that a store was put back, and comes with what it knows.
    pub ignorant: bool,
    /// Brings the truth up to what the store has.
    pub learn: Arc<dyn Fn() + Send + Sync>,
    /// Milliseconds that it takes over an item at most.
    pub slowness: usize,
    /// Where it is, once it is anywhere.
    pub place: Arc<Mutex<Option<Place>>>,
}

impl Watcher {
    /// Watches until the run is over. `store` says where, each time that a watch is opened.
    pub async fn run(self, store: impl Fn() -> Arc<dyn Store>) {
        loop {
            let at = store();
            let known = self.at().filter(|_| self.world.dice.chance(700));
            let begin = match known.filter(|place| self.goes_on_from(place)) {
                Some(place) => Some(place),
                None => self.list(&*at).await,
            };
            if let Some(place) = begin {
                self.set(Some(place));
                let end = self.watch(&*at, place).await;
                self.world
                    .say(|| format!("watch of {} from {place:?} ended: {end:?}", self.prefix));
                if matches!(end, Err(StoreError::Compacted { .. } | StoreError::Future { .. })) {
                    self.set(None);
                }
            }
            // Now and then a client is away for so long that much happens meanwhile.
            let away = if self.world.is_busy() && self.world.dice.chance(200) {
                6000
            } else {
                300
            };
            sleep(self.world.dice.millis(away)).await;
        }
    }

    /// Whether a watch may be asked for from there. What is of another timeline is told by a revision that this one had
    /// when it was reached first; a later one may be of either.
    fn goes_on_from(&self, place: &Place) -> bool {
        let same = place.timeline == self.truth.now().timeline;
        same || (self.ignorant && self.truth.is_before_begin(place.told))
    }

    pub fn at(&self) -> Option<Place> {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, place: Option<Place>) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    async fn list(&self, store: &dyn Store) -> Option<Place> {
        (self.learn)();
        let before = self.truth.now();
        let (entries, told) = match self.direct {
            true => {
                let listed = store.list(&self.prefix, ListOptions::default()).await.ok()?;
                (listed.entries, listed.revision)
            }
            false => {
                let held = store.snapshot(&self.prefix).await.ok()?;
                (held.range(&self.prefix, &self.prefix).collect(), held.revision())
            }
        };
        (self.learn)();
        let timeline = check_all(&self.world, &self.truth, before, &self.prefix, told, &entries)?;
        Some(Place { timeline, told })
    }

    /// Reads a watch for a while.
    async fn watch(&self, store: &dyn Store, mut place: Place) -> Result<(), StoreError> {
        let mut stream = store.watch(&self.prefix, place.told).await?;
        self.world.say(|| format!("watch of {} from {place:?}", self.prefix));
        let mut items = match self.world.dice.chance(500) {
            true => self.world.dice.between(1, 30),
            false => usize::MAX,
        };
        while items > 0 || !self.world.is_busy() {
            items = items.saturating_sub(1);
            let Some(item) = self.next(&mut stream, store).await? else {
                continue;
            };
            if let Err((promise, what)) = self.take(&mut place, &item) {
                let what = format!("watch of {} at {place:?}: {what}", self.prefix);
                self.world.fail(promise, what);
                return Ok(());
            }
            self.set(Some(place));
            if self.slowness > 0 && self.world.is_busy() {
                sleep(self.world.dice.millis(self.slowness)).await;
            }
        }
        Ok(())
    }

    /// The next item; `None`: there is none for now.
    async fn next(&self, stream: &mut WatchStream, store: &dyn Store) -> Result<Option<WatchItem>, StoreError> {
        let next = timeout(SILENCE, stream.next()).await;
        match next {
            Ok(Some(item)) => item.map(Some),
            Ok(None) => Err(StoreError::Closed),
            Err(_) => {
                if self.world.dice.chance(300) {
                    let _ = store.request_progress().await;
                }
                Ok(None)
            }
        }
    }

    /// Takes in an item; an error says what is wrong with it.
    fn take(&self, place: &mut Place, item: &WatchItem) -> Result<(), (&'static str, String)> {
        (self.learn)();
        let nothing = Vec::new();
        let (told, events) = match item {
            WatchItem::Progress(revision) => (*revision, &nothing),
            WatchItem::Events(events) => match events.last() {
                Some(last) => (last.revision(), events),
                None => return Err(("an item has events", "none".to_owned())),
            },
        };
        if told < place.told || (told == place.told && !events.is_empty()) {
            return Err((
                "a watch goes on",
                format!("{} after {}", describe(events, told), place.told),
            ));
        }
        let newest = self.truth.now().timeline;
        // On another timeline a watch may go on too, if the prefix holds the same there.
        let known = self.truth.keys(place.timeline, place.told);
        let known = known.map(|keys| truth::below(&keys, &self.prefix));
        let possible = (place.timeline..=newest).filter(|timeline| {
            let there = self.truth.keys(*timeline, place.told);
            *timeline == place.timeline || there.map(|keys| truth::below(&keys, &self.prefix)) == known
        });
        let possible: Vec<usize> = possible.collect();
        for &timeline in &possible {
            let expected = self.truth.events(timeline, &self.prefix, place.told, told);
            if expected == *events && self.truth.keys(timeline, told).is_some() {
                *place = Place { timeline, told };
                return Ok(());
            }
        }
        let newest = possible.last().copied().unwrap_or(place.timeline);
        let expected = self.truth.events(newest, &self.prefix, place.told, told);
        Err((wrong(events, &expected), difference(events, &expected, told)))
    }
}

/// Which promise these events break.
fn wrong(events: &[Event], expected: &[Event]) -> &'static str {
    let revisions = |events: &[Event]| events.iter().map(|event| event.revision()).collect::<Vec<_>>();
    match events {
        [] => "progress is told after the events before it",
        _ if events.len() < expected.len() && expected.starts_with(events) => "a revision is told whole",
        _ if revisions(events) == revisions(expected) => "events say what was written",
        _ => "a watch tells every event once, in order",
    }
}

fn difference(events: &[Event], expected: &[Event], told: Revision) -> String {
    format!("{}; expected {}", describe(events, told), describe(expected, told))
}

fn describe(events: &[Event], told: Revision) -> String {
    let shown: Vec<String> = events.iter().take(6).map(one).collect();
    format!("{} events up to {told}: {}", events.len(), shown.join(" "))
}

fn one(event: &Event) -> String {
    let sign = match event {
        Event::Put { .. } => '+',
        Event::Delete { .. } => '-',
    };
    let previous = match event {
        Event::Put { previous, .. } | Event::Delete { previous, .. } => previous.as_ref(),
    };
    let before = previous.map_or(Revision(0), |entry| entry.mod_revision);
    format!("{sign}{}@{}<{before}", truth::key(event), event.revision())
}
