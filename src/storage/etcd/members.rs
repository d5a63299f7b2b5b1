//! The versions of etcd's members. Older ones answer a question for progress before events that came first (etcd
//! #15220): what they say of it is not believed, as kube-apiserver does not.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::calls::Calls;
use super::watch::Signal;

/// So often all members are asked …
const LOOK: Duration = Duration::from_secs(60);
/// … and after this time if one did not answer, or a stream has been opened to one that is not known.
const SOON: Duration = Duration::from_secs(5);
/// All of them are given up after this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// A store waits for the first answers so long.
const FIRST: Duration = Duration::from_secs(2);

/// What is known of the members.
#[derive(Default)]
pub(crate) struct Members {
    /// By the endpoint that was asked.
    known: Mutex<HashMap<String, Known>>,
    unknown: Notify,
    warned: AtomicBool,
}

#[derive(Clone, Copy)]
struct Known {
    member: u64,
    in_order: bool,
}

impl Members {
    /// Whether a member answers in order. One that is not known does if all do that are.
    pub fn answers_in_order(&self, member: u64) -> bool {
        let known = self.lock();
        let found = known.values().find(|known| known.member == member);
        match found {
            Some(found) => found.in_order,
            None => !known.is_empty() && known.values().all(|known| known.in_order),
        }
    }

    /// Whether all do.
    pub fn all_answer_in_order(&self) -> bool {
        let known = self.lock();
        !known.is_empty() && known.values().all(|known| known.in_order)
    }

    /// A stream has been opened to a member.
    pub fn met(&self, member: u64) {
        if !self.lock().values().any(|known| known.member == member) {
            self.unknown.notify_one();
        }
    }

    fn note(&self, endpoint: &str, member: u64, version: &str) {
        let in_order = answers_in_order(version);
        self.lock().insert(endpoint.to_owned(), Known { member, in_order });
        if !in_order && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                endpoint,
                version,
                "this version of etcd may tell progress before events that came first (3.4.31, 3.5.13 and 3.6 do not): \
                 lists are read from etcd instead of from memory, and bookmarks come with events only"
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Learns the versions of members that answer at once, and the others' in the background until the store is closed.
pub(super) async fn begin(calls: &Calls, signal: watch::Receiver<Signal>) {
    let all = tokio::time::timeout(FIRST, look(calls)).await.unwrap_or(false);
    calls.tasks.spawn_at_home(keep_looking(calls.clone(), all, signal));
}

async fn keep_looking(calls: Calls, mut all: bool, mut signal: watch::Receiver<Signal>) {
    loop {
        let pause = if all { LOOK } else { SOON };
        let soon = async {
            calls.members.unknown.notified().await;
            tokio::time::sleep(SOON).await;
        };
        tokio::select! {
            biased;
            _ = signal.wait_for(|signal| signal.closed) => return,
            () = tokio::time::sleep(pause) => {}
            () = soon => {}
        }
        all = look(&calls).await;
    }
}

/// Asks all members. False: not all have answered.
async fn look(calls: &Calls) -> bool {
    let Ok(statuses) = tokio::time::timeout(PATIENCE, calls.api.statuses()).await else {
        return false;
    };
    let mut all = true;
    for (endpoint, status) in statuses {
        match status {
            Ok(status) => calls.members.note(&endpoint, status.header.member_id, &status.version),
            Err(error) => {
                all = false;
                tracing::debug!(%error, endpoint, "asking a member of etcd for its version");
            }
        }
    }
    all
}

/// Whether a version answers questions for progress after the events that came first. What is no version is an old one.
fn answers_in_order(version: &str) -> bool {
    let version = version.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = version.trim_start_matches('v').split('.').map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok);
    match (next(), next(), next()) {
        (Some(3), Some(4), Some(patch)) => patch >= 31,
        (Some(3), Some(5), Some(patch)) => patch >= 13,
        (Some(major), Some(minor), Some(_)) => (major, minor) >= (3, 6),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart_as_by_kube_apiserver() {
        for (version, in_order) in [
            ("3.3.27", false),
            ("3.4.0", false),
            ("3.4.30", false),
            ("3.4.31", true),
            ("3.4.100", true),
            ("3.5.0", false),
            ("3.5.0-rc.1", false),
            ("3.5.12", false),
            ("3.5.13", true),
            ("3.5.21", true),
            ("3.6.0", true),
            ("3.6.0-alpha.0", true),
            ("3.10.2", true),
            ("4.0.0", true),
            ("v3.5.13", true),
            ("2.3.8", false),
            ("", false),
            ("3.5", false),
            ("a.b.c", false),
        ] {
            assert_eq!(answers_in_order(version), in_order, "{version}");
        }
    }

    #[test]
    fn a_member_that_is_not_known_is_as_the_others() {
        let members = Members::default();
        assert!(
            !members.answers_in_order(1) && !members.all_answer_in_order(),
            "nothing is known"
        );
        members.note("a", 1, "3.6.0");
        assert!(members.answers_in_order(1) && members.answers_in_order(2));
        members.note("b", 2, "3.5.9");
        assert!(members.answers_in_order(1) && !members.answers_in_order(2) && !members.answers_in_order(3));
        assert!(!members.all_answer_in_order());
        members.note("b", 2, "3.5.13");
        assert!(members.all_answer_in_order() && members.answers_in_order(2));
    }
}
