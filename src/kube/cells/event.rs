//! Cells of events.

use keelson_api::core::v1::Event;
use keelson_machinery::table::Cell;

cells! { pub const EVENT: Event =
    "event_count" => count,
    "event_first_seen" => first_seen,
    "event_last_seen" => last_seen,
    "event_message" => message,
    "event_object" => object,
    "event_reason" => reason,
    "event_source" => source,
    "event_subobject" => subobject,
    "event_type" => kind,
}

/// How long ago it was seen last.
fn last_seen(event: &Event) -> Cell {
    if let Some(series) = &event.series {
        return Cell::age(series.last_observed_time.0);
    }
    if event.last_timestamp.is_zero() {
        first_seen(event)
    } else {
        Cell::age(event.last_timestamp)
    }
}

/// How long ago it was seen first.
fn first_seen(event: &Event) -> Cell {
    let first = if event.first_timestamp.is_zero() {
        event.event_time.0
    } else {
        event.first_timestamp
    };
    Cell::age(first)
}

/// `Normal`, `Warning`.
fn kind(event: &Event) -> String {
    event.r#type.clone()
}

/// Why it happened, in one word.
fn reason(event: &Event) -> String {
    event.reason.clone()
}

/// `pod/web-0`.
fn object(event: &Event) -> String {
    let kind = event.involved_object.kind.to_lowercase();
    match event.involved_object.name.as_str() {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

/// The part of the object that is meant.
fn subobject(event: &Event) -> String {
    event.involved_object.field_path.clone()
}

/// Who reported it, and from where.
fn source(event: &Event) -> String {
    let first = |a: &str, b: &str| if a.is_empty() { b.to_owned() } else { a.to_owned() };
    let component = first(&event.source.component, &event.reporting_component);
    match first(&event.source.host, &event.reporting_instance).as_str() {
        "" => component,
        instance => format!("{component}, {instance}"),
    }
}

/// The message without white space around it.
fn message(event: &Event) -> String {
    event.message.trim().to_owned()
}

/// How often it was seen.
fn count(event: &Event) -> i64 {
    match (&event.series, event.count) {
        (Some(series), _) => series.count.into(),
        (None, 0) => 1,
        (None, count) => count.into(),
    }
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;
    use keelson_machinery::time::Time;

    use super::*;

    const NOW: Time = Time::from_unix(1_700_000_000, 0);

    fn event(text: &str) -> Event {
        let mut event = Event::default();
        json::read(text.as_bytes(), &mut event).unwrap();
        event
    }

    #[test]
    fn times_and_counts_come_from_the_series_first() {
        for (text, last, first, times) in [
            ("{}", "<unknown>", "<unknown>", 1),
            (r#"{"eventTime":"2023-11-14T22:13:10.000000Z"}"#, "10s", "10s", 1),
            (
                r#"{"firstTimestamp":"2023-11-14T20:13:20Z","lastTimestamp":"2023-11-14T22:08:20Z","count":4}"#,
                "5m",
                "120m",
                4,
            ),
            (
                r#"{"lastTimestamp":"2023-11-14T22:08:20Z","count":4,
                    "series":{"count":9,"lastObservedTime":"2023-11-14T22:13:00.000000Z"}}"#,
                "20s",
                "<unknown>",
                9,
            ),
        ] {
            let event = event(text);
            assert_eq!(
                (last_seen(&event).at(NOW), first_seen(&event).at(NOW), count(&event)),
                (last.into(), first.into(), times),
                "{text}"
            );
        }
    }

    #[test]
    fn the_source_is_the_reporter_of_either_form() {
        for (text, expected) in [
            ("{}", ""),
            (
                r#"{"source":{"component":"kubelet","host":"n1"},"reportingComponent":"x"}"#,
                "kubelet, n1",
            ),
            (
                r#"{"reportingComponent":"x.io/y","reportingInstance":"y-1"}"#,
                "x.io/y, y-1",
            ),
            (r#"{"source":{"component":"scheduler"}}"#, "scheduler"),
        ] {
            assert_eq!(source(&event(text)), expected);
        }
        assert_eq!(
            object(&event(r#"{"involvedObject":{"kind":"Pod","name":"a"}}"#)),
            "pod/a"
        );
        assert_eq!(object(&event(r#"{"involvedObject":{"kind":"Pod"}}"#)), "pod");
        assert_eq!(message(&event(r#"{"message":" a\n"}"#)), "a");
    }
}
