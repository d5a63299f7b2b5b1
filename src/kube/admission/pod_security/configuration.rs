//! The file of PodSecurity: what is demanded where a namespace says nothing, and of whom nothing is.

use std::collections::BTreeSet;

use keelson_api::pod_security_admission_config_k8s_io::v1;
use keelson_configuration::{ConfigurationError, Known};
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::validation::names;

use super::policy::{Demand, Level, Policy, Version};

const KNOWN: Known = Known {
    kind: "PodSecurityConfiguration",
    versions: &[
        "pod-security.admission.config.k8s.io/v1",
        "pod-security.admission.config.k8s.io/v1beta1",
        "pod-security.admission.config.k8s.io/v1alpha1",
    ],
};

/// What holds beside the labels of namespaces.
pub struct Configuration {
    /// Where labels say nothing.
    pub defaults: Policy,
    /// Users of whom nothing is demanded.
    pub usernames: Vec<String>,
    /// Namespaces of which nothing is.
    pub namespaces: Vec<String>,
    /// Runtime classes of whose pods nothing is.
    pub runtime_classes: Vec<String>,
}

impl Default for Configuration {
    fn default() -> Self {
        Configuration {
            defaults: Policy::NONE,
            usernames: Vec::new(),
            namespaces: Vec::new(),
            runtime_classes: Vec::new(),
        }
    }
}

/// What is wrong with the file, in kube-apiserver's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PodSecurityError {
    /// It is of another kind, or has fields that are wrong or unknown.
    #[error(transparent)]
    File(#[from] ConfigurationError),
    /// Values that make no sense.
    #[error("PodSecurity invalid: {0}")]
    Invalid(#[from] ErrorList),
}

impl Configuration {
    /// Reads a document; `None`: there is none.
    ///
    /// # Errors
    /// It is of another kind, or has mistakes.
    pub fn read(text: Option<&str>) -> Result<Configuration, PodSecurityError> {
        let Some(text) = text else {
            return Ok(Configuration::default());
        };
        let given: v1::PodSecurityConfiguration = keelson_configuration::read(text.as_bytes(), &[KNOWN])?;
        let mut errors = ErrorList::new();
        let exempt = given.exemptions;
        let configuration = Configuration {
            defaults: defaults(&given.defaults, &mut errors),
            namespaces: each_once(exempt.namespaces, "namespaces", names::dns_label, &mut errors),
            runtime_classes: each_once(
                exempt.runtime_classes,
                "runtimeClasses",
                names::dns_subdomain,
                &mut errors,
            ),
            usernames: each_once(exempt.usernames, "usernames", not_empty, &mut errors),
        };
        errors.into_result()?;
        Ok(configuration)
    }
}

fn not_empty(text: &str) -> Vec<String> {
    text.is_empty()
        .then(|| "username must not be empty".to_owned())
        .into_iter()
        .collect()
}

fn defaults(given: &v1::PodSecurityDefaults, errors: &mut ErrorList) -> Policy {
    let path = Path::new("defaults");
    let mut mode = |field: &'static str, level: &str, version_field: &'static str, version: &str| {
        let mut demand = Demand::NOTHING;
        let mut fault = |field: &'static str, value: &str, why: &str| {
            errors.push(FieldError::invalid(&path.child(field), value, why));
        };
        match Level::parse(level) {
            _ if level.is_empty() => {}
            Ok(level) => demand.level = level,
            Err(why) => fault(field, level, why),
        }
        match Version::parse(version) {
            _ if version.is_empty() => {}
            Ok(version) => demand.version = version,
            Err(why) => fault(version_field, version, why),
        }
        demand
    };
    Policy {
        enforce: mode("enforce", &given.enforce, "enforce-version", &given.enforce_version),
        warn: mode("warn", &given.warn, "warn-version", &given.warn_version),
        audit: mode("audit", &given.audit, "audit-version", &given.audit_version),
    }
}

/// A list of names, each once.
fn each_once(
    all: Vec<String>,
    field: &'static str,
    faults: fn(&str) -> Vec<String>,
    errors: &mut ErrorList,
) -> Vec<String> {
    let path = Path::new("exemptions").child(field);
    let mut known = BTreeSet::new();
    for (place, text) in all.iter().enumerate() {
        let found = faults(text);
        if !found.is_empty() {
            errors.push(FieldError::invalid(&path.index(place), text.as_str(), found.join(", ")));
        } else if !known.insert(text) {
            errors.push(FieldError::duplicate(&path.index(place), text.as_str()));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rest: &str) -> Result<Configuration, String> {
        let kind = r#""apiVersion":"pod-security.admission.config.k8s.io/v1","kind":"PodSecurityConfiguration""#;
        Configuration::read(Some(&format!("{{{kind}{rest}}}"))).map_err(|error| error.to_string())
    }

    #[test]
    fn files_say_what_holds_everywhere() {
        let read = of(
            r#","defaults":{"enforce":"baseline","warn":"restricted","warn-version":"v1.20"},
                "exemptions":{"usernames":["a"],"namespaces":["b"],"runtimeClasses":["c"]}"#,
        );
        let read = read.unwrap_or_default();
        let shown = [read.defaults.enforce, read.defaults.warn, read.defaults.audit].map(|demand| demand.to_string());
        assert_eq!(shown, ["baseline:latest", "restricted:v1.20", "privileged:latest"]);
        assert_eq!((read.usernames[0].as_str(), read.namespaces[0].as_str()), ("a", "b"));
        assert!(of("").is_ok_and(|read| read.defaults == Policy::NONE));
    }

    #[test]
    fn mistakes_are_named() {
        for (rest, expected) in [
            (
                r#","defaults":{"enforce":"x"}"#,
                "PodSecurity invalid: defaults.enforce: Invalid value: \"x\": must be one of privileged, baseline, restricted",
            ),
            (
                r#","exemptions":{"usernames":["a","a"]}"#,
                "PodSecurity invalid: exemptions.usernames[1]: Duplicate value: \"a\"",
            ),
            (r#","default":{}"#, "strict decoding error: unknown field \"default\""),
        ] {
            assert_eq!(of(rest).err().as_deref(), Some(expected), "{rest}");
        }
    }
}
