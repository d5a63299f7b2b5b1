//! The verdict on a set of cases: whether they fail where the pending list says so, and nowhere else.

use std::collections::BTreeSet;

use crate::fault::Fault;
use crate::pending::Pending;
use crate::report::Outcome;

/// What the outcomes of a set mean.
pub struct Verdict<'a> {
    pending: &'a Pending,
    outcomes: Vec<&'a Outcome>,
}

impl<'a> Verdict<'a> {
    pub fn of(pending: &'a Pending, outcomes: impl Iterator<Item = &'a Outcome>) -> Verdict<'a> {
        Verdict {
            pending,
            outcomes: outcomes.collect(),
        }
    }

    /// Says what is wrong, with `all` also which listed cases are none of these; whether nothing is. With
    /// `KEELSON_UPDATE_PENDING=1` it writes the list instead.
    pub fn told(&self, all: Option<&BTreeSet<String>>) -> Result<bool, Fault> {
        let list = self.pending.file.file_name().unwrap_or_default().to_string_lossy();
        let passed = self.outcomes.iter().filter(|outcome| outcome.passed(false)).count();
        println!(
            "{passed} passed, {} failed, as {list} says but for these:",
            self.outcomes.len() - passed
        );
        let (new, gone) = (self.failing_unlisted(), self.passing_listed());
        for outcome in &new {
            println!("FAILED {}", outcome.differences(false));
        }
        for case in &gone {
            println!("FAILED {case}: passes, so it must be taken off {list}");
        }
        let all: Option<BTreeSet<&str>> = all.map(|all| all.iter().map(String::as_str).collect());
        let unknown = all.map(|all| self.pending.unknown(&all)).unwrap_or_default();
        for case in &unknown {
            println!("FAILED {case}: is on {list}, and there is no such case");
        }
        if std::env::var("KEELSON_UPDATE_PENDING").as_deref() == Ok("1") {
            let new = new.iter().map(|outcome| outcome.case.as_str()).collect();
            let gone = gone.into_iter().chain(unknown).collect();
            std::fs::write(&self.pending.file, self.pending.updated(&gone, &new)).map_err(Fault::unusable)?;
            return Ok(true);
        }
        Ok(new.is_empty() && gone.is_empty() && unknown.is_empty())
    }

    fn failing_unlisted(&self) -> Vec<&'a Outcome> {
        let failing = self.outcomes.iter().filter(|outcome| !outcome.passed(false));
        failing
            .filter(|outcome| !self.pending.lists(&outcome.case))
            .copied()
            .collect()
    }

    fn passing_listed(&self) -> BTreeSet<&'a str> {
        let passing = self.outcomes.iter().filter(|outcome| outcome.passed(false));
        let cases = passing.map(|outcome| outcome.case.as_str());
        cases.filter(|case| self.pending.lists(case)).collect()
    }
}
