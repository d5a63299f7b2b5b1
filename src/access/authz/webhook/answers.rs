//! The cache of a webhook's decisions.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::super::Decision;

/// Answers that are remembered; of more, those that were given first go.
const MAX_ANSWERS: usize = 8192;

/// The digest of a question.
type Key = [u8; 32];

#[derive(Default)]
pub(super) struct Answers {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// Until when each counts.
    answers: HashMap<Key, (Instant, Decision)>,
    /// In the order in which they came.
    order: VecDeque<Key>,
}

impl Answers {
    pub fn get(&self, key: &Key, now: Instant) -> Option<Decision> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, decision) = held.answers.get(key)?;
        (*until > now).then(|| decision.clone())
    }

    pub fn put(&self, key: Key, decision: Decision, until: Instant) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.answers.insert(key, (until, decision)).is_none() {
            held.order.push_back(key);
        }
        while held.order.len() > MAX_ANSWERS {
            if let Some(oldest) = held.order.pop_front() {
                held.answers.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(n: usize) -> Key {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&n.to_le_bytes());
        key
    }

    #[test]
    fn answers_count_until_their_time() {
        let (answers, now) = (Answers::default(), Instant::now());
        let allow = Decision::Allow(String::new());
        answers.put(key(1), allow.clone(), now + Duration::from_secs(5));
        assert_eq!(answers.get(&key(1), now), Some(allow));
        assert_eq!(answers.get(&key(1), now + Duration::from_secs(5)), None);
        assert_eq!(answers.get(&key(2), now), None);
    }

    #[test]
    fn there_are_only_so_many() {
        let (answers, now) = (Answers::default(), Instant::now());
        let later = now + Duration::from_secs(5);
        for n in 0..=MAX_ANSWERS {
            answers.put(key(n), Decision::Allow(String::new()), later);
            answers.put(key(n), Decision::Deny(String::new()), later);
        }
        assert_eq!(answers.get(&key(0), now), None);
        assert_eq!(answers.get(&key(1), now), Some(Decision::Deny(String::new())));
        assert_eq!(answers.held.lock().unwrap().answers.len(), MAX_ANSWERS);
    }
}
