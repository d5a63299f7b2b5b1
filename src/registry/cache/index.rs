//! Indexes: the objects with a certain label or field value, without looking at the others.
//!
//! An index is made when a term was asked for often enough, and brought up to the revision of the list that asks: so a
//! list through it shows what a list without it would. Nothing runs when nobody asks. What takes long, reading the
//! objects, is done a slice at a time and while nothing is locked; what came of it is taken over in short steps. Who
//! asks for the same term meanwhile waits for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use keelson_base::cooperative::Slices;
use keelson_machinery::status::StatusError;
use keelson_storage::{Entry, Event, Position, Revision, Snapshot};
use tokio::sync::Semaphore;

use super::Meta;
use super::term::{Index, Term, halves};

/// A smaller collection is looked through.
const MIN_OBJECTS: usize = 200;
/// A label has an index from this request for it on; a field from the first.
const MIN_REQUESTS: u32 = 2;
/// Indexes of one resource; another one takes the place of the one that was asked for least.
const MAX_INDEXES: usize = 8;
/// Terms that are counted before they have an index.
const MAX_COUNTED: usize = 64;
/// Events that bring indexes up to date; when there are more, they are made anew.
const MAX_EVENTS: usize = 10_000;
/// Events that are taken in while the indexes are locked, about.
const EVENTS_PER_STEP: usize = 256;
/// How often somebody who brings the indexes up to date begins anew because others do too.
const ATTEMPTS: usize = 8;

/// An entry may have to be decrypted and converted.
const PREPARATIONS: usize = 2;

/// A term that must have one of these values.
pub(crate) struct Wanted<'a> {
    pub term: Term,
    pub values: Vec<&'a str>,
}

/// What the indexes say.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    /// Keys, in order, among which are all that are wanted.
    Keys(Vec<Arc<str>>),
    /// No index helps: look at all.
    Scan,
    /// Another request has brought the indexes beyond this snapshot: take a newer one.
    Stale,
}

/// How to learn what happened, and what an entry is.
pub(crate) trait Source: Send + Sync {
    /// Events after a position up to the snapshot's; `None`: too many, forgotten, or of another timeline.
    fn events(&self, after: Position, limit: usize) -> Option<Vec<Event>>;
    /// What is to be awaited before [`Source::meta`], then asked again for what comes next.
    fn unprepared(&self, entry: &Entry) -> Option<BoxFuture<'static, Result<(), StatusError>>>;
    fn meta<'e>(&self, entry: &'e Entry) -> Result<&'e Meta, StatusError>;
}

/// The objects that are asked about.
pub(crate) struct Objects<'a> {
    pub snapshot: &'a Snapshot,
    /// The prefix of all objects.
    pub root: &'a str,
    pub source: &'a dyn Source,
}

impl Objects<'_> {
    /// Makes what will be asked of an entry, for [`Source::meta`] to be quick.
    async fn read(&self, entry: &Entry) -> Result<(), StatusError> {
        for _ in 0..PREPARATIONS {
            let Some(asked) = self.source.unprepared(entry) else {
                break;
            };
            asked.await?;
        }
        self.source.meta(entry).map(drop)
    }

    async fn read_all(&self, events: &[Event]) -> Result<(), StatusError> {
        let mut slices = Slices::begin();
        for event in events {
            let (now, before) = halves(event);
            for entry in now.into_iter().chain(before) {
                self.read(entry).await?;
            }
            slices.between().await;
        }
        Ok(())
    }
}

/// The indexes of one resource.
#[derive(Default)]
pub(crate) struct Indexes {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    indexes: Vec<Index>,
    counted: Vec<(Term, u32)>,
    /// Of these somebody makes an index. The semaphore is closed when that is over.
    in_the_making: Vec<(Term, Arc<Semaphore>)>,
}

/// What there is of a term for one who wants to look at a position.
enum State<'a> {
    /// It has no index, and needs none yet.
    None,
    /// Its index is to be made.
    Due(Making<'a>),
    /// Somebody makes its index until this is closed.
    InTheMaking(Arc<Semaphore>),
    There,
    /// The index has to be brought forward from here.
    Behind(Position),
    /// The index is beyond it.
    Beyond,
}

impl Indexes {
    /// Keys of `prefix` in a snapshot, all of whose objects the indexes cover.
    pub async fn find(&self, wanted: &[Wanted<'_>], objects: &Objects<'_>, prefix: &str) -> Result<Found, StatusError> {
        if wanted.is_empty() || objects.snapshot.count(prefix) < MIN_OBJECTS {
            return Ok(Found::Scan);
        }
        // What was read for this list alone is looked through: it says nothing about the snapshots of others.
        let Some(at) = objects.snapshot.position() else {
            return Ok(Found::Scan);
        };
        for wanted in wanted {
            self.count(&wanted.term);
            if !self.bring(&wanted.term, at, objects).await? {
                return Ok(Found::Stale);
            }
        }
        Ok(self.keys(wanted, at, prefix))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, term: &Term) {
        let mut inner = self.lock();
        match inner.indexes.iter_mut().find(|index| index.term == *term) {
            Some(index) => index.requests += 1,
            None => inner.count(term),
        }
    }

    /// Keys of `prefix` that the best of the indexes has.
    fn keys(&self, wanted: &[Wanted<'_>], at: Position, prefix: &str) -> Found {
        let inner = self.lock();
        let best = wanted
            .iter()
            .filter_map(|wanted| Some((inner.index(&wanted.term)?, &wanted.values)))
            .min_by_key(|(index, values)| index.count(values));
        let Some((index, values)) = best else {
            return Found::Scan;
        };
        if index.at != at {
            return Found::Stale;
        }
        let mut keys = index.keys(values, prefix);
        drop(inner);
        if values.len() > 1 {
            keys.sort_unstable();
        }
        Found::Keys(keys)
    }

    /// Brings the index of a term to where the snapshot is, if it has one or is to have one; false: it is beyond that.
    async fn bring(&self, term: &Term, to: Position, objects: &Objects<'_>) -> Result<bool, StatusError> {
        for _ in 0..ATTEMPTS {
            let from = match self.state(term, to) {
                State::None | State::There => return Ok(true),
                State::Beyond => return Ok(false),
                State::Due(making) => {
                    let index = made(&making, to, objects).await?;
                    // Before it is said that the making is over.
                    self.lock().put(index);
                    return Ok(true);
                }
                // To read the same objects beside them would take both as long, and two processors.
                State::InTheMaking(over) => {
                    let _ = over.acquire().await;
                    continue;
                }
                State::Behind(from) => from,
            };
            let events = (from.epoch == to.epoch).then(|| objects.source.events(from, MAX_EVENTS));
            match events.flatten() {
                Some(events) => self.follow(term, (from, to), &events, objects).await?,
                // They can't bring it there: it is made again.
                None => self.lock().drop_index(term, from),
            }
        }
        Ok(false)
    }

    fn state(&self, term: &Term, to: Position) -> State<'_> {
        let mut inner = self.lock();
        if let Some(over) = inner.over(term) {
            return State::InTheMaking(over.clone());
        }
        match inner.index(term).map(|index| index.at) {
            Some(at) if at == to => State::There,
            Some(at) if is_before(to, at) => State::Beyond,
            Some(at) => State::Behind(at),
            None if !inner.take_due(term) => State::None,
            None => {
                inner.in_the_making.push((term.clone(), Arc::new(Semaphore::new(0))));
                State::Due(Making {
                    indexes: self,
                    term: term.clone(),
                })
            }
        }
    }

    /// Takes in the events between two positions, as long as nobody else does.
    async fn follow(
        &self,
        term: &Term,
        (mut from, to): (Position, Position),
        events: &[Event],
        objects: &Objects<'_>,
    ) -> Result<(), StatusError> {
        objects.read_all(events).await?;
        let mut slices = Slices::begin();
        let mut rest = events;
        loop {
            let (step, later) = rest.split_at(whole_revisions(rest));
            let until = match step.last() {
                Some(last) if !later.is_empty() => Position {
                    revision: revision(last),
                    ..to
                },
                _ => to,
            };
            if !self.lock().follow(term, (from, until), step, objects.source)? || until == to {
                return Ok(());
            }
            (from, rest) = (until, later);
            slices.between().await;
        }
    }
}

/// The index of all objects.
async fn made(making: &Making<'_>, at: Position, objects: &Objects<'_>) -> Result<Index, StatusError> {
    let mut index = Index::new(making.term.clone(), at);
    let mut slices = Slices::begin();
    for entry in objects.snapshot.range(objects.root, objects.root) {
        objects.read(&entry).await?;
        index.add(&entry.key, objects.source.meta(&entry)?);
        slices.between().await;
    }
    Ok(index)
}

/// Events of whole revisions at the beginning of these, about as many as make a step.
fn whole_revisions(events: &[Event]) -> usize {
    let Some(last) = events.get(EVENTS_PER_STEP - 1).map(revision) else {
        return events.len();
    };
    let same = events
        .iter()
        .skip(EVENTS_PER_STEP)
        .take_while(|event| revision(event) == last);
    EVENTS_PER_STEP + same.count()
}

fn revision(event: &Event) -> Revision {
    match event {
        Event::Put { entry, .. } => entry.mod_revision,
        Event::Delete { revision, .. } => *revision,
    }
}

/// Whoever makes an index, until it is made or given up.
struct Making<'a> {
    indexes: &'a Indexes,
    term: Term,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.indexes.lock().in_the_making.retain(|(term, over)| {
            let ours = *term == self.term;
            if ours {
                over.close();
            }
            !ours
        });
    }
}

/// Whether memory has moved on from one position to the other, on the same timeline or to a later one.
fn is_before(one: Position, other: Position) -> bool {
    (one.epoch, one.revision) < (other.epoch, other.revision)
}

impl Inner {
    fn index(&self, term: &Term) -> Option<&Index> {
        self.indexes.iter().find(|index| index.term == *term)
    }

    /// What is closed when somebody has made the index of a term.
    fn over(&self, term: &Term) -> Option<&Arc<Semaphore>> {
        let made = self.in_the_making.iter().find(|(made, _)| made == term);
        made.map(|(_, over)| over)
    }

    /// The index of a term, if it is still at this position, goes; it is due again at once.
    fn drop_index(&mut self, term: &Term, at: Position) {
        let before = self.indexes.len();
        self.indexes.retain(|index| index.term != *term || index.at != at);
        if self.indexes.len() < before {
            self.counted.push((term.clone(), MIN_REQUESTS));
        }
    }

    /// Takes in all events between two positions; false: somebody else did.
    fn follow(
        &mut self,
        term: &Term,
        (from, to): (Position, Position),
        events: &[Event],
        source: &dyn Source,
    ) -> Result<bool, StatusError> {
        let behind = |index: &&mut Index| index.term == *term && index.at == from;
        let Some(index) = self.indexes.iter_mut().find(behind) else {
            return Ok(false);
        };
        let done = index.follow(events, to, source);
        if done.is_err() {
            // Half a step is worse than none: it is made again when it is asked for.
            self.indexes.retain(|index| index.term != *term);
        }
        done.map(|()| true)
    }

    /// Puts an index to the others, or in the place of the one that was asked for least.
    fn put(&mut self, index: Index) {
        if self.indexes.len() >= MAX_INDEXES {
            let least = (0..self.indexes.len()).min_by_key(|place| self.indexes.get(*place).map(|i| i.requests));
            if let Some(least) = least {
                self.indexes.swap_remove(least);
            }
        }
        self.indexes.push(index);
    }

    fn count(&mut self, term: &Term) {
        if let Some((_, requests)) = self.counted.iter_mut().find(|(counted, _)| counted == term) {
            *requests += 1;
            return;
        }
        if self.counted.len() >= MAX_COUNTED {
            self.counted.remove(0);
        }
        self.counted.push((term.clone(), 1));
    }

    /// Whether a term has been asked for so often that it is to have an index; it is counted anew then.
    fn take_due(&mut self, term: &Term) -> bool {
        let wanted = match term {
            Term::Field(_) => 1,
            Term::Label(_) => MIN_REQUESTS,
        };
        let due = |(counted, requests): &(Term, u32)| counted == term && *requests >= wanted;
        let place = self.counted.iter().position(due);
        place.map(|place| self.counted.swap_remove(place)).is_some()
    }
}
