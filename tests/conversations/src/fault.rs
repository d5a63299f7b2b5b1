//! Faults: why a step has no answer.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The server was not reached, or its answer did not come whole.
    Transport(String),
    /// The case can't be played: what it needs is missing or wrong.
    Unusable(String),
}

impl Fault {
    pub fn transport(error: impl fmt::Display) -> Fault {
        Fault::Transport(error.to_string())
    }

    pub fn unusable(error: impl fmt::Display) -> Fault {
        Fault::Unusable(error.to_string())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Fault::Transport(text) | Fault::Unusable(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for Fault {}
