//! Work estimation: the seats that a request takes, and for how long.

use std::time::Duration;

use super::seat_seconds::SeatSeconds;
use super::spec::{Discipline, Queuing};
use crate::request_info::{Query, RequestInfo};

/// Objects of this size together are work for one seat, in bytes.
const BYTES_PER_SEAT: u64 = 100_000;
/// No list takes more seats.
const MAX_LIST_SEATS: u32 = 100;
/// No write takes more seats for what its watchers have to be told.
const MAX_WRITE_SEATS: u32 = 10;
/// So many watchers are work for one seat.
const WATCHES_PER_SEAT: u32 = 10;
/// How long it takes to tell the watchers of one seat.
const EVENT_TIME: Duration = Duration::from_millis(5);
/// The part of a level's seats that one request may take, in percent.
const MAX_PERCENT: u32 = 15;

/// The estimate of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// While it is served.
    pub initial_seats: u32,
    /// After its answer, for `additional_latency`; 0: none.
    pub final_seats: u32,
    pub additional_latency: Duration,
}

impl Work {
    /// One seat, until the answer.
    pub const ONE: Work = Work::until_answer(1);

    pub const fn until_answer(seats: u32) -> Work {
        Work {
            initial_seats: seats,
            final_seats: 0,
            additional_latency: Duration::ZERO,
        }
    }

    /// The most seats that it takes at once.
    pub fn max_seats(&self) -> u32 {
        self.initial_seats.max(self.final_seats)
    }

    /// The whole of it, when serving takes that long.
    pub fn total(&self, service: Duration) -> SeatSeconds {
        SeatSeconds::of(f64::from(self.initial_seats), service) + self.final_work()
    }

    fn final_work(&self) -> SeatSeconds {
        SeatSeconds::of(f64::from(self.final_seats), self.additional_latency)
    }

    /// A write that so many watches are told of, in a level where no request takes more than `max_seats`.
    pub fn of_write(watches: u32, max_seats: u32) -> Work {
        let seats = watches.div_ceil(WATCHES_PER_SEAT);
        let all = SeatSeconds::of(f64::from(seats), EVENT_TIME);
        let final_seats = seats.min(max_seats.min(MAX_WRITE_SEATS));
        Work {
            initial_seats: 1,
            final_seats,
            additional_latency: match final_seats {
                0 => Duration::ZERO,
                // The same work with fewer seats takes longer.
                some => all.per_seat(some),
            },
        }
    }

    /// A list, or a watch that begins with one, of a resource with these objects.
    pub fn of_list(info: &RequestInfo, query: &Query, stored: Stored, max_seats: u32) -> Work {
        let max_seats = max_seats.min(MAX_LIST_SEATS);
        let Some(limit) = limit(query) else {
            return Work::until_answer(max_seats);
        };
        let mut objects = stored.objects;
        if limit > 0 {
            objects = objects.min(limit);
        }
        if !info.name.is_empty() {
            objects = objects.min(1);
        }
        let seats = objects.saturating_mul(stored.average_bytes).div_ceil(BYTES_PER_SEAT);
        let seats = u32::try_from(seats).unwrap_or(u32::MAX);
        Work::until_answer(seats.clamp(1, max_seats.max(1)))
    }
}

/// The stored objects of a resource, all namespaces together.
pub trait Collection {
    /// What is common to their keys, and to no others.
    fn prefix(&self) -> &str;

    /// How many there are, as far as memory knows.
    fn count(&self) -> Option<u64>;

    /// The average size of the first `sample` of them, in bytes.
    fn average_bytes(&self, sample: usize) -> u64;
}

/// What a resource has in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    pub objects: u64,
    pub average_bytes: u64,
}

/// What the query says of the number of objects; 0: nothing. `None`: it is no number, and the request will fail.
fn limit(query: &Query) -> Option<u64> {
    match query.get("limit") {
        None | Some("") => Some(0),
        Some(text) => text.parse::<i64>().ok().map(|limit| u64::try_from(limit).unwrap_or(0)),
    }
}

/// Whether the request reads a collection as a whole: a list, or a watch that begins with the present objects.
pub fn begins_with_list(info: &RequestInfo, query: &Query) -> bool {
    match info.verb.as_str() {
        "list" => true,
        "watch" => {
            let from_now = matches!(query.get("resourceVersion"), None | Some("" | "0"));
            from_now || query.flag("sendInitialEvents")
        }
        _ => false,
    }
}

/// Whether watchers may have to be told what the request does.
pub fn is_write(info: &RequestInfo) -> bool {
    let writes = matches!(info.verb.as_str(), "create" | "update" | "patch" | "delete");
    // A token is made, nothing is stored.
    writes && info.is_resource && !(info.verb == "create" && info.subresource == "token")
}

/// The most seats that one request may take in a level of so many: where flows share the level by queues, no request
/// may fill a flow's part of it.
pub fn max_seats(discipline: Discipline, nominal: u32) -> u32 {
    match discipline {
        Discipline::Exempt | Discipline::Reject => MAX_LIST_SEATS,
        Discipline::Queue(Queuing { hand_size, .. }) => {
            let part = u32::try_from((u64::from(nominal) * u64::from(MAX_PERCENT)).div_ceil(100)).unwrap_or(u32::MAX);
            part.min(nominal / hand_size.max(1)).max(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(target: &str, stored: Stored, max: u32) -> u32 {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = Query::parse(query);
        let info = RequestInfo::parse("GET", path, &query).unwrap();
        match begins_with_list(&info, &query) {
            true => Work::of_list(&info, &query, stored, max).initial_seats,
            false => 1,
        }
    }

    /// What a kube-apiserver was seen to count.
    #[test]
    fn lists_take_seats_by_size() {
        let large = Stored {
            objects: 60,
            average_bytes: 15_200,
        };
        let small = Stored {
            objects: 701,
            average_bytes: 194,
        };
        for (target, stored, expected) in [
            ("/api/v1/secrets", large, 8),
            ("/api/v1/namespaces/a/secrets", large, 8),
            ("/api/v1/secrets?limit=1", large, 1),
            ("/api/v1/secrets?limit=10", large, 2),
            ("/api/v1/secrets?limit=10&continue=abc", large, 2),
            ("/api/v1/secrets?labelSelector=a%3Db&limit=10", large, 2),
            ("/api/v1/secrets?fieldSelector=metadata.name%3Dx", large, 1),
            ("/api/v1/secrets?limit=abc", large, 8),
            ("/api/v1/configmaps", small, 2),
            ("/api/v1/configmaps?limit=500", small, 1),
            ("/api/v1/configmaps?limit=abc", small, 8),
            ("/api/v1/pods", Stored::default(), 1),
            ("/api/v1/secrets?watch=1", large, 8),
            ("/api/v1/secrets?watch=1&resourceVersion=0", large, 8),
            ("/api/v1/secrets?watch=1&resourceVersion=50", large, 1),
            ("/api/v1/secrets?watch=1&limit=1", large, 1),
            (
                "/api/v1/secrets?watch=1&sendInitialEvents=false&resourceVersion=50",
                large,
                1,
            ),
            (
                "/api/v1/secrets?watch=1&sendInitialEvents=true&resourceVersion=50",
                large,
                8,
            ),
            ("/api/v1/watch/secrets", large, 8),
            ("/api/v1/watch/namespaces/a/secrets/x", large, 1),
            ("/api/v1/namespaces/a/secrets/x", large, 1),
        ] {
            assert_eq!(seats(target, stored, 8), expected, "{target}");
        }
    }

    /// Likewise.
    #[test]
    fn no_request_fills_a_level() {
        let queue = |hand_size| {
            Discipline::Queue(Queuing {
                queues: 64,
                hand_size,
                length_limit: 50,
            })
        };
        for (discipline, nominal, expected) in [
            (queue(6), 49, 8),
            (queue(1), 46, 7),
            (queue(8), 46, 5),
            (queue(8), 12, 1),
            (queue(8), 0, 1),
            (queue(2), 66, 10),
            (queue(1), 373, 56),
            (queue(2), 535, 81),
            (Discipline::Reject, 24, 100),
        ] {
            assert_eq!(max_seats(discipline, nominal), expected, "{discipline:?} {nominal}");
        }
    }

    #[test]
    fn writes_go_on_as_long_as_their_watchers_are_told() {
        let millis = Duration::from_millis;
        for (watches, max, seats, time) in [
            (0, 10, 0, 0),
            (1, 10, 1, 5),
            (10, 10, 1, 5),
            (11, 10, 2, 5),
            (100, 10, 10, 5),
            (200, 10, 10, 10),
            (200, 4, 4, 25),
            (400, 56, 10, 20),
        ] {
            let work = Work::of_write(watches, max);
            let found = (work.initial_seats, work.final_seats, work.additional_latency);
            assert_eq!(found, (1, seats, millis(time)), "{watches} {max}");
        }
        for (method, path, writes) in [
            ("POST", "/api/v1/namespaces/a/pods", true),
            ("POST", "/api/v1/namespaces/a/serviceaccounts/x/token", false),
            ("POST", "/api/v1/namespaces/a/pods/x/binding", true),
            ("GET", "/api/v1/pods", false),
            ("POST", "/version", false),
        ] {
            let info = RequestInfo::parse(method, path, &Query::default()).unwrap();
            assert_eq!(is_write(&info), writes, "{method} {path}");
        }
    }
}
