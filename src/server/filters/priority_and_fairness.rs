//! Lets requests wait for a seat in their priority level, and turns away those that would wait too long. See
//! [`keelson_access::flowcontrol`].
//!
//! Streams take no part, but for the beginning of watches: that is work like a list.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderName, HeaderValue};
use keelson_access::flowcontrol::FlowControl;
use keelson_access::flowcontrol::in_flight::is_write;
use keelson_access::flowcontrol::level::{Asked, Level, Ticket};
use keelson_access::flowcontrol::queues::{Arrival, Refusal};
use keelson_access::flowcontrol::under_way::UnderWay;
use keelson_access::flowcontrol::work::Collection;
use tokio::time::Instant;

use super::Next;
use super::in_flight::{TOO_MANY, too_many};
use crate::request::Request;
use crate::seat::{Seat, WatchSeat, hold};
use crate::state::ServerState;

const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// Nobody waits longer.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The part of its time that a request may wait.
const PART_OF_TIME: u32 = 4;

pub async fn priority_and_fairness(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    let Some(control) = &state.flow_control else {
        return next(request).await;
    };
    let is_watch = request.info.is_resource && request.info.verb == "watch";
    if request.info.is_long_running() && !is_watch {
        return next(request).await;
    }
    let Some(entry) = entry(control, request) else {
        return next(request).await;
    };
    let uids = [
        (SCHEMA_UID, entry.schema_uid.clone()),
        (LEVEL_UID, entry.level_uid.clone()),
    ];
    let latest = latest_start(Instant::now(), request.deadline, state.requests.timeout);
    let is_write = is_write(&request.info);
    let again = is_write.then(|| entry.arrival.clone());
    let level = entry.level.clone();
    let mut response = match entry.enter(control, latest, is_write).await {
        Ok(ticket) => {
            let seat = Seat::new(level, ticket, UnderWay::of(control, is_write, false), again);
            match is_watch {
                true => begin_watch(control, seat, request, next).await,
                false => serve(seat, request, next).await,
            }
        }
        Err(_) => {
            state.terminated(request, TOO_MANY);
            too_many()
        }
    };
    for (name, uid) in uids {
        response.headers_mut().insert(name, uid);
    }
    response
}

/// A request before its level.
struct Entry {
    level: Arc<Level>,
    arrival: Arrival<Asked>,
    schema_uid: HeaderValue,
    level_uid: HeaderValue,
}

impl Entry {
    async fn enter(self, control: &Arc<FlowControl>, latest: Instant, is_write: bool) -> Result<Ticket, Refusal> {
        let waits = || UnderWay::of(control, is_write, true);
        self.level.enter(self.arrival, latest, waits).await
    }
}

/// `None`: no schema takes it.
fn entry(control: &FlowControl, request: &Request) -> Option<Entry> {
    let (plan, info) = (control.plan(), &request.info);
    let planned = plan.classify(&request.user, info)?;
    let collection = request
        .endpoint()
        .map(|endpoint| &*endpoint.resource as &dyn Collection);
    let work = control.estimate(planned, info, &request.query, collection);
    Some(Entry {
        level: planned.level.clone(),
        arrival: planned.arrival(work, &request.user, info),
        schema_uid: planned.uid.clone(),
        level_uid: planned.level_uid.clone(),
    })
}

/// When a request that has not begun by then is turned away.
fn latest_start(now: Instant, deadline: Option<Instant>, longest: Duration) -> Instant {
    let left = deadline.map_or(longest, |deadline| deadline.saturating_duration_since(now));
    now + (left / PART_OF_TIME).min(LONGEST_WAIT)
}

async fn serve(seat: Rc<Seat>, request: &mut Request, next: impl Next) -> HttpResponse {
    // Whoever reads the body lends it while that does not come.
    request.seat = is_write(&request.info).then(|| seat.clone());
    let deadline = request.deadline;
    let response = next(request).await;
    request.seat = None;
    hold(response, seat, deadline)
}

/// The seat goes with the request: whoever answers gives it back when the watch has begun.
async fn begin_watch(
    control: &Arc<FlowControl>,
    seat: Rc<Seat>,
    request: &mut Request,
    next: impl Next,
) -> HttpResponse {
    let seat = WatchSeat::new(seat, control.open_watch(&request.info));
    request.watch_seat.replace(Some(seat));
    let response = next(request).await;
    // Nobody took it: there is no watch.
    request.watch_seat.take();
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_a_quarter_of_their_time() {
        let (now, seconds) = (Instant::now(), Duration::from_secs);
        for (deadline, longest, wait) in [
            (Some(60), 60, 15),
            (Some(8), 60, 2),
            (None, 60, 15),
            (Some(600), 600, 60),
            (None, 3600, 60),
            (Some(0), 60, 0),
        ] {
            let deadline = deadline.map(|after| now + seconds(after));
            assert_eq!(latest_start(now, deadline, seconds(longest)), now + seconds(wait));
        }
    }
}
