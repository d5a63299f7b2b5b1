//! The file as it stands.

use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path};
use serde::Deserialize;

use crate::authn::Anonymous;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub api_version: String,
    #[serde(default)]
    pub kind: String,
    #[serde(default, deserialize_with = "nullable")]
    pub jwt: Vec<Jwt>,
    #[serde(default)]
    pub anonymous: Option<AnonymousAuth>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct AnonymousAuth {
    enabled: bool,
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<Condition>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Condition {
    path: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Jwt {
    pub issuer: Issuer,
    #[serde(deserialize_with = "nullable")]
    pub claim_validation_rules: Vec<ClaimValidationRule>,
    pub claim_mappings: ClaimMappings,
    #[serde(deserialize_with = "nullable")]
    pub user_validation_rules: Vec<UserValidationRule>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Issuer {
    pub url: String,
    #[serde(rename = "discoveryURL")]
    pub discovery_url: Option<String>,
    pub certificate_authority: String,
    #[serde(deserialize_with = "nullable")]
    pub audiences: Vec<String>,
    pub audience_match_policy: String,
    pub egress_selector_type: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ClaimValidationRule {
    pub claim: String,
    pub required_value: String,
    pub expression: String,
    pub message: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct UserValidationRule {
    pub expression: String,
    pub message: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ClaimMappings {
    pub username: ClaimOrExpression,
    pub groups: ClaimOrExpression,
    pub uid: ClaimOrExpression,
    #[serde(deserialize_with = "nullable")]
    pub extra: Vec<ExtraMapping>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ClaimOrExpression {
    pub claim: String,
    pub prefix: Option<String>,
    pub expression: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ExtraMapping {
    pub key: String,
    pub value_expression: String,
}

/// `null` is as good as nothing.
fn nullable<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl AnonymousAuth {
    pub fn settle(self, errors: &mut ErrorList) -> Anonymous {
        let path = Path::new("anonymous").child("conditions");
        let paths: Vec<String> = self.conditions.into_iter().map(|condition| condition.path).collect();
        if !self.enabled && !paths.is_empty() {
            let shown: Vec<serde_json::Value> = paths.iter().map(|path| serde_json::json!({ "Path": path })).collect();
            errors.push(FieldError::invalid(
                &path,
                BadValue::json(serde_json::Value::from(shown).to_string()),
                "enabled should be set to true when conditions are defined",
            ));
        }
        match (self.enabled, paths.is_empty()) {
            (false, _) => Anonymous::Nowhere,
            (true, true) => Anonymous::Everywhere,
            (true, false) => Anonymous::On(paths),
        }
    }
}
