//! The file of PodSecurity: what is demanded where a namespace says nothing, and of whom nothing is.

use std::collections::BTreeSet;

use keelson_base::configuration::{Document, Fields};
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::validation::names;

use super::policy::{Demand, Level, Policy, Version};

const VERSIONS: [&str; 3] = [
    "pod-security.admission.config.k8s.io/v1",
    "pod-security.admission.config.k8s.io/v1beta1",
    "pod-security.admission.config.k8s.io/v1alpha1",
];

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

impl Configuration {
    /// Reads a document; `None`: there is none.
    ///
    /// # Errors
    /// It is of another kind, or has mistakes.
    pub fn read(text: Option<&str>) -> Result<Configuration, String> {
        let Some(text) = text else {
            return Ok(Configuration::default());
        };
        let document = Document::parse(text.as_bytes(), "PodSecurityConfiguration", &VERSIONS)?;
        let root = document
            .root("PodSecurityConfiguration")?
            .known(&["defaults", "exemptions"]);
        let mut errors = ErrorList::new();
        let mut configuration = Configuration::default();
        if let Some(fields) = root.object("defaults", "PodSecurityDefaults")? {
            configuration.defaults = defaults(fields, &mut errors)?;
        }
        if let Some(fields) = root.object("exemptions", "PodSecurityExemptions")? {
            let fields = fields.known(&["usernames", "namespaces", "runtimeClasses"]);
            configuration.namespaces = texts(&fields, "namespaces", names::dns_label, &mut errors)?;
            configuration.runtime_classes = texts(&fields, "runtimeClasses", names::dns_subdomain, &mut errors)?;
            configuration.usernames = texts(&fields, "usernames", not_empty, &mut errors)?;
        }
        document.finish()?;
        match errors.is_empty() {
            true => Ok(configuration),
            false => Err(format!("PodSecurity invalid: {errors}")),
        }
    }
}

fn not_empty(text: &str) -> Vec<String> {
    text.is_empty()
        .then(|| "username must not be empty".to_owned())
        .into_iter()
        .collect()
}

fn defaults(fields: Fields<'_>, errors: &mut ErrorList) -> Result<Policy, String> {
    let modes = [
        ("enforce", "enforce-version"),
        ("warn", "warn-version"),
        ("audit", "audit-version"),
    ];
    let names: Vec<&str> = modes.iter().flat_map(|(level, version)| [*level, *version]).collect();
    let fields = fields.known(&names);
    let path = Path::new("defaults");
    let mut mode = |level: &'static str, version: &'static str| -> Result<Demand, String> {
        let mut demand = Demand::NOTHING;
        let mut fault = |field: &'static str, value: &str, why: &str| {
            errors.push(FieldError::invalid(&path.child(field), value, why));
        };
        match fields.text(level)? {
            "" => {}
            value => match Level::parse(value) {
                Ok(level) => demand.level = level,
                Err(why) => fault(level, value, why),
            },
        }
        match fields.text(version)? {
            "" => {}
            value => match Version::parse(value) {
                Ok(version) => demand.version = version,
                Err(why) => fault(version, value, why),
            },
        }
        Ok(demand)
    };
    Ok(Policy {
        enforce: mode("enforce", "enforce-version")?,
        warn: mode("warn", "warn-version")?,
        audit: mode("audit", "audit-version")?,
    })
}

/// A list of names, each once.
fn texts(
    fields: &Fields<'_>,
    name: &'static str,
    faults: fn(&str) -> Vec<String>,
    errors: &mut ErrorList,
) -> Result<Vec<String>, String> {
    let path = Path::new("exemptions").child(name);
    let mut known = BTreeSet::new();
    let all = fields.texts(name)?;
    for (place, text) in all.iter().enumerate() {
        let found = faults(text);
        if !found.is_empty() {
            errors.push(FieldError::invalid(&path.index(place), *text, found.join(", ")));
        } else if !known.insert(*text) {
            errors.push(FieldError::duplicate(&path.index(place), *text));
        }
    }
    Ok(all.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rest: &str) -> Result<Configuration, String> {
        let kind = r#""apiVersion":"pod-security.admission.config.k8s.io/v1","kind":"PodSecurityConfiguration""#;
        Configuration::read(Some(&format!("{{{kind}{rest}}}")))
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
