//! What a seed makes of a run: who takes part, and what may go wrong.

use std::time::Duration;

use super::dice::Dice;

const PREFIXES: &[&str] = &["/a/", "/b/"];

#[derive(Clone, Debug)]
pub struct Plan {
    pub servers: usize,
    pub members: usize,
    /// Members answer questions for progress before the events that came first.
    pub hasty: bool,
    pub writers: usize,
    pub readers: usize,
    pub watchers: usize,
    /// Keys that end with one lease, now and then.
    pub many: usize,
    /// One reader lists a prefix all the time.
    pub greedy: bool,
    pub mutes: bool,
    pub lags: bool,
    /// etcd and servers are begun anew.
    pub restarts: bool,
    /// etcd is put back to a snapshot.
    pub restore: bool,
    /// Servers take turns at compaction so often.
    pub compacts: Option<Duration>,
    /// Members tell progress so often, unasked.
    pub notices: Option<Duration>,
    /// How long clients are busy.
    pub length: Duration,
}

impl Plan {
    pub fn of(dice: &Dice) -> Plan {
        Plan {
            servers: dice.between(1, 2),
            members: *dice.pick(&[1, 3]),
            hasty: dice.chance(100),
            writers: dice.between(1, 2),
            readers: dice.between(0, 2),
            watchers: dice.between(1, 4),
            many: *dice.pick(&[0, 0, 0, 0, 0, 0, 0, 300, 700, 1300]),
            greedy: dice.chance(150),
            mutes: dice.chance(300),
            lags: dice.chance(500),
            restarts: dice.chance(300),
            restore: dice.chance(200),
            compacts: dice
                .chance(300)
                .then(|| Duration::from_secs(dice.between(3, 10) as u64)),
            notices: dice.chance(300).then(|| Duration::from_secs(5)),
            length: Duration::from_secs(dice.between(5, 25) as u64),
        }
    }

    pub fn prefixes(&self) -> &'static [&'static str] {
        PREFIXES
    }
}
