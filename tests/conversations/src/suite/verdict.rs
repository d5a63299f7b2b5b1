//! The verdict on a set of cases: whether they fail where the pending list says so, and nowhere else.

use std::collections::BTreeSet;

use crate::fault::Fault;
use crate::pending::Pending;
use crate::report::Outcome;

/// What the outcomes of a set mean.
pub struct Verdict<'a> {
    pending: &'a Pending,
    outcomes: Vec<&'a Outcome>,
    /// Fail, and are not listed.
    new: Vec<&'a Outcome>,
    /// Are listed, and pass.
    gone: BTreeSet<&'a str>,
    /// Are listed, and there are no such cases.
    unknown: BTreeSet<&'a str>,
}

impl<'a> Verdict<'a> {
    /// `all`: the names of all cases of the set, if all were played.
    pub fn of(
        pending: &'a Pending,
        outcomes: impl Iterator<Item = &'a Outcome>,
        all: Option<&BTreeSet<String>>,
    ) -> Verdict<'a> {
        let outcomes: Vec<&Outcome> = outcomes.collect();
        let all = all.map(|all| all.iter().map(String::as_str).collect());
        let (passing, failing): (Vec<&Outcome>, Vec<_>) = outcomes.iter().partition(|outcome| outcome.passed(false));
        let passing = passing.into_iter().map(|outcome| outcome.case.as_str());
        Verdict {
            pending,
            new: failing
                .into_iter()
                .filter(|outcome| !pending.lists(&outcome.case))
                .collect(),
            gone: passing.filter(|case| pending.lists(case)).collect(),
            unknown: all.map(|all| pending.unknown(&all)).unwrap_or_default(),
            outcomes,
        }
    }

    /// Says what is wrong; whether nothing is.
    pub fn told(&self) -> bool {
        let wrong = self.wrong();
        wrong.iter().for_each(|text| println!("FAILED {text}"));
        let passed = self.outcomes.iter().filter(|outcome| outcome.passed(false)).count();
        let (failed, list) = (self.outcomes.len() - passed, self.list());
        println!("{passed} passed, {failed} failed; {} not as {list} says", wrong.len());
        wrong.is_empty()
    }

    /// Brings the list up to date.
    pub fn write(&self) -> Result<(), Fault> {
        let new = self.new.iter().map(|outcome| outcome.case.as_str()).collect();
        let gone = self.gone.union(&self.unknown).copied().collect();
        std::fs::write(&self.pending.file, self.pending.updated(&gone, &new)).map_err(Fault::unusable)
    }

    /// What is not as the list says.
    fn wrong(&self) -> Vec<String> {
        let list = self.list();
        let new = self.new.iter().map(|outcome| outcome.differences(false));
        let gone = self
            .gone
            .iter()
            .map(|case| format!("{case}: passes, so it must be taken off {list}"));
        let unknown = self
            .unknown
            .iter()
            .map(|case| format!("{case}: is on {list}, and there is no such case"));
        new.chain(gone).chain(unknown).collect()
    }

    fn list(&self) -> String {
        let name = self.pending.file.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::play::Played;

    fn outcome(case: &str, problems: &[&str]) -> Outcome {
        Outcome {
            case: case.into(),
            played: Played {
                problems: problems.iter().map(|problem| (*problem).to_owned()).collect(),
                wording: vec!["worded differently".into()],
            },
            time: Duration::ZERO,
        }
    }

    #[test]
    fn whatever_is_not_as_the_list_says_is_wrong() {
        let pending = Pending::of(Path::new("folder/list.txt"), "a/fails\na/passes\na/gone\n".into());
        let outcomes = [
            outcome("a/fails", &["s1: x"]),
            outcome("a/passes", &[]),
            outcome("a/good", &[]),
            outcome("a/bad", &["s1: x", "s2: y"]),
        ];
        let all = outcomes.iter().map(|outcome| outcome.case.clone()).collect();
        let wrong = Verdict::of(&pending, outcomes.iter(), Some(&all)).wrong();
        assert_eq!(
            wrong,
            [
                "a/bad\n    s1: x\n    s2: y",
                "a/passes: passes, so it must be taken off list.txt",
                "a/gone: is on list.txt, and there is no such case"
            ]
        );
        let wrong = Verdict::of(&pending, outcomes[..1].iter(), None).wrong();
        assert!(wrong.is_empty(), "of some cases alone nothing is said about the others");
    }
}
