//! Grace periods of deletions: how long an object that is marked stays for whoever ends its work, as kube-apiserver
//! counts it.

use keelson_machinery::meta::v1::{DeleteOptions, ObjectMeta};
use keelson_machinery::object::Object;
use keelson_machinery::time::{Duration, Time};

const NANOSECONDS: i64 = 1_000_000_000;

/// Whether an object is marked and its time is over, so that nothing but finalizers holds it. A deletion may have been
/// interrupted between the mark and the removal.
pub(super) fn is_over(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some() && meta.deletion_grace_period_seconds.unwrap_or(0) == 0
}

/// Marks an object whose kind has grace periods, for the first time.
pub(super) fn start(object: &mut dyn Object, now: Time, seconds: i64) {
    let meta = object.meta_mut();
    meta.deletion_timestamp = Some(after(now, seconds).truncate_to_seconds());
    meta.deletion_grace_period_seconds = Some(seconds);
    if meta.generation > 0 {
        meta.generation += 1;
    }
}

/// A deletion that is under way may only become shorter. The seconds that it has in all; `None`: it stays as it is.
pub(super) fn shorten(object: &mut dyn Object, options: &DeleteOptions, now: Time) -> Option<i64> {
    let meta = object.meta_mut();
    let running = a_second_if_negative(meta.deletion_grace_period_seconds.unwrap_or(0));
    let mut wanted = a_second_if_negative(options.grace_period_seconds?);
    if wanted >= running {
        return None;
    }
    let begun = after(meta.deletion_timestamp?, running.wrapping_neg());
    // It began before now. A time that is stored beyond the calendar becomes one that can be read.
    let mut ends = after(begun, wanted).min(after(now, wanted));
    if ends < now {
        ends = now;
        // Whoever ends the work of the object is still to be heard.
        wanted = wanted.min(1);
    }
    meta.deletion_timestamp = Some(ends.truncate_to_seconds());
    meta.deletion_grace_period_seconds = Some(wanted);
    Some(wanted)
}

/// Marks an object whose kind knows no grace, or whose time is over, but which finalizers hold; whether it was not
/// marked before.
pub(super) fn mark(object: &mut dyn Object, now: Time) -> bool {
    let meta = object.meta_mut();
    let first = meta.deletion_timestamp.is_none();
    if first {
        meta.deletion_timestamp = Some(now.truncate_to_seconds());
        if meta.generation > 0 {
            meta.generation += 1;
        }
    }
    meta.deletion_grace_period_seconds = Some(0);
    first
}

fn a_second_if_negative(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

/// So many seconds later, counted as Go does: nanoseconds of 64 bits that wrap around. So every number of seconds leads
/// to a time within 293 years, which all readers take.
fn after(time: Time, seconds: i64) -> Time {
    time + Duration::from_nanos(seconds.wrapping_mul(NANOSECONDS))
}

#[cfg(test)]
mod tests {
    use keelson_codegen_sample::api::shop_example_com::v1::Order;

    use super::*;

    /// Half a second after a whole one.
    const NOW: Time = Time::from_unix(1_790_000_000, 500_000_000);

    fn marked(ends: i64, seconds: i64) -> Order {
        let mut order = Order::default();
        order.metadata.deletion_timestamp = Some(Time::from_unix(ends, 0));
        order.metadata.deletion_grace_period_seconds = Some(seconds);
        order
    }

    fn asking(seconds: Option<i64>) -> DeleteOptions {
        DeleteOptions {
            grace_period_seconds: seconds,
            ..DeleteOptions::default()
        }
    }

    fn shown(order: &Order) -> (String, i64) {
        let meta = &order.metadata;
        let ends = meta.deletion_timestamp.map(|time| time.to_string());
        (
            ends.unwrap_or_default(),
            meta.deletion_grace_period_seconds.unwrap_or(-1),
        )
    }

    /// What kube-apiserver v1.36.3 stores for the same numbers.
    #[test]
    fn every_number_of_seconds_leads_to_a_time_of_the_calendar() {
        for (seconds, ends) in [
            (0, "2026-09-21T14:13:20Z"),
            (30, "2026-09-21T14:13:50Z"),
            (9_000_000_000, "2311-12-04T06:13:20Z"),
            (999_999_999_999, "2149-07-17T14:53:39Z"),
            (i64::MAX, "2026-09-21T14:13:19Z"),
            (i64::MAX / NANOSECONDS, "2319-01-01T14:00:36Z"),
            (i64::MAX / NANOSECONDS + 1, "1734-06-12T14:26:03Z"),
        ] {
            let mut order = Order::default();
            start(&mut order, NOW, seconds);
            assert_eq!(shown(&order), (ends.to_owned(), seconds));
            assert!(Time::parse(ends).is_ok());
        }
    }

    #[test]
    fn a_grace_period_becomes_shorter_only_and_does_not_end_before_now() {
        let at = |seconds: i64| Time::from_unix(NOW.unix_seconds() + seconds, 0).to_string();
        let of_an_older_version = NOW.unix_seconds() + 999_999_999_999;
        for (left, running, asked, expected) in [
            (20, 30, None, None),
            (20, 30, Some(30), None),
            (20, 30, Some(i64::MAX), None),
            (1, 1, Some(-5), None),
            (20, 30, Some(15), Some((at(5), 15))),
            (20, 30, Some(5), Some((at(0), 1))),
            (20, 30, Some(-5), Some((at(0), 1))),
            (20, 30, Some(0), Some((at(0), 0))),
            (-100, 30, Some(20), Some((at(0), 1))),
            (20, -7, Some(0), Some((at(0), 0))),
            (-1, i64::MAX, Some(30), Some((at(30), 30))),
            (
                of_an_older_version - NOW.unix_seconds(),
                999_999_999_999,
                Some(30),
                Some((at(30), 30)),
            ),
        ] {
            let mut order = marked(NOW.unix_seconds() + left, running);
            let before = shown(&order);
            let seconds = shorten(&mut order, &asking(asked), NOW);
            let wanted = expected.unwrap_or_else(|| before.clone());
            assert_eq!(
                seconds,
                (wanted != before).then_some(wanted.1),
                "{left} {running} {asked:?}"
            );
            assert_eq!(shown(&order), wanted, "{left} {running} {asked:?}");
        }
    }

    #[test]
    fn a_deletion_is_over_when_it_is_marked_and_no_time_is_left() {
        let mut order = Order::default();
        assert!(!is_over(&order.metadata));
        for (seconds, over) in [(None, true), (Some(0), true), (Some(1), false), (Some(-1), false)] {
            order.metadata.deletion_timestamp = Some(NOW);
            order.metadata.deletion_grace_period_seconds = seconds;
            assert_eq!(is_over(&order.metadata), over, "{seconds:?}");
        }
    }
}
