//! Policies of pod security: levels and versions, as labels of a namespace or the configuration say them.

use std::collections::BTreeMap;
use std::fmt;

use keelson_machinery::field::{ErrorList, FieldError, Path};

/// How much a pod may do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Everything.
    Privileged,
    /// Nothing that is known to lead out of a container.
    Baseline,
    /// As little as there is.
    Restricted,
}

impl Level {
    /// # Errors
    /// There is no such level.
    pub fn parse(text: &str) -> Result<Level, &'static str> {
        match text {
            "privileged" => Ok(Level::Privileged),
            "baseline" => Ok(Level::Baseline),
            "restricted" => Ok(Level::Restricted),
            _ => Err("must be one of privileged, baseline, restricted"),
        }
    }
}

/// The version of Kubernetes whose rules hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    /// `v1.` and this.
    Minor(u32),
    /// That of the server.
    Latest,
}

impl Version {
    /// # Errors
    /// It is no version.
    pub fn parse(text: &str) -> Result<Version, &'static str> {
        const FAULT: &str = "must be \"latest\" or \"v1.x\"";
        if text == "latest" {
            return Ok(Version::Latest);
        }
        let minor = text
            .strip_prefix("v1.")
            .filter(|minor| minor.bytes().all(|b| b.is_ascii_digit()));
        let minor = minor.filter(|minor| *minor == "0" || !minor.starts_with('0'));
        let minor = minor.and_then(|minor| minor.parse().ok());
        minor.map(Version::Minor).ok_or(FAULT)
    }
}

/// What of a mode is demanded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand {
    /// How much a pod may do,
    pub level: Level,
    /// by the rules of this version.
    pub version: Version,
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        })?;
        match self.version {
            Version::Minor(minor) => write!(f, ":v1.{minor}"),
            Version::Latest => f.write_str(":latest"),
        }
    }
}

impl Demand {
    /// Everything is allowed.
    pub const NOTHING: Demand = Demand {
        level: Level::Privileged,
        version: Version::Latest,
    };

    fn is_equivalent(self, other: Demand) -> bool {
        self == other || (self.level == Level::Privileged && other.level == Level::Privileged)
    }
}

/// What is demanded of the pods of a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Others are refused.
    pub enforce: Demand,
    /// Others are recorded.
    pub audit: Demand,
    /// Others are warned of.
    pub warn: Demand,
}

/// Labels, in the order in which kube-apiserver reads them.
const LABELS: [&str; 6] = [
    "pod-security.kubernetes.io/enforce",
    "pod-security.kubernetes.io/enforce-version",
    "pod-security.kubernetes.io/audit",
    "pod-security.kubernetes.io/audit-version",
    "pod-security.kubernetes.io/warn",
    "pod-security.kubernetes.io/warn-version",
];

type Labels = BTreeMap<String, String>;

impl Policy {
    /// Nothing is demanded.
    pub const NONE: Policy = Policy {
        enforce: Demand::NOTHING,
        audit: Demand::NOTHING,
        warn: Demand::NOTHING,
    };

    /// Everything is allowed, without a word.
    pub fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn]
            .iter()
            .all(|demand| demand.level == Level::Privileged)
    }

    /// Means the same as another one.
    pub fn is_equivalent(&self, other: &Policy) -> bool {
        let pairs = [
            (self.enforce, other.enforce),
            (self.audit, other.audit),
            (self.warn, other.warn),
        ];
        pairs.into_iter().all(|(a, b)| a.is_equivalent(b))
    }

    /// What the labels of a namespace say beyond the defaults, and what is wrong with them: what can't be read demands
    /// most where it is enforced and nothing else.
    pub fn of(labels: &Labels, defaults: &Policy) -> (Policy, ErrorList) {
        let mut policy = *defaults;
        let mut errors = ErrorList::new();
        let path = Path::new("metadata").child("labels");
        let mut fault = |label: &str, value: &str, why: &str| {
            errors.push(FieldError::invalid(&path.key(label), value, why));
        };
        let mut enforced = false;
        let modes = [&mut policy.enforce, &mut policy.audit, &mut policy.warn];
        for (mode, [label, version_label]) in modes.into_iter().zip(LABELS.as_chunks().0) {
            if let Some(value) = labels.get(*label) {
                let is_enforce = *label == LABELS[0];
                match Level::parse(value) {
                    Ok(level) => {
                        mode.level = level;
                        enforced |= is_enforce;
                    }
                    Err(why) => {
                        mode.level = if is_enforce {
                            Level::Restricted
                        } else {
                            Level::Privileged
                        };
                        fault(label, value, why);
                    }
                }
            }
            if let Some(value) = labels.get(*version_label) {
                mode.version = Version::parse(value).unwrap_or_else(|why| {
                    fault(version_label, value, why);
                    Version::Latest
                });
            }
        }
        if enforced && !labels.contains_key(LABELS[4]) && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if !labels.contains_key(LABELS[5]) {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, errors)
    }

    /// What of it the labels of a namespace say themselves, as a warning shows it: `enforce=baseline:latest`.
    pub fn said_by(&self, labels: &Labels) -> String {
        let modes = [("enforce", self.enforce), ("audit", self.audit), ("warn", self.warn)];
        let said = modes
            .into_iter()
            .zip(LABELS.as_chunks::<2>().0)
            .filter(|((_, demand), pair)| {
                demand.level != Level::Privileged && pair.iter().any(|label| labels.contains_key(*label))
            });
        let texts: Vec<String> = said.map(|((mode, demand), _)| format!("{mode}={demand}")).collect();
        texts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let label = |name: &str| format!("pod-security.kubernetes.io/{name}");
        pairs
            .iter()
            .map(|(name, value)| (label(name), (*value).to_owned()))
            .collect()
    }

    fn shown(pairs: &[(&str, &str)]) -> (String, usize) {
        let (policy, errors) = Policy::of(&labels(pairs), &Policy::NONE);
        (
            format!("{} {} {}", policy.enforce, policy.audit, policy.warn),
            errors.len(),
        )
    }

    #[test]
    fn labels_say_what_is_demanded() {
        for (given, expected, faults) in [
            (&[][..], "privileged:latest privileged:latest privileged:latest", 0),
            (
                &[("enforce", "baseline")],
                "baseline:latest privileged:latest baseline:latest",
                0,
            ),
            (
                &[
                    ("enforce", "restricted"),
                    ("enforce-version", "v1.20"),
                    ("warn", "baseline"),
                ],
                "restricted:v1.20 privileged:latest baseline:latest",
                0,
            ),
            (
                &[
                    ("enforce", "restricted"),
                    ("enforce-version", "v1.20"),
                    ("warn-version", "v1.5"),
                ],
                "restricted:v1.20 privileged:latest restricted:v1.5",
                0,
            ),
            (
                &[("enforce", "x"), ("audit", "x"), ("warn", "x"), ("warn-version", "1.2")],
                "restricted:latest privileged:latest privileged:latest",
                4,
            ),
        ] {
            assert_eq!(shown(given), (expected.to_owned(), faults), "{given:?}");
        }
        let (_, errors) = Policy::of(&labels(&[("enforce", "x")]), &Policy::NONE);
        assert_eq!(
            errors.iter().next().unwrap().to_string(),
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"x\": must be one of privileged, baseline, \
             restricted"
        );
    }

    #[test]
    fn versions_are_those_of_kubernetes() {
        for (text, expected) in [
            ("latest", Some(Version::Latest)),
            ("v1.0", Some(Version::Minor(0))),
            ("v1.24", Some(Version::Minor(24))),
            ("v1.024", None),
            ("v1.", None),
            ("v2.1", None),
            ("v1.99999999999", None),
            ("v1.+1", None),
        ] {
            assert_eq!(Version::parse(text).ok(), expected, "{text}");
        }
        assert!(Version::Minor(99) < Version::Latest);
    }

    #[test]
    fn a_warning_shows_what_labels_say() {
        let given = labels(&[
            ("enforce", "baseline"),
            ("audit-version", "v1.2"),
            ("warn", "restricted"),
        ]);
        let (policy, _) = Policy::of(&given, &Policy::NONE);
        assert_eq!(
            policy.said_by(&given),
            "enforce=baseline:latest, warn=restricted:latest"
        );
    }
}
