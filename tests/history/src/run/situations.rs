//! Situations beside a run's ordinary traffic. Each can be left out.

/// See the module's description.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum)]
pub enum Situation {
    /// Many new keys at once, with refused writes among them, and then nothing for longer than two rounds of upkeep.
    Bursts,
    /// Objects with a time to live, many of which end together.
    Leases,
    /// Pods with a grace period and with finalizers, deleted by steps and by requests that are interrupted.
    Deletions,
    /// Server-side apply of an absent object by several managers at once.
    Upserts,
    /// Clients that leave in the middle of a request or of its answer.
    Vanish,
    /// Clients that stop reading the answers to lists and watches.
    Standstill,
    /// Streams of etcd that stay open and say nothing any more, while requests pass.
    Mute,
    /// The store is put back to an earlier state; one in memory forgets everything.
    PutBack,
}

impl Situation {
    /// All but these.
    pub fn all_but(without: &[Situation]) -> Vec<Situation> {
        let all = <Situation as clap::ValueEnum>::value_variants().iter().copied();
        all.filter(|situation| !without.contains(situation)).collect()
    }
}
