//! Claim mappings: the user that the claims of a token stand for.

use keelson_machinery::cel;
use keelson_machinery::json::kind_of;
use serde_json::{Map, Value};

use super::expression::{evaluate, shown, texts, with_floats};
use super::{ClaimRule, Mapping, OidcSettings, Rule};
use crate::user::User;

type Claims = Map<String, Value>;

impl OidcSettings {
    /// The user that the claims of a believed token make, if all rules hold.
    pub(super) fn user_of(&self, claims: Claims) -> Result<User, String> {
        let floating = with_floats(Value::Object(claims.clone()));
        let floating_value = || cel::Value::from(&floating);
        let mut user = User {
            name: self.username(&claims, floating_value())?,
            groups: self.groups(&claims, floating_value())?,
            uid: self.uid(&claims, floating_value())?,
            ..User::default()
        };
        for (key, program) in &self.extra {
            let value = evaluate(program, "claims", floating_value())?;
            let values = texts(&value).ok_or_else(|| {
                format!(
                    "oidc: error evaluating extra claim expression: {}: expression must return a string or a list of \
                     strings",
                    program.source()
                )
            })?;
            if !values.is_empty() {
                user.extra.insert(key.clone(), values);
            }
        }
        self.check_claims(&claims, floating_value)?;
        let value = shown(&user);
        for rule in &self.user_rules {
            check(rule, "user", cel::Value::from(&value))
                .map_err(|why| format!("oidc: error evaluating user info validation rule: {why}"))?;
        }
        Ok(user)
    }

    fn username(&self, claims: &Claims, value: cel::Value<'_>) -> Result<String, String> {
        let (name, prefix) = match &self.username {
            Mapping::Claim { name, prefix } => (name, prefix),
            Mapping::Expression(program) => {
                let failed = |why: String| format!("oidc: error evaluating username claim expression: {why}");
                let value = evaluate(program, "claims", value).map_err(failed)?;
                let text = value
                    .as_str()
                    .ok_or_else(|| failed("username claim expression must return a string".to_owned()))?;
                return match text {
                    "" => Err("oidc: empty username via CEL expression is not allowed".to_owned()),
                    text => Ok(text.to_owned()),
                };
            }
        };
        let text = text_claim(claims, name).map_err(|why| format!("oidc: parse username claims {name:?}: {why}"))?;
        if name == "email" {
            check_email(claims)?;
        }
        Ok(format!("{prefix}{text}"))
    }

    fn groups(&self, claims: &Claims, value: cel::Value<'_>) -> Result<Vec<String>, String> {
        match &self.groups {
            None => Ok(Vec::new()),
            Some(Mapping::Expression(program)) => {
                let failed = |why: String| format!("oidc: error evaluating group claim expression: {why}");
                let value = evaluate(program, "claims", value).map_err(failed)?;
                texts(&value).ok_or_else(|| failed("expression must return a string or a list of strings".to_owned()))
            }
            Some(Mapping::Claim { name, prefix }) => {
                let Some(claim) = claims.get(name) else {
                    return Ok(Vec::new());
                };
                let groups: Vec<String> = match claim {
                    Value::Null => Vec::new(),
                    Value::String(group) => vec![group.clone()],
                    other => serde_json::from_value(other.clone())
                        .map_err(|_| format!("oidc: parse groups claim {name:?}: {}", not_text(other)))?,
                };
                Ok(groups.into_iter().map(|group| format!("{prefix}{group}")).collect())
            }
        }
    }

    fn uid(&self, claims: &Claims, value: cel::Value<'_>) -> Result<String, String> {
        match &self.uid {
            None => Ok(String::new()),
            Some(Mapping::Claim { name, .. }) => {
                text_claim(claims, name).map_err(|why| format!("oidc: parse uid claim {name:?}: {why}"))
            }
            Some(Mapping::Expression(program)) => {
                let failed = |why: String| format!("oidc: error evaluating uid claim expression: {why}");
                let value = evaluate(program, "claims", value).map_err(failed)?;
                let text = value.as_str();
                text.map(str::to_owned)
                    .ok_or_else(|| failed("uid claim expression must return a string".to_owned()))
            }
        }
    }

    fn check_claims<'a>(&self, claims: &Claims, floating_value: impl Fn() -> cel::Value<'a>) -> Result<(), String> {
        for rule in &self.claim_rules {
            match rule {
                ClaimRule::Required { claim, value } => {
                    if !claims.contains_key(claim) {
                        return Err(format!("oidc: required claim {claim} not present in ID token"));
                    }
                    let got = text_claim(claims, claim).map_err(|why| format!("oidc: parse claim {claim}: {why}"))?;
                    if got != *value {
                        return Err(format!(
                            "oidc: required claim {claim} value does not match. Got = {got}, want = {value}"
                        ));
                    }
                }
                ClaimRule::Holds(rule) => check(rule, "claims", floating_value())
                    .map_err(|why| format!("oidc: error evaluating claim validation expression: {why}"))?,
            }
        }
        Ok(())
    }
}

fn check(rule: &Rule, variable: &str, value: cel::Value<'_>) -> Result<(), String> {
    match evaluate(&rule.program, variable, value)?.as_bool() {
        Some(true) => Ok(()),
        Some(false) => Err(format!(
            "validation expression '{}' failed: {}",
            rule.program.source(),
            rule.message
        )),
        None => Err("validation expression must return a boolean".to_owned()),
    }
}

fn text_claim(claims: &Claims, name: &str) -> Result<String, String> {
    match claims.get(name) {
        None => Err("claim not present".to_owned()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Null) => Ok(String::new()),
        Some(other) => Err(not_text(other)),
    }
}

fn not_text(value: &Value) -> String {
    format!("json: cannot unmarshal {} into Go value of type string", kind_of(value))
}

/// An address that the issuer says is not verified names nobody.
fn check_email(claims: &Claims) -> Result<(), String> {
    match claims.get("email_verified") {
        None | Some(Value::Bool(true)) => Ok(()),
        Some(Value::Bool(false)) => Err("oidc: email not verified".to_owned()),
        Some(_) => Err("oidc: parse 'email_verified' claim: it is no boolean".to_owned()),
    }
}
