//! Recording: the answers of a real kube-apiserver take the place of those that a case has.

use std::path::Path;

use serde_json::Value;

use crate::case::{Recorded, fold, layout};
use crate::deep::parse;
use crate::fault::Fault;
use crate::play::Player;

/// Plays a case and writes the answers into its file, folded. Everything else of the file stays.
pub async fn record(player: &Player, recorded: &Recorded) -> Result<(), Fault> {
    let answers = player.record(recorded).await?;
    change(&recorded.file, |case| {
        for (number, answer) in answers {
            case["steps"][number]["expect"] = answer;
        }
    })
}

/// Folds the answers of a case and writes its file in the layout of all.
pub fn fold_file(recorded: &Recorded) -> Result<(), Fault> {
    change(&recorded.file, |case| {
        for (number, step) in recorded.case.steps.iter().enumerate() {
            if let Some(expect) = &step.expect {
                case["steps"][number]["expect"] = expect.clone();
            }
        }
    })
}

/// Changes a case and writes it. All expected answers must be whole when `change` is done.
fn change(file: &Path, change: impl FnOnce(&mut Value)) -> Result<(), Fault> {
    let wrong = |error: &dyn std::fmt::Display| Fault::unusable(format!("{}: {error}", file.display()));
    let text = std::fs::read(file).map_err(|error| wrong(&error))?;
    let mut case: Value = parse(&text).map_err(|error| wrong(&error))?;
    change(&mut case);
    fold(&mut case);
    std::fs::write(file, layout(&case)).map_err(|error| wrong(&error))
}
