//! A worker: one thread, one runtime, one instance of the application.

use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use actix_http::Request;
use actix_http::body::MessageBody;
use actix_service::{IntoServiceFactory, ServiceFactory};
use actix_web::dev::AppConfig;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use super::ListenerError;
use super::accept::{Accepted, Load};
use super::serve::{self, Context};

/// A running worker, as the acceptor sees it.
pub(super) struct Worker {
    pub(super) queue: mpsc::Sender<Accepted>,
    pub(super) load: Arc<Load>,
}

/// Starts a worker and waits until its application is ready. The thread keeps `alive` until it ends.
pub(super) fn start<F, I, S, B>(
    number: usize,
    application: F,
    context: Arc<Context>,
    alive: mpsc::Sender<Infallible>,
) -> Result<(Worker, JoinHandle<()>), ListenerError>
where
    F: Fn() -> I + Send + 'static,
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<actix_web::Error>,
    S::InitError: std::fmt::Debug,
    S::Response: Into<actix_http::Response<B>>,
    B: MessageBody + 'static,
{
    let (queue, accepted) = mpsc::channel(context.limits.max_queued_connections.max(1));
    let load = Arc::new(Load::default());
    let (ready, is_ready) = std::sync::mpsc::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let its_load = Arc::clone(&load);
    let thread = std::thread::Builder::new()
        .name(format!("keelson-worker-{number}"))
        .spawn(move || {
            let _alive = alive;
            let local = LocalSet::new();
            local.block_on(&runtime, async {
                let made = application().into_factory().new_service(AppConfig::default()).await;
                match made {
                    Ok(service) => {
                        let _ = ready.send(Ok(()));
                        serve_all(Rc::new(service), accepted, &its_load, context).await;
                    }
                    Err(error) => {
                        let _ = ready.send(Err(ListenerError::Application(format!("{error:?}"))));
                    }
                }
            });
            // What is left of connections and of tasks that handlers spawned ends here.
            drop(local);
        })?;
    match is_ready.recv() {
        Ok(result) => result.map(|()| (Worker { queue, load }, thread)),
        Err(_) => Err(ListenerError::Application("it panicked while starting".into())),
    }
}

/// Serves each connection in a task of its own; after the queue closed, waits for those under way, but not forever.
async fn serve_all<S, B>(service: Rc<S>, mut accepted: mpsc::Receiver<Accepted>, load: &Load, context: Arc<Context>)
where
    S: actix_service::Service<Request> + 'static,
    S::Error: Into<actix_web::Error>,
    S::Response: Into<actix_http::Response<B>>,
    B: MessageBody + 'static,
{
    while let Some(connection) = accepted.recv().await {
        tokio::task::spawn_local(serve::connection(connection, Rc::clone(&service), Arc::clone(&context)));
    }
    if tokio::time::timeout(context.limits.drain_timeout, load.drained())
        .await
        .is_err()
    {
        tracing::warn!(
            connections = load.connections(),
            "closing connections whose requests did not end in time"
        );
    }
}
