//! Post-start hooks.

use std::sync::Arc;

use actix_web::web::Data;
use futures_util::future::LocalBoxFuture;
use keelson_registry::controller::{Controller, Controllers, RunError};
use keelson_registry::{Backend, Client, Registry, Verbs};

use crate::state::ServerState;

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

/// Runs once, after the listener is up; `/readyz` waits for it.
pub struct Hook {
    /// Under which `/readyz` lists it.
    pub name: &'static str,
    /// What it does; an error makes the server unready for ever.
    pub run: Box<dyn FnOnce(HookContext) -> LocalBoxFuture<'static, Result<(), String>>>,
}

impl Hook {
    /// One that runs a controller, and has its name. The server is ready when the controller is started.
    pub fn controller(controller: impl Controller) -> Hook {
        Hook {
            name: controller.name(),
            run: Box::new(move |context| {
                let started = context.run(controller).map_err(|error| error.to_string());
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
                tracing::error!(hook = hook.name, error, "a post-start hook failed");
            }
            states.finish(hook.name, result);
        });
    }
}
