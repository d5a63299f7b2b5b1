//! Evidence that etcd was put back to an older state: answers of linearizable reads whose revision or term is before
//! one that was seen, or a look at the past that has become another one.
//!
//! A cluster that goes on never does so; one that was restored from a backup begins again with the revision and the
//! terms of the backup. Whoever finds it out tells everybody here, because then nothing that was read before can be
//! trusted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::api::{Header, Ranged};
use crate::{Revision, StoreError, Timeline, timeline};

/// Timelines of the past whose names are remembered.
const FORMER: usize = 256;

/// What has been seen of etcd by all parts of one store.
pub(crate) struct Witness {
    seen: Mutex<Seen>,
    /// How often etcd was found to have gone back.
    falls: watch::Sender<u64>,
}

#[derive(Default)]
struct Seen {
    /// The newest there was.
    mark: Mark,
    /// How often the term was seen to rise.
    elections: u64,
    /// The newest change of which the key is known.
    landmark: Option<Landmark>,
    /// Which timeline this is, as far as this process knows.
    turn: u64,
    /// Those before it.
    former: Vec<u64>,
    /// The revision at which this process saw it first, or at which it could not tell whether it is another one.
    /// `None`: there was no other one.
    begin: Option<Revision>,
}

/// How far etcd was at a moment; the default is before all.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Mark {
    revision: Revision,
    raft_term: u64,
    cluster_id: u64,
    falls: u64,
}

/// A change that etcd has shown. Etcd that was put back, and has come to the same revision by other writes, in a term
/// of the same number, shows something else at its key.
#[derive(Clone, Debug)]
pub(crate) struct Landmark {
    pub key: Arc<str>,
    pub revision: Revision,
    /// It was put, not deleted.
    pub is_put: bool,
}

impl Landmark {
    /// Whether a read of its key is of etcd that has not had this change.
    fn is_contradicted(&self, read: &Ranged) -> bool {
        let now = read.header.revision;
        let shown = read.entries.iter().find(|entry| entry.key == self.key);
        match shown {
            Some(shown) if self.is_put => shown.mod_revision < self.revision,
            Some(shown) => shown.create_revision <= self.revision,
            // It may have been deleted since.
            None => self.is_put && now == self.revision,
        }
    }
}

impl Mark {
    /// Whether a linearizable read that was begun at this mark and has this header shows that etcd has gone back.
    fn is_contradicted(self, header: &Header) -> bool {
        let other_cluster = self.cluster_id != 0 && header.cluster_id != 0 && header.cluster_id != self.cluster_id;
        let older_term = header.raft_term != 0 && header.raft_term < self.raft_term;
        other_cluster || older_term || header.revision < self.revision
    }

    fn raise(&mut self, header: &Header) {
        self.revision = self.revision.max(header.revision);
        self.raft_term = self.raft_term.max(header.raft_term);
        if header.cluster_id != 0 {
            self.cluster_id = header.cluster_id;
        }
    }
}

impl Witness {
    pub fn new() -> Witness {
        let seen = Seen {
            turn: timeline::random(),
            ..Seen::default()
        };
        Witness {
            seen: Mutex::new(seen),
            falls: watch::Sender::new(0),
        }
    }

    /// Taken before a linearizable request is sent.
    pub fn mark(&self) -> Mark {
        self.lock().mark
    }

    /// Looks at the answer of a linearizable request that was sent at `mark`.
    pub fn look(&self, mark: Mark, header: &Header) {
        if header.revision == Revision::default() {
            return;
        }
        let mut seen = self.lock();
        if seen.mark.falls != mark.falls {
            // It may have been answered before the fall or after it.
            return;
        }
        if mark.is_contradicted(header) {
            tracing::error!(before = ?mark, now = ?header, "etcd has gone back; what was read from it is read again");
            self.fall(&mut seen, header);
        } else {
            if seen.mark.raft_term != 0 && header.raft_term > seen.mark.raft_term {
                seen.elections += 1;
            }
            seen.mark.raise(header);
            if seen.begin == Some(Revision::default()) {
                seen.begin = Some(header.revision);
            }
        }
    }

    /// A stream that was opened when there had been so many falls told of a revision.
    pub fn told(&self, falls: u64, revision: Revision) {
        let mut seen = self.lock();
        if seen.mark.falls == falls {
            seen.mark.revision = seen.mark.revision.max(revision);
        }
    }

    /// A change that etcd has shown when there had been so many falls.
    pub fn passed(&self, falls: u64, landmark: Landmark) {
        let mut seen = self.lock();
        let is_newer = |known: &Landmark| known.revision < landmark.revision;
        if seen.mark.falls == falls && seen.landmark.as_ref().is_none_or(is_newer) {
            seen.landmark = Some(landmark);
        }
    }

    /// The newest change of which the key is known.
    pub fn landmark(&self) -> Option<Landmark> {
        self.lock().landmark.clone()
    }

    /// Looks at a linearizable read of a landmark's key that was sent at `mark`.
    pub fn look_at(&self, mark: Mark, landmark: &Landmark, read: &Ranged) {
        if landmark.is_contradicted(read) {
            self.gone_back(mark.falls);
        }
    }

    /// Etcd, which is at `current`, has forgotten what could tell whether its past is the one that was read when there
    /// had been so many falls: earlier revisions may be of another one.
    pub fn forgotten(&self, falls: u64, current: Revision) {
        let mut seen = self.lock();
        if seen.mark.falls == falls {
            seen.begin = seen.begin.max(Some(current));
        }
    }

    /// How often etcd has elected a leader, as far as was noticed. Whoever puts etcd's files back has it elect one, so
    /// a stream that has said nothing since may be one of before: if it is mute, it does not break.
    pub fn elections(&self) -> u64 {
        self.lock().elections
    }

    /// The newest revision there was.
    pub fn newest(&self) -> Revision {
        self.lock().mark.revision
    }

    /// What was read when there had been so many falls is not what etcd has now.
    pub fn gone_back(&self, falls: u64) {
        let mut seen = self.lock();
        if seen.mark.falls == falls {
            tracing::error!("etcd has another past than it had; what was read from it is read again");
            self.fall(&mut seen, &Header::default());
        }
    }

    fn fall(&self, seen: &mut Seen, now: &Header) {
        let falls = seen.mark.falls + 1;
        let cluster_id = seen.mark.cluster_id;
        seen.mark = Mark {
            cluster_id,
            falls,
            ..Mark::default()
        };
        seen.mark.raise(now);
        seen.landmark = None;
        seen.begin = Some(now.revision);
        let turn = std::mem::replace(&mut seen.turn, timeline::random());
        if seen.former.len() >= FORMER {
            seen.former.remove(0);
        }
        seen.former.push(turn);
        // Under the lock: whoever knows the new turn finds the falls raised.
        self.falls.send_replace(falls);
    }

    pub fn falls(&self) -> u64 {
        *self.falls.borrow()
    }

    /// Returns when there have been more falls than these.
    pub async fn fallen(&self, falls: u64) {
        let mut changes = self.falls.subscribe();
        let _ = changes.wait_for(|now| *now > falls).await;
    }

    /// For watches and lists that etcd's going back has ended.
    pub fn compacted(&self) -> StoreError {
        StoreError::Compacted {
            oldest: self.lock().mark.revision,
        }
    }

    /// Whether a revision may be one of a timeline that was lost: it had come when the present one was seen first, or
    /// when nothing told any more whether it is another one, so nobody here has told it as the present state since.
    /// True until that has been seen.
    pub fn may_be_lost(&self, revision: Revision) -> bool {
        let begin = self.lock().begin;
        begin.is_some_and(|begin| begin == Revision::default() || revision < begin)
    }

    pub fn timeline(&self) -> Timeline {
        let seen = self.lock();
        Timeline {
            store: seen.mark.cluster_id,
            turn: seen.turn,
        }
    }

    pub fn is_other_timeline(&self, other: Timeline) -> bool {
        let seen = self.lock();
        other.store != seen.mark.cluster_id || seen.former.contains(&other.turn)
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Version};

    fn header(revision: u64, raft_term: u64) -> Header {
        Header {
            revision: Revision(revision),
            raft_term,
            cluster_id: 7,
            member_id: 1,
        }
    }

    /// What was seen, and what a read that begins then says.
    #[test]
    fn only_a_cluster_that_was_put_back_says_less_than_before() {
        let same = header(10, 4);
        let other_cluster = Header { cluster_id: 8, ..same };
        let untold = Header {
            raft_term: 0,
            cluster_id: 0,
            ..same
        };
        for (now, falls) in [
            (same, 0),
            (header(11, 4), 0),
            (header(10, 5), 0),
            (header(9, 4), 1),
            (header(9, 5), 1),
            (header(20, 3), 1),
            (other_cluster, 1),
            (untold, 0),
            (Header::default(), 0),
        ] {
            let witness = Witness::new();
            witness.look(witness.mark(), &same);
            let before = witness.timeline();
            witness.look(witness.mark(), &now);
            assert_eq!(witness.falls(), falls, "{now:?}");
            assert_eq!(witness.is_other_timeline(before), falls > 0, "{now:?}");
            assert!(!witness.is_other_timeline(witness.timeline()));
            // From then on that counts.
            witness.look(witness.mark(), &now);
            assert_eq!(witness.falls(), falls, "{now:?}");
        }
    }

    /// An answer that was under way while another one showed that etcd had gone back shows nothing.
    #[test]
    fn a_fall_is_told_once() {
        let witness = Witness::new();
        witness.look(witness.mark(), &header(10, 4));
        let (one, other, third) = (witness.mark(), witness.mark(), witness.mark());
        witness.look(one, &header(5, 2));
        witness.look(other, &header(6, 2));
        witness.look(third, &header(11, 4));
        witness.gone_back(0);
        witness.told(0, Revision(12));
        assert_eq!(witness.falls(), 1);
        witness.look(witness.mark(), &header(6, 2));
        assert_eq!(witness.falls(), 1);
        witness.told(1, Revision(9));
        witness.look(witness.mark(), &header(8, 2));
        assert_eq!(witness.falls(), 2, "a stream had told of a later revision");
        witness.gone_back(2);
        assert_eq!(witness.falls(), 3);
    }

    #[test]
    fn a_read_that_began_earlier_may_show_less() {
        let witness = Witness::new();
        let early = witness.mark();
        witness.look(witness.mark(), &header(10, 4));
        witness.look(early, &header(8, 3));
        assert_eq!(witness.falls(), 0);
        witness.look(witness.mark(), &header(10, 4));
        assert_eq!(witness.falls(), 0);
    }

    /// What had come when the present timeline was seen first may be of the one before it.
    #[test]
    fn revisions_that_were_told_before_a_fall_may_be_lost() {
        let witness = Witness::new();
        witness.look(witness.mark(), &header(10, 4));
        assert!(!witness.may_be_lost(Revision(3)), "there is one timeline");
        witness.look(witness.mark(), &header(8, 2));
        assert!(witness.may_be_lost(Revision(7)));
        assert!(!witness.may_be_lost(Revision(8)), "it is the present state");
        witness.gone_back(1);
        assert!(
            witness.may_be_lost(Revision(12)),
            "where the present one is has not been seen"
        );
        witness.look(witness.mark(), &header(9, 2));
        assert!(witness.may_be_lost(Revision(8)) && !witness.may_be_lost(Revision(9)));
    }

    /// What a read of the landmark's key says of etcd at some revision.
    #[test]
    fn another_past_shows_at_the_key_of_the_newest_change() {
        let entry = |created: u64, modified: u64| {
            let version = Version::new(Default::default(), Revision(created), Revision(modified), 1);
            Entry::new("/a", version)
        };
        for (is_put, entry, at, falls) in [
            (true, Some(entry(3, 10)), 10, 0),
            (true, Some(entry(3, 12)), 12, 0),
            (true, Some(entry(3, 7)), 10, 1),
            (true, Some(entry(3, 7)), 12, 1),
            (true, None, 10, 1),
            (true, None, 12, 0),
            (false, None, 10, 0),
            (false, None, 12, 0),
            (false, Some(entry(11, 11)), 12, 0),
            (false, Some(entry(3, 7)), 10, 1),
            (false, Some(entry(3, 12)), 12, 1),
        ] {
            let witness = Witness::new();
            witness.look(witness.mark(), &header(10, 4));
            let landmark = Landmark {
                key: "/a".into(),
                revision: Revision(10),
                is_put,
            };
            witness.passed(0, landmark);
            let read = Ranged {
                header: header(at, 4),
                entries: entry.into_iter().collect(),
                ..Ranged::default()
            };
            let told = format!("{is_put} {read:?}");
            witness.look_at(witness.mark(), &witness.landmark().unwrap(), &read);
            assert_eq!(witness.falls(), falls, "{told}");
            assert_eq!(witness.landmark().is_none(), falls > 0);
        }
    }

    #[test]
    fn elections_are_counted_when_they_are_seen() {
        let witness = Witness::new();
        for (term, elections) in [(4, 0), (4, 0), (5, 1), (5, 1), (9, 2), (0, 2)] {
            witness.look(witness.mark(), &header(10, term));
            assert_eq!(witness.elections(), elections, "{term}");
        }
    }

    /// Siblings have turns of their own, and say nothing of each other's.
    #[test]
    fn another_process_has_the_same_timeline() {
        let (ours, theirs) = (Witness::new(), Witness::new());
        for witness in [&ours, &theirs] {
            witness.look(witness.mark(), &header(10, 4));
        }
        let token = theirs.timeline();
        assert!(!ours.is_other_timeline(token));
        theirs.gone_back(0);
        assert!(theirs.is_other_timeline(token));
        assert!(!ours.is_other_timeline(theirs.timeline()));
    }
}
