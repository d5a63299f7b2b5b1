//! Tests of views: watchers, selectors, and answers to upserts.

use super::*;

#[test]
fn selectors_leave_out_and_do_nothing_else() {
    let green = Filter {
        color: Some(GREEN),
        ..Default::default()
    };
    let selected = |items: &[(Key, Version)]| List {
        filter: green,
        ..list(300, Ask::Newest, 12, items)
    };
    let empty = List {
        begin: 35,
        ..selected(&[])
    };
    assert_eq!(rules(|h| h.lists.push(empty)), [""; 0]);
    let rule = "selectors only leave out";
    // what is not selected, what was selected earlier, and (of another revision, where both are) nothing
    breaks(rule, |h| h.lists.push(selected(&[(1, version(11, 2))])));
    breaks(rule, |h| h.lists.push(selected(&[(0, version(10, 1))])));
    breaks(rule, |h| {
        let mut none = selected(&[]);
        none.listed = list(0, Ask::Newest, 16, &[]).listed;
        h.lists.push(none);
    });
}

/// Of a deletion no watch told: what all of them hold is in no list any more.
#[test]
fn phantoms() {
    let rule = "a watcher's view is a list";
    breaks(rule, |h| {
        h.operations.truncate(6);
        h.lists = vec![list(200, Ask::Newest, 16, &[(1, version(11, 2))])];
        h.streams.truncate(1);
        h.streams[0].deliveries.truncate(3);
        h.streams[0].deliveries.push((210, Delivery::Bookmark(17)));
        h.streams[0].start = Start::After(9);
        h.lists.push(list(5, Ask::Newest, 9, &[]));
    });
    // an object that a list has and the watcher does not
    breaks(rule, |h| {
        h.lists.push(list(300, Ask::Newest, 16, &[(0, version(15, 5))]));
    });
    breaks(rule, |h| {
        h.streams[4].deliveries[1].1 = Delivery::Added(1, version(11, 2))
    });
}

#[test]
fn upserts() {
    let apply = |outcome| operation(210, 220, 0, Action::Apply(50), outcome);
    let seen = |h: &mut History| {
        h.streams[0]
            .deliveries
            .push((221, Delivery::Modified(0, version(17, 50))))
    };
    let good = rules(|h| {
        h.operations.push(apply(done(17, 50)));
        seen(h);
    });
    assert_eq!(good, [""; 0]);
    // of an object that is absent
    let made = rules(|h| {
        h.operations[10].action = Action::Apply(5);
    });
    assert_eq!(made, [""; 0]);
    breaks("upserts never collide", |h| h.operations.push(apply(Outcome::Exists)));
    breaks("upserts never collide", |h| h.operations.push(apply(Outcome::Conflict)));
    breaks("upserts never collide", |h| h.operations.push(apply(Outcome::Absent)));
    breaks("linearizable", |h| {
        h.operations.push(apply(done(17, 50)));
        h.operations.push(operation(230, 231, 0, Action::Read, done(15, 5)));
        seen(h);
    });
}
