//! The policy's file: `Policy` of `audit.k8s.io/v1`, as YAML or JSON.

use keelson_access::authz::aggregate;
use keelson_configuration::audit_k8s_io::v1;
use keelson_configuration::{ConfigurationError, Known, read_leniently};
use keelson_machinery::field::text::quote;
use keelson_machinery::object::not_registered;
use keelson_machinery::validation::names::dns_subdomain;

use super::super::level::{Level, Stage, Stages};
use super::{Decision, Policy, ResourcePattern, Resources, Rule, UrlPattern};

const KNOWN: Known = Known {
    kind: "Policy",
    versions: &["audit.k8s.io/v1"],
};

/// What is wrong with a policy, in kube-apiserver's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PolicyError {
    /// Neither YAML nor JSON, or a value that does not fit its field.
    #[error("failed decoding: {0}")]
    File(ConfigurationError),
    /// A policy of no type.
    #[error("unknown group version field audit.k8s.io/__internal, Kind=Policy in policy")]
    Untyped,
    /// Another kind or version.
    #[error("failed decoding: {}", not_registered(.kind, .version))]
    OtherKind { kind: String, version: String },
    #[error("loaded illegal policy with 0 rules")]
    Empty,
    /// Rules that make no sense; each text names the field.
    #[error("{}", aggregate(.0))]
    Rules(Vec<String>),
}

impl From<ConfigurationError> for PolicyError {
    fn from(error: ConfigurationError) -> PolicyError {
        match error {
            ConfigurationError::Untyped { .. } => PolicyError::Untyped,
            ConfigurationError::OtherKind { kind, version } => PolicyError::OtherKind { kind, version },
            error => PolicyError::File(error),
        }
    }
}

impl Policy {
    /// Reads a policy. With it comes what a strict reader objects to: keys that are unknown or stand twice. They are
    /// passed over, as kube-apiserver does.
    ///
    /// # Errors
    /// All that [`PolicyError`] has.
    pub fn read(text: &[u8]) -> Result<(Policy, Vec<String>), PolicyError> {
        let (given, warnings) = read_leniently::<v1::Policy>(text, &[KNOWN])?;
        check(&given)?;
        let omitted = stages(&given.omit_stages);
        let rules = given.rules.into_iter();
        let rules = rules.map(|one| rule(one, omitted, given.omit_managed_fields)).collect();
        Ok((Policy { rules }, warnings))
    }
}

fn check(given: &v1::Policy) -> Result<(), PolicyError> {
    if given.rules.is_empty() {
        return Err(PolicyError::Empty);
    }
    let mut mistakes = Vec::new();
    check_stages("omitStages", &given.omit_stages, &mut mistakes);
    for (n, rule) in given.rules.iter().enumerate() {
        check_rule(rule, &format!("rules[{n}]"), &mut mistakes);
    }
    match mistakes.is_empty() {
        true => Ok(()),
        false => Err(PolicyError::Rules(mistakes)),
    }
}

fn check_rule(given: &v1::PolicyRule, path: &str, mistakes: &mut Vec<String>) {
    if given.level.is_empty() {
        mistakes.push(format!("{path}.level: Required value"));
    } else if Level::named(&given.level).is_none() {
        let known = Level::ALL.map(|level| quote(level.name())).join(", ");
        let level = quote(&given.level);
        mistakes.push(format!(
            "{path}.level: Unsupported value: {level}: supported values: {known}"
        ));
    }
    check_urls(given, path, mistakes);
    for one in &given.resources {
        check_resources(one, &format!("{path}.resources"), mistakes);
    }
    check_stages(&format!("{path}.omitStages"), &given.omit_stages, mistakes);
}

fn check_urls(given: &v1::PolicyRule, path: &str, mistakes: &mut Vec<String>) {
    let urls = &given.non_resource_urls;
    if urls.is_empty() {
        return;
    }
    let path = format!("{path}.nonResourceURLs");
    if !given.resources.is_empty() || !given.namespaces.is_empty() {
        let why = "rules cannot apply to both regular resources and non-resource URLs";
        mistakes.push(format!("{path}: Invalid value: {}: {why}", list(urls)));
        return;
    }
    for (n, url) in urls.iter().enumerate().filter(|(_, url)| *url != "*") {
        let why = match url.find('*') {
            _ if !url.starts_with('/') => "non-resource URL rules must begin with a '/' character",
            Some(at) if at + 1 < url.len() => "non-resource URL wildcards '*' must be the final character of the rule",
            _ => continue,
        };
        mistakes.push(format!("{path}[{n}]: Invalid value: {}: {why}", quote(url)));
    }
}

fn check_resources(given: &v1::GroupResources, path: &str, mistakes: &mut Vec<String>) {
    if !matches!(given.group.as_str(), "" | "*") {
        let group = quote(&given.group);
        let whys = dns_subdomain(&given.group).into_iter();
        mistakes.extend(whys.map(|why| format!("{path}.group: Invalid value: {group}: {why}")));
    }
    if !given.resource_names.is_empty() && given.resources.is_empty() {
        let names = list(&given.resource_names);
        let why = "using resourceNames requires at least one resource";
        mistakes.push(format!("{path}.resourceNames: Invalid value: {names}: {why}"));
    }
}

fn rule(given: v1::PolicyRule, omitted: Stages, omit_managed_fields: bool) -> Rule {
    Rule {
        decision: Decision {
            level: Level::named(&given.level).unwrap_or_default(),
            omitted: omitted.union(stages(&given.omit_stages)),
            omit_managed_fields: given.omit_managed_fields.unwrap_or(omit_managed_fields),
        },
        users: given.users,
        groups: given.user_groups,
        verbs: given.verbs,
        resources: given.resources.into_iter().map(resources).collect(),
        namespaces: given.namespaces,
        urls: given.non_resource_urls.iter().map(|url| UrlPattern::of(url)).collect(),
    }
}

fn resources(given: v1::GroupResources) -> Resources {
    Resources {
        group: given.group,
        resources: given.resources.iter().map(|text| ResourcePattern::of(text)).collect(),
        names: given.resource_names,
    }
}

fn check_stages(path: &str, names: &[String], mistakes: &mut Vec<String>) {
    for (n, name) in names.iter().enumerate() {
        if Stage::named(name).is_none() {
            let (name, known) = (quote(name), Stage::ALL.map(Stage::name).join(","));
            mistakes.push(format!(
                "{path}[{n}]: Invalid value: {name}: allowed stages are {known}"
            ));
        }
    }
}

fn stages(names: &[String]) -> Stages {
    names.iter().filter_map(|name| Stage::named(name)).collect()
}

/// `["/a","/b"]`
fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| quote(name)).collect();
    format!("[{}]", quoted.join(","))
}
