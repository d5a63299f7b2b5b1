//! Anonymous requests in the authentication configuration.

use keelson_configuration::apiserver_config_k8s_io::v1::AnonymousAuthConfig;
use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path};

use crate::authn::Anonymous;

/// Which anonymous requests are taken.
pub(super) fn complete(given: AnonymousAuthConfig, errors: &mut ErrorList) -> Anonymous {
    let path = Path::new("anonymous").child("conditions");
    let paths: Vec<String> = given.conditions.into_iter().map(|condition| condition.path).collect();
    if !given.enabled && !paths.is_empty() {
        let shown: Vec<serde_json::Value> = paths.iter().map(|path| serde_json::json!({ "Path": path })).collect();
        errors.push(FieldError::invalid(
            &path,
            BadValue::json(serde_json::Value::from(shown).to_string()),
            "enabled should be set to true when conditions are defined",
        ));
    }
    match (given.enabled, paths.is_empty()) {
        (false, _) => Anonymous::Nowhere,
        (true, true) => Anonymous::Everywhere,
        (true, false) => Anonymous::On(paths),
    }
}
