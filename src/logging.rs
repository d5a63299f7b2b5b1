//! The log on standard error: lines in klog's form, or JSON objects with klog's keys.

use std::fmt::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

use keelson_options::{Log, LogFormat};

/// From this verbosity on requests are logged.
const REQUESTS: i64 = 3;
/// The module whose debugging events are requests.
const REQUEST_LOG: &str = "keelson_server::filters::request_log";
/// From this verbosity on debugging events are logged.
const DEBUG: i64 = 4;
/// From this verbosity on everything of this server is.
const TRACE: i64 = 6;
/// From this verbosity on the libraries' events are, too.
const LIBRARIES: i64 = 8;

/// Sends the events of the process to standard error, those of `program` as those of Keelson. The first call counts.
pub fn start(log: Log, program: &str) {
    let form = EventForm {
        json: log.format == LogFormat::Json,
    };
    let lines = tracing_subscriber::fmt::layer()
        .event_format(form)
        .with_writer(std::io::stderr);
    let subscriber = tracing_subscriber::registry()
        .with(filter(log.verbosity, program))
        .with(lines);
    // An embedding program may have its own subscriber; then that one is meant.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

fn filter(verbosity: i64, program: &str) -> Targets {
    let own = match verbosity {
        TRACE.. => LevelFilter::TRACE,
        DEBUG.. => LevelFilter::DEBUG,
        _ => LevelFilter::INFO,
    };
    let libraries = if verbosity >= LIBRARIES {
        LevelFilter::DEBUG
    } else {
        LevelFilter::WARN
    };
    let requests = if verbosity >= REQUESTS {
        own.max(LevelFilter::DEBUG)
    } else {
        own
    };
    Targets::new()
        .with_target("keelson", own)
        .with_target(REQUEST_LOG, requests)
        .with_target(program.replace('-', "_"), own)
        .with_default(libraries)
}

struct EventForm {
    json: bool,
}

impl<S, N> FormatEvent<S, N> for EventForm
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let now = SystemTime::now();
        let mut fields = Fields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let file = metadata
            .file()
            .unwrap_or_default()
            .rsplit('/')
            .next()
            .unwrap_or_default();
        let place = format!("{file}:{}", metadata.line().unwrap_or(0));
        let line = match self.json {
            true => json_line(now, *metadata.level(), &place, fields),
            false => text_line(now, *metadata.level(), &place, fields),
        };
        writeln!(writer, "{line}")
    }
}

/// The message of an event, and its other fields in order.
#[derive(Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, serde_json::Value)>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: serde_json::Value) {
        match (field.name(), value) {
            ("message", serde_json::Value::String(text)) => self.message = text,
            (name, value) => self.others.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}

/// `I1121 12:01:24.123456    1234 file.rs:12] "message" key="value"`, the time in UTC.
fn text_line(now: SystemTime, level: Level, place: &str, fields: Fields) -> String {
    let letter = match level {
        Level::ERROR => 'E',
        Level::WARN => 'W',
        _ => 'I',
    };
    let time = jiff::Timestamp::try_from(now)
        .unwrap_or_default()
        .strftime("%m%d %H:%M:%S%.6f")
        .to_string();
    let mut line = format!("{letter}{time} {:7} {place}] {:?}", std::process::id(), fields.message);
    for (name, value) in fields.others {
        let _ = match value {
            serde_json::Value::String(text) => write!(line, " {name}={text:?}"),
            value => write!(line, " {name}={value}"),
        };
    }
    line
}

/// `{"ts":1763726484123.456,"caller":"file.rs:12","msg":"message","v":0,"key":"value"}`, the time in milliseconds.
fn json_line(now: SystemTime, level: Level, place: &str, fields: Fields) -> String {
    let micros = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let mut object = serde_json::Map::new();
    object.insert("ts".into(), (micros as f64 / 1000.0).into());
    object.insert("caller".into(), place.into());
    object.insert("msg".into(), fields.message.into());
    if level != Level::ERROR {
        let v = match level {
            Level::TRACE => TRACE,
            Level::DEBUG => DEBUG,
            _ => 0,
        };
        object.insert("v".into(), v.into());
    }
    object.extend(fields.others.into_iter().map(|(name, value)| (name.to_owned(), value)));
    serde_json::Value::Object(object).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn fields() -> Fields {
        Fields {
            message: "Serving".into(),
            others: vec![("address", "a \"b\"".into()), ("port", 6443.into())],
        }
    }

    #[test]
    fn text_lines_have_klogs_form() {
        let now = UNIX_EPOCH + Duration::from_micros(1_763_726_484_123_456);
        let line = text_line(now, Level::WARN, "listen.rs:12", fields());
        let pid = format!("{:7}", std::process::id());
        assert_eq!(
            line,
            format!(r#"W1121 12:01:24.123456 {pid} listen.rs:12] "Serving" address="a \"b\"" port=6443"#)
        );
    }

    #[test]
    fn json_lines_have_klogs_keys() {
        let now = UNIX_EPOCH + Duration::from_micros(1_763_726_484_123_456);
        assert_eq!(
            json_line(now, Level::INFO, "listen.rs:12", fields()),
            r#"{"ts":1763726484123.456,"caller":"listen.rs:12","msg":"Serving","v":0,"address":"a \"b\"","port":6443}"#
        );
        assert!(!json_line(now, Level::ERROR, "x.rs:1", fields()).contains("\"v\""));
    }

    #[test]
    fn verbosity_chooses_what_is_logged() {
        for (v, target, level, logged) in [
            (0, "keelson_net::listener", Level::INFO, true),
            (3, "keelson_net::listener", Level::DEBUG, false),
            (2, REQUEST_LOG, Level::DEBUG, false),
            (3, REQUEST_LOG, Level::DEBUG, true),
            (4, "keelson_net::listener", Level::DEBUG, true),
            (6, "keelson", Level::TRACE, true),
            (0, "widgets::gears", Level::INFO, true),
            (6, "hyper", Level::INFO, false),
            (8, "hyper", Level::DEBUG, true),
        ] {
            assert_eq!(
                filter(v, "widgets").would_enable(target, &level),
                logged,
                "{v} {target} {level}"
            );
        }
    }
}
