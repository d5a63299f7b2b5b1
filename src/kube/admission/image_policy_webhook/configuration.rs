//! The file of ImagePolicyWebhook.

use std::path::PathBuf;
use std::time::Duration;

use keelson_machinery::time;
use serde_json::Value;

/// Whom to ask, and what to do with answers.
#[derive(Debug)]
pub struct Configuration {
    /// A kubeconfig file.
    pub file: PathBuf,
    /// How long it is remembered that images are allowed.
    pub allow_ttl: Duration,
    /// How long that they are not.
    pub deny_ttl: Duration,
    /// The first wait before a call is made again.
    pub backoff: Duration,
    /// Images are allowed that nobody was asked about, since the call failed.
    pub default_allow: bool,
}

/// Why the file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ImagePolicyError {
    #[error("no config specified")]
    Absent,
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{what}: {field} is no number")]
    NoNumber { what: &'static str, field: &'static str },
    #[error("valid value is between {least} and {most}, got {got}")]
    Range {
        least: time::Duration,
        most: time::Duration,
        got: time::Duration,
    },
}

/// A duration in units of `scale`, as the file says it.
struct Span {
    what: &'static str,
    field: &'static str,
    scale: Duration,
    least: Duration,
    most: Duration,
    default: Duration,
}

const MINUTE: Duration = Duration::from_secs(60);
const BACKOFF: Span = Span {
    what: "backoff",
    field: "retryBackoff",
    scale: Duration::from_millis(1),
    least: Duration::from_nanos(1),
    most: MINUTE.saturating_mul(5),
    default: Duration::from_millis(500),
};
const ALLOW: Span = Span {
    what: "allow cache",
    field: "allowTTL",
    scale: Duration::from_secs(1),
    least: Duration::from_secs(1),
    most: MINUTE.saturating_mul(30),
    default: MINUTE.saturating_mul(5),
};
const DENY: Span = Span {
    what: "deny cache",
    field: "denyTTL",
    default: Duration::from_secs(30),
    ..ALLOW
};

impl Configuration {
    /// # Errors
    /// There is none, or it has mistakes.
    pub fn read(text: Option<&str>) -> Result<Configuration, ImagePolicyError> {
        let text = text.ok_or(ImagePolicyError::Absent)?;
        let document: Value = serde_json::from_str(text)?;
        let section = document.get("imagePolicy").unwrap_or(&Value::Null);
        let file = section
            .get("kubeConfigFile")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Ok(Configuration {
            file: file.into(),
            backoff: BACKOFF.of(section)?,
            allow_ttl: ALLOW.of(section)?,
            deny_ttl: DENY.of(section)?,
            default_allow: section.get("defaultAllow").and_then(Value::as_bool).unwrap_or(false),
        })
    }
}

impl Span {
    fn of(&self, section: &Value) -> Result<Duration, ImagePolicyError> {
        let value = section.get(self.field).map_or(Some(0), |value| match value {
            Value::Null => Some(0),
            value => value.as_i64(),
        });
        let value = value.ok_or(ImagePolicyError::NoNumber {
            what: self.what,
            field: self.field,
        })?;
        if value == -1 {
            return Ok(Duration::ZERO);
        }
        if value == 0 {
            return Ok(self.default);
        }
        let scale = i64::try_from(self.scale.as_nanos()).unwrap_or(i64::MAX);
        let nanos = value.saturating_mul(scale);
        let span = u64::try_from(nanos).map(Duration::from_nanos).unwrap_or_default();
        if span < self.least || span > self.most {
            let shown = |span: Duration| time::Duration::from_nanos(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX));
            return Err(ImagePolicyError::Range {
                least: shown(self.least),
                most: shown(self.most),
                got: time::Duration::from_nanos(nanos),
            });
        }
        Ok(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(section: &str) -> Result<Configuration, String> {
        let read = Configuration::read(Some(&format!(r#"{{"imagePolicy":{section}}}"#)));
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn times_have_bounds_and_defaults() {
        let read = of(r#"{"kubeConfigFile":"f","allowTTL":10,"denyTTL":-1,"defaultAllow":true}"#).unwrap();
        assert_eq!(
            (read.allow_ttl, read.deny_ttl, read.backoff, read.default_allow),
            (
                Duration::from_secs(10),
                Duration::ZERO,
                Duration::from_millis(500),
                true
            )
        );
        for (section, expected) in [
            (r#"{"allowTTL":1801}"#, "valid value is between 1s and 30m0s, got 30m1s"),
            (r#"{"denyTTL":-2}"#, "valid value is between 1s and 30m0s, got -2s"),
            (
                r#"{"retryBackoff":300001}"#,
                "valid value is between 1ns and 5m0s, got 5m0.001s",
            ),
        ] {
            assert_eq!(of(section).err().as_deref(), Some(expected), "{section}");
        }
        let absent = Configuration::read(None).unwrap_err();
        assert_eq!(absent.to_string(), "no config specified");
    }
}
