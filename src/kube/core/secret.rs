//! Secrets: what each type holds, and text that clients may write but never read.

use keelson_api::core::v1::Secret;
use keelson_machinery::field::ErrorList;
use keelson_registry::{Context, KindCode, Strategy};
use x509_parser::pem::Pem;

use super::data;
use crate::cells;
use crate::faults::{self, Faults};
use crate::typed::{IMMUTABLE, object_fault};

const TLS: &str = "kubernetes.io/tls";
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

    fn warnings(&self, new: &Secret, _old: Option<&Secret>) -> Vec<String> {
        let is_pair = new.r#type == TLS;
        let part = |key: &str| new.data.get(key).map_or(&[][..], |bytes| bytes);
        let fault = is_pair.then(|| pair_fault(part("tls.crt"), part("tls.key")));
        fault.flatten().into_iter().collect()
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut Secret, old: &Secret) {
        if new.r#type.is_empty() {
            new.r#type.clone_from(&old.r#type);
        }
    }

    fn validate(&self, _context: &Context, new: &Secret, _old: Option<&Secret>) -> ErrorList {
        faults::of_object(|f| check(f, new))
    }

    fn validate_change(&self, _context: &Context, new: &Secret, old: &Secret) -> ErrorList {
        faults::of_object(|f| {
            f.at("type")
                .invalid_if(new.r#type != old.r#type, &new.r#type, IMMUTABLE);
            if old.immutable == Some(true) {
                let is_marked = ("immutable", new.immutable != Some(true));
                data::marked(f, &[is_marked, ("data", new.data != old.data)]);
            }
        })
    }
}

/// Moves the text that was written into the data.
fn defaults(secret: &mut Secret) {
    for (key, text) in std::mem::take(&mut secret.string_data) {
        secret.data.insert(key, text.into());
    }
}

fn check(f: &mut Faults<'_>, secret: &Secret) {
    let mut of_data = f.at("data");
    data::keys(&mut of_data, &secret.data);
    if secret.data.values().map(|v| v.len()).sum::<usize>() > data::SIZE_MAX {
        of_data.too_long(data::SIZE_MAX);
    }
    let missing = |key: &str| !secret.data.contains_key(key);
    let mut require = |key: &str, is_missing: bool| of_data.key(key).required_if(is_missing, "");
    match secret.r#type.as_str() {
        "kubernetes.io/service-account-token" => {
            let mut meta = f.at("metadata");
            let mut annotations = meta.at("annotations");
            annotations
                .key(SERVICE_ACCOUNT_NAME)
                .required_if(!names_account(secret), "");
        }
        "kubernetes.io/dockercfg" => docker_config(&mut of_data, secret, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => docker_config(&mut of_data, secret, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" => {
            let is_missing = missing("username") && missing("password");
            ["username", "password"]
                .into_iter()
                .for_each(|key| require(key, is_missing));
        }
        "kubernetes.io/ssh-auth" => {
            let key = secret.data.get("ssh-privatekey");
            require("ssh-privatekey", key.is_none_or(|key| key.is_empty()));
        }
        TLS => ["tls.crt", "tls.key"]
            .into_iter()
            .for_each(|key| require(key, missing(key))),
        _ => {}
    }
}

/// Why a certificate and its key can't be found in their texts, in Go's words.
fn pair_fault(certificate: &[u8], key: &[u8]) -> Option<String> {
    const CERTIFICATE: &str = "CERTIFICATE";
    let labels = |text: &[u8]| -> Vec<String> {
        let blocks = Pem::iter_from_buffer(text).filter_map(Result::ok);
        blocks.map(|block| block.label).collect()
    };
    let is_key = |label: &String| label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY");
    let (certificates, keys) = (labels(certificate), labels(key));
    let text = match certificates.as_slice() {
        found if found.iter().any(|label| label == CERTIFICATE) => None,
        [] => Some("tls: failed to find any PEM data in certificate input".to_owned()),
        [one] if one.ends_with("PRIVATE KEY") => Some(
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may \
             have been switched"
                .to_owned(),
        ),
        others => Some(format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following \
             types: [{}]",
            others.join(" ")
        )),
    };
    text.or_else(|| match keys.as_slice() {
        found if found.iter().any(is_key) => None,
        [] => Some("tls: failed to find any PEM data in key input".to_owned()),
        [one] if one == CERTIFICATE => {
            Some("tls: found a certificate rather than a key in the PEM for the private key".to_owned())
        }
        others => Some(format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of \
             the following types: [{}]",
            others.join(" ")
        )),
    })
}

/// Whether the secret says whose token it holds.
fn names_account(secret: &Secret) -> bool {
    let name = secret.metadata.annotations.get(SERVICE_ACCOUNT_NAME);
    name.is_some_and(|name| !name.is_empty())
}

/// A JSON object under `key`. `f` stands at the data.
fn docker_config(f: &mut Faults<'_>, secret: &Secret, key: &str) {
    match secret.data.get(key) {
        None => f.key(key).required(""),
        Some(bytes) => {
            if let Some(text) = object_fault(bytes, "map[string]interface {}") {
                f.key(key).invalid("<secret contents redacted>", text);
            }
        }
    }
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
                lines(&SecretStrategy.validate(&context(), &read::<Secret>(text), None)),
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
        assert_eq!(lines(&SecretStrategy.validate_change(&context(), &new, &old)), "");
        let new: Secret = read(r#"{"type":"x","data":{}}"#);
        assert_eq!(
            lines(&SecretStrategy.validate_change(&context(), &new, &old)),
            "type: Invalid value: \"x\": field is immutable\n\
             immutable: Forbidden: field is immutable when `immutable` is set\n\
             data: Forbidden: field is immutable when `immutable` is set"
        );
    }

    #[test]
    fn pairs_are_of_a_certificate_and_a_key() {
        let block = |label: &str| format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n");
        let (certificate, key, other) = (block("CERTIFICATE"), block("EC PRIVATE KEY"), block("X"));
        for (one, two, expected) in [
            (&certificate, &key, None),
            (&String::new(), &key, Some("find any PEM data in certificate input")),
            (&key, &certificate, Some("may have been switched")),
            (&other, &key, Some("following types: [X]")),
            (&certificate, &String::new(), Some("find any PEM data in key input")),
            (&certificate, &certificate, Some("a certificate rather than a key")),
            (&certificate, &other, Some("following types: [X]")),
        ] {
            let found = pair_fault(one.as_bytes(), two.as_bytes());
            assert_eq!(found.is_some(), expected.is_some());
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }
}
