//! The queues, replayed with a simulated clock.

use std::collections::{BTreeMap, HashSet};

use super::*;
use crate::flowcontrol::dealer::flow_hash;

const QUEUING: Queuing = Queuing {
    queues: 64,
    hand_size: 6,
    length_limit: 50,
};

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn arrival(user: usize, seats: u32) -> Arrival<usize> {
    Arrival {
        hash: flow_hash("schema", &format!("user-{user}")),
        work: Work::until_answer(seats),
        tag: user,
    }
}

/// Users who each keep some requests under way at any time, and requests that take a while once they are served.
struct Simulation {
    queues: Queues<usize>,
    now: Duration,
    /// When requests that are served are done; whose they are, and for how long they were served.
    ends: BTreeMap<(Duration, Place), (usize, Duration)>,
    begun: u32,
    /// By user: time that seats were held, in seconds.
    held: Vec<f64>,
    refused: Vec<u32>,
    most_at_once: u32,
}

/// How a user behaves. Requests take half as long up to half as long again, so that they don't end in step.
#[derive(Clone, Copy)]
struct Load {
    under_way: usize,
    seats: u32,
    takes: Duration,
}

impl Simulation {
    fn run(discipline: Discipline, limit: u32, loads: &[Load], time: Duration) -> Simulation {
        let mut simulation = Simulation {
            queues: Queues::new(discipline, limit, Duration::ZERO),
            now: Duration::ZERO,
            ends: BTreeMap::new(),
            begun: 0,
            held: vec![0.0; loads.len()],
            refused: vec![0; loads.len()],
            most_at_once: 0,
        };
        for (user, load) in loads.iter().enumerate() {
            (0..load.under_way).for_each(|_| simulation.arrive(user, loads));
        }
        while simulation.now < time
            && let Some(((end, place), (user, took))) = simulation.ends.pop_first()
        {
            simulation.now = end;
            simulation.held[user] += took.as_secs_f64() * f64::from(loads[user].seats);
            assert_eq!(simulation.queues.finish(place, end), None);
            simulation.dispatched(loads);
            simulation.arrive(user, loads);
        }
        simulation
    }

    fn arrive(&mut self, user: usize, loads: &[Load]) {
        match self.queues.arrive(arrival(user, loads[user].seats), self.now) {
            Entrance::Served(place) => self.begin(place, loads),
            Entrance::Waits(..) => {}
            Entrance::Refused(_) => self.refused[user] += 1,
        }
        self.dispatched(loads);
    }

    fn dispatched(&mut self, loads: &[Load]) {
        for place in self.queues.take_dispatched() {
            self.begin(place, loads);
        }
    }

    fn begin(&mut self, place: Place, loads: &[Load]) {
        let user = self.queues.get(place).unwrap().arrival.tag;
        self.most_at_once = self.most_at_once.max(self.queues.seats_now().0);
        self.begun += 1;
        let took = loads[user].takes * (5 + self.begun % 11) / 10;
        self.ends.insert((self.now + took, place), (user, took));
    }

    /// A user's part of the seats that were held.
    fn part(&self, user: usize) -> f64 {
        self.held[user] / self.held.iter().sum::<f64>()
    }
}

#[test]
fn a_quiet_flow_keeps_its_fair_part_beside_a_noisy_one() {
    let load = |under_way, seats, takes| Load {
        under_way,
        seats,
        takes: millis(takes),
    };
    for (name, noisy, quiet) in [
        ("ten times as many requests", load(200, 1, 10), load(20, 1, 10)),
        ("requests that take longer", load(200, 1, 100), load(20, 1, 10)),
        ("requests that take more seats", load(200, 3, 10), load(20, 1, 10)),
        ("more requests than may wait", load(1000, 1, 10), load(20, 1, 10)),
    ] {
        let run = Simulation::run(Discipline::Queue(QUEUING), 10, &[noisy, quiet], Duration::from_secs(20));
        // Half would be fair.
        assert!(run.part(1) >= 0.4, "{name}: {}", run.part(1));
        assert!(run.most_at_once <= 10, "{name}");
        assert_eq!(run.refused[1], 0, "{name}");
    }
}

#[test]
fn a_flow_that_needs_less_than_its_part_gets_what_it_needs() {
    let load = |under_way| Load {
        under_way,
        seats: 1,
        takes: millis(10),
    };
    // Of ten seats the quiet one could have five.
    let run = Simulation::run(
        Discipline::Queue(QUEUING),
        10,
        &[load(300), load(2)],
        Duration::from_secs(20),
    );
    // A seat must become free first, which takes about a tenth of the time of a request.
    assert!(run.part(1) >= 0.8 * 2.0 / 10.0, "{}", run.part(1));
}

#[test]
fn many_flows_share_alike() {
    let loads = [Load {
        under_way: 40,
        seats: 1,
        takes: millis(10),
    }; 8];
    let run = Simulation::run(Discipline::Queue(QUEUING), 16, &loads, Duration::from_secs(20));
    for user in 0..loads.len() {
        assert!((run.part(user) - 0.125).abs() < 0.05, "{user}: {}", run.part(user));
    }
}

#[test]
fn a_wide_request_is_served_though_narrow_ones_go_on_coming() {
    let wide = Load {
        under_way: 1,
        seats: 10,
        takes: millis(10),
    };
    let narrow = Load {
        under_way: 50,
        seats: 1,
        takes: millis(10),
    };
    let run = Simulation::run(Discipline::Queue(QUEUING), 10, &[wide, narrow], Duration::from_secs(5));
    assert!(run.held[0] > 0.5, "{:?}", run.held);
    // And one that is wider than the level, alone.
    let wider = Load { seats: 20, ..wide };
    let run = Simulation::run(Discipline::Queue(QUEUING), 10, &[wider, narrow], Duration::from_secs(5));
    assert!(run.held[0] > 0.5, "{:?}", run.held);
}

/// The places of so many requests of one user.
fn fill(queues: &mut Queues<usize>, user: usize, count: usize) -> Vec<Entrance> {
    (0..count)
        .map(|_| queues.arrive(arrival(user, 1), Duration::ZERO))
        .collect()
}

#[test]
fn a_full_queue_takes_no_more() {
    let queuing = Queuing {
        queues: 8,
        hand_size: 2,
        length_limit: 3,
    };
    let mut queues = Queues::new(Discipline::Queue(queuing), 2, Duration::ZERO);
    let entrances = fill(&mut queues, 1, 10);
    let served = entrances.iter().filter(|e| matches!(e, Entrance::Served(_))).count();
    let waits = entrances.iter().filter(|e| matches!(e, Entrance::Waits(..))).count();
    assert_eq!((served, waits), (2, 6));
    assert_eq!(entrances[8..], [Entrance::Refused(Refusal::QueueFull); 2]);
    assert_eq!(queues.requests_now(), (2, 6));
    assert_eq!(queues.counts().rejected, 2);
    // Of its hand both are used alike; the rest is free for others.
    let lengths: Vec<usize> = queues
        .queues()
        .values()
        .map(|queue| queue.waiting.len())
        .filter(|n| *n > 0)
        .collect();
    assert_eq!(lengths, [3, 3]);
    assert!(matches!(fill(&mut queues, 2, 1)[..], [Entrance::Waits(_, 1)]));
}

#[test]
fn without_queues_nobody_waits() {
    let mut queues = Queues::new(Discipline::Reject, 2, Duration::ZERO);
    let entrances = fill(&mut queues, 1, 3);
    assert_eq!(entrances[2], Entrance::Refused(Refusal::NoSeat));
    let Entrance::Served(first) = entrances[0] else {
        panic!()
    };
    queues.finish(first, millis(5));
    assert!(matches!(fill(&mut queues, 1, 1)[..], [Entrance::Served(_)]));
    let mut exempt = Queues::new(Discipline::Exempt, 0, Duration::ZERO);
    assert!(
        fill(&mut exempt, 1, 1000)
            .iter()
            .all(|e| matches!(e, Entrance::Served(_)))
    );
}

#[test]
fn who_gives_up_leaves_no_trace() {
    let mut queues = Queues::new(Discipline::Queue(QUEUING), 1, Duration::ZERO);
    let entrances = fill(&mut queues, 1, 3);
    let [
        Entrance::Served(served),
        Entrance::Waits(second, _),
        Entrance::Waits(third, _),
    ] = entrances[..]
    else {
        panic!("{entrances:?}");
    };
    assert!(queues.give_up(second, Refusal::TimeOut, millis(1)));
    assert!(!queues.give_up(served, Refusal::TimeOut, millis(1)), "it is served");
    queues.finish(served, millis(2));
    assert_eq!(queues.take_dispatched(), [third]);
    assert!(queues.is_served(third));
    assert!(!queues.give_up(third, Refusal::Cancelled, millis(3)));
    queues.finish(third, millis(4));
    assert!(queues.is_idle());
    assert_eq!((queues.requests_now(), queues.seats_now()), ((0, 0), (0, 0)));
    let counts = Counts {
        dispatched: 2,
        rejected: 0,
        timed_out: 1,
        cancelled: 0,
    };
    assert_eq!(queues.counts(), counts);
    assert!(queues.queues().is_empty());
}

#[test]
fn a_write_keeps_seats_until_its_watchers_are_told() {
    let mut queues = Queues::new(Discipline::Queue(QUEUING), 4, Duration::ZERO);
    let write = Arrival {
        work: Work::of_write(25, 10),
        ..arrival(1, 1)
    };
    assert_eq!(write.work.final_seats, 3);
    let Entrance::Served(place) = queues.arrive(write, Duration::ZERO) else {
        panic!()
    };
    assert_eq!(queues.seats_now(), (3, 0));
    assert!(matches!(
        fill(&mut queues, 2, 2)[..],
        [Entrance::Served(_), Entrance::Waits(..)]
    ));
    assert_eq!(queues.finish(place, millis(10)), Some(millis(5)));
    assert_eq!((queues.seats_now(), queues.requests_now()), ((4, 1), (1, 1)));
    queues.settled(place, millis(15));
    assert_eq!((queues.seats_now(), queues.requests_now()), ((2, 0), (2, 0)));
}

#[test]
fn queues_that_are_too_many_go_on_until_they_are_empty() {
    let mut queues = Queues::new(Discipline::Queue(QUEUING), 1, Duration::ZERO);
    let places: Vec<Place> = (0..20)
        .map(|user| match fill(&mut queues, user, 1)[..] {
            [Entrance::Served(place) | Entrance::Waits(place, _)] => place,
            _ => panic!(),
        })
        .collect();
    queues.set_discipline(
        Discipline::Queue(Queuing {
            queues: 2,
            hand_size: 1,
            ..QUEUING
        }),
        millis(1),
    );
    assert!(queues.queues().len() > 2);
    queues.set_discipline(Discipline::Reject, millis(1));
    let mut left: HashSet<Place> = places.into_iter().collect();
    for round in 0..20 {
        let served = *left.iter().find(|place| queues.is_served(**place)).unwrap();
        left.remove(&served);
        queues.finish(served, millis(2 + round));
    }
    assert!(queues.is_idle() && queues.queues().is_empty());
}

#[test]
fn more_seats_serve_more_who_wait() {
    let mut queues = Queues::new(Discipline::Queue(QUEUING), 1, Duration::ZERO);
    fill(&mut queues, 1, 8);
    queues.set_limit(5, millis(1));
    assert_eq!((queues.requests_now(), queues.take_dispatched().len()), ((5, 3), 4));
    queues.set_limit(2, millis(2));
    assert_eq!(queues.requests_now(), (5, 3), "nobody loses a seat");
    queues.set_discipline(Discipline::Exempt, millis(3));
    assert_eq!(queues.requests_now(), (8, 0));
}
