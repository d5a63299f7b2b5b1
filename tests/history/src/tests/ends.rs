//! Objects that end by themselves, and deletions by steps.

use super::*;
use crate::{Act, Grace, Life, State, Step, check_deletions};

/// Keys 0, 1 and 2 are made (10, 11, 12) to live for 100; they end together (20). Key 3 is made after that (21).
fn leases() -> History {
    use Delivery::{Added, Bookmark, Deleted};
    let made = |n: u32| {
        operation(
            10 * u64::from(n),
            10 * u64::from(n) + 5,
            n,
            create(n),
            done(10 + u64::from(n), n),
        )
    };
    let operations = vec![
        made(0),
        made(1),
        made(2),
        operation(119, 121, 1, Action::Read, Outcome::Absent),
        operation(90, 91, 0, Action::Read, done(10, 0)),
        operation(130, 140, 3, create(3), done(21, 3)),
    ];
    let all = [
        Added(0, version(10, 0)),
        Added(1, version(11, 1)),
        Added(2, version(12, 2)),
        Deleted(2, version(20, 2)),
        Deleted(0, version(20, 0)),
        Deleted(1, version(20, 1)),
        Bookmark(20),
        Added(3, version(21, 3)),
    ];
    let mut everything = stream(Filter::default(), Start::After(0), 120, &all);
    everything.deliveries[7].0 = 141;
    History {
        operations,
        lists: vec![list(130, Ask::Newest, 20, &[])],
        streams: vec![everything],
        complete: true,
        lifetime: Some(100),
        ..History::default()
    }
}

#[test]
fn what_ends_together_is_told_wholly() {
    assert_eq!(check(&leases()), []);
    // of which somebody else was told
    let lose = |h: &mut History, lost: &[usize]| {
        h.streams.push(h.streams[0].clone());
        lost.iter().for_each(|lost| {
            h.streams[0].deliveries.remove(*lost);
        });
    };
    for lost in 3..6 {
        breaks_of(leases(), "bookmarks are true", |h| lose(h, &[lost]));
        breaks_of(leases(), "watches are complete", |h| lose(h, &[6, lost]));
    }
    // a bookmark ahead of what was sent
    breaks_of(leases(), "bookmarks are true", |h| h.streams[0].deliveries.swap(5, 6));
    let once = "watches are ordered and tell once";
    breaks_of(leases(), once, |h| h.streams[0].deliveries.swap(5, 7));
    breaks_of(leases(), once, |h| {
        let again = h.streams[0].deliveries[4];
        h.streams[0].deliveries.insert(6, again);
    });
    breaks_of(leases(), once, |h| {
        h.streams.push(stream(
            Filter::default(),
            Start::After(20),
            150,
            &[Delivery::Deleted(1, version(20, 1))],
        ));
    });
}

#[test]
fn only_what_ends_by_itself_changes_together() {
    breaks_of(leases(), "one change per revision", |h| h.lifetime = None);
    breaks_of(leases(), "one change per revision", |h| {
        h.operations[5].outcome = done(20, 3)
    });
    // before its time
    breaks_of(leases(), "linearizable", |h| {
        h.operations.push(operation(80, 99, 0, Action::Read, Outcome::Absent));
        h.operations.remove(4);
    });
    // what has ended comes back
    breaks_of(leases(), "no time travel", |h| {
        h.operations.push(operation(160, 170, 0, Action::Read, done(10, 0)));
    });
}

const FRESH: State = State {
    terminating: None,
    held: false,
};
const HELD: State = State { held: true, ..FRESH };

fn marked(state: State, grace: u64) -> Life {
    Life::Shown(State {
        terminating: Some(grace),
        ..state
    })
}

/// Steps one after the other, of key 7.
fn steps(steps: &[(Act, Life)]) -> Vec<Step> {
    let step = |(n, (act, life)): (usize, &(Act, Life))| Step {
        client: 3,
        key: 7,
        act: *act,
        begin: 10 * n as u64,
        end: 10 * n as u64 + 5,
        life: *life,
    };
    steps.iter().enumerate().map(step).collect()
}

fn broken_by(acts: &[(Act, Life)]) -> Option<&'static str> {
    check_deletions(&steps(acts)).first().map(|violation| violation.rule)
}

#[test]
fn deletions_that_end() {
    use Act::{Create, Delete, Read, Release, Touch};
    let fresh = (Create, Life::Shown(FRESH));
    let good = [
        vec![fresh, (Delete(Grace::Now), Life::Shown(FRESH)), (Read, Life::Absent)],
        vec![
            fresh,
            (Delete(Grace::Own), marked(FRESH, 30)),
            (Read, marked(FRESH, 30)),
            (Delete(Grace::Now), Life::Unknown),
            (Read, marked(FRESH, 0)),
            (Delete(Grace::Now), marked(FRESH, 0)),
            (Read, Life::Absent),
            (Delete(Grace::Now), Life::Absent),
        ],
        vec![fresh, (Delete(Grace::Now), Life::Unknown), (Read, Life::Shown(FRESH))],
        vec![(Create, Life::Unknown), (Read, Life::Absent)],
        vec![
            (Create, Life::Shown(HELD)),
            (Delete(Grace::Now), marked(HELD, 0)),
            (Touch, marked(HELD, 0)),
            (Release, marked(FRESH, 0)),
            (Read, Life::Absent),
        ],
        vec![fresh, (Delete(Grace::Own), Life::Refused), (Read, Life::Shown(FRESH))],
    ];
    for acts in good {
        assert_eq!(check_deletions(&steps(&acts)), []);
    }
}

#[test]
fn deletions_that_do_not_end() {
    use Act::{Create, Delete, Read, Release, Touch};
    let (fresh, held) = ((Create, Life::Shown(FRESH)), (Create, Life::Shown(HELD)));
    let now = (Delete(Grace::Now), marked(FRESH, 0));
    let undead = [
        (Read, marked(FRESH, 0)),
        (Read, Life::Shown(FRESH)),
        (Touch, marked(FRESH, 0)),
    ];
    for shown in undead {
        assert_eq!(
            broken_by(&[fresh, now, shown]),
            Some("a deletion that was answered ends")
        );
    }
    let own = (Delete(Grace::Own), marked(FRESH, 30));
    let ends = Some("a deletion that was answered ends");
    assert_eq!(broken_by(&[fresh, own, (Read, Life::Shown(FRESH))]), ends);
    assert_eq!(
        broken_by(&[held, (Delete(Grace::Now), Life::Shown(HELD)), (Read, Life::Shown(HELD))]),
        ends
    );
    let released = [held, now, (Release, marked(FRESH, 0)), (Read, marked(FRESH, 0))];
    assert_eq!(broken_by(&released), ends);

    let maybe = (Delete(Grace::Own), Life::Unknown);
    let seen = (Read, marked(FRESH, 30));
    assert_eq!(
        broken_by(&[fresh, maybe, seen, (Read, Life::Shown(FRESH))]),
        Some("a mark of deletion stays")
    );
    assert_eq!(
        broken_by(&[fresh, maybe, seen, (Touch, marked(FRESH, 31))]),
        Some("a grace only shortens")
    );
    assert_eq!(
        broken_by(&[fresh, (Read, Life::Absent)]),
        Some("nothing goes by itself")
    );
    assert_eq!(
        broken_by(&[fresh, (Delete(Grace::Now), Life::Absent)]),
        Some("nothing goes by itself")
    );
    let back = [fresh, now, (Read, Life::Absent), (Read, Life::Shown(FRESH))];
    assert_eq!(broken_by(&back), ends);
    let back = [
        fresh,
        maybe,
        (Read, Life::Absent),
        (Delete(Grace::Now), marked(FRESH, 0)),
    ];
    assert_eq!(broken_by(&back), Some("what is gone stays gone"));
    let held_again = [held, (Release, Life::Shown(FRESH)), (Read, Life::Shown(HELD))];
    assert_eq!(
        broken_by(&held_again),
        Some("a finalizer that was taken away stays away")
    );
}
