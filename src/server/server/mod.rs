//! A server: its configuration, its start, its stop.

mod background;
mod config;
mod hooks;
mod start;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Data;
use keelson_net::listener::{self, Phase, Serving, Shutdown};
use keelson_registry::RegistryError;
use keelson_registry::controller::Controllers;
use keelson_storage::Store;

pub use crate::lifecycle::HookError;
pub use config::{AccessConfig, Config, ResourceConfig, ShowMetrics, StorageConfig};
pub use hooks::{Ending, Hook, HookContext};
pub use start::start;

use crate::state::ServerState;

/// A server that has been started.
pub struct Running {
    pub state: Data<ServerState>,
    serving: Serving,
    shutdown: Shutdown,
    stores: Vec<Arc<dyn Store>>,
    controllers: Controllers,
    ending: Ending,
}

#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("{0}")]
    Registry(#[from] RegistryError),
    #[error("{0}")]
    Listen(#[from] listener::ListenerError),
}

impl Running {
    pub fn local_addr(&self) -> SocketAddr {
        self.serving.local_addr()
    }

    /// The signal that this server ends.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Takes leave as [`crate::settings::ShutdownSettings`] says and undoes what hooks did, ends watches and
    /// controllers, lets other requests finish, closes the store.
    pub async fn stop(self) {
        let graceful = self.state.requests.shutdown;
        self.shutdown.enter(Phase::Leaving);
        tokio::join!(tokio::time::sleep(graceful.delay), self.ending.run());
        if graceful.send_retry_after {
            self.shutdown.enter(Phase::Refusing);
            let patience = self.state.requests.timeout.max(graceful.watch_grace);
            // Those that are under way after that have no right to go on.
            let _ = tokio::time::timeout(patience, self.emptied()).await;
        }
        self.shutdown.begin();
        tokio::join!(self.serving.stop(), self.controllers.stop());
        self.state.audit.flush().await;
        for store in self.stores {
            store.close().await;
        }
    }

    /// Returns when no request is under way.
    async fn emptied(&self) {
        /// How often to look.
        const PERIOD: Duration = Duration::from_millis(20);
        let places = &self.state.in_flight;
        while places.reads() + places.writes() + places.streams() > 0 {
            tokio::time::sleep(PERIOD).await;
        }
    }
}
