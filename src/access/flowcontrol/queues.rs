//! The queues of one level: which request is served when.
//!
//! Seats are shared fairly among the queues that have something to do: each queue has a meter of the work it was given,
//! in virtual time, which advances for all queues alike; the queue whose next request would be finished first in
//! virtual time comes next. Nothing here knows of threads or clocks: the time of each call is an argument and never
//! goes back.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;
use std::time::Duration;

use super::dealer::{Dealer, MAX_HAND};
use super::seat_seconds::SeatSeconds;
use super::spec::{Discipline, Queuing};
use super::work::Work;

/// How long serving takes, as long as nobody knows better.
const SERVICE: Duration = Duration::from_millis(3);

/// Where a request of a level is kept, as long as it is there.
pub type Place = usize;

/// A request that wants to be served.
#[derive(Clone, Debug)]
pub struct Arrival<T> {
    /// Of its flow.
    pub hash: u64,
    pub work: Work,
    /// What it is; nothing here looks at it.
    pub tag: T,
}

/// Why a request is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    QueueFull,
    /// No seat is free, and nobody waits in this level.
    NoSeat,
    TimeOut,
    Cancelled,
}

impl Refusal {
    pub const ALL: [Refusal; 4] = [
        Refusal::QueueFull,
        Refusal::NoSeat,
        Refusal::TimeOut,
        Refusal::Cancelled,
    ];

    /// Its name in metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Refusal::QueueFull => "queue-full",
            Refusal::NoSeat => "concurrency-limit",
            Refusal::TimeOut => "time-out",
            Refusal::Cancelled => "cancelled",
        }
    }
}

/// What became of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    Served(Place),
    /// It is the last of so many that wait in its queue.
    Waits(Place, usize),
    Refused(Refusal),
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Waiting,
    /// Since then.
    Served(Duration),
    /// It is answered, but others are still busy with it.
    Settling,
}

/// A request that waits or is served.
#[derive(Debug)]
pub struct Held<T> {
    pub arrival: Arrival<T>,
    pub arrived: Duration,
    pub phase: Phase,
    /// `None`: the level has no queues.
    pub queue: Option<usize>,
    /// The virtual time when it came.
    arrived_virtually: SeatSeconds,
    /// Who wants to know that it is served.
    waker: Option<Waker>,
}

/// One queue.
#[derive(Debug, Default)]
pub struct Queue {
    pub waiting: VecDeque<Place>,
    pub served: u32,
    /// Seats that its requests have.
    pub seats: u32,
    /// The virtual time at which its next request begins.
    pub next: SeatSeconds,
    /// What waits: all the work, and the seats at the beginning and at most.
    pub waiting_work: SeatSeconds,
    pub waiting_initial: u32,
    pub waiting_seats: u32,
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.served == 0
    }
}

/// What happened since the level began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub dispatched: u64,
    pub rejected: u64,
    pub timed_out: u64,
    pub cancelled: u64,
}

/// All requests of a level.
#[derive(Debug)]
pub struct Queues<T> {
    discipline: Discipline,
    dealer: Dealer,
    /// Seats that may be taken at once.
    limit: u32,
    /// Those that are not idle: what is idle begins anew, so nothing has to be kept of it, however many there are.
    queues: BTreeMap<usize, Queue>,
    held: Vec<Option<Held<T>>>,
    free: Vec<Place>,
    /// The queue that was served last.
    turn: usize,
    /// How many came, to begin at another queue of the hand each time.
    came: usize,
    /// Virtual time, and when it was that.
    meter: SeatSeconds,
    at: Duration,
    served: u32,
    seats: u32,
    waiting: u32,
    waiting_seats: u32,
    counts: Counts,
    /// Those that waited and are served now, until somebody asks.
    dispatched: Vec<Place>,
}

impl<T> Queues<T> {
    pub fn new(discipline: Discipline, limit: u32, now: Duration) -> Queues<T> {
        let mut queues = Queues {
            discipline,
            dealer: Dealer::new(1, 1),
            limit,
            queues: BTreeMap::new(),
            held: Vec::new(),
            free: Vec::new(),
            turn: 0,
            came: 0,
            meter: SeatSeconds::ZERO,
            at: now,
            served: 0,
            seats: 0,
            waiting: 0,
            waiting_seats: 0,
            counts: Counts::default(),
            dispatched: Vec::new(),
        };
        queues.arrange(discipline);
        queues
    }

    /// Changes what becomes of requests that come from now on. Queues that are too many go on until they are idle.
    pub fn set_discipline(&mut self, discipline: Discipline, now: Duration) {
        self.advance(now);
        self.arrange(discipline);
        self.dispatch(now);
    }

    fn arrange(&mut self, discipline: Discipline) {
        self.discipline = discipline;
        if let Discipline::Queue(queuing) = discipline {
            self.dealer = Dealer::new(queuing.queues as usize, queuing.hand_size as usize);
        }
    }

    /// Changes how many seats may be taken at once.
    pub fn set_limit(&mut self, limit: u32, now: Duration) {
        self.advance(now);
        self.limit = limit;
        self.dispatch(now);
    }

    /// Takes a request in.
    pub fn arrive(&mut self, arrival: Arrival<T>, now: Duration) -> Entrance {
        self.advance(now);
        let seats = arrival.work.max_seats();
        match self.discipline {
            Discipline::Exempt => Entrance::Served(self.serve_new(arrival, None, now)),
            Discipline::Reject => match self.has_room(seats) {
                true => Entrance::Served(self.serve_new(arrival, None, now)),
                false => self.refuse(Refusal::NoSeat),
            },
            Discipline::Queue(queuing) => {
                let queue = self.choose(arrival.hash);
                // Where nobody waits, the queue would be left at once.
                if self.waiting == 0 && self.has_room(seats) {
                    self.begin_work(queue);
                    return Entrance::Served(self.serve_new(arrival, Some(queue), now));
                }
                self.wait(arrival, queue, queuing, now)
            }
        }
    }

    fn wait(&mut self, arrival: Arrival<T>, queue: usize, queuing: Queuing, now: Duration) -> Entrance {
        let length = self.queues.get(&queue).map_or(0, |queue| queue.waiting.len());
        if self.seats >= self.limit && length >= queuing.length_limit as usize {
            return self.refuse(Refusal::QueueFull);
        }
        self.begin_work(queue);
        let (work, total) = (arrival.work, arrival.work.total(SERVICE));
        let place = self.hold(Held {
            arrival,
            arrived: now,
            phase: Phase::Waiting,
            queue: Some(queue),
            arrived_virtually: self.meter,
            waker: None,
        });
        if let Some(queue) = self.queues.get_mut(&queue) {
            queue.waiting.push_back(place);
            queue.waiting_work += total;
            queue.waiting_initial += work.initial_seats;
            queue.waiting_seats += work.max_seats();
        }
        self.waiting += 1;
        self.waiting_seats += work.max_seats();
        self.dispatch(now);
        match self.is_served(place) {
            true => {
                self.dispatched.retain(|other| *other != place);
                Entrance::Served(place)
            }
            false => Entrance::Waits(place, length + 1),
        }
    }

    fn refuse(&mut self, refusal: Refusal) -> Entrance {
        self.counts.rejected += 1;
        Entrance::Refused(refusal)
    }

    /// A queue that was idle begins where all others are.
    fn begin_work(&mut self, queue: usize) {
        let next = self.meter;
        self.queues.entry(queue).or_insert_with(|| Queue {
            next,
            ..Queue::default()
        });
    }

    fn hold(&mut self, held: Held<T>) -> Place {
        if let Some(place) = self.free.pop()
            && let Some(slot) = self.held.get_mut(place)
        {
            *slot = Some(held);
            return place;
        }
        self.held.push(Some(held));
        self.held.len() - 1
    }

    /// The queue of a flow's hand in which the least work waits.
    fn choose(&mut self, hash: u64) -> usize {
        self.came = self.came.wrapping_add(1);
        let mut cards = [0; MAX_HAND];
        let hand = self.dealer.deal(hash, &mut cards);
        let (later, first) = hand.split_at(self.came % hand.len().max(1));
        let work = |queue: &&usize| {
            self.queues
                .get(*queue)
                .map_or(SeatSeconds::ZERO, |queue| queue.waiting_work)
        };
        first.iter().chain(later).min_by_key(work).copied().unwrap_or(0)
    }

    fn serve_new(&mut self, arrival: Arrival<T>, queue: Option<usize>, now: Duration) -> Place {
        let place = self.hold(Held {
            arrival,
            arrived: now,
            phase: Phase::Waiting,
            queue,
            arrived_virtually: self.meter,
            waker: None,
        });
        self.serve(place, now);
        place
    }

    /// A request that no longer waits gets its seats.
    fn serve(&mut self, place: Place, now: Duration) {
        let Some(held) = self.held.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        held.phase = Phase::Served(now);
        let (queue, work) = (held.queue, held.arrival.work);
        self.counts.dispatched += 1;
        self.served += 1;
        self.seats += work.max_seats();
        if let Some(queue) = queue.and_then(|queue| self.queues.get_mut(&queue)) {
            queue.served += 1;
            queue.seats += work.max_seats();
            queue.next += work.total(SERVICE);
        }
    }

    fn has_room(&self, seats: u32) -> bool {
        // What is wider than the level is served alone.
        self.seats == 0 || self.seats.saturating_add(seats) <= self.limit
    }

    /// Serves whoever waits, as far as there are seats.
    fn dispatch(&mut self, now: Duration) {
        while self.waiting > 0 {
            let Some((queue, place)) = self.next_queue() else {
                return;
            };
            let Some((work, arrived)) = self.get(place).map(|held| (held.arrival.work, held.arrived_virtually)) else {
                return;
            };
            if let Some(queue) = self.queues.get_mut(&queue) {
                // What a queue did not use up while it had nothing to do is lost.
                queue.next = queue.next.max(arrived);
            }
            // It is the next one's turn: if its seats are not free, nobody passes it.
            if self.discipline != Discipline::Exempt && !self.has_room(work.max_seats()) {
                return;
            }
            self.turn = queue;
            self.leave_queue(place);
            self.serve(place, now);
            self.dispatched.push(place);
        }
    }

    /// The queue whose first request would be finished first, and that request. Those behind the last one that was
    /// served come first where it makes no difference.
    fn next_queue(&self) -> Option<(usize, Place)> {
        let later = self.queues.range(self.turn.saturating_add(1)..);
        let order = later.chain(self.queues.range(..=self.turn));
        let candidates = order.filter_map(|(index, queue)| {
            let place = *queue.waiting.front()?;
            let finish = queue.next + self.get(place)?.arrival.work.total(SERVICE);
            Some((finish, *index, place))
        });
        let first = candidates.min_by_key(|(finish, _, _)| *finish)?;
        Some((first.1, first.2))
    }

    /// Takes a request out of its queue.
    fn leave_queue(&mut self, place: Place) {
        let Some((index, work)) = self.get(place).map(|held| (held.queue, held.arrival.work)) else {
            return;
        };
        let Some(queue) = index.and_then(|index| self.queues.get_mut(&index)) else {
            return;
        };
        match queue.waiting.front() == Some(&place) {
            true => drop(queue.waiting.pop_front()),
            false => queue.waiting.retain(|other| *other != place),
        }
        queue.waiting_work = queue.waiting_work - work.total(SERVICE);
        queue.waiting_initial -= work.initial_seats;
        queue.waiting_seats -= work.max_seats();
        self.waiting -= 1;
        self.waiting_seats -= work.max_seats();
    }

    /// Gives up waiting; false: the request is served already, and goes on.
    pub fn give_up(&mut self, place: Place, refusal: Refusal, now: Duration) -> bool {
        if self.get(place).is_none_or(|held| held.phase != Phase::Waiting) {
            return false;
        }
        self.advance(now);
        match refusal {
            Refusal::TimeOut => self.counts.timed_out += 1,
            Refusal::Cancelled => self.counts.cancelled += 1,
            Refusal::QueueFull | Refusal::NoSeat => self.counts.rejected += 1,
        }
        self.leave_queue(place);
        self.release(place);
        self.dispatch(now);
        true
    }

    /// The answer is out. Returns for how long others are still busy with the request: then [`Queues::settled`] has to
    /// be called; `None`: it is gone.
    pub fn finish(&mut self, place: Place, now: Duration) -> Option<Duration> {
        self.advance(now);
        let is_exempt = self.discipline == Discipline::Exempt;
        let held = self.held.get_mut(place)?.as_mut()?;
        let Phase::Served(began) = held.phase else {
            return None;
        };
        let work = held.arrival.work;
        let (latency, index) = (work.additional_latency, held.queue);
        held.phase = Phase::Settling;
        self.served -= 1;
        if let Some(queue) = index.and_then(|index| self.queues.get_mut(&index)) {
            // What it took in fact, instead of what it was thought to take.
            let initial = f64::from(work.initial_seats);
            let took = now.saturating_sub(began);
            queue.next = queue.next + SeatSeconds::of(initial, took) - SeatSeconds::of(initial, SERVICE);
        }
        if is_exempt || work.final_seats == 0 || latency.is_zero() {
            self.settled(place, now);
            return None;
        }
        // The seats that it does not need any more.
        let rest = work.max_seats() - work.final_seats;
        if let Some(held) = self.held.get_mut(place).and_then(Option::as_mut) {
            held.arrival.work.initial_seats = 0;
        }
        self.free_seats(index, rest);
        self.dispatch(now);
        Some(latency)
    }

    /// Nobody is busy with the request any more.
    pub fn settled(&mut self, place: Place, now: Duration) {
        self.advance(now);
        let Some(held) = self.get(place).filter(|held| held.phase == Phase::Settling) else {
            return;
        };
        let (index, seats) = (held.queue, held.arrival.work.max_seats());
        self.free_seats(index, seats);
        if let Some(queue) = index.and_then(|index| self.queues.get_mut(&index)) {
            queue.served -= 1;
        }
        self.release(place);
        self.dispatch(now);
    }

    fn free_seats(&mut self, index: Option<usize>, seats: u32) {
        self.seats -= seats;
        if let Some(queue) = index.and_then(|index| self.queues.get_mut(&index)) {
            queue.seats -= seats;
        }
    }

    /// Forgets a request that neither waits nor is served.
    fn release(&mut self, place: Place) {
        let Some(held) = self.held.get_mut(place).and_then(Option::take) else {
            return;
        };
        self.free.push(place);
        if let Some(index) = held.queue
            && self.queues.get(&index).is_some_and(Queue::is_idle)
        {
            self.queues.remove(&index);
        }
    }

    /// Lets virtual time go by: the more queues share the seats, the slower.
    fn advance(&mut self, now: Duration) {
        let held = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        if !self.queues.is_empty() {
            let wanted = self.seats.saturating_add(self.waiting_seats).min(self.limit);
            self.meter += SeatSeconds::of(f64::from(wanted) / self.queues.len() as f64, held);
        }
    }

    /// Has somebody told when the request is served. Returns whether it is already.
    pub fn notify(&mut self, place: Place, waker: &Waker) -> bool {
        let Some(held) = self.held.get_mut(place).and_then(Option::as_mut) else {
            return true;
        };
        if held.phase != Phase::Waiting {
            return true;
        }
        if !held.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            held.waker = Some(waker.clone());
        }
        false
    }

    /// Those that waited and are served since the last call.
    pub fn take_dispatched(&mut self) -> Vec<Place> {
        std::mem::take(&mut self.dispatched)
    }

    /// Who wants to know that this request is served; told only once.
    pub fn take_waker(&mut self, place: Place) -> Option<Waker> {
        self.held.get_mut(place)?.as_mut()?.waker.take()
    }

    pub fn is_served(&self, place: Place) -> bool {
        self.get(place).is_some_and(|held| held.phase != Phase::Waiting)
    }

    pub fn get(&self, place: Place) -> Option<&Held<T>> {
        self.held.get(place)?.as_ref()
    }

    pub fn is_idle(&self) -> bool {
        self.free.len() == self.held.len()
    }

    pub fn discipline(&self) -> Discipline {
        self.discipline
    }

    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// The queues that are not idle.
    pub fn queues(&self) -> &BTreeMap<usize, Queue> {
        &self.queues
    }

    /// All requests that wait or are served.
    pub fn requests(&self) -> impl Iterator<Item = (Place, &Held<T>)> {
        self.held
            .iter()
            .enumerate()
            .filter_map(|(place, held)| Some((place, held.as_ref()?)))
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Requests that are served, and that wait.
    pub fn requests_now(&self) -> (u32, u32) {
        (self.served, self.waiting)
    }

    /// Seats that are taken, and that are waited for.
    pub fn seats_now(&self) -> (u32, u32) {
        (self.seats, self.waiting_seats)
    }

    pub fn meter(&self) -> SeatSeconds {
        self.meter
    }
}

#[cfg(test)]
mod tests;
