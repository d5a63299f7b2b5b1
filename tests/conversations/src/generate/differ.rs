//! Differential runs: generated cases are recorded from a real kube-apiserver and played against another server.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Theme, write};
use crate::case::Recorded;
use crate::fault::Fault;
use crate::pending::Pending;
use crate::play::{Player, Thoroughness};
use crate::report::Outcome;
use crate::{batch, record, report};

/// What is generated, and where it is kept.
#[derive(clap::Args)]
#[group(skip)]
pub struct Differ {
    /// The seed of the cases.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Cases of each theme.
    #[arg(long, default_value_t = 10)]
    cases: u64,
    /// What the cases are about; all themes if absent.
    #[arg(long, value_delimiter = ',')]
    themes: Vec<Theme>,
    /// Where the cases are kept.
    #[arg(long, value_name = "FOLDER")]
    keep: PathBuf,
    /// Cases that are known to differ, one a line, with the reason behind `#`.
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// They are recorded already: only played.
    #[arg(long)]
    recorded: bool,
}

/// Records the cases from `theirs` and plays them against `ours`: whether all differences are known. What differs when
/// it is played against `theirs` again is chance, and left out.
///
/// # Errors
/// A file can't be read or written, or a server can't be asked.
pub async fn differ(settings: &Differ, theirs: Player, ours: Player, jobs: usize) -> Result<bool, Fault> {
    use clap::ValueEnum;
    let themes = match settings.themes.is_empty() {
        true => Theme::value_variants(),
        false => settings.themes.as_slice(),
    };
    let mut chance = BTreeSet::new();
    if !settings.recorded {
        let files = write(&settings.keep, themes, settings.seed, settings.cases)?;
        record_all(&theirs, &files).await?;
        let again = played(theirs, &files, jobs).await?;
        for outcome in &again {
            chance.extend(lines(outcome).map(|line| place(outcome, line)));
        }
    }
    let files = files_of(settings, themes);
    let known = match &settings.known {
        Some(file) => Pending::read(file).map_err(Fault::unusable)?,
        None => Pending::of(&settings.keep, String::new()),
    };
    let mut well = true;
    let outcomes = played(ours, &files, jobs).await?;
    for outcome in &outcomes {
        let different: Vec<&String> = lines(outcome)
            .filter(|line| !chance.contains(&place(outcome, line)))
            .collect();
        if !different.is_empty() && !known.lists(&outcome.case) {
            well = false;
            println!("DIFFERS {}", outcome.case);
            different.iter().for_each(|line| println!("    {line}"));
        }
    }
    println!("{}", report::totals(&outcomes, true));
    println!("{} answers differ from themselves", chance.len());
    Ok(well)
}

fn files_of(settings: &Differ, themes: &[Theme]) -> Vec<PathBuf> {
    let names = themes.iter().flat_map(|theme| {
        let name = |number| format!("{}-{}-{number}.json", theme.word(), settings.seed);
        (0..settings.cases).map(name)
    });
    names.map(|name| settings.keep.join(name)).collect()
}

async fn record_all(theirs: &Player, files: &[PathBuf]) -> Result<(), Fault> {
    for file in files {
        let recorded = Recorded::read(file).map_err(Fault::Unusable)?;
        if let Err(fault) = record::record(theirs, &recorded).await {
            println!("not recorded: {}: {fault}", recorded.label());
        }
    }
    Ok(())
}

async fn played(player: Player, files: &[PathBuf], jobs: usize) -> Result<Vec<Outcome>, Fault> {
    let mut cases = Vec::new();
    for file in files {
        let recorded = Recorded::read(file).map_err(Fault::Unusable)?;
        cases.push((Arc::new(recorded), Thoroughness::Whole));
    }
    Ok(batch::play(&Arc::new(player), cases, jobs).await)
}

/// All differences of a case.
fn lines(outcome: &Outcome) -> impl Iterator<Item = &String> {
    outcome.played.problems.iter().chain(&outcome.played.wording)
}

/// The place of a difference, whatever the values are: its case, step and path.
fn place(outcome: &Outcome, line: &str) -> String {
    let place = line.split(": want ").next().unwrap_or(line);
    format!("{} {place}", outcome.case)
}
