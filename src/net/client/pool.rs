//! Connections that wait for the next request.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::sender::Sender;
use super::target::Origin;

/// Connections that a client keeps.
const MAX_IDLE: usize = 32;
/// How long one is kept without use.
const IDLE: Duration = Duration::from_secs(90);
/// How long one is used at all, so that changed addresses and certificates take effect.
const MAX_AGE: Duration = Duration::from_secs(600);

/// An open connection.
pub(super) struct Connection {
    pub origin: Origin,
    pub sender: Sender,
    pub opened: Instant,
}

impl Connection {
    /// The same connection once more, where several requests may be on their way at once.
    pub fn shared(&self) -> Option<Connection> {
        Some(Connection {
            origin: self.origin.clone(),
            sender: self.sender.shared()?,
            opened: self.opened,
        })
    }
}

struct Idle {
    connection: Connection,
    since: Instant,
}

/// Idle connections, the one used last at the end.
#[derive(Default)]
pub(super) struct Pool {
    idle: Mutex<VecDeque<Idle>>,
}

impl Pool {
    /// An idle connection to the server, the one that was used last. One that several may use stays for the others.
    pub fn take(&self, origin: &Origin) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|one| is_fresh(&one.connection) && one.since.elapsed() < IDLE);
        let at = idle.iter().rposition(|one| one.connection.origin == *origin)?;
        let found = idle.get_mut(at)?;
        if let Some(shared) = found.connection.shared() {
            found.since = Instant::now();
            return Some(shared);
        }
        idle.remove(at).map(|one| one.connection)
    }

    /// Keeps a connection whose answer was read to its end, or that several may use. Of too many the one that waited
    /// longest goes.
    pub fn put(&self, connection: Connection) {
        if !is_fresh(&connection) {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while idle.len() >= MAX_IDLE {
            idle.pop_front();
        }
        idle.push_back(Idle {
            connection,
            since: Instant::now(),
        });
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

fn is_fresh(connection: &Connection) -> bool {
    !connection.sender.is_closed() && connection.opened.elapsed() < MAX_AGE
}
