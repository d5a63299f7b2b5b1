//! Files that are right, and all that can be wrong with one, in the words of the original.

use serde_json::{Value, json};

use super::*;
use crate::authn::oidc::Mapping;

/// An issuer with `changes` (path and value; `null` takes away).
fn issuer(changes: &[(&str, Value)]) -> Value {
    let mut jwt = json!({
        "issuer": {"url": "https://a.example", "audiences": ["a"]},
        "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
    });
    for (path, value) in changes {
        let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
        let mut at = &mut jwt;
        for parent in parents.split('.').filter(|parent| !parent.is_empty()) {
            at = &mut at[parent];
        }
        match value {
            Value::Null => drop(at.as_object_mut().unwrap().remove(last)),
            value => at[last] = value.clone(),
        }
    }
    jwt
}

fn read(jwt: &[Value], anonymous: Value) -> Result<AuthenticationConfiguration, String> {
    let file = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt,
        "anonymous": anonymous,
    });
    AuthenticationConfiguration::read(file.to_string().as_bytes(), &["https://own".to_owned()])
        .map_err(|error| error.to_string())
}

fn one(changes: &[(&str, Value)]) -> Result<AuthenticationConfiguration, String> {
    read(&[issuer(changes)], Value::Null)
}

#[test]
fn a_whole_file_is_read() {
    let text = r#"
apiVersion: apiserver.config.k8s.io/v1beta1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /livez}]}
jwt:
- issuer: {url: https://a, discoveryURL: https://b, audiences: [u, v], audienceMatchPolicy: MatchAny}
  claimMappings:
    username: {expression: claims.email}
    groups: {claim: groups, prefix: 'g:'}
    uid: {claim: sub}
    extra: [{key: example.com/a, valueExpression: claims.a}]
  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - {expression: claims.email_verified == true, message: unverified}
  userValidationRules: [{expression: "!user.username.startsWith('system:')"}]
"#;
    let read = AuthenticationConfiguration::read(text.as_bytes(), &[]).unwrap();
    assert_eq!(read.anonymous, Some(Anonymous::On(vec!["/livez".to_owned()])));
    let [issuer] = &read.issuers[..] else {
        panic!("{:?}", read.issuers)
    };
    assert_eq!(issuer.discovery_url.as_deref(), Some("https://b"));
    assert_eq!(
        (issuer.claim_rules.len(), issuer.user_rules.len(), issuer.extra.len()),
        (2, 1, 1)
    );
    assert!(matches!(&issuer.groups, Some(Mapping::Claim { prefix, .. }) if prefix == "g:"));
}

#[test]
fn mistakes_are_told_with_their_place() {
    let claim_or_expression = json!({"claim": "a", "expression": "claims.a", "prefix": ""});
    for (changes, want) in [
        (vec![("issuer.url", Value::Null)], "issuer.url: Required value"),
        (
            vec![("issuer.url", json!("http://a"))],
            "issuer.url: Invalid value: \"http://a\": URL scheme must be https",
        ),
        (
            vec![("issuer.url", json!("https://u:p@a"))],
            "issuer.url: Invalid value: \"https://u:p@a\": URL must not contain a username or password",
        ),
        (
            vec![("issuer.url", json!("https://a?x=1"))],
            "issuer.url: Invalid value: \"https://a?x=1\": URL must not contain a query",
        ),
        (
            vec![("issuer.url", json!("https://a#x"))],
            "issuer.url: Invalid value: \"https://a#x\": URL must not contain a fragment",
        ),
        (
            vec![("issuer.url", json!("https://own"))],
            "issuer.url: Invalid value: \"https://own\": URL must not overlap with disallowed issuers: [https://own]",
        ),
        (
            vec![("issuer.discoveryURL", json!("https://a.example"))],
            "issuer.discoveryURL: Invalid value: \"https://a.example\": discoveryURL must be different from URL",
        ),
        (
            vec![("issuer.audiences", Value::Null)],
            "issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required",
        ),
        (
            vec![("issuer.audiences", json!(["a", "b"]))],
            "issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be MatchAny for multiple audiences",
        ),
        (
            vec![("issuer.certificateAuthority", json!("x"))],
            "issuer.certificateAuthority: Invalid value: \"<omitted>\": data does not contain any valid RSA or ECDSA \
             certificates",
        ),
        (
            vec![("claimMappings", json!({}))],
            "claimMappings.username: Required value: claim or expression is required",
        ),
        (
            vec![("claimMappings.username", json!({"claim": "sub"}))],
            "claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an \
             empty string to disable prefixing",
        ),
        (
            vec![("claimMappings.groups", claim_or_expression)],
            "claimMappings.groups: Invalid value: \"\": claim and expression can't both be set",
        ),
        (
            vec![("claimMappings.username", json!({"expression": "claims.email"}))],
            "claimMappings.username.expression: Invalid value: \"claims.email\": claims.email_verified must be used in \
             claimMappings.username.expression or claimMappings.extra[*].valueExpression or \
             claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression",
        ),
        (
            vec![(
                "claimMappings.extra",
                json!([{"key": "x.k8s.io/a", "valueExpression": "claims.a"}]),
            )],
            "claimMappings.extra[0].key: Invalid value: \"x.k8s.io/a\": k8s.io, kubernetes.io and their subdomains are \
             reserved for Kubernetes use",
        ),
        (
            vec![(
                "claimMappings.extra",
                json!([{"key": "a", "valueExpression": "claims.a"}]),
            )],
            "claimMappings.extra[0].key: Invalid value: \"a\": must be a domain-prefixed path (such as \"acme.io/foo\")",
        ),
        (
            vec![("claimValidationRules", json!([{"claim": "a"}, {"claim": "a"}]))],
            "claimValidationRules[1].claim: Duplicate value: \"a\"",
        ),
        (
            vec![("claimValidationRules", json!([{"expression": "1"}]))],
            "claimValidationRules[0].expression: Invalid value: \"1\": must evaluate to bool",
        ),
        (
            vec![("userValidationRules", json!([{}]))],
            "userValidationRules[0].expression: Required value",
        ),
    ] {
        let got = one(&changes).unwrap_err();
        assert_eq!(got, format!("invalid authentication configuration: jwt[0].{want}"));
    }
    let compile = one(&[("userValidationRules", json!([{"expression": "user.foo == 'a'"}]))]).unwrap_err();
    assert!(
        compile.contains("compilation failed: ERROR: <input>:1:5: undefined field 'foo'"),
        "{compile}"
    );
    let twice = read(&[issuer(&[]), issuer(&[])], Value::Null).unwrap_err();
    assert!(
        twice.ends_with("jwt[1].issuer.url: Duplicate value: \"https://a.example\""),
        "{twice}"
    );
}

#[test]
fn a_file_that_is_no_such_file_is_refused() {
    let read = |text: &str| {
        AuthenticationConfiguration::read(text.as_bytes(), &[])
            .unwrap_err()
            .to_string()
    };
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";
    for (text, want) in [
        (String::new(), "empty config data"),
        (
            format!("{head}foo: 1\n"),
            "strict decoding error: unknown field \"foo\"",
        ),
        (format!("{head}jwt: []\njwt: []\n"), "key \"jwt\" already set in map"),
        (
            head.replace("v1", "v9"),
            "no kind \"AuthenticationConfiguration\" is registered",
        ),
        (
            head.replace("kind: A", "kind: B"),
            "no kind \"ButhenticationConfiguration\"",
        ),
    ] {
        let got = read(&text);
        assert!(got.contains(want), "{got}");
    }
}

#[test]
fn anonymous_requests_may_be_bound_to_paths() {
    let of = |anonymous| read(&[], anonymous).map(|read| read.anonymous);
    assert_eq!(of(Value::Null), Ok(None));
    assert_eq!(of(json!({"enabled": true})), Ok(Some(Anonymous::Everywhere)));
    assert_eq!(of(json!({"enabled": false})), Ok(Some(Anonymous::Nowhere)));
    assert_eq!(
        of(json!({"enabled": false, "conditions": [{"path": "/x"}]})).unwrap_err(),
        "invalid authentication configuration: anonymous.conditions: Invalid value: [{\"Path\":\"/x\"}]: enabled should be \
         set to true when conditions are defined"
    );
}
