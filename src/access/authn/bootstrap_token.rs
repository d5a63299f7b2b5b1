//! Tokens with which new nodes join: id and secret of a Secret in `kube-system`.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use keelson_machinery::env::Clock;
use keelson_machinery::object::Object;
use keelson_machinery::time::Time;

use super::objects::{Source, secret_data, text};
use super::secret::is_same;
use super::{Answer, Attachment, Identity, Outcome, TokenAuthenticator};
use crate::user::User;

const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const GROUP: &str = "system:bootstrappers";
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;
/// The longest name of a group, in bytes.
const MAX_GROUP: usize = "system:bootstrappers:".len() + 256;

/// Believes bootstrap tokens, `id.secret`.
pub struct BootstrapTokens {
    secrets: Source,
    clock: OnceLock<Arc<dyn Clock>>,
}

impl Default for BootstrapTokens {
    fn default() -> Self {
        BootstrapTokens {
            secrets: Source::of("secrets"),
            clock: OnceLock::new(),
        }
    }
}

impl BootstrapTokens {
    async fn judge(&self, id: &str, secret: &str) -> Outcome {
        let name = format!("bootstrap-token-{id}");
        let (Some(clock), Some(stored)) = (self.clock.get(), self.secrets.find(NAMESPACE, &name).await?) else {
            return Ok(None);
        };
        let now = clock.now().unix_seconds();
        Ok(user(&*stored, id, secret, now).map(Identity::of))
    }
}

impl TokenAuthenticator for BootstrapTokens {
    fn authenticate<'a>(&'a self, token: &'a str, _audiences: &'a [String]) -> Answer<'a> {
        match parts(token) {
            Some((id, secret)) => Answer::Later(Box::pin(self.judge(id, secret))),
            None => Answer::nothing(),
        }
    }

    fn attach(&self, attachment: &Attachment<'_>) {
        let _ = self.clock.set(attachment.clock.clone());
        self.secrets.attach(attachment);
    }
}

/// Id and secret; `None`: it is a token of another kind.
fn parts(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let fits = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    (fits(id, ID_LENGTH) && fits(secret, SECRET_LENGTH)).then_some((id, secret))
}

/// The user that the Secret makes of whoever knows it. What is odd about a Secret makes it good for nothing.
fn user(stored: &dyn Object, id: &str, secret: &str, now: i64) -> Option<User> {
    let data = |key: &str| secret_data(stored, key).unwrap_or_default();
    if stored.meta().deletion_timestamp.is_some() || text(stored, "type") != TYPE {
        return None;
    }
    let known = is_same(data("token-secret"), secret.as_bytes()) & is_same(data("token-id"), id.as_bytes());
    if !known || has_expired(data("expiration"), now) || data("usage-bootstrap-authentication") != b"true" {
        return None;
    }
    Some(User {
        name: format!("system:bootstrap:{id}"),
        groups: groups(data("auth-extra-groups"))?,
        ..User::default()
    })
}

/// An end that can't be read has come.
fn has_expired(expiration: &[u8], now: i64) -> bool {
    if expiration.is_empty() {
        return false;
    }
    let time = std::str::from_utf8(expiration)
        .ok()
        .and_then(|text| Time::parse(text).ok());
    time.is_none_or(|time| time.unix_seconds() <= now)
}

/// The group of all, and those of this token; `None` if one is none that such tokens may have.
fn groups(extra: &[u8]) -> Option<Vec<String>> {
    let mut groups = BTreeSet::from([GROUP]);
    for group in std::str::from_utf8(extra)
        .ok()?
        .split(',')
        .filter(|_| !extra.is_empty())
    {
        let name = group.strip_prefix("system:bootstrappers:")?;
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b':' || b == b'-';
        let ends_well = name.bytes().last().is_some_and(|b| b != b':' && b != b'-');
        if !ends_well || !name.bytes().all(fits) || group.len() > MAX_GROUP {
            return None;
        }
        groups.insert(group);
    }
    Some(groups.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_tokens_are_left_to_others() {
        assert_eq!(parts("abcdef.0123456789abcdef"), Some(("abcdef", "0123456789abcdef")));
        for other in [
            "",
            "abcdef",
            "abcdef.",
            "Abcdef.0123456789abcdef",
            "abcde.0123456789abcdef",
            "abcdef.0123456789abcdef0",
            "abcdef.0123456789abcde.",
        ] {
            assert_eq!(parts(other), None, "{other:?}");
        }
    }

    #[test]
    fn groups_are_of_bootstrappers() {
        let of = |extra: &str| groups(extra.as_bytes());
        assert_eq!(of("").unwrap(), [GROUP]);
        let want = [GROUP, "system:bootstrappers:a", "system:bootstrappers:b:c-1"];
        assert_eq!(of("system:bootstrappers:b:c-1,system:bootstrappers:a").unwrap(), want);
        for wrong in [
            "system:masters",
            "system:bootstrappers:",
            "system:bootstrappers:a-",
            "system:bootstrappers:A",
            ",",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(of(&format!("system:bootstrappers:{}", "a".repeat(300))), None);
    }

    #[test]
    fn an_end_that_is_past_or_no_time_has_come() {
        for (text, gone) in [
            ("", false),
            ("2026-01-01T00:00:00Z", true),
            ("2026-01-01T00:00:01Z", false),
            ("2026-01-01T02:00:01+02:00", false),
            ("soon", true),
        ] {
            assert_eq!(has_expired(text.as_bytes(), 1_767_225_600), gone, "{text:?}");
        }
    }
}
