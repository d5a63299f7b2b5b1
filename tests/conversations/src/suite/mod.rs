//! The suite: every recorded case against servers that it starts, and a comparison with the pending lists.
//!
//! `CI=true` makes a missing folder or program a failure; elsewhere a line says what was skipped.

mod area;
mod etcd;
mod plan;
mod server;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use tokio::sync::Mutex;

use crate::batch;
use crate::case::Recorded;
use crate::fault::Fault;
use crate::pending::Pending;
use crate::play::{Played, Player, Thoroughness};
use crate::report::Outcome;
pub use area::{flags_of, merged_flags};
use plan::{Group, Origin};
use server::Server;
use verdict::Verdict;

/// Servers at once, and cases at once against each.
const SERVERS: usize = 3;
const JOBS: usize = 4;

/// What the suite needs to know.
pub struct Suite {
    /// The server's program.
    pub program: PathBuf,
    /// The project's folder.
    pub project: PathBuf,
    /// Only cases whose names contain one of these; all without any.
    pub filters: Vec<String>,
}

/// A set of cases with its list.
struct Cases {
    origin: Origin,
    groups: Vec<Group>,
    pending: Pending,
}

impl Suite {
    /// From the arguments that `cargo test` passes on: texts that names of cases contain; flags of its usual test
    /// programs mean nothing here.
    pub fn from_args(program: &Path, project: &Path) -> Suite {
        let filters = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
        Suite {
            program: program.to_path_buf(),
            project: project.to_path_buf(),
            filters: filters.collect(),
        }
    }

    /// Plays everything; success where all cases are as the lists say.
    pub fn run(&self) -> ExitCode {
        if std::env::args().any(|argument| argument == "--list") {
            return ExitCode::SUCCESS;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        let outcome = runtime
            .map_err(Fault::unusable)
            .and_then(|runtime| runtime.block_on(self.play_all()));
        match outcome {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(fault) => {
                println!("conversations: {fault}");
                ExitCode::FAILURE
            }
        }
    }

    async fn play_all(&self) -> Result<bool, Fault> {
        let begin = Instant::now();
        let sets = self.sets()?;
        let stub_port = Mutex::new(());
        let groups = sets
            .iter()
            .flat_map(|set| set.groups.iter().map(move |group| (set, group)));
        let mut groups: Vec<_> = groups.filter(|(_, group)| !group.cases.is_empty()).collect();
        // The longest first: the others fill what is left.
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.cases.len()));
        let played = stream::iter(groups).map(|(set, group)| self.play_group(set, group, &stub_port));
        let played: Vec<_> = played.buffer_unordered(SERVERS).collect().await;
        let mut well = true;
        for set in &sets {
            let outcomes = played.iter().filter(|(origin, _)| *origin == set.origin);
            let outcomes = outcomes.flat_map(|(_, outcomes)| outcomes);
            let all = set.groups.iter().flat_map(Group::labels).collect();
            let verdict = Verdict::of(&set.pending, outcomes, self.filters.is_empty().then_some(&all));
            well &= verdict.told();
            if std::env::var("KEELSON_UPDATE_PENDING").as_deref() == Ok("1") {
                verdict.write()?;
            }
        }
        println!("conversations: {} s", begin.elapsed().as_secs());
        Ok(well)
    }

    /// Our own cases and those beside the project, as far as they are there.
    fn sets(&self) -> Result<Vec<Cases>, Fault> {
        let data = self.project.join("tests/data");
        let outside = std::env::var_os("KEELSON_CASES").map(PathBuf::from);
        let outside = outside.unwrap_or_else(|| self.project.join("../shared/conformance/cases"));
        let places = [
            (
                Origin::Own,
                data.join("conversations"),
                data.join("conversations-pending.txt"),
            ),
            (Origin::Outside, outside, data.join("conformance-pending.txt")),
        ];
        let mut sets = Vec::new();
        for (origin, folder, list) in places {
            if !folder.is_dir() {
                missing(&format!(
                    "there is no folder {} (KEELSON_CASES names another)",
                    folder.display()
                ))?;
                continue;
            }
            let wrong = |error: std::io::Error| Fault::unusable(format!("{}: {error}", list.display()));
            sets.push(Cases {
                origin,
                groups: plan::groups(origin, &folder, &self.filters)?,
                pending: Pending::read(&list).map_err(wrong)?,
            });
        }
        Ok(sets)
    }

    async fn play_group(&self, set: &Cases, group: &Group, stub_port: &Mutex<()>) -> (Origin, Vec<Outcome>) {
        // Stubs that files of servers name share a port.
        let _port = if group.has_fixed_stub {
            Some(stub_port.lock().await)
        } else {
            None
        };
        let begin = Instant::now();
        let outcomes = match self.against_server(set, group).await {
            Ok(outcomes) => outcomes,
            Err(fault) => group.cases.iter().map(|case| failed(case, &fault)).collect(),
        };
        println!("{group}: {} cases, {} s", outcomes.len(), begin.elapsed().as_secs());
        (set.origin, outcomes)
    }

    async fn against_server(&self, set: &Cases, group: &Group) -> Result<Vec<Outcome>, Fault> {
        let Some(server) = Server::start(&self.program, group).await? else {
            missing("there is no etcd (ETCD_BIN names it): its cases were not played")?;
            return Ok(Vec::new());
        };
        let player = Arc::new(Player::connect(server.target()).await?);
        let how = |case: &Arc<Recorded>| match set.pending.lists(&case.label()) {
            true => Thoroughness::Brief,
            false => Thoroughness::Whole,
        };
        let cases = group.cases.iter().map(|case| (case.clone(), how(case))).collect();
        Ok(batch::play(&player, cases, JOBS).await)
    }
}

fn failed(case: &Arc<Recorded>, fault: &Fault) -> Outcome {
    Outcome {
        case: case.label(),
        played: Played {
            problems: vec![fault.to_string()],
            wording: Vec::new(),
        },
        time: Duration::ZERO,
    }
}

/// What is missing fails in CI and is told elsewhere.
fn missing(what: &str) -> Result<(), Fault> {
    if std::env::var("CI").as_deref() == Ok("true") {
        return Err(Fault::unusable(format!("{what}, and CI must play them")));
    }
    println!("skipped: {what}");
    Ok(())
}
