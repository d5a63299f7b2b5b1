//! A store that is put back to an earlier state.

use super::*;
use crate::LATEST;

/// As the good history up to the 300th microsecond; then the store is put back to revision 12, where key 0 is as it was
/// changed and key 1 as it was made. Key 1 is changed (13) and key 2 made (14).
fn put_back() -> History {
    use Delivery::{Added, Bookmark, Deleted, Gone, InitialEnd, Modified};
    let mut history = good();
    for stream in &mut history.streams {
        stream.end = 300;
    }
    history.borders = vec![Border {
        down: 300,
        up: 400,
        written: 408,
        common: 12,
    }];
    history.operations.extend([
        operation(410, 420, 1, update(20, 11), done(13, 20)),
        operation(421, 422, 0, Action::Read, done(12, 3)),
        operation(425, 430, 0, update(21, 15), Outcome::Conflict),
        operation(431, 440, 2, create(22), done(14, 22)),
    ]);
    let old_list = list(405, Ask::AtLeast(16), 12, &[]);
    history.lists.extend([
        list(404, Ask::Newest, 12, &[(0, version(12, 3)), (1, version(11, 2))]),
        List {
            listed: Listed::Gone,
            ..old_list
        },
        list(
            441,
            Ask::Newest,
            14,
            &[(0, version(12, 3)), (1, version(13, 20)), (2, version(14, 22))],
        ),
        // about the border, either may be seen
        list(350, Ask::Any, 16, &[(0, version(15, 5)), (1, version(14, 4))]),
        list(351, Ask::Any, 12, &[(0, version(12, 3)), (1, version(11, 2))]),
    ]);
    let resumed = |from, after, begin, deliveries: &[Delivery]| Stream {
        from,
        ..stream(Filter::default(), Start::After(after), begin, deliveries)
    };
    history.streams.extend([
        resumed(200, 16, 405, &[Gone]),
        resumed(
            200,
            11,
            450,
            &[
                Modified(0, version(12, 3)),
                Modified(1, version(13, 20)),
                Added(2, version(14, 22)),
            ],
        ),
        resumed(
            404,
            12,
            406,
            &[Modified(1, version(13, 20)), Added(2, version(14, 22)), Bookmark(14)],
        ),
        stream(
            Filter::default(),
            Start::State,
            402,
            &[
                Added(0, version(12, 3)),
                Added(1, version(11, 2)),
                InitialEnd(12),
                Modified(1, version(13, 20)),
            ],
        ),
        resumed(200, 12, 350, &[Deleted(0, version(13, 3)), Modified(1, version(14, 4))]),
    ]);
    for (moment, _) in history
        .streams
        .iter_mut()
        .skip(7)
        .flat_map(|stream| &mut stream.deliveries)
    {
        *moment += 40;
    }
    history
}

#[test]
fn a_timeline_ends_and_another_begins() {
    assert_eq!(check(&put_back()), []);
    // what was lost is not there, and what both have in common is
    breaks_of(put_back(), "a list is the state at its revision", |h| {
        h.lists[6] = list(
            441,
            Ask::Newest,
            14,
            &[(0, version(15, 5)), (1, version(13, 20)), (2, version(14, 22))],
        );
    });
    breaks_of(put_back(), "linearizable", |h| {
        h.operations[14].outcome = Outcome::Absent
    });
    breaks_of(put_back(), "linearizable", |h| h.operations[14].outcome = done(12, 1));
    breaks_of(put_back(), "nothing is invented", |h| {
        h.operations[14].outcome = done(15, 5)
    });
    breaks_of(put_back(), "no time travel", |h| {
        h.lists[4] = list(404, Ask::Newest, 11, &[(0, version(10, 1)), (1, version(11, 2))]);
    });
    // each timeline has its own revisions
    breaks_of(put_back(), "one change per revision", |h| h.borders.clear());
}

#[test]
fn positions_of_another_timeline_are_gone() {
    let rule = "what comes from another timeline is 410";
    // silence
    breaks_of(put_back(), rule, |h| {
        h.streams[5].deliveries.clear();
        h.streams[5].end = h.streams[5].begin + LATEST + 1;
    });
    // a watch that breaks at once says nothing
    let broken = rules_of(put_back(), |h| h.streams[5].deliveries.clear());
    assert_eq!(broken, [""; 0]);
    breaks_of(put_back(), rule, |h| {
        h.streams[5].deliveries = vec![(450, Delivery::Bookmark(14))]
    });
    let mixed = |h: &mut History| {
        let told = [Delivery::Added(2, version(14, 22))];
        h.streams[5] = Stream {
            from: 200,
            ..stream(Filter::default(), Start::After(13), 450, &told)
        };
    };
    breaks_of(put_back(), rule, |h| {
        mixed(h);
        h.borders[0].written = 451;
    });
    // who comes later brings a position that may be one of either
    assert_eq!(rules_of(put_back(), mixed), [""; 0]);
    // a watch of the earlier timeline that goes on
    breaks_of(put_back(), rule, |h| h.streams[0].end = 401 + LATEST);
    let ended = rules_of(put_back(), |h| {
        h.streams[0].end = 401 + LATEST;
        h.streams[0].deliveries.push((410, Delivery::Gone));
    });
    assert_eq!(ended, [""; 0]);
    breaks_of(put_back(), rule, |h| {
        h.streams[9].deliveries.clear();
        h.streams[9].start = Start::After(13);
        h.streams[9].end = 401 + LATEST;
    });
}

#[test]
fn timelines_are_not_mixed() {
    let rule = "a watch tells of one timeline";
    breaks_of(put_back(), rule, |h| {
        h.streams[0].deliveries.push((440, Delivery::Added(2, version(17, 22))));
    });
    breaks_of(put_back(), rule, |h| {
        h.streams[9].deliveries = vec![
            (351, Delivery::Deleted(0, version(13, 3))),
            (352, Delivery::Modified(1, version(14, 20))),
        ];
    });
    breaks_of(put_back(), "a list shows one timeline", |h| {
        h.lists[7] = list(350, Ask::Any, 16, &[(0, version(12, 3)), (1, version(14, 4))]);
    });
    // with nothing in common: a store that forgot all
    let forgotten = rules_of(put_back(), |h| {
        h.borders[0].common = 0;
        h.operations.truncate(13);
        h.operations.push(operation(410, 420, 0, create(30), done(5, 30)));
        h.lists.truncate(4);
        h.lists.push(list(425, Ask::Newest, 5, &[(0, version(5, 30))]));
        h.streams.truncate(6);
    });
    assert_eq!(forgotten, [""; 0]);
}
