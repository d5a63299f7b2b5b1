//! EventRateLimit: no more events than so many a second, of the server, of a namespace, of a user, or about an object.

mod configuration;

use std::sync::{Mutex, OnceLock, PoisonError};

use keelson_access::authz::aggregate;
use keelson_api::core::v1::Event;
use keelson_machinery::status::{StatusError, reason};
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, ConfigureError, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;
use tokio::time::Instant;

use super::recent::Recent;
use configuration::{Limit, LimitType};

#[derive(Default)]
pub struct EventRateLimit {
    limits: OnceLock<Vec<Enforced>>,
}

/// A limit, and what is left of it by key.
struct Enforced {
    limit: Limit,
    buckets: Mutex<Recent<String, Bucket>>,
}

impl Plugin for EventRateLimit {
    fn name(&self) -> &'static str {
        "EventRateLimit"
    }

    fn enabled_by_default(&self) -> bool {
        false
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let writes = matches!(scope.operation, Operation::Create | Operation::Update);
        // The kind of events is that of the legacy group alone.
        Handles::VALIDATES.when(writes && (scope.group, scope.plural) == ("", "events"))
    }

    fn configure(&self, configuration: Option<&str>) -> Result<(), ConfigureError> {
        let limits = configuration::read(configuration)?;
        let enforced = limits.into_iter().map(|limit| Enforced {
            buckets: Mutex::new(Recent::new(limit.keys)),
            limit,
        });
        self.limits.get_or_init(|| enforced.collect());
        Ok(())
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        if attributes.dry_run() {
            return now(Ok(()));
        }
        let limits = self.limits.get().into_iter().flatten();
        let refused: Vec<String> = limits.filter_map(|limit| limit.refuse(attributes)).collect();
        now(match refused.is_empty() {
            true => Ok(()),
            false => {
                let why = aggregate(&refused);
                let text = format!("Too many requests: {why}");
                Err(StatusError::new(429, reason::TOO_MANY_REQUESTS, text))
            }
        })
    }
}

impl Enforced {
    fn refuse(&self, attributes: &Attributes<'_>) -> Option<String> {
        let key = key(self.limit.kind, attributes);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let make = || Bucket::full(&self.limit, now);
        match buckets.with(&key, make, |bucket| bucket.take(&self.limit, now)) {
            true => None,
            false => Some(format!(
                "limit reached on type {} for key {key}",
                self.limit.kind.name()
            )),
        }
    }
}

fn key(kind: LimitType, attributes: &Attributes<'_>) -> String {
    match kind {
        LimitType::Server => String::new(),
        LimitType::Namespace => attributes.namespace().to_owned(),
        LimitType::User => attributes.user().name.clone(),
        LimitType::SourceAndObject => attributes.typed::<Event>().map(object_key).unwrap_or_default(),
    }
}

fn object_key(event: &Event) -> String {
    let (source, object) = (&event.source, &event.involved_object);
    let parts = [
        &source.component,
        &source.host,
        &object.kind,
        &object.namespace,
        &object.name,
        &object.uid,
        &object.api_version,
    ];
    parts.map(String::as_str).concat()
}

/// Tokens that fill up with time.
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Bucket {
    fn full(limit: &Limit, now: Instant) -> Bucket {
        Bucket {
            tokens: f64::from(limit.burst),
            at: now,
        }
    }

    fn take(&mut self, limit: &Limit, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = f64::min(self.tokens + passed * f64::from(limit.qps), f64::from(limit.burst));
        self.at = now;
        let is_there = self.tokens >= 1.0;
        if is_there {
            self.tokens -= 1.0;
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::read;

    #[test]
    fn a_bucket_fills_up_again() {
        let limit = Limit {
            kind: LimitType::Server,
            qps: 2,
            burst: 3,
            keys: 1,
        };
        let begin = Instant::now();
        let mut bucket = Bucket::full(&limit, begin);
        for (milliseconds, expected) in [
            (0, true),
            (0, true),
            (0, true),
            (0, false),
            (400, false),
            (500, true),
            (600, false),
            (60_000, true),
            (60_000, true),
            (60_000, true),
            (60_000, false),
        ] {
            let now = begin + Duration::from_millis(milliseconds);
            assert_eq!(bucket.take(&limit, now), expected, "{milliseconds}");
        }
    }

    #[test]
    fn events_of_the_same_object_have_the_same_key() {
        let event: Event = read(
            r#"{"source":{"component":"a","host":"b"},"involvedObject":{"kind":"c","namespace":"d","name":"e","uid":"f",
                "apiVersion":"g","fieldPath":"x"},"message":"y"}"#,
        );
        assert_eq!(object_key(&event), "abcdefg");
    }
}
