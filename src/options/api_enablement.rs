//! Which API versions are served.

use std::collections::{BTreeMap, BTreeSet};

use keelson_machinery::scheme::Scheme;

use super::{OptionError, values};

pub(super) const SECTION: &str = "API enablement flags";

const FLAG: &str = "--runtime-config";
const ALL: &str = "api/all";

#[derive(clap::Args, Debug, Default, Clone)]
#[command(next_help_heading = SECTION)]
pub struct ApiEnablement {
    /// Turns API versions on or off, as <key>=true or <key>=false with commas between. A key is <group>/<version>, v1,
    /// or one of api/all, api/ga (v1, v2, …), api/beta (v1beta1, …) and api/alpha (v1alpha1, …).
    #[arg(long, value_name = "mapStringString", value_delimiter = ',', value_parser = values::pair)]
    pub runtime_config: Vec<(String, String)>,
}

/// A group and a version of it.
pub type GroupVersion = (&'static str, &'static str);

impl ApiEnablement {
    /// The groups and versions of the schemes that are to be served.
    pub(super) fn served(&self, schemes: &[&'static Scheme]) -> Result<BTreeSet<GroupVersion>, OptionError> {
        let overrides = values::map(&self.runtime_config);
        if overrides.len() == 1 && overrides.get(ALL).is_some_and(|value| value == "false") {
            return Err(OptionError::flag(FLAG, format!("invalid key with only {ALL}=false")));
        }
        let known: BTreeMap<GroupVersion, bool> = schemes
            .iter()
            .flat_map(|scheme| scheme.groups)
            .flat_map(|group| group.versions.iter().map(|v| ((group.name, v.version), v.enabled)))
            .collect();
        let mut served = known.clone();
        for (key, matches) in MATCHERS {
            if let Some(on) = switch(&overrides, key)? {
                served
                    .iter_mut()
                    .filter(|((_, version), _)| matches(version))
                    .for_each(|(_, enabled)| *enabled = on);
            }
        }
        for key in overrides.keys().filter(|key| !is_matcher(key)) {
            let group_version = group_version(key)?;
            let on = switch(&overrides, key)?.unwrap_or(true);
            match served.iter_mut().find(|(known, _)| (known.0, known.1) == group_version) {
                Some((_, enabled)) => *enabled = on,
                None => return Err(unknown(&known, group_version)),
            }
        }
        Ok(served
            .into_iter()
            .filter(|(_, on)| *on)
            .map(|(group_version, _)| group_version)
            .collect())
    }
}

/// Keys that stand for many versions, in the order in which they count: later ones win.
const MATCHERS: [(&str, fn(&str) -> bool); 4] = [
    (ALL, |_| true),
    ("api/ga", |version| {
        !version.contains("alpha") && !version.contains("beta")
    }),
    ("api/beta", |version| version.contains("beta")),
    ("api/alpha", |version| version.contains("alpha")),
];

/// `api/legacy` is still taken, and does nothing.
fn is_matcher(key: &str) -> bool {
    key == "api/legacy" || MATCHERS.iter().any(|(matcher, _)| *matcher == key)
}

fn switch(overrides: &BTreeMap<String, String>, key: &str) -> Result<Option<bool>, OptionError> {
    match overrides.get(key).map(String::as_str) {
        None => Ok(None),
        Some("") => Ok(Some(true)),
        Some(value) => values::boolean(value)
            .map(Some)
            .map_err(|error| OptionError::flag(FLAG, format!("invalid value of {key}: {value}, err: {error}"))),
    }
}

/// `v1` and `api/v1` are the legacy group's.
fn group_version(key: &str) -> Result<(&str, &str), OptionError> {
    match key.split_once('/') {
        None if key == "v1" => Ok(("", key)),
        Some(("api", version)) => Ok(("", version)),
        Some((group, version)) if !version.contains('/') => Ok((group, version)),
        _ => Err(OptionError::flag(FLAG, format!("runtime-config invalid key {key}"))),
    }
}

fn unknown(known: &BTreeMap<GroupVersion, bool>, (group, version): (&str, &str)) -> OptionError {
    match known.keys().any(|(name, _)| *name == group) {
        true => OptionError::flag(
            FLAG,
            format!("group version {group}/{version} that has not been registered"),
        ),
        false => OptionError::flag(FLAG, format!("unknown api groups {group}")),
    }
}

#[cfg(test)]
mod tests {
    use keelson_machinery::scheme::{GroupDesc, VersionDesc};

    use super::*;

    const fn version(version: &'static str, enabled: bool) -> VersionDesc {
        VersionDesc {
            version,
            priority: 1,
            enabled,
            kinds: &[],
        }
    }

    static SCHEME: Scheme = Scheme {
        groups: &[
            GroupDesc {
                name: "",
                priority: 2,
                versions: &[version("v1", true)],
            },
            GroupDesc {
                name: "apps",
                priority: 1,
                versions: &[version("v1", true), version("v1beta1", false)],
            },
        ],
        types: &[],
        definitions: &[],
    };

    fn served(text: &str) -> Result<Vec<GroupVersion>, String> {
        let runtime_config = text
            .split(',')
            .filter(|s| !s.is_empty())
            .map(|s| values::pair(s).unwrap())
            .collect();
        let served = ApiEnablement { runtime_config }
            .served(&[&SCHEME])
            .map_err(|error| error.to_string())?;
        Ok(served.into_iter().collect())
    }

    #[test]
    fn versions_are_switched() {
        for (text, want) in [
            ("", &[("", "v1"), ("apps", "v1")][..]),
            ("api/all=true", &[("", "v1"), ("apps", "v1"), ("apps", "v1beta1")]),
            ("api/beta=true,api/ga=false", &[("apps", "v1beta1")]),
            ("apps/v1=false", &[("", "v1")]),
            ("api/all=false,v1", &[("", "v1")]),
            ("api/legacy=false", &[("", "v1"), ("apps", "v1")]),
        ] {
            assert_eq!(served(text).unwrap(), want, "{text}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (text, error) in [
            ("api/all=false", "invalid key with only api/all=false"),
            (
                "apps/v1=maybe",
                r#"invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax"#,
            ),
            ("apps", "runtime-config invalid key apps"),
            ("nope/v1=true", "unknown api groups nope"),
            ("apps/v9=true", "group version apps/v9 that has not been registered"),
        ] {
            assert_eq!(
                served(text).unwrap_err(),
                format!("--runtime-config: {error}"),
                "{text}"
            );
        }
    }
}
