//! JWT issuers of the authentication configuration.

use std::collections::HashSet;
use std::sync::Arc;

use http::Uri;
use keelson_configuration::apiserver_config_k8s_io::v1::{
    ClaimValidationRule, Issuer, JWTAuthenticator, UserValidationRule,
};
use keelson_machinery::cel::{Environment, Program, Type};
use keelson_machinery::field::text::quote;
use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path};
use keelson_net::client::Way;
use keelson_net::tls::certificates;

use super::mappings::{self, Expressions};
use crate::authn::jwt::Algorithm;
use crate::authn::oidc::{ClaimRule, OidcSettings, Rule, claims_environment, user_environment};

/// What the issuers before have.
#[derive(Default)]
pub(super) struct Seen {
    urls: HashSet<String>,
    discovery_urls: HashSet<String>,
}

/// `None`: something is wrong with it.
pub(super) fn complete(
    given: JWTAuthenticator,
    path: &Path,
    seen: &mut Seen,
    taken: &[String],
    errors: &mut ErrorList,
) -> Option<OidcSettings> {
    let before = errors.len();
    check(&given.issuer, &path.child("issuer"), seen, taken, errors);
    let mut expressions = Expressions::default();
    let rules = path.child("claimValidationRules");
    let claim_rules = claim_rules(given.claim_validation_rules, &rules, &mut expressions, errors);
    let mapped = mappings::complete(
        given.claim_mappings,
        &path.child("claimMappings"),
        &mut expressions,
        errors,
    );
    let rules = path.child("userValidationRules");
    let user_rules = user_rules(given.user_validation_rules, &rules, errors);
    let issuer = given.issuer;
    let mapped = mapped.filter(|_| errors.len() == before)?;
    Some(OidcSettings {
        url: issuer.url,
        discovery_url: issuer.discovery_url.filter(|url| !url.is_empty()),
        authorities: Some(issuer.certificate_authority).filter(|pem| !pem.is_empty()),
        way: match issuer.egress_selector_type.as_str() {
            "controlplane" => Way::ControlPlane,
            "cluster" => Way::Cluster,
            _ => Way::Direct,
        },
        audiences: issuer.audiences,
        algorithms: Algorithm::ALL.iter().map(|(_, algorithm)| *algorithm).collect(),
        claim_rules,
        username: mapped.username,
        groups: mapped.groups,
        uid: mapped.uid,
        extra: mapped.extra,
        user_rules,
    })
}

fn check(issuer: &Issuer, path: &Path, seen: &mut Seen, taken: &[String], errors: &mut ErrorList) {
    let url = path.child("url");
    check_url(&issuer.url, &url, errors);
    if !issuer.url.is_empty() && taken.contains(&issuer.url) {
        let text = format!("URL must not overlap with disallowed issuers: [{}]", taken.join(" "));
        errors.push(FieldError::invalid(&url, issuer.url.as_str(), text));
    }
    if !issuer.url.is_empty() && !seen.urls.insert(issuer.url.clone()) {
        errors.push(FieldError::duplicate(&url, issuer.url.as_str()));
    }
    if let Some(discovery) = issuer.discovery_url.as_ref().filter(|url| !url.is_empty()) {
        let path = path.child("discoveryURL");
        if discovery.trim_end_matches('/') == issuer.url.trim_end_matches('/') {
            let text = "discoveryURL must be different from URL";
            errors.push(FieldError::invalid(&path, discovery.as_str(), text));
        }
        check_url(discovery, &path, errors);
        if !seen.discovery_urls.insert(discovery.clone()) {
            errors.push(FieldError::duplicate(&path, discovery.as_str()));
        }
    }
    check_audiences(issuer, path, errors);
    if !issuer.certificate_authority.is_empty() && certificates(&issuer.certificate_authority).is_err() {
        let text = "data does not contain any valid RSA or ECDSA certificates";
        errors.push(FieldError::invalid(
            &path.child("certificateAuthority"),
            "<omitted>",
            text,
        ));
    }
    let selector = issuer.egress_selector_type.as_str();
    if !matches!(selector, "" | "controlplane" | "cluster") {
        let text = "egress selector must be either controlplane or cluster";
        errors.push(FieldError::invalid(&path.child("egressSelectorType"), selector, text));
    }
}

fn check_audiences(given: &Issuer, issuer: &Path, errors: &mut ErrorList) {
    let path = issuer.child("audiences");
    if given.audiences.is_empty() {
        errors.push(FieldError::required(&path, format!("at least one {path} is required")));
    }
    let mut seen = HashSet::new();
    for (n, audience) in given.audiences.iter().enumerate() {
        if audience.is_empty() {
            errors.push(FieldError::required(&path.index(n), ""));
        }
        if !seen.insert(audience) {
            errors.push(FieldError::duplicate(&path.index(n), audience.as_str()));
        }
    }
    let policy = given.audience_match_policy.as_str();
    let text = match (given.audiences.len() > 1, policy) {
        (_, "MatchAny") | (false, "") => return,
        (true, _) => "audienceMatchPolicy must be MatchAny for multiple audiences",
        (false, _) => "audienceMatchPolicy must be empty or MatchAny for single audience",
    };
    errors.push(FieldError::invalid(&issuer.child("audienceMatchPolicy"), policy, text));
}

fn check_url(url: &str, path: &Path, errors: &mut ErrorList) {
    if url.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut wrong = |text: String| errors.push(FieldError::invalid(path, url, text));
    let (before, fragment) = url.split_once('#').map_or((url, None), |(url, rest)| (url, Some(rest)));
    let parsed: Uri = match before.parse() {
        Ok(parsed) => parsed,
        Err(error) => return wrong(format!("parse {}: {error}", quote(url))),
    };
    if parsed.scheme_str() != Some("https") {
        wrong("URL scheme must be https".to_owned());
    }
    if parsed
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        wrong("URL must not contain a username or password".to_owned());
    }
    if parsed.query().is_some_and(|query| !query.is_empty()) {
        wrong("URL must not contain a query".to_owned());
    }
    if fragment.is_some_and(|fragment| !fragment.is_empty()) {
        wrong("URL must not contain a fragment".to_owned());
    }
}

fn claim_rules(
    rules: Vec<ClaimValidationRule>,
    path: &Path,
    expressions: &mut Expressions,
    errors: &mut ErrorList,
) -> Vec<ClaimRule> {
    let environment = claims_environment();
    let (mut claims, mut seen) = (HashSet::new(), HashSet::new());
    let mut settled = Vec::new();
    for (n, rule) in rules.into_iter().enumerate() {
        let path = path.index(n);
        match (rule.claim.is_empty(), rule.expression.is_empty()) {
            (true, true) => errors.push(FieldError::required(&path, "claim or expression is required")),
            (false, false) => {
                let text = "claim and expression can't both be set";
                errors.push(FieldError::invalid(&path, rule.claim.as_str(), text));
            }
            (false, true) => {
                if !rule.message.is_empty() {
                    let text = "may not be specified when claim is set";
                    errors.push(FieldError::invalid(&path.child("message"), rule.message.as_str(), text));
                }
                if !claims.insert(rule.claim.clone()) {
                    errors.push(FieldError::duplicate(&path.child("claim"), rule.claim.as_str()));
                }
                settled.push(ClaimRule::Required {
                    claim: rule.claim,
                    value: rule.required_value,
                });
            }
            (true, false) => {
                if !rule.required_value.is_empty() {
                    let text = "may not be specified when expression is set";
                    let value = rule.required_value.as_str();
                    errors.push(FieldError::invalid(&path.child("requiredValue"), value, text));
                }
                let path = path.child("expression");
                if !seen.insert(rule.expression.clone()) {
                    errors.push(FieldError::duplicate(&path, rule.expression.as_str()));
                    continue;
                }
                let program = boolean(&environment, &rule.expression, &path, errors);
                if let Some(program) = program {
                    expressions.verifies_email |= program.selects(&["claims", "email_verified"]);
                    let message = rule.message;
                    settled.push(ClaimRule::Holds(Rule { program, message }));
                }
            }
        }
    }
    settled
}

fn user_rules(rules: Vec<UserValidationRule>, path: &Path, errors: &mut ErrorList) -> Vec<Rule> {
    let environment = user_environment();
    let mut seen = HashSet::new();
    let mut settled = Vec::new();
    for (n, rule) in rules.into_iter().enumerate() {
        let path = path.index(n).child("expression");
        if rule.expression.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        if !seen.insert(rule.expression.clone()) {
            errors.push(FieldError::duplicate(&path, rule.expression.as_str()));
            continue;
        }
        if let Some(program) = boolean(&environment, &rule.expression, &path, errors) {
            let message = rule.message;
            settled.push(Rule { program, message });
        }
    }
    settled
}

/// Compiles an expression that must be true or false.
fn boolean(environment: &Environment, source: &str, path: &Path, errors: &mut ErrorList) -> Option<Arc<Program>> {
    let program = compile(environment, source, path, errors)?;
    if matches!(program.result_type(), Type::Bool | Type::Dyn) {
        return Some(program);
    }
    errors.push(FieldError::invalid(path, source, "must evaluate to bool"));
    None
}

pub(super) fn compile(
    environment: &Environment,
    source: &str,
    path: &Path,
    errors: &mut ErrorList,
) -> Option<Arc<Program>> {
    match environment.compile(source) {
        Ok(program) => Some(Arc::new(program)),
        Err(error) => {
            let value: BadValue = source.into();
            errors.push(FieldError::invalid(path, value, format!("compilation failed: {error}")));
            None
        }
    }
}
