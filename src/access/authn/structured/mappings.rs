//! Claim mappings of the authentication configuration.

use std::collections::HashSet;
use std::sync::Arc;

use keelson_configuration::apiserver_config_k8s_io::v1::{ClaimMappings, ExtraMapping, PrefixedClaimOrExpression};
use keelson_machinery::cel::{Environment, Program};
use keelson_machinery::field::{ErrorList, FieldError, Path};

use super::issuer::compile;
use crate::authn::oidc::{Mapping, claims_environment};

/// What the expressions of an issuer look at.
#[derive(Default)]
pub(super) struct Expressions {
    /// One of them asks whether the address is verified.
    pub verifies_email: bool,
}

pub(super) struct Mapped {
    pub username: Mapping,
    pub groups: Option<Mapping>,
    pub uid: Option<Mapping>,
    pub extra: Vec<(String, Arc<Program>)>,
}

/// `None`: there is no way to a name.
pub(super) fn complete(
    given: ClaimMappings,
    path: &Path,
    expressions: &mut Expressions,
    errors: &mut ErrorList,
) -> Option<Mapped> {
    let environment = claims_environment();
    let name_path = path.child("username");
    if given.username.claim.is_empty() && given.username.expression.is_empty() {
        errors.push(FieldError::required(&name_path, "claim or expression is required"));
    }
    let username = mapping(given.username, &name_path, &environment, true, errors);
    let groups = mapping(given.groups, &path.child("groups"), &environment, true, errors);
    let uid = PrefixedClaimOrExpression {
        claim: given.uid.claim,
        prefix: None,
        expression: given.uid.expression,
    };
    let uid = mapping(uid, &path.child("uid"), &environment, false, errors);
    let extra = extra(given.extra, &path.child("extra"), &environment, errors);
    let programs = extra.iter().map(|(_, program)| program);
    let of_name = match &username {
        Some(Mapping::Expression(program)) => Some(program),
        _ => None,
    };
    let mut all = programs.chain(of_name);
    expressions.verifies_email |= all.any(|program| program.selects(&["claims", "email_verified"]));
    if let Some(program) = of_name
        && program.selects(&["claims", "email"])
        && !expressions.verifies_email
    {
        let text = "claims.email_verified must be used in claimMappings.username.expression or \
                    claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is \
                    used in claimMappings.username.expression";
        errors.push(FieldError::invalid(
            &name_path.child("expression"),
            program.source(),
            text,
        ));
    }
    Some(Mapped {
        username: username?,
        groups,
        uid,
        extra,
    })
}

fn mapping(
    given: PrefixedClaimOrExpression,
    path: &Path,
    environment: &Environment,
    prefixed: bool,
    errors: &mut ErrorList,
) -> Option<Mapping> {
    let PrefixedClaimOrExpression {
        claim,
        prefix,
        expression,
    } = given;
    match (claim.is_empty(), expression.is_empty()) {
        (true, true) => None,
        (false, false) => {
            errors.push(FieldError::invalid(path, "", "claim and expression can't both be set"));
            None
        }
        (false, true) => {
            if prefixed && prefix.is_none() {
                let text =
                    "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
                errors.push(FieldError::required(&path.child("prefix"), text));
            }
            Some(Mapping::Claim {
                name: claim,
                prefix: prefix.unwrap_or_default(),
            })
        }
        (true, false) => {
            if let Some(prefix) = prefix {
                let text = "may not be specified when expression is set";
                errors.push(FieldError::invalid(&path.child("prefix"), prefix, text));
            }
            compile(environment, &expression, &path.child("expression"), errors).map(Mapping::Expression)
        }
    }
}

fn extra(
    given: Vec<ExtraMapping>,
    path: &Path,
    environment: &Environment,
    errors: &mut ErrorList,
) -> Vec<(String, Arc<Program>)> {
    let mut seen = HashSet::new();
    let mut settled = Vec::new();
    for (n, one) in given.into_iter().enumerate() {
        let key_path = path.index(n).child("key");
        check_key(&one.key, &key_path, errors);
        if !one.key.is_empty() && !seen.insert(one.key.clone()) {
            errors.push(FieldError::duplicate(&key_path, one.key.as_str()));
        }
        let path = path.index(n).child("valueExpression");
        if one.value_expression.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let program = compile(environment, &one.value_expression, &path, errors);
        settled.extend(program.map(|program| (one.key, program)));
    }
    settled
}

/// A name with a domain in front, in lower case, of a domain that is not Kubernetes' own.
fn check_key(key: &str, path: &Path, errors: &mut ErrorList) {
    if key.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut wrong = |text: &str| errors.push(FieldError::invalid(path, key, text));
    let domain = key
        .split_once('/')
        .filter(|(domain, name)| !domain.is_empty() && !name.is_empty());
    let Some((domain, _)) = domain else {
        return wrong("must be a domain-prefixed path (such as \"acme.io/foo\")");
    };
    let reserved = |own: &str| domain == own || domain.ends_with(&format!(".{own}"));
    if reserved("k8s.io") || reserved("kubernetes.io") {
        wrong("k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use");
    }
    if key.chars().any(char::is_uppercase) {
        wrong("must be lowercase");
    }
}
