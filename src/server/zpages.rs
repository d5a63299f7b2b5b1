//! z-pages: `/statusz`, what the server says of its state, and `/flagz`, the flags that it runs with.
//!
//! Each is a text for people, whose separator changes from one answer to the next so that nobody comes to parse it, or
//! an object for programs that name its kind and version.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::HttpResponse;
use actix_web::http::header;
use keelson_machinery::status::StatusError;
use keelson_machinery::yaml;
use serde::Serialize;

use crate::document::unix_date;
use crate::negotiate::accept::{Clause, clauses};
use crate::negotiate::{Format, header_text};
use crate::pretty;
use crate::request::Request;
use crate::respond;
use crate::state::ServerState;
use crate::version::Version;

/// The paths of both.
pub const PATHS: [&str; 2] = ["/flagz", "/statusz"];

const COMPONENT: &str = "apiserver";
const GROUP: &str = "config.k8s.io";
const VERSION: &str = "v1beta1";
/// Answered with a warning.
const OLD_VERSION: &str = "v1alpha1";
const TEXT: &str = "text/plain";
const SEPARATORS: [&str; 4] = [":", ": ", "=", " "];
const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
                       guarantees and is for debugging purposes only.";
/// Parts of the API, which `/statusz` does not name.
const API: [&str; 5] = ["/apis", "/api", "/openid", "/openapi", "/.well-known"];

/// What is known of the state of the server, in the order of the fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Statusz {
    start_time: String,
    uptime_seconds: i64,
    go_version: String,
    binary_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    emulation_version: String,
    paths: Vec<String>,
}

/// The flags by their names.
#[derive(Serialize)]
struct Flagz<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    flags: &'a BTreeMap<String, String>,
}

/// An object of these pages.
#[derive(Serialize)]
struct Whole<'a, T> {
    kind: &'a str,
    #[serde(rename = "apiVersion")]
    api_version: String,
    metadata: Metadata,
    #[serde(flatten)]
    page: T,
}

#[derive(Serialize)]
struct Metadata {
    name: &'static str,
}

/// The form of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Text,
    /// An object of this version.
    Object(Format, &'static str),
}

/// Answers for one of [`PATHS`]; `paths` are all that the server has.
pub fn serve(state: &ServerState, request: &Request, path: &str, paths: &[String]) -> HttpResponse {
    let kind = if path == "/flagz" { "Flagz" } else { "Statusz" };
    let form = match form(header_text(&request.headers, &header::ACCEPT), kind) {
        Ok(form) => form,
        Err(error) => return request.error(&error),
    };
    let mut drawn = [0];
    state.rest.backend.entropy.fill(&mut drawn);
    let separator = SEPARATORS[usize::from(drawn[0]) % SEPARATORS.len()];
    let answer = match kind {
        "Flagz" => match form {
            Form::Text => Ok(flags_text(&state.flags, separator)),
            Form::Object(format, version) => object(kind, version, format, Flagz { flags: &state.flags }),
        },
        _ => {
            let seconds = i64::try_from(state.started.elapsed().as_secs()).unwrap_or(i64::MAX);
            let started = state.rest.backend.clock.now().unix_seconds() - seconds;
            match form {
                Form::Text => Ok(status_text(
                    &status(&state.version, started, seconds, paths),
                    started,
                    separator,
                )),
                Form::Object(format, version) => {
                    object(kind, version, format, status(&state.version, started, seconds, paths))
                }
            }
        }
    };
    match answer {
        Ok(body) => written(form, kind, body),
        Err(error) => request.error(&error),
    }
}

/// Text for who asks for no kind; an object for who names one that there is.
fn form(accept: Option<&str>, kind: &str) -> Result<Form, StatusError> {
    const OBJECTS: [Format; 2] = [Format::Json, Format::Yaml];
    let named = accept.map(str::trim).unwrap_or_default();
    if named.is_empty() {
        return Ok(Form::Text);
    }
    let of_clause = |clause: &Clause<'_>| {
        let version = [VERSION, OLD_VERSION].into_iter().find(|v| clause.param("v") == *v);
        let is_whole = ["as", "g", "v"].iter().all(|name| clause.param(name).is_empty());
        let is_kind = clause.param("as") == kind && clause.param("g") == GROUP;
        let format = OBJECTS.into_iter().find(|format| clause.takes(format.media_type()));
        match (format, version.filter(|_| is_kind)) {
            _ if !clause.param("stream").is_empty() => None,
            (Some(format), Some(version)) => Some(Form::Object(format, version)),
            _ => (is_whole && clause.takes(TEXT)).then_some(Form::Text),
        }
    };
    clauses(named)
        .iter()
        .find_map(of_clause)
        .ok_or_else(|| StatusError::not_acceptable(&[Format::Json.media_type(), Format::Yaml.media_type(), TEXT]))
}

fn written(form: Form, kind: &str, body: Vec<u8>) -> HttpResponse {
    let (media_type, version) = match form {
        Form::Text => ("text/plain; charset=utf-8".to_owned(), ""),
        Form::Object(format, version) => {
            let media_type = format!("{};g={GROUP};v={version};as={kind}", format.media_type());
            (media_type, version)
        }
    };
    let mut response = HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, media_type))
        .body(body);
    if version == OLD_VERSION {
        let page = kind.to_lowercase();
        let text = format!("This version of the {page} endpoint is deprecated. Please use a newer version.");
        respond::add_warnings(&mut response, &[text]);
    }
    response
}

fn object<T: Serialize>(kind: &str, version: &str, format: Format, page: T) -> Result<Vec<u8>, StatusError> {
    let whole = Whole {
        kind,
        api_version: format!("{GROUP}/{version}"),
        metadata: Metadata { name: COMPONENT },
        page,
    };
    let json = serde_json::to_vec(&whole).map_err(|error| StatusError::internal_error(error.to_string()))?;
    match format {
        Format::Yaml => yaml::from_json(&json).map_err(|error| StatusError::internal_error(error.to_string())),
        _ => Ok(pretty::indent(&json)),
    }
}

fn status(version: &Version, started: i64, seconds: i64, paths: &[String]) -> Statusz {
    let binary = version.git_version.trim_start_matches('v');
    let emulated = [&version.emulation_major, &version.emulation_minor];
    Statusz {
        start_time: keelson_machinery::time::Time::from_unix(started, 0).to_string(),
        uptime_seconds: seconds,
        go_version: version.go_version.clone(),
        binary_version: binary.split('+').next().unwrap_or_default().to_owned(),
        emulation_version: match emulated.iter().any(|part| part.is_empty()) {
            true => String::new(),
            false => emulated.map(String::as_str).join("."),
        },
        paths: folders(paths),
    }
}

/// The first parts of the paths, without those of the API.
fn folders(paths: &[String]) -> Vec<String> {
    let first = |path: &String| path.split('/').nth(1).map(|part| format!("/{part}"));
    let folders: BTreeSet<String> = paths.iter().filter_map(first).collect();
    let is_shown = |folder: &String| folder != "/" && !API.contains(&folder.as_str());
    folders.into_iter().filter(is_shown).collect()
}

fn head(page: &str) -> String {
    format!("\n{COMPONENT} {page}\n{WARNING}\n")
}

fn status_text(status: &Statusz, started: i64, separator: &str) -> Vec<u8> {
    let up = status.uptime_seconds;
    let up = format!("{} hr {:02} min {:02} sec", up / 3600, up / 60 % 60, up % 60);
    let lines = [
        ("Started", unix_date(started)),
        ("Up", up),
        ("Go version", status.go_version.clone()),
        ("Binary version", status.binary_version.clone()),
        ("Emulation version", status.emulation_version.clone()),
        ("Paths", status.paths.join(" ")),
    ];
    let mut text = head("statusz") + "\n";
    for (index, (name, value)) in lines.into_iter().enumerate() {
        // The last two may be unknown.
        match value.is_empty() && index > 3 {
            true => text.push('\n'),
            false => text += &format!("{name}{separator} {value}\n"),
        }
    }
    text.into_bytes()
}

fn flags_text(flags: &BTreeMap<String, String>, separator: &str) -> Vec<u8> {
    let mut text = head("flagz");
    for (name, value) in flags {
        text += &format!("{name}{separator}{value}\n");
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_for_who_names_them() {
        let statusz = |format| Some(Form::Object(format, VERSION));
        for (accept, expected) in [
            ("", Some(Form::Text)),
            ("*/*", Some(Form::Text)),
            ("text/*", Some(Form::Text)),
            ("text/plain", Some(Form::Text)),
            ("application/json", None),
            ("application/json;as=Table", None),
            ("application/vnd.kubernetes.protobuf", None),
            ("text/html", None),
            (
                "application/json;as=Statusz;v=v1beta1;g=config.k8s.io",
                statusz(Format::Json),
            ),
            (
                "application/yaml;as=Statusz;v=v1beta1;g=config.k8s.io",
                statusz(Format::Yaml),
            ),
            (
                "application/json;as=Statusz;v=v1alpha1;g=config.k8s.io",
                Some(Form::Object(Format::Json, OLD_VERSION)),
            ),
            ("application/json;as=Flagz;v=v1beta1;g=config.k8s.io", None),
            (
                "application/json;as=Flagz;v=v1beta1;g=config.k8s.io,text/plain",
                Some(Form::Text),
            ),
        ] {
            assert_eq!(form(Some(accept), "Statusz").ok(), expected, "{accept}");
        }
        assert_eq!(form(None, "Statusz").ok(), Some(Form::Text));
    }

    #[test]
    fn the_state_is_told_in_lines() {
        let version = Version {
            emulation_major: "1".to_owned(),
            emulation_minor: "36".to_owned(),
            git_version: "v1.36.3+x".to_owned(),
            go_version: "go".to_owned(),
            ..Version::default()
        };
        let paths = [
            "/",
            "/api/v1",
            "/apis",
            "/readyz/etcd",
            "/readyz",
            "/metrics",
            "/openapi/v2",
        ]
        .map(str::to_owned);
        let status = status(&version, 0, 3_723, &paths);
        let text = String::from_utf8(status_text(&status, 0, "=")).unwrap();
        let lines = text.split_once("only.\n\n").unwrap().1;
        assert_eq!(
            lines,
            "Started= Thu Jan  1 00:00:00 UTC 1970\nUp= 1 hr 02 min 03 sec\nGo version= go\nBinary version= 1.36.3\n\
             Emulation version= 1.36\nPaths= /metrics /readyz\n"
        );
        let json = object("Statusz", VERSION, Format::Json, status).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json["startTime"], "1970-01-01T00:00:00Z");
        assert_eq!(json["metadata"]["name"], "apiserver");
        assert_eq!(json["paths"], serde_json::json!(["/metrics", "/readyz"]));
    }

    #[test]
    fn flags_are_told_in_lines() {
        let flags = BTreeMap::from([("b".to_owned(), "[]".to_owned()), ("a".to_owned(), "1".to_owned())]);
        let text = String::from_utf8(flags_text(&flags, ":")).unwrap();
        assert!(text.ends_with("only.\na:1\nb:[]\n"), "{text}");
        let yaml = object("Flagz", VERSION, Format::Yaml, Flagz { flags: &flags }).unwrap();
        assert!(String::from_utf8(yaml).unwrap().contains("flags:\n  a: \"1\"\n"));
    }
}
