//! Reports: what playing many cases showed, for people.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::play::Played;

/// Differences of one case that are shown.
const SHOWN: usize = 12;

/// What playing one case showed.
#[derive(Debug)]
pub struct Outcome {
    /// `area/file.json`.
    pub case: String,
    pub played: Played,
    pub time: Duration,
}

impl Outcome {
    /// Whether everything agrees; with `strict` the wording too.
    pub fn passed(&self, strict: bool) -> bool {
        self.played.problems.is_empty() && (!strict || self.played.wording.is_empty())
    }

    /// The case and where it differs, a line each.
    pub fn differences(&self, strict: bool) -> String {
        let wording = self.played.wording.iter().filter(|_| strict);
        let all: Vec<&String> = self.played.problems.iter().chain(wording).collect();
        let mut text = self.case.clone();
        for line in all.iter().take(SHOWN) {
            text.push_str("\n    ");
            text.push_str(line);
        }
        if all.len() > SHOWN {
            text.push_str(&format!("\n    and {} more", all.len() - SHOWN));
        }
        text
    }
}

/// One line for each area, and the sum.
pub fn totals(outcomes: &[Outcome], strict: bool) -> String {
    let mut areas: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for outcome in outcomes {
        let area = outcome.case.split('/').next().unwrap_or_default();
        let [passed, all, worded] = areas.entry(area).or_default();
        *passed += usize::from(outcome.passed(strict));
        *all += 1;
        *worded += usize::from(!outcome.played.wording.is_empty());
    }
    let mut text = String::new();
    for (area, [passed, all, worded]) in &areas {
        let wording = if *worded > 0 {
            format!(" ({worded} differ in wording)")
        } else {
            String::new()
        };
        text.push_str(&format!("{area:<24} {passed:>4}/{all:<4}{wording}\n"));
    }
    let passed = outcomes.iter().filter(|outcome| outcome.passed(strict)).count();
    text + &format!("{passed} passed, {} failed", outcomes.len() - passed)
}

/// Writes every case's outcome as JSON.
pub fn write(file: &Path, outcomes: &[Outcome], strict: bool) -> std::io::Result<()> {
    let row = |outcome: &Outcome| {
        json!({
            "case": outcome.case,
            "passed": outcome.passed(strict),
            "problems": outcome.played.problems,
            "wording": outcome.played.wording,
            "seconds": outcome.time.as_secs_f64(),
        })
    };
    let rows: Vec<Value> = outcomes.iter().map(row).collect();
    std::fs::write(file, serde_json::to_vec_pretty(&rows)?)
}
