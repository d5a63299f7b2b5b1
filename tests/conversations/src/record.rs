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
        write_out(recorded, case);
        for (number, answer) in answers {
            case["steps"][number]["expect"] = answer;
        }
    })
}

/// Folds the answers of a case and writes its file in the layout of all.
pub fn fold_file(recorded: &Recorded) -> Result<(), Fault> {
    change(&recorded.file, |case| write_out(recorded, case))
}

/// Puts the whole expected answers into a case as it stands in its file.
fn write_out(recorded: &Recorded, case: &mut Value) {
    for (number, step) in recorded.case.steps.iter().enumerate() {
        if let Some(expect) = &step.expect {
            case["steps"][number]["expect"] = expect.clone();
        }
    }
}

/// Changes a case and writes it. All expected answers must be whole when `change` is done.
fn change(file: &Path, change: impl FnOnce(&mut Value)) -> Result<(), Fault> {
    let mut case = read(file)?;
    change(&mut case);
    fold(&mut case);
    std::fs::write(file, layout(&case)).map_err(|error| wrong(file, &error))
}

fn read(file: &Path) -> Result<Value, Fault> {
    let text = std::fs::read(file).map_err(|error| wrong(file, &error))?;
    parse(&text).map_err(|error| wrong(file, &error))
}

fn wrong(file: &Path, error: &dyn std::fmt::Display) -> Fault {
    Fault::unusable(format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::case_files;

    /// So a recording that is made anew differs where answers differ, and nowhere else.
    #[test]
    fn every_file_is_as_recording_writes_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/conversations");
        let files = case_files(&[folder]).unwrap();
        assert!(files.len() > 500, "only {} files", files.len());
        for file in files {
            let mut case = read(&file).unwrap();
            write_out(&Recorded::read(&file).unwrap(), &mut case);
            fold(&mut case);
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(layout(&case) == text, "{}: `fold` writes it otherwise", file.display());
        }
    }
}
