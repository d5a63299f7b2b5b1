//! `--runtime-config`: which versions and resources are served.

use std::collections::BTreeMap;

use keelson_machinery::scheme::{Scheme, VersionDesc};

/// A fault in the value of `--runtime-config`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeConfigError {
    /// A value that is neither true nor false.
    #[error("invalid value of {key}: {value}: use true or false")]
    Value {
        /// The key that it was given for.
        key: String,
        /// What was given.
        value: String,
    },
    /// A key of no known form.
    #[error(
        "runtime-config invalid key {0}: use api/all, api/ga, api/beta, api/alpha, group/version or group/version/resource"
    )]
    Key(String),
    /// Groups that there are not.
    #[error("unknown api groups {0}")]
    UnknownGroups(String),
    /// Everything is switched off.
    #[error("invalid key with only api/all=false: nothing would be served")]
    Nothing,
}

/// What the user switched on or off; the default leaves everything as the definitions say.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct RuntimeConfig {
    all: Option<bool>,
    /// By stability: api/ga, api/beta, api/alpha.
    stages: BTreeMap<Stage, bool>,
    /// `group/version`; of the legacy group `v1`.
    versions: BTreeMap<(String, String), bool>,
    resources: BTreeMap<(String, String, String), bool>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stage {
    Ga,
    Beta,
    Alpha,
}

impl RuntimeConfig {
    /// Takes `key=value` pairs: `api/all=true`, `apps/v1=false`, `apps/v1/deployments=false`; the legacy group is
    /// `api/v1` or `v1`. A key without a value is true. The last of two equal keys wins.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = &'a str>) -> Result<RuntimeConfig, RuntimeConfigError> {
        let mut config = RuntimeConfig::default();
        for pair in pairs
            .into_iter()
            .flat_map(|p| p.split(','))
            .map(str::trim)
            .filter(|p| !p.is_empty())
        {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
            let on = match value {
                "" | "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
                "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
                _ => {
                    return Err(RuntimeConfigError::Value {
                        key: key.to_owned(),
                        value: value.to_owned(),
                    });
                }
            };
            config.set(key, on)?;
        }
        match config {
            RuntimeConfig {
                all: Some(false),
                ref stages,
                ref versions,
                ref resources,
            } if stages.is_empty() && versions.is_empty() && resources.is_empty() => Err(RuntimeConfigError::Nothing),
            config => Ok(config),
        }
    }

    /// Leaves nothing off that can be switched on.
    pub fn all() -> RuntimeConfig {
        RuntimeConfig {
            all: Some(true),
            ..RuntimeConfig::default()
        }
    }

    fn set(&mut self, key: &str, on: bool) -> Result<(), RuntimeConfigError> {
        let own = |text: &str| text.to_owned();
        match key.split('/').collect::<Vec<_>>()[..] {
            ["api", "all"] => self.all = Some(on),
            ["api", "ga"] => _ = self.stages.insert(Stage::Ga, on),
            ["api", "beta"] => _ = self.stages.insert(Stage::Beta, on),
            ["api", "alpha"] => _ = self.stages.insert(Stage::Alpha, on),
            ["v1"] | ["api", "v1"] => _ = self.versions.insert((String::new(), own("v1")), on),
            [""] | ["", ..] | [.., ""] => return Err(RuntimeConfigError::Key(own(key))),
            ["api", "v1", resource] => _ = self.resources.insert((String::new(), own("v1"), own(resource)), on),
            [group, version] => _ = self.versions.insert((own(group), own(version)), on),
            [group, version, resource] => _ = self.resources.insert((own(group), own(version), own(resource)), on),
            _ => return Err(RuntimeConfigError::Key(own(key))),
        }
        Ok(())
    }

    /// Refuses groups that no scheme has.
    pub fn check(&self, schemes: &[&'static Scheme]) -> Result<(), RuntimeConfigError> {
        let known = |group: &str| schemes.iter().flat_map(|s| s.groups).any(|g| g.name == group);
        let versions = self.versions.keys().map(|(group, _)| group);
        let groups = versions.chain(self.resources.keys().map(|(group, ..)| group));
        let mut unknown: Vec<&str> = groups.map(String::as_str).filter(|group| !known(group)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        if unknown.is_empty() {
            Ok(())
        } else {
            Err(RuntimeConfigError::UnknownGroups(unknown.join(",")))
        }
    }

    /// Whether `resource` (a plural) is served. The most exact entry decides.
    pub fn serves(&self, group: &str, version: &VersionDesc, resource: &str) -> bool {
        if !version.served {
            return false;
        }
        let key = (group.to_owned(), version.version.to_owned());
        let exact = self.resources.get(&(key.0.clone(), key.1.clone(), resource.to_owned()));
        let by_stage = || self.stages.get(&stage(version.version));
        exact
            .or_else(|| self.versions.get(&key))
            .or_else(by_stage)
            .copied()
            .or(self.all)
            .unwrap_or(version.enabled)
    }
}

/// `v1` is ga, `v1beta1` beta, `v1alpha1` alpha.
fn stage(version: &str) -> Stage {
    if version.contains("alpha") {
        Stage::Alpha
    } else if version.contains("beta") {
        Stage::Beta
    } else {
        Stage::Ga
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(version: &'static str, enabled: bool) -> VersionDesc {
        VersionDesc {
            version,
            priority: 0,
            enabled,
            served: true,
            kinds: &[],
        }
    }

    #[test]
    fn the_most_exact_entry_decides() {
        let cases = [
            ("", "apps", "v1", true, true),
            ("", "apps", "v1beta1", false, false),
            ("api/all=true", "apps", "v1beta1", false, true),
            ("api/all=true,api/beta=false", "apps", "v1beta1", false, false),
            ("api/beta=false,apps/v1beta1", "apps", "v1beta1", false, true),
            ("apps/v1=false", "apps", "v1", true, false),
            ("apps/v1=false,apps/v1/deployments=true", "apps", "v1", true, true),
            ("apps/v1/deployments=false", "apps", "v1", true, false),
            ("apps/v1/daemonsets=false", "apps", "v1", true, true),
            ("api/v1=false", "", "v1", true, false),
            ("v1=false", "", "v1", true, false),
            ("api/v1/deployments=false", "", "v1", true, false),
        ];
        for (text, group, name, enabled, want) in cases {
            let config = RuntimeConfig::parse([text]).unwrap();
            assert_eq!(
                config.serves(group, &version(name, enabled), "deployments"),
                want,
                "{text}"
            );
        }
    }

    #[test]
    fn faults() {
        let cases = [
            ("apps/v1=maybe", "invalid value of apps/v1: maybe: use true or false"),
            (
                "api/all=false",
                "invalid key with only api/all=false: nothing would be served",
            ),
            (
                "/v1",
                "runtime-config invalid key /v1: use api/all, api/ga, api/beta, api/alpha, group/version or group/version/resource",
            ),
            (
                "a/b/c/d",
                "runtime-config invalid key a/b/c/d: use api/all, api/ga, api/beta, api/alpha, group/version or group/version/resource",
            ),
        ];
        for (text, want) in cases {
            assert_eq!(RuntimeConfig::parse([text]).unwrap_err().to_string(), want);
        }
        let config = RuntimeConfig::parse(["apps/v1=true", "none.example/v1=true"]).unwrap();
        assert_eq!(
            config.check(&[]).unwrap_err().to_string(),
            "unknown api groups apps,none.example"
        );
    }
}
