//! The controllers of one server: their threads, who leads, and their end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::future::join_all;
use keelson_base::identity::host_name;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::election::{Elector, Timing};
use super::lease::{LEASES, LeaseLock};
use super::metrics::ControllerMetrics;
use super::reconcile::Loop;
use super::{Controller, GroupResource, Queue};
use crate::generic::{Client, NamespacedName, Registry, Resource, Verbs};

/// The lease of the server whose controllers run.
const LEASE: &str = "keelson-controllers";
/// How long the end of a thread is waited for; a controller that does not wait for anything can't be ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a controller was not started.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The server has no such resource.
    #[error("the controller {controller}: the server has no resource {resource}")]
    NoResource {
        /// Its name.
        controller: &'static str,
        /// What it reconciles or watches.
        resource: GroupResource,
    },
    /// The store is shared with other servers, and the server has no leases by which one of them leads.
    #[error("the controller {0}: a server that shares its store needs {LEASES}")]
    NoLeases(&'static str),
    /// The system gives no thread.
    #[error("the controller {controller}: {error}")]
    Thread {
        /// Its name.
        controller: &'static str,
        /// What the system says.
        error: std::io::Error,
    },
    /// The server ends.
    #[error("the controller {0}: the server ends")]
    Ending(&'static str),
}

/// The controllers of a server. Clones are the same.
#[derive(Clone, Default)]
pub struct Controllers {
    shared: Arc<Shared>,
}

struct Shared {
    stop: watch::Sender<bool>,
    state: Mutex<State>,
    metrics: ControllerMetrics,
}

#[derive(Default)]
struct State {
    ending: bool,
    threads: Vec<Running>,
    election: Option<Election>,
}

/// A thread that runs.
struct Running {
    name: &'static str,
    thread: JoinHandle<()>,
    /// Ends with the thread's work.
    ended: oneshot::Receiver<()>,
}

/// The thread that runs for the lease.
struct Election {
    running: Running,
    stop: watch::Sender<bool>,
    leads: watch::Receiver<bool>,
}

impl Default for Shared {
    fn default() -> Self {
        Shared {
            stop: watch::Sender::new(false),
            state: Mutex::default(),
            metrics: ControllerMetrics::default(),
        }
    }
}

impl Controllers {
    /// What is counted of all controllers.
    pub fn metrics(&self) -> &ControllerMetrics {
        &self.shared.metrics
    }

    /// Runs a controller on a thread of its own until [`Controllers::stop`]; where several servers share the store,
    /// while this one leads.
    ///
    /// # Errors
    /// The server lacks a resource of the controller, or gets no thread, or ends.
    pub fn run<C: Controller>(&self, verbs: &Arc<Verbs>, controller: C) -> Result<(), RunError> {
        let name = controller.name();
        let registry = &verbs.registry;
        let reconciled = find(registry, &controller.reconciles(), name)?;
        let watched = controller.watches().into_iter();
        let watched = watched.map(|resource| find(registry, &resource, name));
        let watched = watched.collect::<Result<Vec<_>, _>>()?;
        let mut state = self.state();
        if state.ending {
            return Err(RunError::Ending(name));
        }
        let leads = match verbs.backend.store.is_shared() && !controller.runs_everywhere() {
            true => self.election(&mut state, verbs, name)?,
            // It always leads.
            false => watch::channel(true).1,
        };
        let one = One {
            controller,
            reconciled,
            watched,
            leads,
            stop: self.shared.stop.subscribe(),
            metrics: self.shared.metrics.clone(),
        };
        let verbs = verbs.clone();
        let running = spawn(name, move || async move { one.run(&verbs).await });
        state.threads.push(running.map_err(|error| RunError::Thread {
            controller: name,
            error,
        })?);
        Ok(())
    }

    /// Ends all controllers, waits until they have ended, and gives the lease back. None is started any more.
    pub async fn stop(&self) {
        let (threads, election) = {
            let mut state = self.state();
            state.ending = true;
            (std::mem::take(&mut state.threads), state.election.take())
        };
        self.shared.stop.send_replace(true);
        let ended = join_all(threads.into_iter().map(Running::join)).await;
        let Some(election) = election else { return };
        // A lease that is not given back runs out: nobody leads beside a controller that did not end.
        if ended.into_iter().all(|ended| ended) {
            election.stop.send_replace(true);
            election.running.join().await;
        }
    }

    /// Whether this server leads; begins to run for that the first time.
    fn election(
        &self,
        state: &mut State,
        verbs: &Arc<Verbs>,
        controller: &'static str,
    ) -> Result<watch::Receiver<bool>, RunError> {
        if let Some(election) = &state.election {
            return Ok(election.leads.clone());
        }
        if LEASES.find(&verbs.registry).is_none() {
            return Err(RunError::NoLeases(controller));
        }
        let (lead, leads) = watch::channel(false);
        let (stop, stopped) = watch::channel(false);
        let (verbs, metrics) = (verbs.clone(), self.shared.metrics.clone());
        let shown = leads.clone();
        let running = spawn("leader-election", move || async move {
            tokio::select! {
                () = elect(&verbs, &lead, stopped) => {}
                () = show(&metrics, shown) => {}
            }
        });
        let running = running.map_err(|error| RunError::Thread { controller, error })?;
        let receiver = leads.clone();
        state.election = Some(Election { running, stop, leads });
        Ok(receiver)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(registry: &Registry, of: &GroupResource, controller: &'static str) -> Result<Arc<Resource>, RunError> {
    of.find(registry).ok_or_else(|| RunError::NoResource {
        controller,
        resource: of.clone(),
    })
}

/// Runs for the lease until told to stop, and gives it back then.
async fn elect(verbs: &Arc<Verbs>, lead: &watch::Sender<bool>, stopped: watch::Receiver<bool>) {
    let client = Client::of_server(verbs.clone(), LEASE);
    let Some(lock) = LeaseLock::new(&client, LEASE) else {
        return;
    };
    let identity = format!("{}_{}", host_name(), verbs.backend.new_uid());
    let mut elector = Elector::new(lock, identity, Timing::default(), verbs.backend.entropy.clone());
    tokio::select! {
        () = elector.run(lead) => {}
        () = said(stopped) => {}
    }
    elector.release().await;
    lead.send_replace(false);
}

async fn show(metrics: &ControllerMetrics, mut leads: watch::Receiver<bool>) {
    loop {
        let now = *leads.borrow_and_update();
        metrics.leads(LEASE, now);
        if leads.changed().await.is_err() {
            // The election has not ended yet: it does so by itself.
            std::future::pending::<()>().await;
        }
    }
}

/// Returns when this was said, or nobody can say it any more.
async fn said(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Returns when a value is this; never when nobody can change it any more.
async fn until(mut value: watch::Receiver<bool>, wanted: bool) {
    if value.wait_for(|now| *now == wanted).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A controller with its thread.
struct One<C> {
    controller: C,
    reconciled: Arc<Resource>,
    watched: Vec<Arc<Resource>>,
    leads: watch::Receiver<bool>,
    stop: watch::Receiver<bool>,
    metrics: ControllerMetrics,
}

impl<C: Controller> One<C> {
    /// Works whenever this server leads, until it is stopped.
    async fn run(self, verbs: &Arc<Verbs>) {
        let name = self.controller.name();
        loop {
            tokio::select! {
                biased;
                () = said(self.stop.clone()) => return,
                () = until(self.leads.clone(), true) => {}
            }
            let entropy = verbs.backend.entropy.clone();
            let queue: Queue<NamespacedName> =
                Queue::measured(self.controller.backoff(), entropy, self.metrics.queue(name));
            let work = Loop {
                controller: &self.controller,
                queue: &queue,
                reconciled: &self.reconciled,
                watched: &self.watched,
            };
            let client = Client::of_server(verbs.clone(), self.controller.manager());
            tokio::select! {
                biased;
                // Another may lead soon: whatever is under way ends where it waits.
                () = until(self.leads.clone(), false) => queue.end(),
                // Told to stop, or the store is closed.
                () = work.run(client, said(self.stop.clone())) => return,
            }
        }
    }
}

/// Runs what is made there on a thread of its own, where it need not be sent elsewhere.
fn spawn<F: Future<Output = ()>>(
    name: &'static str,
    make: impl FnOnce() -> F + Send + 'static,
) -> std::io::Result<Running> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (end, ended) = oneshot::channel();
    let run = move || {
        tokio::task::LocalSet::new().block_on(&runtime, make());
        runtime.shutdown_background();
        // Nobody may be waiting.
        let _ = end.send(());
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(Running { name, thread, ended })
}

impl Running {
    /// Whether it has ended.
    async fn join(self) -> bool {
        // A thread that panics drops its end of the channel.
        if timeout(PATIENCE, self.ended).await.is_err() {
            tracing::warn!(thread = self.name, "a thread has not ended in time");
            return false;
        }
        if self.thread.join().is_err() {
            tracing::error!(thread = self.name, "a thread panicked");
        }
        true
    }
}
