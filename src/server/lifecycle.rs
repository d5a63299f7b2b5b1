//! The lifecycle behind the listener: post-start hooks, and how far they have come.

use std::sync::Arc;
use std::sync::Mutex;

use keelson_machinery::status::StatusError;
use keelson_registry::controller::RunError;

/// Post-start hooks by name: each is a check of `/readyz` until it is done.
#[derive(Clone, Default)]
pub struct Hooks {
    states: Arc<Mutex<Vec<(String, HookState)>>>,
}

/// Why a post-start hook failed, for the log.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// The server refused what the hook asked of it.
    #[error(transparent)]
    Status(#[from] StatusError),
    /// Its controller can't be run.
    #[error(transparent)]
    Controller(#[from] RunError),
    /// Anything else; the text says what.
    #[error("{0}")]
    Other(String),
}

impl HookError {
    /// That of something else.
    pub fn other(error: impl ToString) -> HookError {
        HookError::Other(error.to_string())
    }
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

    pub fn finish(&self, name: &str, result: Result<(), HookError>) {
        let failed = |error: HookError| HookState::Failed(error.to_string());
        self.set(name, result.map_or_else(failed, |()| HookState::Done));
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
