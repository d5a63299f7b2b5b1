//! Events: they are about something in their own namespace, and are forgotten after a while.

use std::time::Duration;

use keelson_api::core::v1::Event;
use keelson_api::events_k8s_io;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::validation::labels;
use keelson_registry::{Context, Kept, KindCode, RepeatedChecks, Strategy};

use crate::cells;
use crate::metadata;

/// How long an event is kept after it was written last, unless told otherwise.
pub const TIME_TO_LIVE: Duration = Duration::from_secs(60 * 60);

/// The most characters of the one-word fields of events of the newer form.
const WORD_MAX: usize = 128;
/// The most characters of their message.
const MESSAGE_MAX: usize = 1024;

/// Fields that stay, of the newer group alone: through the older one the same objects may change. The reason is looked at
/// twice.
const KEPT: &[Kept] = &[
    Kept::at("involvedObject"),
    Kept::at("reason"),
    Kept::at("message"),
    Kept::at("source"),
    Kept::at("firstTimestamp"),
    Kept::at("lastTimestamp"),
    Kept::at("count"),
    Kept::at("reason"),
    Kept::at("type"),
    Kept::at("eventTime"),
    Kept::at("action"),
    Kept::at("related"),
    Kept {
        told: "reportingController",
        ..Kept::at("reportingComponent")
    },
    Kept::at("reportingInstance"),
];

/// Registers the rules of events, which are the same objects in two groups.
pub fn register(code: &mut KindCode, time_to_live: Option<Duration>) {
    code.kind::<Event>()
        .strategy(EventStrategy { time_to_live })
        .metadata_checks(metadata::any_finalizer(RepeatedChecks::NONE))
        .cells(cells::event::EVENT);
    code.kind::<events_k8s_io::v1::Event>()
        .metadata_checks(metadata::CHANGE)
        .kept(KEPT);
}

/// The rules of events.
struct EventStrategy {
    /// How long an event is kept after it was written last; `None`: for ever.
    time_to_live: Option<Duration>,
}

impl Strategy for EventStrategy {
    type Object = Event;

    fn validate(&self, _context: &Context, object: &Event) -> ErrorList {
        validate(object)
    }

    fn validate_update(&self, _context: &Context, new: &Event, _old: &Event) -> ErrorList {
        validate(new)
    }

    fn time_to_live(&self) -> Option<Duration> {
        self.time_to_live
    }

    /// Nothing is owned by an event.
    fn has_dependents(&self) -> bool {
        false
    }
}

/// An event with a time of its own is of the newer form and held to more.
fn validate(event: &Event) -> ErrorList {
    let newer = !event.event_time.is_zero();
    let (own, about) = (
        event.metadata.namespace.as_str(),
        event.involved_object.namespace.as_str(),
    );
    let matches = match (about, newer) {
        ("", false) => matches!(own, "" | "default"),
        ("", true) => matches!(own, "default" | "kube-system"),
        (about, false) => about == own,
        (_, true) => true,
    };
    let mut errors = ErrorList::default();
    if !matches {
        let path = Path::new("involvedObject").child("namespace");
        errors.push(FieldError::invalid(&path, about, "does not match event.namespace"));
    }
    if newer {
        errors.extend(validate_newer(event));
    }
    errors
}

fn validate_newer(event: &Event) -> ErrorList {
    let mut errors = ErrorList::default();
    let reporter = Path::new("reportingComponent");
    if event.reporting_component.is_empty() {
        errors.push(FieldError::required(&reporter, ""));
    }
    let texts = labels::qualified_name(&event.reporting_component);
    errors.extend(
        texts
            .into_iter()
            .map(|t| FieldError::invalid(&reporter, &event.reporting_component, t)),
    );
    for (field, value) in [
        ("reportingInstance", &event.reporting_instance),
        ("action", &event.action),
        ("reason", &event.reason),
    ] {
        if value.is_empty() {
            errors.push(FieldError::required(&Path::new(field), ""));
        } else if value.len() > WORD_MAX {
            let text = format!("can have at most {WORD_MAX} characters");
            errors.push(FieldError::invalid(&Path::new(field), "", text));
        }
    }
    if event.message.len() > MESSAGE_MAX {
        let text = format!("can have at most {MESSAGE_MAX} characters");
        errors.push(FieldError::invalid(&Path::new("message"), "", text));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    const RULES: EventStrategy = EventStrategy { time_to_live: None };

    #[test]
    fn an_event_is_about_something_in_its_namespace() {
        let other = "does not match event.namespace";
        for (own, about, expected) in [
            ("a", "a", String::new()),
            ("default", "", String::new()),
            (
                "a",
                "",
                format!("involvedObject.namespace: Invalid value: \"\": {other}"),
            ),
            (
                "a",
                "b",
                format!("involvedObject.namespace: Invalid value: \"b\": {other}"),
            ),
        ] {
            let text = format!(r#"{{"metadata":{{"namespace":"{own}"}},"involvedObject":{{"namespace":"{about}"}}}}"#);
            let event: Event = read(&text);
            assert_eq!(lines(&RULES.validate(&context(), &event)), expected);
        }
    }

    #[test]
    fn the_newer_form_is_held_to_more() {
        let time = r#""metadata":{"namespace":"default"},"eventTime":"2024-01-01T00:00:00.000000Z""#;
        let event: Event = read(&format!(
            r#"{{{time},"reportingComponent":"a.b/c","reportingInstance":"c-1","action":"A","reason":"R"}}"#
        ));
        assert_eq!(lines(&RULES.validate(&context(), &event)), "");
        let event: Event = read(&format!(
            r#"{{{time},"reportingComponent":"a.b/c","action":"A","reason":"{}"}}"#,
            "r".repeat(129)
        ));
        assert_eq!(
            lines(&RULES.validate(&context(), &event)),
            "reportingInstance: Required value\nreason: Invalid value: \"\": can have at most 128 characters"
        );
    }
}
