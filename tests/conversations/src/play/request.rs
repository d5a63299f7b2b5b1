//! Requests of steps: their variables filled in, with the headers that are usual.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::session::Session;
use crate::case::{Body, Heading, Step};
use crate::client::{Sent, with_usual};
use crate::fault::Fault;
use crate::text::compact;

/// Headers of every request, unless the case has its own.
pub fn usual_headers() -> Vec<(&'static str, String)> {
    let usual = [
        ("Accept", "application/json"),
        ("Accept-Encoding", "identity"),
        ("User-Agent", "replay/1"),
    ];
    usual.map(|(name, value)| (name, value.to_owned())).into()
}

impl Session<'_> {
    /// The request of a step.
    pub(super) fn request(&self, step: &Step, path: &str) -> Result<Sent, Fault> {
        let user = self.variables.text(&step.user);
        let body = step.body().map(|body| self.body(&body)).transpose()?;
        let mut usual = usual_headers();
        if user != "anonymous" {
            let token = self.player.token(&user, &self.variables)?;
            usual.push(("Authorization", format!("Bearer {token}")));
        }
        if body.is_some() {
            usual.push(("Content-Type", "application/json".into()));
        }
        let own = step.headers.iter().map(|(name, heading)| {
            let values = match heading {
                Heading::Absent(()) => Vec::new(),
                Heading::One(value) => vec![self.variables.text(value)],
                Heading::Many(values) => values.iter().map(|value| self.variables.text(value)).collect(),
            };
            (self.variables.text(name), values)
        });
        Ok(Sent {
            method: step.method.clone(),
            path: self.variables.text(path),
            headers: with_usual(&usual, own.collect()),
            body,
        })
    }

    fn body(&self, body: &Body<'_>) -> Result<Vec<u8>, Fault> {
        let text = |text: &str| self.variables.text(text);
        Ok(match body {
            Body::Json(value) => compact(&self.variables.value(value)).into_bytes(),
            Body::Text(content) => text(content).into_bytes(),
            Body::Fill(before, unit, count, after) => {
                [text(before), unit.repeat(*count), text(after)].concat().into_bytes()
            }
            Body::Base64(content) => BASE64_STANDARD.decode(content).map_err(Fault::unusable)?,
        })
    }
}
