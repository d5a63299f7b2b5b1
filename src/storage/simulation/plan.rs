//! Plans: what a seed makes of a run, who takes part, and what may go wrong.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::random::Dice;
use super::truth::Op;
use crate::LeaseId;

/// What keys and values look like.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Each ends with a slash.
    pub prefixes: &'static [&'static str],
    /// What stands between a prefix and a name.
    pub folder: &'static str,
    /// The value of an object of a name, made of a text that no other write has.
    pub value: fn(&str, &str) -> Bytes,
    /// So many objects are there from the start, besides those that are written to.
    pub base: usize,
}

impl Shape {
    /// Keys of a store that knows nothing of kinds.
    pub const PLAIN: Shape = Shape {
        prefixes: &["/a/", "/b/"],
        folder: "",
        value: |_, text| Bytes::copy_from_slice(text.as_bytes()),
        base: 0,
    };

    pub fn key(&self, prefix: &str, name: &str) -> Arc<str> {
        format!("{prefix}{}{name}", self.folder).into()
    }

    pub fn put(&self, prefix: &str, name: &str, text: &str, lease: Option<LeaseId>) -> Op {
        Op {
            key: self.key(prefix, name),
            put: Some(((self.value)(name, text), lease)),
        }
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.prefixes)
    }
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub shape: Shape,
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
    /// Then by its files, so that its elections count on: only what was read before can tell.
    pub files: bool,
    /// That is sure to happen, while clients are amid lists in pages and begin to watch.
    pub amid: bool,
    /// Servers take turns at compaction so often.
    pub compacts: Option<Duration>,
    /// Members tell progress so often, unasked.
    pub notices: Option<Duration>,
    /// How long clients are busy.
    pub length: Duration,
}

impl Plan {
    pub fn of(dice: &Dice, shape: Shape) -> Plan {
        let files = dice.chance(300);
        Plan {
            shape,
            // One that has read nothing could not tell.
            servers: if files { 1 } else { dice.between(1, 2) },
            members: *dice.pick(&[1, 3]),
            // A stream of theirs that is mute can't be told from one that has nothing to say.
            hasty: dice.chance(100) && !files,
            writers: dice.between(1, 2),
            readers: dice.between(0, 2),
            watchers: dice.between(1, 4),
            many: if dice.chance(60) {
                *dice.pick(&[300, 700, 1300])
            } else {
                0
            },
            greedy: dice.chance(150),
            mutes: dice.chance(300),
            lags: dice.chance(500),
            restarts: dice.chance(300) && !files,
            restore: dice.chance(200),
            files,
            amid: false,
            compacts: dice
                .chance(300)
                .then(|| Duration::from_secs(dice.between(3, 10) as u64)),
            notices: dice.chance(300).then(|| Duration::from_secs(5)),
            length: Duration::from_secs(*dice.pick(&[3, 5, 8, 12, 25])),
        }
    }

    /// A run in which the files of etcd are put back while clients are amid what they do.
    pub fn put_back(dice: &Dice, shape: Shape) -> Plan {
        Plan {
            servers: 1,
            restarts: false,
            restore: true,
            files: true,
            hasty: false,
            amid: true,
            length: Duration::from_secs(*dice.pick(&[3, 5, 8])),
            ..Plan::of(dice, shape)
        }
    }

    /// One of the prefixes.
    pub fn prefix(&self, dice: &Dice) -> &'static str {
        self.shape.prefixes[dice.below(self.shape.prefixes.len())]
    }

    /// The name of one of the objects that are written to.
    pub fn name(&self, dice: &Dice) -> String {
        dice.below(8).to_string()
    }

    /// The key of one of them.
    pub fn key(&self, dice: &Dice, prefix: &str) -> Arc<str> {
        self.shape.key(prefix, &self.name(dice))
    }
}
