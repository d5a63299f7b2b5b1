//! The lifecycle behind the listener: post-start hooks, and how far they have come.

use std::sync::Arc;
use std::sync::Mutex;

/// Post-start hooks by name: each is a check of `/readyz` until it is done.
#[derive(Clone, Default)]
pub struct Hooks {
    states: Arc<Mutex<Vec<(String, HookState)>>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HookState {
    Running,
    Done,
    Failed(String),
}

impl Hooks {
    /// Announces a hook before it runs.
    pub fn register(&self, name: &str) {
        self.set(name, HookState::Running);
    }

    pub fn finish(&self, name: &str, result: Result<(), String>) {
        self.set(name, result.map_or_else(HookState::Failed, |()| HookState::Done));
    }

    /// Every hook with its state, in the order of their registration.
    pub fn states(&self) -> Vec<(String, HookState)> {
        self.states.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    fn set(&self, name: &str, state: HookState) {
        let mut states = self.states.lock().unwrap_or_else(|e| e.into_inner());
        match states.iter_mut().find(|(n, _)| n == name) {
            Some(entry) => entry.1 = state,
            None => states.push((name.to_owned(), state)),
        }
    }
}
