//! Answers: bytes with a media type, and errors as a `Status`. This is the one place where an error becomes HTTP.

use std::borrow::Cow;
use std::collections::HashSet;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use bytes::Bytes;
use keelson_base::cooperative::aside;
use keelson_machinery::json;
use keelson_machinery::object::Kind;
use keelson_machinery::protobuf;
use keelson_machinery::status::StatusError;
use keelson_machinery::yaml;

use crate::audit::{Outcome, Recording};
use crate::compress;
use crate::negotiate::Format;
use crate::pretty;

/// How an answer is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Rendering {
    pub format: Format,
    /// Indented JSON.
    pub pretty: bool,
    pub gzip: bool,
    /// What of the answer is recorded.
    pub recording: Recording,
}

/// Why a request failed for which the server is to blame: what its log says of it.
pub(crate) struct Failure(pub String);

/// An error as the client sees it.
pub fn error(rendering: Rendering, error: &StatusError) -> HttpResponse {
    let error = error.bounded();
    let status = error.to_status();
    let mut response = kind(rendering, error.code, &status);
    if let Some(seconds) = error.details.as_ref().map(|d| d.retry_after_seconds).filter(|s| *s > 0)
        && let Ok(value) = HeaderValue::from_str(&seconds.to_string())
    {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    if error.code >= 500 {
        response.extensions_mut().insert(Failure(error.message.clone()));
    }
    response
}

/// An object in the format asked for.
pub fn kind(rendering: Rendering, code: u16, object: &dyn Kind) -> HttpResponse {
    let recorded = rendering.recording.objects();
    let json = (recorded || rendering.format != Format::Protobuf).then(|| {
        let mut out = Vec::with_capacity(1024);
        json::write_kind(object, &mut out);
        out
    });
    let outcome = rendering.recording.of_kind(object, json.as_deref());
    let response = match json.filter(|_| rendering.format != Format::Protobuf) {
        Some(json) => json_text(rendering, code, json),
        None => bytes(rendering, code, protobuf::encode(object)),
    };
    recorded_as(outcome, response)
}

/// JSON text, turned into the format asked for (not protobuf).
pub fn json_bytes(rendering: Rendering, code: u16, json: Vec<u8>) -> HttpResponse {
    let outcome = rendering.recording.of_json(&json);
    recorded_as(outcome, json_text(rendering, code, json))
}

/// Protobuf that is no single object; `json` makes the text that is recorded of it.
pub fn protobuf_bytes(rendering: Rendering, code: u16, body: Vec<u8>, json: impl FnOnce() -> Vec<u8>) -> HttpResponse {
    let recorded = rendering.recording.objects();
    let outcome = recorded.then(json).and_then(|json| rendering.recording.of_json(&json));
    recorded_as(outcome, bytes(rendering, code, body))
}

/// Attaches what the audit records of an answer.
pub fn recorded_as(outcome: Option<Outcome>, mut response: HttpResponse) -> HttpResponse {
    if let Some(outcome) = outcome {
        response.extensions_mut().insert(outcome);
    }
    response
}

/// As [`json_bytes`], for text that may be long: then it is turned and compressed on another thread.
pub async fn long_json(rendering: Rendering, code: u16, json: Vec<u8>) -> HttpResponse {
    if json.len() <= compress::THRESHOLD_BYTES {
        return json_bytes(rendering, code, json);
    }
    let outcome = rendering.recording.of_json(&json);
    let body = aside(move || Body::of(rendering, turned(rendering, json))).await;
    recorded_as(outcome, body.response(rendering, code))
}

/// As [`protobuf_bytes`], of what may be long.
pub async fn long_protobuf(
    rendering: Rendering,
    code: u16,
    body: Vec<u8>,
    json: impl FnOnce() -> Vec<u8>,
) -> HttpResponse {
    let recorded = rendering.recording.objects();
    let outcome = recorded.then(json).and_then(|json| rendering.recording.of_json(&json));
    let body = match body.len() > compress::THRESHOLD_BYTES {
        true => aside(move || Body::of(rendering, body)).await,
        false => Body::of(rendering, body),
    };
    recorded_as(outcome, body.response(rendering, code))
}

fn json_text(rendering: Rendering, code: u16, json: Vec<u8>) -> HttpResponse {
    bytes(rendering, code, turned(rendering, json))
}

/// JSON in the format asked for.
fn turned(rendering: Rendering, mut json: Vec<u8>) -> Vec<u8> {
    match rendering.format {
        Format::Yaml => yaml::from_json(&json).unwrap_or(json),
        _ if rendering.pretty => pretty::indent(&json),
        _ => {
            json.push(b'\n');
            json
        }
    }
}

/// A finished body.
pub fn bytes(rendering: Rendering, code: u16, body: Vec<u8>) -> HttpResponse {
    Body::of(rendering, body).response(rendering, code)
}

/// A body as it goes out.
struct Body {
    bytes: Vec<u8>,
    gzip: bool,
}

impl Body {
    fn of(rendering: Rendering, bytes: Vec<u8>) -> Body {
        match rendering.gzip && bytes.len() > compress::THRESHOLD_BYTES {
            true => Body {
                bytes: compress::gzip(&bytes),
                gzip: true,
            },
            false => Body { bytes, gzip: false },
        }
    }

    fn response(self, rendering: Rendering, code: u16) -> HttpResponse {
        let mut builder = HttpResponse::build(StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
        builder.insert_header((header::CONTENT_TYPE, rendering.format.media_type()));
        if self.gzip {
            builder.insert_header((header::CONTENT_ENCODING, "gzip"));
            builder.insert_header((header::VARY, "Accept-Encoding"));
        }
        builder.body(Bytes::from(self.bytes))
    }
}

/// Plain text, as health checks and unknown paths answer.
pub fn text(code: u16, body: impl Into<String>) -> HttpResponse {
    let mut builder = HttpResponse::build(StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
    builder.insert_header((header::CONTENT_TYPE, "text/plain; charset=utf-8"));
    builder.insert_header(("X-Content-Type-Options", "nosniff"));
    builder.body(body.into())
}

/// What a request is told whose time is over.
pub const OUT_OF_TIME: &str = "Timeout: request did not complete within the allotted timeout";

/// The answer to a request whose time is over: a Status, but neither its kind nor its media type.
pub fn out_of_time() -> HttpResponse {
    let body = serde_json::json!({
        "metadata": {}, "status": "Failure", "message": OUT_OF_TIME, "reason": "Timeout", "details": {}, "code": 504
    });
    let mut builder = HttpResponse::build(StatusCode::GATEWAY_TIMEOUT);
    builder.insert_header((header::CONTENT_TYPE, "text/plain; charset=utf-8"));
    builder.body(format!("{body}\n"))
}

/// The answer to a path that nobody serves.
pub fn page_not_found() -> HttpResponse {
    text(404, "404 page not found\n")
}

/// Characters of all warnings of one answer: above it each is cut to [`MAX_WARNING`], and what then is too much is left
/// out.
const MAX_WARNINGS: usize = 4 * 1024;
const MAX_WARNING: usize = 256;

/// Adds a `Warning` header for each text that is not there already.
pub fn add_warnings(response: &mut HttpResponse, warnings: &[String]) {
    for warning in fitting(warnings) {
        let quoted = match warning.contains(['\\', '"']) {
            true => Cow::Owned(warning.replace('\\', "\\\\").replace('"', "\\\"")),
            false => warning,
        };
        if let Ok(value) = HeaderValue::from_str(&["299 - \"", &*quoted, "\""].concat()) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

/// Whether there is a control character in a text; of nearly all texts the bytes say so.
fn has_control(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_control()) || (!text.is_ascii() && text.contains(char::is_control))
}

/// The warnings as far as they fit, each once.
fn fitting(warnings: &[String]) -> Vec<Cow<'_, str>> {
    let mut seen = HashSet::new();
    // Who warns may be somebody else: what no header holds is left out.
    let is_shown = |text: &&String| !text.is_empty() && !has_control(text);
    let shown = warnings.iter().filter(is_shown);
    let texts: Vec<&String> = shown.filter(|text| seen.insert(*text)).collect();
    let length = |text: &str| match text.is_ascii() {
        true => text.len(),
        false => text.chars().count(),
    };
    let all: usize = texts.iter().map(|text| length(text)).sum();
    let limit = if all > MAX_WARNINGS { MAX_WARNING } else { all };
    let mut used = 0;
    let mut out = Vec::with_capacity(texts.len());
    for text in texts {
        if used >= MAX_WARNINGS {
            break;
        }
        let text = match length(text) <= limit {
            true => Cow::Borrowed(text.as_str()),
            false => Cow::Owned(text.chars().take(limit).collect()),
        };
        used += length(&text);
        out.push(text);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_cut_where_there_is_too_much() {
        let texts = |count: usize, length: usize| -> Vec<String> {
            (0..count)
                .map(|i| format!("{i:04}{}", "é".repeat(length - 4)))
                .collect()
        };
        for (count, length, sent, sent_length) in [
            (1, 4096, 1, 4096),
            (1, 4097, 1, 256),
            (20, 316, 16, 256),
            (40, 117, 36, 117),
            (3, 10, 3, 10),
        ] {
            let texts = texts(count, length);
            let out = fitting(&texts);
            assert_eq!(out.len(), sent, "{count} of {length}");
            assert!(out.iter().all(|text| text.chars().count() == sent_length));
        }
        assert_eq!(fitting(&["a".into(), "b".into(), "a".into()]), ["a", "b"]);
    }
}
