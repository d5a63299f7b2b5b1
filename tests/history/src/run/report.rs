//! The report of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use keelson_history::{Delivery, History, Operation, Outcome, Violation};

use super::object::Kind;
use super::situations::Situation;
use super::{Settings, Site};

/// How many violations of a rule are shown.
const SHOWN: usize = 3;

fn is_done(operation: &&Operation) -> bool {
    matches!(operation.outcome, Outcome::Done(_))
}

/// A run in which hardly anything was done shows nothing.
pub fn idle(histories: &[(Kind, History)], time: Duration) -> Option<Violation> {
    let operations = histories.iter().flat_map(|(_, history)| &history.operations);
    let too_few = (operations.filter(is_done).count() as u64) < time.as_secs();
    too_few.then(|| Violation {
        rule: "the load is a load",
        text: "fewer than one operation per second was done".to_owned(),
    })
}

/// What there was, in numbers.
pub fn summary(histories: &[(Kind, History)]) -> String {
    let operations = || histories.iter().flat_map(|(_, history)| &history.operations);
    let streams = || histories.iter().flat_map(|(_, history)| &history.streams);
    let deliveries = || streams().flat_map(|stream| &stream.deliveries);
    let bookmarks =
        deliveries().filter(|(_, delivery)| matches!(delivery, Delivery::Bookmark(_) | Delivery::InitialEnd(_)));
    let unknown = operations().filter(|operation| operation.outcome == Outcome::Unknown);
    let gone = deliveries().filter(|(_, delivery)| *delivery == Delivery::Gone);
    let lost = histories
        .iter()
        .filter(|(_, history)| !history.complete)
        .map(|(kind, _)| format!(", {kind:?} incomplete"));
    format!(
        "{} operations ({} done, {} unknown), {} lists, {} watches with {} deliveries ({} bookmarks, {} gone){}",
        operations().count(),
        operations().filter(is_done).count(),
        unknown.count(),
        histories.iter().map(|(_, history)| history.lists.len()).sum::<usize>(),
        streams().count(),
        deliveries().count(),
        bookmarks.count(),
        gone.count(),
        lost.collect::<String>(),
    )
}

/// Shows the violations, and keeps what a search for their cause needs.
pub fn keep(settings: &Settings, mut site: Site, histories: &[(Kind, History)], violations: &[Violation]) {
    let mut by_rule: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for violation in violations {
        by_rule.entry(violation.rule).or_default().push(&violation.text);
    }
    for (rule, texts) in by_rule {
        println!("  {rule}: {} times", texts.len());
        texts.iter().take(SHOWN).for_each(|text| println!("    {text}"));
    }
    site.folder.disable_cleanup(true);
    let folder = site.folder.path();
    let file = folder.join("history");
    // Who searches finds out when there is none.
    let _ = std::fs::write(&file, format!("{histories:#?}\n{violations:#?}\n"));
    println!(
        "  history, logs and data are in {}; again: traffic --stores {} --seconds {} --seed {}{}",
        folder.display(),
        format!("{:?}", settings.store).to_lowercase(),
        settings.time.as_secs(),
        settings.seed,
        without(settings)
    );
}

/// The option that leaves out what this run left out.
fn without(settings: &Settings) -> String {
    let left = Situation::all_but(&settings.situations);
    let names = left.iter().filter_map(clap::ValueEnum::to_possible_value);
    let names: Vec<_> = names.map(|name| name.get_name().to_owned()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" --without {}", names.join(",")),
    }
}
