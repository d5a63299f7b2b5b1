//! `/debug/api_priority_and_fairness/…`: what the levels are doing, as tables of text in kube-apiserver's form.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header;
use keelson_access::flowcontrol::control::FlowControl;
use keelson_access::flowcontrol::level::{Asked, Level, State};
use keelson_access::flowcontrol::queues::{Held, Phase, Place, Queue};
use keelson_access::flowcontrol::spec::Discipline;
use keelson_machinery::time;

use crate::request::Request;
use crate::state::ServerState;

const FOLDER: &str = "/debug/api_priority_and_fairness/";
/// Idle queues of a level are shown up to this one.
const MAX_QUEUES: usize = 10_000;
/// No column is narrower.
const MIN_WIDTH: usize = 8;
/// What a request that has not begun shows as its start.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// `None`: another path, or a server without flow control.
pub fn serve(state: &ServerState, request: &Request) -> Option<HttpResponse> {
    let control = state.flow_control.as_deref()?;
    let table = match request.info.path.strip_prefix(FOLDER)? {
        "dump_priority_levels" => levels(control),
        "dump_queues" => queues(control),
        "dump_requests" => {
            let asked = request.query.get("includeRequestDetails");
            let detailed = asked.is_some_and(|value| !value.is_empty());
            requests(control, state.rest.now(), detailed)
        }
        _ => return None,
    };
    let media = (header::CONTENT_TYPE, "text/plain; charset=utf-8");
    Some(HttpResponse::Ok().insert_header(media).body(table.text()))
}

/// Rows of cells; the first row names the columns.
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new<const N: usize>(columns: [&str; N]) -> Table {
        let mut table = Table { rows: Vec::new() };
        table.row(columns.map(str::to_owned).into());
        table
    }

    fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Every cell but the last ends with a comma, and with blanks up to the next column.
    fn text(&self) -> String {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), MIN_WIDTH);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count() + 2);
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            for (n, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match n + 1 == row.len() {
                    true => text.push_str(cell),
                    false => text.push_str(&format!("{:width$}", format!("{cell},"))),
                }
            }
            text.push('\n');
        }
        text
    }
}

fn each_level(control: &FlowControl, mut show: impl FnMut(&Level, &mut State, Duration)) {
    for level in &control.plan().levels {
        level.with(|state, now| show(level, state, now));
    }
}

fn levels(control: &FlowControl) -> Table {
    let mut table = Table::new([
        "PriorityLevelName",
        "ActiveQueues",
        "IsIdle",
        "IsQuiescing",
        "WaitingRequests",
        "ExecutingRequests",
        "DispatchedRequests",
        "RejectedRequests",
        "TimedoutRequests",
        "CancelledRequests",
    ]);
    each_level(control, |level, state, _| {
        let queues = &state.queues;
        let active = queues
            .queues()
            .values()
            .filter(|queue| !queue.waiting.is_empty())
            .count();
        let ((served, waiting), counts) = (queues.requests_now(), queues.counts());
        let mut row = vec![level.name.clone(), active.to_string()];
        row.extend([queues.is_idle(), state.quiescing].map(|flag| flag.to_string()));
        row.extend([waiting, served].map(|number| number.to_string()));
        let counts = [counts.dispatched, counts.rejected, counts.timed_out, counts.cancelled];
        row.extend(counts.map(|number| number.to_string()));
        table.row(row);
    });
    table
}

fn queues(control: &FlowControl) -> Table {
    let mut table = Table::new([
        "PriorityLevelName",
        "Index",
        "PendingRequests",
        "ExecutingRequests",
        "SeatsInUse",
        "NextDispatchR",
        "InitialSeatsSum",
        "MaxSeatsSum",
        "TotalWorkSum",
    ]);
    each_level(control, |level, state, _| {
        let wanted = match state.queues.discipline() {
            Discipline::Queue(queuing) => (queuing.queues as usize).min(MAX_QUEUES),
            Discipline::Exempt | Discipline::Reject => 0,
        };
        let (active, idle) = (state.queues.queues(), Queue::default());
        let beyond = active.keys().copied().filter(|index| *index >= wanted);
        for index in (0..wanted).chain(beyond) {
            let queue = active.get(&index).unwrap_or(&idle);
            table.row(vec![
                level.name.clone(),
                index.to_string(),
                queue.waiting.len().to_string(),
                queue.served.to_string(),
                queue.seats.to_string(),
                queue.next.to_string(),
                queue.waiting_initial.to_string(),
                queue.waiting_seats.to_string(),
                queue.waiting_work.to_string(),
            ]);
        }
    });
    table
}

const REQUEST_COLUMNS: [&str; 10] = [
    "PriorityLevelName",
    "FlowSchemaName",
    "QueueIndex",
    "RequestIndexInQueue",
    // Clients may look for the name as kube-apiserver spells it.
    "FlowDistingsher",
    "ArriveTime",
    "InitialSeats",
    "FinalSeats",
    "AdditionalLatency",
    "StartTime",
];
const DETAIL_COLUMNS: [&str; 8] = [
    "UserName",
    "Verb",
    "APIPath",
    "Namespace",
    "Name",
    "APIVersion",
    "Resource",
    "SubResource",
];

fn requests(control: &FlowControl, wall: time::Time, detailed: bool) -> Table {
    let mut table = Table::new(REQUEST_COLUMNS);
    if detailed && let Some(columns) = table.rows.first_mut() {
        columns.extend(DETAIL_COLUMNS.map(str::to_owned));
    }
    each_level(control, |level, state, now| {
        let when = |then: Duration| instant(wall, now.saturating_sub(then));
        let held = state.queues.requests();
        let mut shown: Vec<_> = held.filter(|(_, held)| held.phase != Phase::Settling).collect();
        // Queue by queue, those that wait first, as they are served.
        shown.sort_by_key(|(_, held)| (held.queue, held.phase != Phase::Waiting, held.arrived));
        for (place, held) in shown {
            let mut row = vec![level.name.clone()];
            row.extend(request_cells(state, place, held, when));
            if detailed {
                row.extend(details(&held.arrival.tag));
            }
            table.row(row);
        }
    });
    table
}

fn request_cells(state: &State, place: Place, held: &Held<Asked>, when: impl Fn(Duration) -> String) -> Vec<String> {
    let tag = &held.arrival.tag;
    let queue = held.queue.filter(|_| state.queues.discipline() != Discipline::Exempt);
    let position = queue
        .and_then(|index| state.queues.queues().get(&index))
        .and_then(|queue| queue.waiting.iter().position(|other| *other == place));
    let number = |n: Option<usize>| n.map_or_else(|| "-1".to_owned(), |n| n.to_string());
    let work = held.arrival.work;
    vec![
        tag.schema.name.clone(),
        number(queue),
        number(position),
        distinguisher(state, tag).to_owned(),
        when(held.arrived),
        work.initial_seats.to_string(),
        work.final_seats.to_string(),
        span(work.additional_latency).to_string(),
        match held.phase {
            Phase::Served(began) => when(began),
            Phase::Waiting | Phase::Settling => NEVER.to_owned(),
        },
    ]
}

/// What tells flows apart, where it makes a difference.
fn distinguisher<'a>(state: &State, tag: &'a Asked) -> &'a str {
    match state.queues.discipline() {
        Discipline::Queue(queuing) if queuing.queues > 1 => tag.schema.distinguisher.of(&tag.user, &tag.info),
        _ => "",
    }
}

fn details(asked: &Asked) -> [String; 8] {
    let info = &asked.info;
    [
        asked.user.name.clone(),
        info.verb.clone(),
        info.path.clone(),
        info.namespace.clone(),
        info.name.clone(),
        info.version.clone(),
        info.resource.clone(),
        info.subresource.clone(),
    ]
}

fn span(time: Duration) -> time::Duration {
    time::Duration::from_nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}

/// The time so long ago, with as many digits as it has.
fn instant(wall: time::Time, ago: Duration) -> String {
    let then = wall - span(ago);
    let seconds = then.truncate_to_seconds().to_string();
    match then.subsec_nanos() {
        0 => seconds,
        nanos => {
            let digits = format!("{nanos:09}");
            format!("{}.{}Z", seconds.trim_end_matches('Z'), digits.trim_end_matches('0'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["PriorityLevelName", "Index", "SeatsInUse"]);
        table.row(["a", "0", "1"].map(str::to_owned).into());
        table.row(["a-long-name-of-some-level", "10000000", "1"].map(str::to_owned).into());
        let expected = "\
PriorityLevelName,         Index,    SeatsInUse
a,                         0,        1
a-long-name-of-some-level, 10000000, 1
";
        assert_eq!(table.text(), expected);
        let mut narrow = Table::new(["A", "B"]);
        narrow.row(["", ""].map(str::to_owned).into());
        assert_eq!(narrow.text(), "A,      B\n,       \n");
    }

    #[test]
    fn times_have_the_digits_they_need() {
        let wall = time::Time::from_unix(1_700_000_000, 120_000_000);
        for (ago, text) in [
            (Duration::ZERO, "2023-11-14T22:13:20.12Z"),
            (Duration::from_millis(120), "2023-11-14T22:13:20Z"),
            (Duration::from_nanos(120_000_001), "2023-11-14T22:13:19.999999999Z"),
        ] {
            assert_eq!(instant(wall, ago), text);
        }
    }
}
