//! Background tasks of a store.

use std::future::Future;
#[cfg(any(test, feature = "simulation"))]
use std::sync::Arc;

#[cfg(any(test, feature = "simulation"))]
use futures_util::{FutureExt, future::BoxFuture};
use tokio::runtime::Handle;

/// What runs tasks. Clones share it.
#[derive(Clone)]
pub(crate) enum Tasks {
    /// The runtime that opened the store is its home.
    Runtime(Handle),
    /// An executor that is none of tokio's.
    #[cfg(any(test, feature = "simulation"))]
    Own(Arc<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>),
}

impl Tasks {
    pub fn of_this_runtime() -> Tasks {
        Tasks::Runtime(Handle::current())
    }

    /// Runs a task where its work comes from: on the runtime that asks.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match self {
            Tasks::Runtime(_) => drop(tokio::spawn(task)),
            #[cfg(any(test, feature = "simulation"))]
            Tasks::Own(spawn) => spawn(task.boxed()),
        }
    }

    /// Runs a task that outlives whoever asks.
    pub fn spawn_at_home(&self, task: impl Future<Output = ()> + Send + 'static) {
        match self {
            Tasks::Runtime(home) => drop(home.spawn(task)),
            #[cfg(any(test, feature = "simulation"))]
            Tasks::Own(spawn) => spawn(task.boxed()),
        }
    }
}
