//! A priority level that is in use: its queues, shared by all workers, and those who wait in them.
//!
//! The lock is held for the time of a few additions; nobody waits for anything while holding it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use keelson_base::cooperative::let_others_in;
use tokio::time::Instant;

use super::integrator::Integrator;
use super::limits::{self, Bounds, Need};
use super::queues::{Arrival, Entrance, Phase, Place, Queues, Refusal};
use super::spec::{Discipline, LevelSpec};
use super::stats::{LevelRatios, SchemaStats};
use super::work;
use crate::request_info::RequestInfo;
use crate::user::User;

/// Time since the server began.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    began: Instant,
}

impl Stopwatch {
    pub fn start() -> Stopwatch {
        Stopwatch { began: Instant::now() }
    }

    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

/// What is known of a request that waits or is served.
#[derive(Clone, Debug)]
pub struct Asked {
    pub schema: Arc<SchemaStats>,
    pub user: Arc<User>,
    pub info: Arc<RequestInfo>,
}

impl Asked {
    fn is_watch(&self) -> bool {
        self.info.verb == "watch"
    }
}

/// One level.
#[derive(Debug)]
pub struct Level {
    pub name: String,
    stopwatch: Stopwatch,
    state: Mutex<State>,
}

/// What the lock guards.
#[derive(Debug)]
pub struct State {
    pub queues: Queues<Asked>,
    pub spec: LevelSpec,
    pub bounds: Bounds,
    /// The configuration no longer has it; it ends with its last request.
    pub quiescing: bool,
    pub ratios: LevelRatios,
    /// Seats that it could use.
    demand: Integrator,
    pub needed: Needed,
    /// Requests without their seats, whose clients keep them waiting: all, and of each flow.
    lent: Lent,
}

#[derive(Debug, Default)]
struct Lent {
    all: u32,
    by_flow: HashMap<u64, u32>,
}

/// What a level needed in the last period, and what it was given for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needed {
    pub average: f64,
    pub deviation: f64,
    pub highest: f64,
    pub smoothed: f64,
    pub target: f64,
}

impl State {
    /// Follows up a change of the queues.
    fn refresh(&mut self, now: Duration) {
        let ((served, waiting), (seats, wanted)) = (self.queues.requests_now(), self.queues.seats_now());
        let demand = seats.saturating_add(wanted);
        self.demand.set(now, f64::from(demand));
        self.ratios.demand.set(now, demand);
        self.ratios.executing.set(now, served);
        self.ratios.waiting.set(now, waiting);
        self.ratios.seats.set(now, seats);
    }

    fn set_limit(&mut self, limit: u32, now: Duration) {
        self.queues.set_limit(limit, now);
        self.ratios.executing.set_denominator(now, limit);
        self.ratios.seats.set_denominator(now, limit);
    }

    /// The most seats that one request may take.
    fn max_seats(&self) -> u32 {
        work::max_seats(self.spec.discipline, self.bounds.nominal)
    }
}

impl Level {
    pub fn new(spec: LevelSpec, stopwatch: Stopwatch) -> Level {
        let now = stopwatch.now();
        let mut ratios = LevelRatios::new(now);
        ratios.waiting.set_denominator(now, places(&spec));
        Level {
            name: spec.name.clone(),
            stopwatch,
            state: Mutex::new(State {
                queues: Queues::new(spec.discipline, 0, now),
                spec,
                bounds: Bounds::default(),
                quiescing: false,
                ratios,
                demand: Integrator::new(now),
                needed: Needed::default(),
                lent: Lent::default(),
            }),
        }
    }

    /// Does something with the state, then tells those who are served now.
    pub fn with<R>(&self, change: impl FnOnce(&mut State, Duration) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        let now = self.stopwatch.now();
        let done = change(&mut state, now);
        state.refresh(now);
        let dispatched = state.queues.take_dispatched();
        if dispatched.is_empty() {
            return done;
        }
        let mut wakers = Vec::with_capacity(dispatched.len());
        for place in dispatched {
            if let Some(held) = state.queues.get(place) {
                let waited = now.saturating_sub(held.arrived);
                held.arrival.tag.schema.count(|counted| counted.dispatch(Some(waited)));
            }
            wakers.extend(state.queues.take_waker(place));
        }
        drop(state);
        wakers.into_iter().for_each(std::task::Waker::wake);
        done
    }

    /// Changes the configuration.
    pub fn configure(&self, spec: &LevelSpec) {
        self.with(|state, now| {
            state.quiescing = false;
            if state.spec != *spec {
                state.queues.set_discipline(spec.discipline, now);
                state.ratios.waiting.set_denominator(now, places(spec));
                state.spec = spec.clone();
            }
        });
    }

    /// The configuration no longer has this level. Returns whether it has no requests either.
    pub fn quiesce(&self) -> bool {
        self.with(|state, _| {
            state.quiescing = true;
            state.queues.is_idle()
        })
    }

    pub fn set_bounds(&self, bounds: Bounds) {
        self.with(|state, now| {
            state.bounds = bounds;
            state.ratios.demand.set_denominator(now, bounds.nominal);
        });
    }

    /// What it needs; `ends_period`: the period in which that is measured begins anew.
    pub fn need(&self, ends_period: bool) -> Need {
        self.with(|state, now| {
            if ends_period {
                let period = state.demand.reset(now);
                state.needed = Needed {
                    average: period.average,
                    deviation: period.deviation,
                    highest: period.highest,
                    smoothed: limits::smoothed(state.needed.smoothed, &period),
                    target: state.needed.target,
                };
            }
            Need::of(&state.spec, state.bounds, state.needed.highest, state.needed.smoothed)
        })
    }

    pub fn set_limit(&self, target: f64, limit: u32) {
        self.with(|state, now| {
            state.needed.target = target;
            state.set_limit(limit, now);
        });
    }

    pub fn max_seats(&self) -> u32 {
        let state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        state.max_seats()
    }

    /// Waits for the request's seats, until `latest`; `waits` is called if it has to.
    ///
    /// # Errors
    /// It is turned away.
    pub async fn enter<W>(
        self: &Arc<Level>,
        arrival: Arrival<Asked>,
        latest: Instant,
        waits: impl FnOnce() -> W,
    ) -> Result<Ticket, Refusal> {
        let schema = arrival.tag.schema.clone();
        let (entrance, is_exempt) = self.with(|state, now| {
            let seats = arrival.work.max_seats();
            let entrance = state.queues.arrive(arrival, now);
            let discipline = state.queues.discipline();
            let queued = matches!(discipline, Discipline::Queue(_));
            schema.count(|counted| {
                counted.estimated_seats.observe(f64::from(seats));
                match entrance {
                    Entrance::Served(_) if discipline == Discipline::Exempt => counted.dispatch(None),
                    Entrance::Served(_) => {
                        if queued {
                            counted.queue_length.observe(1.0);
                        }
                        counted.dispatch(Some(Duration::ZERO));
                    }
                    Entrance::Waits(_, length) => counted.queue_length.observe(length as f64),
                    Entrance::Refused(refusal) => counted.refuse(refusal, Some(Duration::ZERO)),
                }
            });
            (entrance, discipline == Discipline::Exempt)
        });
        let ticket = |place| Ticket {
            level: self.clone(),
            place: Some(place),
        };
        match entrance {
            Entrance::Served(place) => {
                let ticket = ticket(place);
                if !is_exempt {
                    // Up to where they take their seats. A request that waits for nothing while it is served would else
                    // hold its seat only while nobody can see it, and a burst would be served in the order in which it
                    // came, however unfair that is.
                    let_others_in().await;
                }
                Ok(ticket)
            }
            Entrance::Refused(refusal) => Err(refusal),
            Entrance::Waits(place, _) => {
                let _waits = waits();
                ticket(place).waited(place, latest).await
            }
        }
    }

    /// Waits no longer; false: it is served already.
    fn time_out(&self, place: Place) -> bool {
        self.with(|state, now| {
            let held = state
                .queues
                .get(place)
                .map(|held| (held.arrival.tag.schema.clone(), held.arrived));
            let gave_up = state.queues.give_up(place, Refusal::TimeOut, now);
            if let (true, Some((schema, arrived))) = (gave_up, held) {
                let waited = now.saturating_sub(arrived);
                schema.count(|counted| counted.refuse(Refusal::TimeOut, Some(waited)));
            }
            gave_up
        })
    }

    /// The request is gone, wherever it was. Returns for how long others are still busy with it.
    fn leave(&self, place: Place) -> Option<Duration> {
        self.with(|state, now| {
            let held = state.queues.get(place)?;
            let (schema, is_watch) = (held.arrival.tag.schema.clone(), held.arrival.tag.is_watch());
            match held.phase {
                Phase::Waiting => {
                    let waited = now.saturating_sub(held.arrived);
                    schema.count(|counted| counted.refuse(Refusal::Cancelled, Some(waited)));
                    state.queues.give_up(place, Refusal::Cancelled, now);
                    None
                }
                Phase::Served(began) => {
                    schema.count(|counted| counted.finish(is_watch, now.saturating_sub(began)));
                    state.queues.finish(place, now)
                }
                Phase::Settling => None,
            }
        })
    }

    /// Has others served on the seats of a request whose client keeps it waiting, if others wait. What such requests
    /// hold is bounded: there are as many as there are seats, and those of one flow are a quarter of them.
    pub fn lend(self: &Arc<Level>, ticket: Ticket) -> Lending {
        let lent = self.with(|state, _| {
            let place = ticket.place?;
            let hash = state.queues.get(place)?.arrival.hash;
            if state.queues.requests_now().1 == 0 {
                return None;
            }
            let limit = state.queues.limit();
            let of_flow = state.lent.by_flow.get(&hash).copied().unwrap_or_default();
            if state.lent.all >= limit || of_flow > limit / 4 {
                return Some(None);
            }
            state.lent.all += 1;
            *state.lent.by_flow.entry(hash).or_default() += 1;
            Some(Some(hash))
        });
        match lent {
            None => Lending::NobodyWaits(ticket),
            Some(None) => Lending::TooMany,
            Some(Some(flow)) => Lending::Lent(Unseated {
                level: self.clone(),
                flow,
            }),
        }
    }

    fn settled(&self, place: Place) {
        self.with(|state, now| state.queues.settled(place, now));
    }
}

/// What became of a seat that was to be lent; but in the first case it was given back.
#[derive(Debug)]
pub enum Lending {
    NobodyWaits(Ticket),
    Lent(Unseated),
    /// Too many requests go on without seats already.
    TooMany,
}

/// A request that goes on without its seat. Dropped, it is no longer counted.
#[derive(Debug)]
pub struct Unseated {
    level: Arc<Level>,
    flow: u64,
}

impl Drop for Unseated {
    fn drop(&mut self) {
        self.level.with(|state, _| {
            state.lent.all = state.lent.all.saturating_sub(1);
            if let Some(count) = state.lent.by_flow.get_mut(&self.flow) {
                *count -= 1;
                if *count == 0 {
                    state.lent.by_flow.remove(&self.flow);
                }
            }
        });
    }
}

/// How many requests may wait.
fn places(spec: &LevelSpec) -> u32 {
    match spec.discipline {
        Discipline::Queue(queuing) => queuing.queues.saturating_mul(queuing.length_limit),
        Discipline::Exempt | Discipline::Reject => 1,
    }
}

/// A request's place in its level. Dropped, it gives the place back: the seats of one that is served, or the turn of
/// one that waits.
#[derive(Debug)]
pub struct Ticket {
    level: Arc<Level>,
    /// `None`: it was given back.
    place: Option<Place>,
}

impl Ticket {
    async fn waited(mut self, place: Place, latest: Instant) -> Result<Ticket, Refusal> {
        let level = self.level.clone();
        let served = poll_fn(
            |cx| match level.with(|state, _| state.queues.notify(place, cx.waker())) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            },
        );
        if tokio::time::timeout_at(latest, served).await.is_err() && level.time_out(place) {
            self.place = None;
            return Err(Refusal::TimeOut);
        }
        Ok(self)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else {
            return;
        };
        let Some(latency) = self.level.leave(place) else {
            return;
        };
        let level = self.level.clone();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move {
                tokio::time::sleep(latency).await;
                level.settled(place);
            })),
            Err(_) => level.settled(place),
        }
    }
}

#[cfg(test)]
mod tests;
