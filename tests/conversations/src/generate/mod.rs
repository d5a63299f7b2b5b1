//! Cases of generated requests: a seed decides what they ask, a real kube-apiserver what is right.

mod custom;
mod differ;
mod draft;
mod expressions;
mod hooks;
mod limits;
mod matching;
mod mutations;
mod policies;
mod random;
mod security;

pub use differ::{Differ, differ};

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::case::layout;
use crate::fault::Fault;
use random::Random;

/// Requests of cases of pods.
const REQUESTS: usize = 40;
/// Policies of cases of expressions.
const POLICIES: usize = 12;

/// What a case is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Theme {
    /// Pods against the Pod Security Standards.
    Security,
    /// Pods and claims within LimitRanges.
    Limits,
    /// Objects that ResourceQuotas count.
    Quotas,
    /// Values of expressions.
    Expressions,
    /// Policies that validate.
    Policies,
    /// Policies that mutate.
    Mutations,
    /// Which requests policies mean.
    PolicyRules,
    /// Which requests webhooks mean.
    WebhookRules,
    /// What webhooks answer.
    Webhooks,
    /// Objects of custom resources.
    CustomResources,
    /// Definitions of custom resources.
    Definitions,
    /// Rules of custom resources.
    Rules,
    /// Formats of texts and numbers of custom resources.
    Formats,
}

impl Theme {
    fn word(self) -> &'static str {
        match self {
            Theme::Security => "security",
            Theme::Limits => "limits",
            Theme::Quotas => "quotas",
            Theme::Expressions => "expressions",
            Theme::Policies => "policies",
            Theme::Mutations => "mutations",
            Theme::PolicyRules => "policy-rules",
            Theme::WebhookRules => "webhook-rules",
            Theme::Webhooks => "webhooks",
            Theme::CustomResources => "custom-resources",
            Theme::Definitions => "definitions",
            Theme::Rules => "rules",
            Theme::Formats => "formats",
        }
    }

    /// The case of this seed and number, without answers.
    pub fn case(self, seed: u64, number: u64) -> Value {
        let random = &mut Random::new(seed, number);
        let name = format!("{}-{seed}-{number}", self.word());
        match self {
            Theme::Security => security::case(random, name, REQUESTS),
            Theme::Limits => limits::ranges(random, name, REQUESTS),
            Theme::Quotas => limits::quotas(random, name, REQUESTS),
            Theme::Expressions => expressions::case(random, name, POLICIES),
            Theme::Policies => policies::case(random, name),
            Theme::Mutations => mutations::case(random, name),
            Theme::PolicyRules => matching::policies(random, name),
            Theme::WebhookRules => matching::hooks(random, name),
            Theme::Webhooks => hooks::case(random, name),
            Theme::CustomResources => custom::objects(seed, number, &name),
            Theme::Definitions => custom::definitions(seed, number, &name),
            Theme::Rules => custom::rules::case(random, &name),
            Theme::Formats => custom::formats::case(random, &name),
        }
    }
}

/// Writes cases to a folder; their files.
///
/// # Errors
/// The folder can't be written.
pub fn write(folder: &Path, themes: &[Theme], seed: u64, cases: u64) -> Result<Vec<PathBuf>, Fault> {
    std::fs::create_dir_all(folder).map_err(Fault::unusable)?;
    let mut files = Vec::new();
    for theme in themes {
        for number in 0..cases {
            let case = theme.case(seed, number);
            let file = folder.join(format!("{}.json", case["name"].as_str().unwrap_or_default()));
            std::fs::write(&file, layout(&case)).map_err(Fault::unusable)?;
            files.push(file);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::case::Recorded;

    #[test]
    fn generated_cases_are_cases_and_those_of_their_seed() {
        let folder = tempfile::tempdir().unwrap();
        let files = write(folder.path(), Theme::value_variants(), 3, 4).unwrap();
        assert_eq!(files.len(), 13 * 4);
        for file in files {
            let recorded = Recorded::read(&file).unwrap();
            assert!(recorded.case.steps.len() > 10, "{}", file.display());
        }
        assert_eq!(Theme::Policies.case(1, 1), Theme::Policies.case(1, 1));
        assert_ne!(Theme::Policies.case(1, 1), Theme::Policies.case(2, 1));
    }
}
