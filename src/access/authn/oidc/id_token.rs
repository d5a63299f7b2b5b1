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

/// Why a token is not for us, or not now.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnfitToken {
    #[error("oidc: failed to unmarshal claims: {0}")]
    Claims(serde_json::Error),
    /// `sub` is a value of this kind.
    #[error(
        "oidc: failed to unmarshal claims: json: cannot unmarshal {0} into Go struct field idToken.sub of type string"
    )]
    Subject(&'static str),
    #[error("oidc: expected {} got [{}]", audiences(.wanted), list(.got))]
    Audience { wanted: Vec<String>, got: Vec<String> },
    #[error("oidc: token is expired (Token Expiry: {})", shown(*.0))]
    Expired(i64),
    #[error("oidc: current time {} before the nbf (not before) time: {}", shown(*.now), shown(*.start))]
    Early { now: i64, start: i64 },
    #[error("oidc: id token signed with unsupported algorithm, expected [{}] got {}", list(.wanted), quote(.got))]
    Algorithm { wanted: Vec<&'static str>, got: String },
}

fn list(texts: &[impl AsRef<str>]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text.as_ref())).collect();
    quoted.join(" ")
}

fn audiences(wanted: &[String]) -> String {
    match wanted {
        [one] => format!("audience {}", quote(one)),
        several => format!("audience in [{}]", list(several)),
    }
}

/// Why a value is no moment.
#[derive(Debug, thiserror::Error)]
enum SecondsError {
    #[error("expected a number of seconds, got {0}")]
    Type(Value),
    #[error(transparent)]
    Number(#[from] serde_json::Error),
}

/// Seconds since 1970; issuers write them as numbers, with fractions, and as texts.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(try_from = "Value")]
struct Seconds(i64);

impl TryFrom<Value> for Seconds {
    type Error = SecondsError;

    fn try_from(value: Value) -> Result<Seconds, SecondsError> {
        let text = match &value {
            Value::Null => return Ok(Seconds::default()),
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            _ => return Err(SecondsError::Type(value)),
        };
        let number: serde_json::Number = serde_json::from_str(&text)?;
        let json = Value::Number(number);
        let moment: crate::authn::jwt::Moment = serde_json::from_value(json)?;
        Ok(Seconds(moment.0))
    }
}

impl IdToken {
    pub fn read(claims: &[u8]) -> Result<IdToken, UnfitToken> {
        let token: IdToken = serde_json::from_slice(claims).map_err(UnfitToken::Claims)?;
        match &token.sub {
            Value::Null | Value::String(_) => Ok(token),
            other => Err(UnfitToken::Subject(kind_of(other))),
        }
    }

    /// Whether the token is for us, and in its time.
    pub fn check(&self, settings: &OidcSettings, now: Time) -> Result<(), UnfitToken> {
        if !settings.audiences.iter().any(|one| self.aud.0.contains(one)) {
            return Err(UnfitToken::Audience {
                wanted: settings.audiences.clone(),
                got: self.aud.0.clone(),
            });
        }
        if self.exp.0 <= now.unix_seconds() {
            return Err(UnfitToken::Expired(self.exp.0));
        }
        match self.nbf {
            Some(Seconds(start)) if now.unix_seconds().saturating_add(LEEWAY) < start => {
                let now = now.unix_seconds();
                Err(UnfitToken::Early { now, start })
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
