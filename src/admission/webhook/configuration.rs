//! The configuration of the plug-ins that ask webhooks: as whom this server calls them.

use std::path::Path;

use keelson_net::client::Users;
use serde_json::Value;

const KIND: &str = "WebhookAdmissionConfiguration";
const VERSION: &str = "apiserver.config.k8s.io/v1";

/// Reads the section of a plug-in: who this server is to webhooks.
///
/// # Errors
/// It is of another kind, or names what can't be used.
pub(super) fn users(text: Option<&str>) -> Result<Users, String> {
    let Some(text) = text else {
        return Ok(Users::default());
    };
    let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    check_kind(&document)?;
    let field = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    if !field("staticManifestsDir").is_empty() {
        let needs = "staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled";
        return Err(format!("staticManifestsDir: Forbidden: {needs}"));
    }
    match field("kubeConfigFile") {
        "" => Ok(Users::default()),
        file if Path::new(file).is_absolute() => Users::read(Path::new(file)).map_err(|error| error.to_string()),
        file => Err(format!(
            "kubeConfigFile: Invalid value: {file:?}: must be an absolute file path"
        )),
    }
}

fn check_kind(document: &Value) -> Result<(), String> {
    let said = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    match (said("kind"), said("apiVersion")) {
        (KIND, VERSION) => Ok(()),
        ("", _) => Err(format!("Object 'Kind' is missing in '{document}'")),
        (_, "") => Err(format!("Object 'apiVersion' is missing in '{document}'")),
        (kind, version) => Err(format!("no kind {kind:?} is registered for version {version:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_told() {
        let of = |kind: &str, version: &str, rest: &str| {
            let text = format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\"{rest}}}");
            users(Some(&text)).err().unwrap_or_default()
        };
        assert_eq!(of(KIND, VERSION, ""), "");
        assert_eq!(
            of("WebhookAdmission", VERSION, ""),
            format!("no kind \"WebhookAdmission\" is registered for version {VERSION:?}")
        );
        assert_eq!(
            of(KIND, VERSION, r#","kubeConfigFile":"a""#),
            "kubeConfigFile: Invalid value: \"a\": must be an absolute file path"
        );
        assert!(of(KIND, VERSION, r#","kubeConfigFile":"/nowhere""#).starts_with("/nowhere: "));
        assert!(of(KIND, VERSION, r#","staticManifestsDir":"/a""#).starts_with("staticManifestsDir: Forbidden"));
        assert!(users(None).is_ok());
    }
}
