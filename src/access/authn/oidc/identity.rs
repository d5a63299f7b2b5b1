//! Claim mappings: the user that the claims of a token stand for.

use keelson_machinery::cel;
use keelson_machinery::json::kind_of;
use serde_json::{Map, Value};

use super::expression::{ExpressionError, evaluate, shown, texts, with_floats};
use super::{ClaimRule, Mapping, OidcSettings, Rule};
use crate::user::User;

type Claims = Map<String, Value>;

/// Why a claim has no text.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClaimError {
    #[error("claim not present")]
    Absent,
    /// It is a value of this kind.
    #[error("json: cannot unmarshal {0} into Go value of type string")]
    Kind(&'static str),
}

/// Why the claims of a believed token make no user.
#[derive(Debug, thiserror::Error)]
pub(super) enum MappingError {
    /// The expression of one of the user's parts.
    #[error("oidc: error evaluating {what} claim expression: {why}")]
    Expression { what: &'static str, why: ExpressionError },
    #[error("{0}")]
    ExtraFault(ExpressionError),
    #[error("oidc: error evaluating extra claim expression: {0}: expression must return a string or a list of strings")]
    ExtraType(String),
    #[error("oidc: empty username via CEL expression is not allowed")]
    NoName,
    /// The claim of one of the user's parts.
    #[error("oidc: parse {what} {claim:?}: {why}")]
    Claim {
        what: &'static str,
        claim: String,
        why: ClaimError,
    },
    #[error("oidc: required claim {0} not present in ID token")]
    Required(String),
    #[error("oidc: parse claim {claim}: {why}")]
    RequiredText { claim: String, why: ClaimError },
    #[error("oidc: required claim {claim} value does not match. Got = {got}, want = {want}")]
    RequiredValue { claim: String, got: String, want: String },
    #[error("oidc: error evaluating claim validation expression: {0}")]
    ClaimRule(ExpressionError),
    #[error("oidc: error evaluating user info validation rule: {0}")]
    UserRule(ExpressionError),
    #[error("oidc: email not verified")]
    Email,
    #[error("oidc: parse 'email_verified' claim: it is no boolean")]
    EmailVerified,
}

impl OidcSettings {
    /// The user that the claims of a believed token make, if all rules hold.
    pub(super) fn user_of(&self, claims: Claims) -> Result<User, MappingError> {
        let floating = with_floats(Value::Object(claims.clone()));
        let floating_value = || cel::Value::from(&floating);
        let mut user = User {
            name: self.username(&claims, floating_value())?,
            groups: self.groups(&claims, floating_value())?,
            uid: self.uid(&claims, floating_value())?,
            ..User::default()
        };
        for (key, program) in &self.extra {
            let value = evaluate(program, "claims", floating_value()).map_err(MappingError::ExtraFault)?;
            let values = texts(&value).ok_or_else(|| MappingError::ExtraType(program.source().to_owned()))?;
            if !values.is_empty() {
                user.extra.insert(key.clone(), values);
            }
        }
        self.check_claims(&claims, floating_value)?;
        let value = shown(&user);
        for rule in &self.user_rules {
            check(rule, "user", cel::Value::from(&value)).map_err(MappingError::UserRule)?;
        }
        Ok(user)
    }

    fn username(&self, claims: &Claims, value: cel::Value<'_>) -> Result<String, MappingError> {
        let (name, prefix) = match &self.username {
            Mapping::Claim { name, prefix } => (name, prefix),
            Mapping::Expression(program) => {
                let failed = |why| MappingError::Expression { what: "username", why };
                let value = evaluate(program, "claims", value).map_err(failed)?;
                let text = value
                    .as_str()
                    .ok_or_else(|| failed(ExpressionError::Type("username claim expression must return a string")))?;
                return match text {
                    "" => Err(MappingError::NoName),
                    text => Ok(text.to_owned()),
                };
            }
        };
        let text = text_claim(claims, name).map_err(of_claim("username claims", name))?;
        if name == "email" {
            check_email(claims)?;
        }
        Ok(format!("{prefix}{text}"))
    }

    fn groups(&self, claims: &Claims, value: cel::Value<'_>) -> Result<Vec<String>, MappingError> {
        match &self.groups {
            None => Ok(Vec::new()),
            Some(Mapping::Expression(program)) => {
                let failed = |why| MappingError::Expression { what: "group", why };
                let value = evaluate(program, "claims", value).map_err(failed)?;
                let wrong = ExpressionError::Type("expression must return a string or a list of strings");
                texts(&value).ok_or_else(|| failed(wrong))
            }
            Some(Mapping::Claim { name, prefix }) => {
                let Some(claim) = claims.get(name) else {
                    return Ok(Vec::new());
                };
                let groups: Vec<String> = match claim {
                    Value::Null => Vec::new(),
                    Value::String(group) => vec![group.clone()],
                    other => serde_json::from_value(other.clone())
                        .map_err(|_| of_claim("groups claim", name)(not_text(other)))?,
                };
                Ok(groups.into_iter().map(|group| format!("{prefix}{group}")).collect())
            }
        }
    }

    fn uid(&self, claims: &Claims, value: cel::Value<'_>) -> Result<String, MappingError> {
        match &self.uid {
            None => Ok(String::new()),
            Some(Mapping::Claim { name, .. }) => text_claim(claims, name).map_err(of_claim("uid claim", name)),
            Some(Mapping::Expression(program)) => {
                let failed = |why| MappingError::Expression { what: "uid", why };
                let value = evaluate(program, "claims", value).map_err(failed)?;
                let text = value.as_str();
                text.map(str::to_owned)
                    .ok_or_else(|| failed(ExpressionError::Type("uid claim expression must return a string")))
            }
        }
    }

    fn check_claims<'a>(
        &self,
        claims: &Claims,
        floating_value: impl Fn() -> cel::Value<'a>,
    ) -> Result<(), MappingError> {
        for rule in &self.claim_rules {
            match rule {
                ClaimRule::Required { claim, value } => {
                    if !claims.contains_key(claim) {
                        return Err(MappingError::Required(claim.clone()));
                    }
                    let got = text_claim(claims, claim).map_err(|why| MappingError::RequiredText {
                        claim: claim.clone(),
                        why,
                    })?;
                    if got != *value {
                        return Err(MappingError::RequiredValue {
                            claim: claim.clone(),
                            got,
                            want: value.clone(),
                        });
                    }
                }
                ClaimRule::Holds(rule) => {
                    check(rule, "claims", floating_value()).map_err(MappingError::ClaimRule)?;
                }
            }
        }
        Ok(())
    }
}

fn check(rule: &Rule, variable: &str, value: cel::Value<'_>) -> Result<(), ExpressionError> {
    match evaluate(&rule.program, variable, value)?.as_bool() {
        Some(true) => Ok(()),
        Some(false) => Err(ExpressionError::Failed {
            expression: rule.program.source().to_owned(),
            message: rule.message.clone(),
        }),
        None => Err(ExpressionError::Type("validation expression must return a boolean")),
    }
}

fn of_claim(what: &'static str, claim: &str) -> impl FnOnce(ClaimError) -> MappingError {
    move |why| MappingError::Claim {
        what,
        claim: claim.to_owned(),
        why,
    }
}

fn text_claim(claims: &Claims, name: &str) -> Result<String, ClaimError> {
    match claims.get(name) {
        None => Err(ClaimError::Absent),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Null) => Ok(String::new()),
        Some(other) => Err(not_text(other)),
    }
}

fn not_text(value: &Value) -> ClaimError {
    ClaimError::Kind(kind_of(value))
}

/// An address that the issuer says is not verified names nobody.
fn check_email(claims: &Claims) -> Result<(), MappingError> {
    match claims.get("email_verified") {
        None | Some(Value::Bool(true)) => Ok(()),
        Some(Value::Bool(false)) => Err(MappingError::Email),
        Some(_) => Err(MappingError::EmailVerified),
    }
}
