//! Events: they are about something in their own namespace, and are forgotten after a while.

use std::time::Duration;

use keelson_api::core::v1::Event;
use keelson_api::events_k8s_io;
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::scheme::NameRule;
use keelson_machinery::validation::meta::validate_object_meta;
use keelson_registry::write::standard_finalizers;
use keelson_registry::{Context, Kept, KindCode, MetadataChecks, Strategy};

use crate::cells;
use crate::faults::{self, Faults};
use crate::metadata;
use crate::typed::same;

/// The most characters of the one-word fields of events of the newer form.
const WORD_MAX: usize = 128;
/// The most characters of their message.
const MESSAGE_MAX: usize = 1024;

/// Fields that stay, of the newer group alone: through the older one the same objects may change. The reason is looked
/// at twice.
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
        .metadata_checks(metadata::NONE)
        .cells(cells::event::EVENT);
    code.kind::<events_k8s_io::v1::Event>().metadata_checks(MetadataChecks {
        create: false,
        ..metadata::CHANGE
    });
}

/// The rules of events.
struct EventStrategy {
    /// How long an event is kept after it was written last; `None`: for ever.
    time_to_live: Option<Duration>,
}

impl Strategy for EventStrategy {
    type Object = Event;

    fn validate(&self, context: &Context, new: &Event, old: Option<&Event>) -> ErrorList {
        let of_newer_group = is_of_newer_group(context);
        faults::of_object(|f| {
            check(f, new, of_newer_group);
            match (of_newer_group, old) {
                (true, None) => {
                    let (meta, path) = (&new.metadata, Path::new("metadata"));
                    f.extend(validate_object_meta(meta, true, NameRule::DnsSubdomain, &path));
                    f.extend(standard_finalizers(meta, &path));
                    series(f, new);
                    newer_alone(f, new);
                }
                (true, Some(old)) => {
                    if !same(new.series.as_deref(), old.series.as_deref()) {
                        series(f, new);
                    }
                    f.extend(KEPT.iter().filter_map(|field| field.fault(new, old)));
                }
                (false, _) => {}
            }
        })
    }

    fn time_to_live(&self) -> Option<Duration> {
        self.time_to_live
    }

    /// Nothing is owned by an event.
    fn has_dependents(&self) -> bool {
        false
    }
}

/// Whether the request came through the newer group, which is stricter.
fn is_of_newer_group(context: &Context) -> bool {
    context.asked.group == "events.k8s.io"
}

/// Repetitions are at least two.
fn series(f: &mut Faults<'_>, event: &Event) {
    let Some(series) = event.series.as_deref() else { return };
    f.at("series.count")
        .invalid_if(series.count < 2, "", "should be at least 2");
    f.at("series.lastObservedTime")
        .required_if(series.last_observed_time.is_zero(), "");
}

/// Fields that the newer group has, and that it has no longer.
fn newer_alone(f: &mut Faults<'_>, event: &Event) {
    f.at("eventTime").required_if(event.event_time.is_zero(), "");
    if !matches!(event.r#type.as_str(), "Normal" | "Warning") {
        f.at("type").invalid("", format!("has invalid value: {}", event.r#type));
    }
    let source = &event.source;
    for (name, is_set) in [
        ("firstTimestamp", !event.first_timestamp.is_zero()),
        ("lastTimestamp", !event.last_timestamp.is_zero()),
        ("count", event.count != 0),
        ("source", !source.component.is_empty() || !source.host.is_empty()),
    ] {
        f.at(name).invalid_if(is_set, "", "needs to be unset");
    }
}

/// An event with a time of its own is of the newer form and held to more.
fn check(f: &mut Faults<'_>, event: &Event, of_newer_group: bool) {
    let newer = !event.event_time.is_zero();
    let (own, about) = (&*event.metadata.namespace, &*event.involved_object.namespace);
    let matches = match (about, newer) {
        ("", false) => matches!(own, "" | "default"),
        ("", true) => matches!(own, "default" | "kube-system"),
        (about, false) => about == own,
        (_, true) => true,
    };
    f.at("involvedObject")
        .at("namespace")
        .invalid_if(!matches, about, "does not match event.namespace");
    if newer {
        of_newer_form(f, event, of_newer_group);
    }
}

fn of_newer_form(f: &mut Faults<'_>, event: &Event, of_newer_group: bool) {
    let mut reporter = match of_newer_group {
        true => f.at("reportingController"),
        false => f.at("reportingComponent"),
    };
    reporter.filled(&event.reporting_component);
    reporter.qualified(&event.reporting_component);
    for (field, value) in [
        ("reportingInstance", &event.reporting_instance),
        ("action", &event.action),
        ("reason", &event.reason),
    ] {
        f.at(field).filled(value);
        limited(&mut f.at(field), value, WORD_MAX);
    }
    limited(&mut f.at("message"), &event.message, MESSAGE_MAX);
}

fn limited(f: &mut Faults<'_>, text: &str, max: usize) {
    if text.len() > max {
        f.invalid("", format!("can have at most {max} characters"));
    }
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
            assert_eq!(lines(&RULES.validate(&context(), &event, None)), expected);
        }
    }

    #[test]
    fn the_newer_form_is_held_to_more() {
        let time = r#""metadata":{"namespace":"default"},"eventTime":"2024-01-01T00:00:00.000000Z""#;
        let event: Event = read(&format!(
            r#"{{{time},"reportingComponent":"a.b/c","reportingInstance":"c-1","action":"A","reason":"R"}}"#
        ));
        assert_eq!(lines(&RULES.validate(&context(), &event, None)), "");
        let event: Event = read(&format!(
            r#"{{{time},"reportingComponent":"a.b/c","action":"A","reason":"{}"}}"#,
            "r".repeat(129)
        ));
        assert_eq!(
            lines(&RULES.validate(&context(), &event, None)),
            "reportingInstance: Required value\nreason: Invalid value: \"\": can have at most 128 characters"
        );
    }
}
