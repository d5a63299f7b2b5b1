//! The claims that every token of this kind has.

use keelson_machinery::field::text::quote;
use keelson_machinery::json::kind_of;
use keelson_machinery::time::Time;
use serde::Deserialize;
use serde_json::Value;

use super::OidcSettings;
use crate::authn::jwt::Audience;

/// Seconds by which a token may come too early.
const LEEWAY: i64 = 60;

#[derive(Deserialize)]
pub(super) struct IdToken {
    #[serde(default)]
    aud: Audience,
    #[serde(default)]
    exp: Seconds,
    #[serde(default)]
    nbf: Option<Seconds>,
    #[serde(default)]
    sub: Value,
}

/// Seconds since 1970; issuers write them as numbers, with fractions, and as texts.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(try_from = "Value")]
struct Seconds(i64);

impl TryFrom<Value> for Seconds {
    type Error = String;

    fn try_from(value: Value) -> Result<Seconds, String> {
        let text = match &value {
            Value::Null => return Ok(Seconds::default()),
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            _ => return Err(format!("expected a number of seconds, got {value}")),
        };
        let number: serde_json::Number = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let json = Value::Number(number);
        let moment: crate::authn::jwt::Moment = serde_json::from_value(json).map_err(|error| error.to_string())?;
        Ok(Seconds(moment.0))
    }
}

impl IdToken {
    pub fn read(claims: &[u8]) -> Result<IdToken, String> {
        let failed = |why: String| format!("oidc: failed to unmarshal claims: {why}");
        let token: IdToken = serde_json::from_slice(claims).map_err(|error| failed(error.to_string()))?;
        match &token.sub {
            Value::Null | Value::String(_) => Ok(token),
            other => Err(failed(format!(
                "json: cannot unmarshal {} into Go struct field idToken.sub of type string",
                kind_of(other)
            ))),
        }
    }

    /// Whether the token is for us, and in its time.
    pub fn check(&self, settings: &OidcSettings, now: Time) -> Result<(), String> {
        if !settings.audiences.iter().any(|one| self.aud.0.contains(one)) {
            let list = |texts: &[String]| texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" ");
            let wanted = match settings.audiences.as_slice() {
                [one] => format!("audience {}", quote(one)),
                several => format!("audience in [{}]", list(several)),
            };
            return Err(format!("oidc: expected {wanted} got [{}]", list(&self.aud.0)));
        }
        if self.exp.0 <= now.unix_seconds() {
            let expiry = shown(self.exp.0);
            return Err(format!("oidc: token is expired (Token Expiry: {expiry})"));
        }
        match self.nbf {
            Some(Seconds(start)) if now.unix_seconds().saturating_add(LEEWAY) < start => {
                let (now, start) = (shown(now.unix_seconds()), shown(start));
                Err(format!(
                    "oidc: current time {now} before the nbf (not before) time: {start}"
                ))
            }
            _ => Ok(()),
        }
    }
}

/// A moment as Go prints it.
fn shown(seconds: i64) -> String {
    let text = Time::from_unix(seconds, 0).to_string();
    let text = text.trim_end_matches('Z').replace('T', " ");
    format!("{text} +0000 UTC")
}
