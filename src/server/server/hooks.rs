//! Post-start hooks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::web::Data;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join_all};
use keelson_registry::controller::{Controller, Controllers, RunError};
use keelson_registry::{Backend, Client, Registry, Verbs};

use crate::lifecycle::HookError;
use crate::state::ServerState;

/// How long the end of a server waits for what its hooks undo.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a hook may use.
#[derive(Clone)]
pub struct HookContext {
    /// The resources of the server.
    pub registry: Arc<Registry>,
    /// What they share.
    pub backend: Backend,
    /// What can be asked of them.
    pub verbs: Arc<Verbs>,
    /// `host:port` by which clients elsewhere find this server.
    pub advertise: String,
    /// The controllers that hooks have started; they end with the server.
    pub controllers: Controllers,
    /// What is to be done when the server ends.
    pub ending: Ending,
}

impl HookContext {
    /// Runs a controller for as long as the server runs; see [`Controllers::run`].
    ///
    /// # Errors
    /// The server lacks a resource of the controller, or gets no thread, or ends.
    pub fn run(&self, controller: impl Controller) -> Result<(), RunError> {
        self.controllers.run(&self.verbs, controller)
    }

    /// A client that sends as the server itself. `manager` is who owns what it writes, in `managedFields`.
    pub fn client(&self, manager: &str) -> Client {
        Client::of_server(self.verbs.clone(), manager)
    }
}

/// Pre-shutdown hooks: what post-start hooks undo when the server is told to end, while it still serves.
#[derive(Clone, Default)]
pub struct Ending(Arc<Mutex<Vec<Undo>>>);

type Undo = Box<dyn FnOnce() -> LocalBoxFuture<'static, ()> + Send>;

impl Ending {
    /// Has something done at the end, once. It must not rely on it: a server may be killed.
    pub fn then<F: Future<Output = ()> + 'static>(&self, undo: impl FnOnce() -> F + Send + 'static) {
        let undo = move || undo().boxed_local();
        self.all().push(Box::new(undo));
    }

    /// Does all of it side by side, as far as it takes no longer than a moment: a store may be out of reach.
    pub(super) async fn run(&self) {
        let all = std::mem::take(&mut *self.all());
        let all = join_all(all.into_iter().map(|undo| undo()));
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            tracing::warn!("What the server leaves behind could not be put in order in time");
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Undo>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs once, after the listener is up; `/readyz` waits for it.
pub struct Hook {
    /// Under which `/readyz` lists it.
    pub name: &'static str,
    /// What it does; an error makes the server unready for ever.
    pub run: Box<dyn FnOnce(HookContext) -> LocalBoxFuture<'static, Result<(), HookError>>>,
}

impl Hook {
    /// One that runs a controller, and has its name. The server is ready when the controller is started.
    pub fn controller(controller: impl Controller) -> Hook {
        Hook {
            name: controller.name(),
            run: Box::new(move |context| {
                let started = context.run(controller).map_err(HookError::from);
                Box::pin(std::future::ready(started))
            }),
        }
    }
}

/// Starts them all; what they come to is what `/readyz` shows.
pub(super) fn run_hooks(state: &Data<ServerState>, hooks: Vec<Hook>, context: &HookContext) {
    for hook in &hooks {
        state.hooks.register(hook.name);
    }
    for hook in hooks {
        let (states, context) = (state.hooks.clone(), context.clone());
        tokio::task::spawn_local(async move {
            let result = (hook.run)(context).await;
            if let Err(error) = &result {
                tracing::error!(hook = hook.name, %error, "a post-start hook failed");
            }
            states.finish(hook.name, result);
        });
    }
}
