//! Levels with real tasks that wait in them.

use futures_util::FutureExt;

use super::*;
use crate::flowcontrol::spec::{Distinguisher, Queuing};
use crate::flowcontrol::work::Work;

fn level(limit: u32) -> Arc<Level> {
    let queuing = Queuing {
        queues: 4,
        hand_size: 2,
        length_limit: 5,
    };
    let spec = LevelSpec {
        name: "level".to_owned(),
        uid: String::new(),
        discipline: Discipline::Queue(queuing),
        shares: 10,
        lendable_percent: 0,
        borrowing_percent: None,
    };
    let level = Arc::new(Level::new(spec, Stopwatch::start()));
    level.set_limit(0.0, limit);
    level
}

fn arrival(schema: &Arc<SchemaStats>, work: Work) -> Arrival<Asked> {
    Arrival {
        hash: 7,
        work,
        tag: Asked {
            schema: schema.clone(),
            user: Arc::default(),
            info: Arc::default(),
        },
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(20)
}

fn late() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn now_of(level: &Level) -> (u32, u32) {
    level.with(|state, _| state.queues.requests_now())
}

#[tokio::test]
async fn who_waits_is_served_when_a_seat_is_given_back() {
    let (level, schema) = (level(1), Arc::new(SchemaStats::new("s", Distinguisher::None)));
    let enter = |latest| level.enter(arrival(&schema, Work::ONE), latest, || ());
    let first = enter(late()).await.unwrap();
    let mut second = Box::pin(enter(late()));
    assert!(second.as_mut().now_or_never().is_none());
    assert_eq!(now_of(&level), (1, 1));
    let task = async {
        tokio::task::yield_now().await;
        drop(first);
    };
    let (second, ()) = tokio::join!(second, task);
    assert_eq!(now_of(&level), (1, 0));
    drop(second);
    assert!(level.with(|state, _| state.queues.is_idle()));
    assert_eq!(schema.count(|counted| counted.dispatched), 2);
}

#[tokio::test]
async fn who_waits_too_long_is_turned_away() {
    let (level, schema) = (level(1), Arc::new(SchemaStats::new("s", Distinguisher::None)));
    let _first = level.enter(arrival(&schema, Work::ONE), late(), || ()).await.unwrap();
    let second = level.enter(arrival(&schema, Work::ONE), soon(), || ()).await;
    assert_eq!(second.unwrap_err(), Refusal::TimeOut);
    assert_eq!(now_of(&level), (1, 0));
    assert_eq!(schema.count(|counted| counted.refused), [0, 0, 1, 0]);
    let waits = || schema.count(|counted| counted.waited.each_ref().map(|seen| seen.count()));
    assert_eq!(waits(), [2, 0], "it was taken in");
    let mut others: Vec<_> = (0..10)
        .map(|_| Box::pin(level.enter(arrival(&schema, Work::ONE), late(), || ())))
        .collect();
    assert!(others.iter_mut().all(|one| one.as_mut().now_or_never().is_none()));
    let refused = level.enter(arrival(&schema, Work::ONE), late(), || ()).await;
    assert_eq!(refused.unwrap_err(), Refusal::QueueFull);
    assert_eq!(waits(), [2, 1]);
}

#[tokio::test]
async fn clients_that_go_away_leave_their_turn_and_their_seat() {
    let (level, schema) = (level(1), Arc::new(SchemaStats::new("s", Distinguisher::None)));
    let enter = || level.enter(arrival(&schema, Work::ONE), late(), || ());
    let first = enter().await.unwrap();
    let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(enter())).collect();
    for one in &mut waiting {
        assert!(one.as_mut().now_or_never().is_none());
    }
    assert_eq!(now_of(&level), (1, 3));
    waiting.truncate(2);
    assert_eq!(now_of(&level), (1, 2));
    // Served, but its task was not woken yet when the client went.
    drop(first);
    assert_eq!(now_of(&level), (1, 1));
    waiting.clear();
    assert!(level.with(|state, _| state.queues.is_idle()));
    // One gave up its turn, the others a seat each.
    let counts = schema.count(|counted| (counted.dispatched, counted.refused[3]));
    assert_eq!(counts, (3, 1));
}

#[tokio::test]
async fn a_write_settles_by_itself() {
    let (level, schema) = (level(4), Arc::new(SchemaStats::new("s", Distinguisher::None)));
    let write = level
        .enter(arrival(&schema, Work::of_write(30, 10)), late(), || ())
        .await
        .unwrap();
    drop(write);
    let seats = || level.with(|state, _| state.queues.seats_now().0);
    assert_eq!(seats(), 3);
    while seats() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(level.with(|state, _| state.queues.is_idle()));
}

/// Seats are lent when somebody waits, and as often as there are seats; a flow has a quarter of that and one more.
#[tokio::test]
async fn seats_are_lent_to_those_who_wait() {
    let (level, schema) = (level(8), Arc::new(SchemaStats::new("s", Distinguisher::None)));
    let arrival = |hash| Arrival {
        hash,
        ..arrival(&schema, Work::ONE)
    };
    let mut seated = Vec::new();
    for _ in 0..8 {
        seated.push(level.enter(arrival(7), late(), || ()).await.unwrap());
    }
    let Lending::NobodyWaits(ticket) = level.lend(seated.pop().unwrap()) else {
        panic!("lent to nobody");
    };
    seated.push(ticket);
    assert_eq!(now_of(&level), (8, 0));
    let mut waiting: Vec<_> = (0..10)
        .map(|n| Box::pin(level.enter(arrival(n), late(), || ())))
        .collect();
    for one in &mut waiting {
        assert!(one.as_mut().now_or_never().is_none());
    }
    let mut lent = Vec::new();
    for _ in 0..3 {
        let Lending::Lent(unseated) = level.lend(seated.pop().unwrap()) else {
            panic!("not lent");
        };
        lent.push(unseated);
    }
    assert_eq!(now_of(&level), (8, 7));
    // This flow keeps others from being served no longer, but it may not go on either.
    assert!(matches!(level.lend(seated.pop().unwrap()), Lending::TooMany));
    assert_eq!(now_of(&level), (8, 6));
    lent.pop();
    assert!(matches!(level.lend(seated.pop().unwrap()), Lending::Lent(_)));
    drop((seated, lent, waiting));
    assert!(level.with(|state, _| state.queues.is_idle() && state.lent.all == 0 && state.lent.by_flow.is_empty()));
}
