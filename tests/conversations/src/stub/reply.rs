//! Answers of the stub as they are written: chosen by what was asked, and completed.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::convert::converted;
use crate::case::{Answers, Reply};
use crate::paths::fits;

/// Seconds between lines that are sent one by one.
const PAUSE: f64 = 0.2;
const UNKNOWN: &str = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":404}"#;

/// An answer that is ready to be sent.
#[derive(Debug)]
pub struct Written {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub content: Content,
    pub delay: Duration,
}

#[derive(Debug, PartialEq)]
pub enum Content {
    Whole(String),
    /// Lines, and the time between them.
    Lines(Vec<String>, Duration),
}

/// What is answered to a request of this method and body.
pub fn written(answers: Option<Answers>, method: &str, asked: &Value) -> Written {
    let Some(reply) = answers.and_then(|answers| chosen(answers, asked)) else {
        return Written {
            status: 404,
            headers: vec![("content-type".into(), "application/json".into())],
            content: Content::Whole(UNKNOWN.into()),
            delay: Duration::ZERO,
        };
    };
    let reply = reply.of_method(method);
    let kind = reply.content_type.clone().unwrap_or_else(|| "application/json".into());
    let mut headers = vec![("content-type".to_owned(), kind)];
    headers.extend(reply.headers.clone());
    Written {
        status: reply.status.unwrap_or(200),
        headers,
        delay: seconds(reply.delay.unwrap_or(0.0)),
        content: content(reply, asked),
    }
}

fn chosen(answers: Answers, asked: &Value) -> Option<Reply> {
    match answers {
        Answers::Always(reply) => Some(*reply),
        Answers::Choice(replies) => replies.into_iter().find(|reply| fits(asked, &reply.when)),
    }
}

fn content(reply: Reply, asked: &Value) -> Content {
    if let Some(chunks) = reply.chunks {
        let lines = chunks.iter().map(Value::to_string).collect();
        return Content::Lines(lines, seconds(reply.chunk_delay.unwrap_or(PAUSE)));
    }
    let mut body = reply.body.unwrap_or_default();
    if let Some(spec) = &reply.convert {
        body = converted(spec, asked);
    } else if asked.is_object() {
        complete(&mut body, asked);
    }
    Content::Whole(match body {
        Value::String(text) => text,
        other => other.to_string(),
    })
}

/// A review's response names the uid of what was asked; a patch is written as a review carries it.
fn complete(body: &mut Value, asked: &Value) {
    let Some(Value::Object(response)) = body.get_mut("response") else {
        return;
    };
    let uid = asked["request"]["uid"].clone();
    response.entry("uid").or_insert(uid);
    if let Some(patch @ Value::Array(_)) = response.get_mut("patch") {
        *patch = BASE64_STANDARD.encode(patch.to_string()).into();
        response.entry("patchType").or_insert_with(|| "JSONPatch".into());
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
