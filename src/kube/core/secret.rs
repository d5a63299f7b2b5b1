//! Secrets: what each type holds, and text that clients may write but never read.

use keelson_api::core::v1::Secret;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_registry::{Context, KindCode, Strategy};

use super::data::{self, IMMUTABLE as MARKED};
use crate::cells;
use crate::typed::IMMUTABLE;

const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

/// Registers the rules of secrets.
pub fn register(code: &mut KindCode) {
    code.kind::<Secret>()
        .strategy(SecretStrategy)
        .defaults(defaults)
        .cells(cells::config::SECRET);
}

/// The rules of secrets.
struct SecretStrategy;

impl Strategy for SecretStrategy {
    type Object = Secret;

    fn prepare_for_update(&self, _context: &Context, new: &mut Secret, old: &Secret) {
        if new.r#type.is_empty() {
            new.r#type.clone_from(&old.r#type);
        }
    }

    fn validate(&self, _context: &Context, object: &Secret) -> ErrorList {
        validate(object)
    }

    fn validate_update(&self, _context: &Context, new: &Secret, old: &Secret) -> ErrorList {
        let mut errors = ErrorList::default();
        if new.r#type != old.r#type {
            errors.push(FieldError::invalid(&Path::new("type"), &new.r#type, IMMUTABLE));
        }
        if old.immutable == Some(true) {
            let changed = [
                ("immutable", new.immutable != Some(true)),
                ("data", new.data != old.data),
            ];
            let changed = changed.into_iter().filter(|(_, changed)| *changed);
            errors.extend(changed.map(|(field, _)| FieldError::forbidden(&Path::new(field), MARKED)));
        }
        errors.extend(validate(new));
        errors
    }
}

/// Moves the text that was written into the data.
fn defaults(secret: &mut Secret) {
    for (key, text) in std::mem::take(&mut secret.string_data) {
        secret.data.insert(key, text.into());
    }
}

fn validate(secret: &Secret) -> ErrorList {
    let path = Path::new("data");
    let mut errors: ErrorList = data::validate_keys(&secret.data, &path).into_iter().collect();
    if secret.data.values().map(|v| v.len()).sum::<usize>() > data::SIZE_MAX {
        errors.push(FieldError::too_long(&path, data::SIZE_MAX));
    }
    let missing = |key: &str| !secret.data.contains_key(key);
    let mut require = |keys: &[&str]| {
        errors.extend(keys.iter().map(|key| FieldError::required(&path.key(*key), "")));
    };
    match secret.r#type.as_str() {
        "kubernetes.io/service-account-token" if !names_account(secret) => {
            let path = Path::new("metadata").child("annotations").key(SERVICE_ACCOUNT_NAME);
            errors.push(FieldError::required(&path, ""));
        }
        "kubernetes.io/dockercfg" => errors.extend(docker_config(secret, ".dockercfg", &path)),
        "kubernetes.io/dockerconfigjson" => errors.extend(docker_config(secret, ".dockerconfigjson", &path)),
        "kubernetes.io/basic-auth" if missing("username") && missing("password") => require(&["username", "password"]),
        "kubernetes.io/ssh-auth" if secret.data.get("ssh-privatekey").is_none_or(|k| k.is_empty()) => {
            require(&["ssh-privatekey"]);
        }
        "kubernetes.io/tls" => {
            let absent: Vec<&str> = ["tls.crt", "tls.key"].into_iter().filter(|key| missing(key)).collect();
            require(&absent);
        }
        _ => {}
    }
    errors
}

/// Whether the secret says whose token it holds.
fn names_account(secret: &Secret) -> bool {
    let name = secret.metadata.annotations.get(SERVICE_ACCOUNT_NAME);
    name.is_some_and(|name| !name.is_empty())
}

/// A JSON object under `key`.
fn docker_config(secret: &Secret, key: &str, path: &Path) -> Option<FieldError> {
    let Some(bytes) = secret.data.get(key) else {
        return Some(FieldError::required(&path.key(key), ""));
    };
    let fault = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(bytes).err()?;
    let text = if fault.is_eof() {
        "unexpected end of JSON input".to_owned()
    } else {
        fault.to_string()
    };
    Some(FieldError::invalid(&path.key(key), "<secret contents redacted>", text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn written_text_becomes_data() {
        let mut secret: Secret = read(r#"{"data":{"a":"eA==","b":"eA=="},"stringData":{"a":"new","c":"ä"}}"#);
        defaults(&mut secret);
        assert!(secret.string_data.is_empty());
        let data: Vec<_> = secret.data.iter().map(|(k, v)| (k.as_str(), &v[..])).collect();
        assert_eq!(data, [("a", &b"new"[..]), ("b", b"x"), ("c", "ä".as_bytes())]);
    }

    #[test]
    fn each_type_has_its_keys() {
        for (text, expected) in [
            (r#"{"type":"Opaque"}"#, ""),
            (r#"{"type":"example.com/mine"}"#, ""),
            (
                r#"{"type":"kubernetes.io/tls","data":{"tls.crt":""}}"#,
                "data[tls.key]: Required value",
            ),
            (
                r#"{"type":"kubernetes.io/basic-auth"}"#,
                "data[username]: Required value\ndata[password]: Required value",
            ),
            (r#"{"type":"kubernetes.io/basic-auth","data":{"password":""}}"#, ""),
            (
                r#"{"type":"kubernetes.io/ssh-auth","data":{"ssh-privatekey":""}}"#,
                "data[ssh-privatekey]: Required value",
            ),
            (
                r#"{"type":"kubernetes.io/service-account-token"}"#,
                "metadata.annotations[kubernetes.io/service-account.name]: Required value",
            ),
            (
                r#"{"type":"kubernetes.io/dockercfg"}"#,
                "data[.dockercfg]: Required value",
            ),
            (
                r#"{"type":"kubernetes.io/dockerconfigjson","data":{".dockerconfigjson":"e30="}}"#,
                "",
            ),
            (
                r#"{"type":"kubernetes.io/dockerconfigjson","data":{".dockerconfigjson":""}}"#,
                "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": unexpected end of JSON input",
            ),
        ] {
            assert_eq!(
                lines(&SecretStrategy.validate(&context(), &read::<Secret>(text))),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn the_type_stays() {
        let old: Secret = read(r#"{"type":"Opaque","immutable":true,"data":{"a":"eA=="}}"#);
        let mut new: Secret = read(r#"{"immutable":true,"data":{"a":"eA=="}}"#);
        SecretStrategy.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(lines(&SecretStrategy.validate_update(&context(), &new, &old)), "");
        let new: Secret = read(r#"{"type":"x","data":{}}"#);
        assert_eq!(
            lines(&SecretStrategy.validate_update(&context(), &new, &old)),
            "type: Invalid value: \"x\": field is immutable\n\
             immutable: Forbidden: field is immutable when `immutable` is set\n\
             data: Forbidden: field is immutable when `immutable` is set"
        );
    }
}
