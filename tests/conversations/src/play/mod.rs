//! Playing: a case's steps are sent to the server one after the other, and their answers compared or recorded.

mod answer;
mod request;
mod session;
mod setup;
mod special;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::case::Recorded;
use crate::client::{Address, Client, Connector};
use crate::compare::differences;
use crate::etcd::Etcd;
use crate::fault::Fault;
use crate::stub::Stubs;
use session::Session;

/// The server that is examined, and how.
pub struct Target {
    pub server: Address,
    /// Authorities of its certificate; without them any is taken.
    pub ca: Option<PathBuf>,
    /// User to bearer token; `admin` is a member of `system:masters`.
    pub tokens: BTreeMap<String, String>,
    /// Its audit log, for cases that read it.
    pub audit_log: Option<PathBuf>,
    /// Its etcd, for cases that read it.
    pub etcd: Option<Address>,
    /// The copy of the cases' area that it reads, where it reads one.
    pub copy: Option<PathBuf>,
}

/// Plays cases against one server.
pub struct Player {
    client: Arc<Client>,
    tokens: BTreeMap<String, String>,
    audit_log: Option<PathBuf>,
    etcd: Option<Etcd>,
    copy: Option<PathBuf>,
    /// The address that the server tells clients; it is another on each machine.
    advertised: String,
    stubs: Stubs,
}

/// How much of a case is played.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Thoroughness {
    Whole,
    /// Up to the first problem, and no step waits for long: of a case that is known to fail nothing else matters.
    Brief,
}

/// What playing a case showed.
#[derive(Debug, Default, PartialEq)]
pub struct Played {
    /// Where it differs from what was recorded.
    pub problems: Vec<String>,
    /// Where only texts for humans differ.
    pub wording: Vec<String>,
}

impl Player {
    /// A player for a server, which must answer.
    pub async fn connect(target: Target) -> Result<Player, Fault> {
        let connector = Connector::new(target.ca.as_deref())?;
        let mut player = Player {
            client: Arc::new(Client::new(target.server, connector)),
            tokens: target.tokens,
            audit_log: target.audit_log,
            etcd: target.etcd.map(Etcd::at).transpose()?,
            copy: target.copy,
            advertised: String::new(),
            stubs: Stubs::default(),
        };
        player.advertised = player.ask_advertised().await?;
        Ok(player)
    }

    /// Whether this case can be played: it may need an etcd that nobody named.
    pub fn can_play(&self, recorded: &Recorded) -> bool {
        self.etcd.is_some() || !recorded.case.reads_etcd()
    }

    /// Plays a case and compares.
    pub async fn compare(&self, recorded: &Recorded, how: Thoroughness) -> Played {
        let mut played = Played::default();
        let end = self.play(recorded, how, |number, got| {
            let Some(wanted) = &recorded.case.steps[number].expect else {
                return Err(Fault::unusable("nothing is recorded"));
            };
            let name = step_name(recorded, number);
            for difference in differences(wanted, &got) {
                let to = if difference.is_wording() {
                    &mut played.wording
                } else {
                    &mut played.problems
                };
                to.push(format!("{name}: {difference}"));
            }
            Ok(how == Thoroughness::Whole || played.problems.is_empty())
        });
        if let Err(fault) = end.await {
            played.problems.push(fault.to_string());
        }
        played
    }

    /// Plays a case; the answers by the numbers of their steps.
    pub async fn record(&self, recorded: &Recorded) -> Result<BTreeMap<usize, Value>, Fault> {
        let mut answers = BTreeMap::new();
        self.play(recorded, Thoroughness::Whole, |number, got| {
            answers.insert(number, got);
            Ok(true)
        })
        .await?;
        Ok(answers)
    }

    /// Hands the answer of each step that is compared to `each`, which says whether to go on.
    async fn play(
        &self,
        recorded: &Recorded,
        how: Thoroughness,
        mut each: impl FnMut(usize, Value) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let mut session = Session::begin(self, recorded, how).await?;
        let mut end = Ok(());
        for (number, step) in recorded.case.steps.iter().enumerate() {
            let next = match session.step(step).await {
                Ok(None) => Ok(true),
                Ok(Some(_)) if step.is_not_compared() => Ok(true),
                Ok(Some(got)) => each(number, got),
                Err(Fault::Transport(error)) if step.is_not_compared() => drop_error(&error),
                Err(Fault::Transport(error)) => each(number, serde_json::json!({"error": error})),
                Err(fault) => Err(fault),
            };
            match next {
                Ok(true) => {}
                Ok(false) => break,
                Err(fault) => {
                    end = Err(Fault::unusable(format!("{}: {fault}", step_name(recorded, number))));
                    break;
                }
            }
        }
        session.end().await;
        end
    }
}

/// Whether the request of a step that is not compared came through does not matter.
fn drop_error(_: &str) -> Result<bool, Fault> {
    Ok(true)
}

fn step_name(recorded: &Recorded, number: usize) -> String {
    let id = recorded.case.steps[number].id.clone();
    id.unwrap_or_else(|| format!("step{}", number + 1))
}
