//! Answers that are no success, in the words of Go's REST client.

use keelson_machinery::field::text::quote;
use serde::Deserialize;

use super::Answer;

/// Bytes of a body that a message shows.
const MAX_SHOWN_BYTES: usize = 1024;

#[derive(Deserialize)]
struct Status {
    kind: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    message: String,
}

/// Why the server refused. A `Status` speaks for itself; other bodies are shown only where the code says nothing.
pub fn refusal(answer: &Answer) -> String {
    match serde_json::from_slice::<Status>(&answer.body) {
        Ok(status) if status.kind == "Status" && status.status != "Success" => return status.message,
        _ => {}
    }
    let text = match answer.status {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 406 | 415 => return body(answer),
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        410 => "the server could not find the requested resource",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => {
            let body = quote(&body(answer));
            return format!("an error on the server ({body}) has prevented the request from succeeding");
        }
        code => return format!("the server responded with the status code {code} but did not return more information"),
    };
    text.to_owned()
}

/// The body, if it is meant to be read by people.
fn body(answer: &Answer) -> String {
    let kind = answer.headers.get(http::header::CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/")) {
        return "unknown".to_owned();
    }
    let shown = answer.body.get(..MAX_SHOWN_BYTES).unwrap_or(&answer.body);
    let text = String::from_utf8_lossy(shown);
    match text.trim() {
        "" => "unknown".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_those_of_go() {
        for (status, body, want) in [
            (
                500,
                "boom\n",
                "an error on the server (\"boom\") has prevented the request from succeeding",
            ),
            (
                502,
                "",
                "an error on the server (\"unknown\") has prevented the request from succeeding",
            ),
            (503, "x", "the server is currently unable to handle the request"),
            (404, "x", "the server could not find the requested resource"),
            (403, "go away", "go away"),
            (
                418,
                "x",
                "the server responded with the status code 418 but did not return more information",
            ),
            (400, r#"{"kind":"Status","status":"Failure","message":"told"}"#, "told"),
        ] {
            let mut headers = http::HeaderMap::new();
            headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/plain"));
            let answer = Answer {
                status,
                headers,
                body: bytes::Bytes::copy_from_slice(body.as_bytes()),
            };
            assert_eq!(refusal(&answer), want, "{status} {body}");
        }
        let untold = Answer {
            status: 403,
            headers: http::HeaderMap::new(),
            body: bytes::Bytes::from_static(b"go away"),
        };
        assert_eq!(refusal(&untold), "unknown");
    }
}
