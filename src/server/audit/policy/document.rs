//! The policy's file: `Policy` of `audit.k8s.io/v1`, as YAML or JSON.

use keelson_machinery::field::text::quote;
use keelson_machinery::json;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::not_registered;
use keelson_machinery::validation::names::dns_subdomain;
use keelson_machinery::{Message, yaml};

use super::super::level::{Level, Stage, Stages};
use super::{Decision, Policy, ResourcePattern, Resources, Rule, UrlPattern};

const API_VERSION: &str = "audit.k8s.io/v1";
const KIND: &str = "Policy";
/// What a policy of no type is called.
const UNTYPED: &str = "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy";

#[derive(Clone, Default, Message)]
#[message(name = "v1.Policy")]
struct PolicyDocument {
    #[field(json = "metadata")]
    metadata: ObjectMeta,
    #[field(json = "rules", always)]
    rules: Vec<RuleDocument>,
    #[field(json = "omitStages")]
    omit_stages: Vec<String>,
    #[field(json = "omitManagedFields")]
    omit_managed_fields: bool,
}

#[derive(Clone, Default, Message)]
#[message(name = "v1.PolicyRule")]
struct RuleDocument {
    #[field(json = "level", always)]
    level: String,
    #[field(json = "users")]
    users: Vec<String>,
    #[field(json = "userGroups")]
    user_groups: Vec<String>,
    #[field(json = "verbs")]
    verbs: Vec<String>,
    #[field(json = "resources")]
    resources: Vec<ResourcesDocument>,
    #[field(json = "namespaces")]
    namespaces: Vec<String>,
    #[field(json = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    #[field(json = "omitStages")]
    omit_stages: Vec<String>,
    #[field(json = "omitManagedFields")]
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Default, Message)]
#[message(name = "v1.GroupResources")]
struct ResourcesDocument {
    #[field(json = "group")]
    group: String,
    #[field(json = "resources")]
    resources: Vec<String>,
    #[field(json = "resourceNames")]
    resource_names: Vec<String>,
}

impl Policy {
    /// Reads a policy. With it comes what a strict reader objects to: keys that are unknown or stand twice. They are
    /// passed over, as kube-apiserver does.
    ///
    /// # Errors
    /// Text that is neither YAML nor JSON, another kind, a value that does not fit its field, a rule that makes no sense.
    /// The text names the field.
    pub fn read(text: &[u8]) -> Result<(Policy, Vec<String>), String> {
        let failed = |why: String| format!("failed decoding: {why}");
        let (text, repeated) = yaml::to_json_strict(text).map_err(|error| failed(error.to_string()))?;
        let named = json::type_meta(&text).map_err(|error| failed(error.to_string()))?;
        match (named.api_version.as_str(), named.kind.as_str()) {
            (API_VERSION, KIND) => {}
            ("", _) | (_, "") => return Err(UNTYPED.to_owned()),
            (version, kind) => return Err(failed(not_registered(kind, version))),
        }
        let mut document = PolicyDocument::default();
        let problems = json::read(&text, &mut document).map_err(|error| failed(error.to_string()))?;
        let mut warnings: Vec<String> = repeated
            .iter()
            .flat_map(|text| text.lines().skip(1))
            .map(trimmed)
            .collect();
        warnings.extend(problems.iter().map(ToString::to_string));
        document.check()?;
        Ok((document.policy(), warnings))
    }
}

fn trimmed(line: &str) -> String {
    line.trim().to_owned()
}

impl PolicyDocument {
    fn check(&self) -> Result<(), String> {
        if self.rules.is_empty() {
            return Err("loaded illegal policy with 0 rules".to_owned());
        }
        let mut mistakes = Vec::new();
        check_stages("omitStages", &self.omit_stages, &mut mistakes);
        for (n, rule) in self.rules.iter().enumerate() {
            rule.check(&format!("rules[{n}]"), &mut mistakes);
        }
        match mistakes.as_slice() {
            [] => Ok(()),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    fn policy(self) -> Policy {
        let omitted = stages(&self.omit_stages);
        let rules = self.rules.into_iter();
        Policy {
            rules: rules.map(|rule| rule.rule(omitted, self.omit_managed_fields)).collect(),
        }
    }
}

impl RuleDocument {
    fn check(&self, path: &str, mistakes: &mut Vec<String>) {
        if self.level.is_empty() {
            mistakes.push(format!("{path}.level: Required value"));
        } else if Level::named(&self.level).is_none() {
            let known = Level::ALL.map(|level| quote(level.name())).join(", ");
            let level = quote(&self.level);
            mistakes.push(format!(
                "{path}.level: Unsupported value: {level}: supported values: {known}"
            ));
        }
        self.check_urls(path, mistakes);
        for one in &self.resources {
            one.check(&format!("{path}.resources"), mistakes);
        }
        check_stages(&format!("{path}.omitStages"), &self.omit_stages, mistakes);
    }

    fn check_urls(&self, path: &str, mistakes: &mut Vec<String>) {
        let urls = &self.non_resource_urls;
        if urls.is_empty() {
            return;
        }
        let path = format!("{path}.nonResourceURLs");
        if !self.resources.is_empty() || !self.namespaces.is_empty() {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            mistakes.push(format!("{path}: Invalid value: {}: {why}", list(urls)));
            return;
        }
        for (n, url) in urls.iter().enumerate().filter(|(_, url)| *url != "*") {
            let why = match url.find('*') {
                _ if !url.starts_with('/') => "non-resource URL rules must begin with a '/' character",
                Some(at) if at + 1 < url.len() => {
                    "non-resource URL wildcards '*' must be the final character of the rule"
                }
                _ => continue,
            };
            mistakes.push(format!("{path}[{n}]: Invalid value: {}: {why}", quote(url)));
        }
    }

    fn rule(self, omitted: Stages, omit_managed_fields: bool) -> Rule {
        Rule {
            decision: Decision {
                level: Level::named(&self.level).unwrap_or_default(),
                omitted: omitted.union(stages(&self.omit_stages)),
                omit_managed_fields: self.omit_managed_fields.unwrap_or(omit_managed_fields),
            },
            users: self.users,
            groups: self.user_groups,
            verbs: self.verbs,
            resources: self.resources.into_iter().map(ResourcesDocument::resources).collect(),
            namespaces: self.namespaces,
            urls: self.non_resource_urls.iter().map(|url| UrlPattern::of(url)).collect(),
        }
    }
}

impl ResourcesDocument {
    fn check(&self, path: &str, mistakes: &mut Vec<String>) {
        if !matches!(self.group.as_str(), "" | "*") {
            let group = quote(&self.group);
            let whys = dns_subdomain(&self.group).into_iter();
            mistakes.extend(whys.map(|why| format!("{path}.group: Invalid value: {group}: {why}")));
        }
        if !self.resource_names.is_empty() && self.resources.is_empty() {
            let names = list(&self.resource_names);
            let why = "using resourceNames requires at least one resource";
            mistakes.push(format!("{path}.resourceNames: Invalid value: {names}: {why}"));
        }
    }

    fn resources(self) -> Resources {
        Resources {
            group: self.group,
            resources: self.resources.iter().map(|text| ResourcePattern::of(text)).collect(),
            names: self.resource_names,
        }
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
