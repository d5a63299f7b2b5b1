//! A server: its configuration, its start, its stop.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::web::Data;
use futures_util::future::LocalBoxFuture;
use keelson_access::authn::Authentication;
use keelson_access::authn::jwt::VerifyingKey;
use keelson_access::authz::Authorization;
use keelson_access::flowcontrol::in_flight::InFlight;
use keelson_access::flowcontrol::metrics::FlowMetrics;
use keelson_access::flowcontrol::spec::ReadFlowControl;
use keelson_access::flowcontrol::{self, FlowControl};
use keelson_base::env::{SystemClock, SystemEntropy};
use keelson_machinery::env::{Clock, Entropy};
use keelson_machinery::scheme::Scheme;
use keelson_net::listener::{self, ListenerConfig, Phase, Serving, Shutdown};
use keelson_registry::admission::Admission;
use keelson_registry::cache::Budget;
use keelson_registry::controller::{Controller, Controllers, RunError};
use keelson_registry::{Backend, Client, Held, KindCode, Placement, Registry, RegistryError, ServerListers, Verbs};
use keelson_storage::Store;
use keelson_storage::encryption::{Encryption, Transformer};

use crate::admission;
use crate::app::app;
use crate::audit::Audit;
use crate::delegate::Delegate;
use crate::discovery::{Catalog, Discovery, IssuerDocuments, MergedCatalog, RuntimeConfig};
use crate::lifecycle::Hooks;
use crate::metrics::Metrics;
use crate::openapi::{Info, OpenApi};
use crate::rest::Rest;
use crate::settings::RequestSettings;
use crate::state::ServerState;
use crate::version::Version;

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

/// Everything that a server is made of.
pub struct Config {
    pub schemes: Vec<&'static Scheme>,
    pub code: KindCode,
    pub store: Arc<dyn Store>,
    /// How values are stored.
    pub encryption: Arc<Encryption>,
    /// Where and how objects are stored beside that.
    pub placement: Placement,
    /// First part of all keys, `/registry`.
    pub prefix: String,
    /// How many bytes of memory may hold objects in the forms in which they were answered; see [`keelson_registry::cache`].
    pub cache_bytes: usize,
    pub runtime: RuntimeConfig,
    pub authentication: Authentication,
    pub authorization: Authorization,
    /// The plug-ins that see every write and connection.
    pub admission: Admission,
    pub audit: Audit,
    /// Reads what priorities requests have; `None`: they have none.
    pub flow_control: Option<Box<dyn ReadFlowControl>>,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub version: Version,
    pub hooks: Vec<Hook>,
    pub listener: ListenerConfig,
    pub requests: RequestSettings,
    /// `host:port` that discovery tells clients; empty: that of the listener.
    pub advertise: String,
    /// Group/versions that requests may name though nothing of them is defined; OpenAPI lists them.
    pub known_versions: &'static [(&'static str, &'static str)],
}

impl Config {
    /// These kinds in this store, and of all else what a server can't do without: nobody may do anything yet.
    pub fn new(schemes: Vec<&'static Scheme>, store: Arc<dyn Store>, listener: ListenerConfig) -> Config {
        Config {
            schemes,
            code: KindCode::default(),
            store,
            encryption: Encryption::none(),
            placement: Placement::default(),
            prefix: "/registry".to_owned(),
            cache_bytes: 64 << 20,
            runtime: RuntimeConfig::default(),
            authentication: Authentication::default(),
            authorization: Authorization::new(Vec::new()),
            admission: Admission::new(admission::plugins()),
            audit: Audit::default(),
            flow_control: None,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            version: Version::default(),
            hooks: Vec::new(),
            listener,
            requests: RequestSettings::default(),
            advertise: String::new(),
            known_versions: &[],
        }
    }
}

/// A server that has been started.
pub struct Running {
    pub state: Data<ServerState>,
    serving: Serving,
    shutdown: Shutdown,
    stores: Vec<Arc<dyn Store>>,
    controllers: Controllers,
}

#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("{0}")]
    Registry(#[from] RegistryError),
    #[error("{0}")]
    Listen(#[from] listener::ListenerError),
}

/// Binds the listener and starts the hooks. Must be called within a `LocalSet`.
pub fn start(config: Config) -> Result<Running, ServerError> {
    let requests = Arc::new(config.requests);
    let mut listener = config.listener;
    listener.limits.answer_timeout = requests.timeout;
    let bound = listener::bind(listener)?;
    let reader = config.flow_control.filter(|_| requests.priority_and_fairness);
    let flow_control = reader.map(|reader| Arc::new(FlowControl::new(reader, requests.max_reads, requests.max_writes)));
    let in_flight = Arc::new(match &flow_control {
        // It has its own limits.
        Some(_) => InFlight::new(0, 0),
        None => InFlight::new(requests.max_reads, requests.max_writes),
    });
    let advertise = match config.advertise.as_str() {
        "" => outward_address(bound.local_addr()).to_string(),
        given => given.to_owned(),
    };
    let advertised = advertise.clone();
    let shutdown = Shutdown::new();
    let budget = Budget::new(config.cache_bytes);
    let backend = Backend {
        store: config.store.clone(),
        clock: config.clock,
        entropy: config.entropy,
        budget: budget.clone(),
        encryption: config.encryption.clone(),
        placement: Arc::new(config.placement),
    };
    let mut code = config.code;
    code.admission(config.admission.clone());
    let registry = Arc::new(Registry::new(
        &config.schemes,
        &code,
        &backend,
        &config.prefix,
        &config.runtime,
    )?);
    let verbs = Arc::new(Verbs {
        registry: registry.clone(),
        backend: backend.clone(),
        authentication: config.authentication.clone(),
        authorization: config.authorization.clone(),
    });
    let listers = ServerListers::new(verbs.clone());
    config.authorization.attach(&listers);
    config.authentication.attach(&listers, &backend.clock);
    if let Some(control) = &flow_control {
        control.attach(&listers);
    }
    for (group, plural) in config.admission.follows() {
        listers.hold(group, plural);
    }
    hold(listers.into_held());
    let rest = Arc::new(Rest {
        registry: registry.clone(),
        backend: backend.clone(),
        verbs: verbs.clone(),
        shutdown: shutdown.clone(),
        requests: requests.clone(),
    });
    let issuer = config.authentication.issuer.as_ref().and_then(|issuer| {
        let keys: Vec<_> = config.authentication.keys.iter().map(VerifyingKey::to_jwk).collect();
        IssuerDocuments::new(issuer.issuer(), &keys, &config.authentication.keys_url, &advertise)
    });
    let info = Info {
        title: "Kubernetes".into(),
        version: format!("{}.{}", config.version.major, config.version.minor),
        issuer: issuer.is_some(),
        known: config.known_versions,
    };
    let delegates: Vec<Arc<dyn Delegate>> = vec![rest.clone()];
    let servers = delegates.iter().map(|server| server.clone() as Arc<dyn Catalog>);
    let catalog = Arc::new(MergedCatalog::new(servers.collect()));
    let mut metrics = Metrics::new(budget, in_flight.clone(), config.encryption);
    config.authentication.metrics.register(metrics.registry());
    config.audit.register(metrics.registry());
    if let Some(control) = &flow_control {
        let collector = Box::new(FlowMetrics(control.clone()));
        metrics.registry().register_collector(collector);
    }
    config.authorization.metrics().register(metrics.registry());
    let controllers = Controllers::default();
    controllers.metrics().register(metrics.registry());
    let state = Data::new(ServerState {
        started: Instant::now(),
        requests,
        in_flight,
        flow_control: flow_control.clone(),
        delegates,
        rest,
        authentication: config.authentication,
        authorization: config.authorization,
        impersonation: Default::default(),
        discovery: Discovery::new(catalog.clone(), advertise).with_issuer(issuer),
        openapi: Arc::new(OpenApi::new(&config.schemes, catalog, info, backend.clock.clone())),
        hooks: Hooks::default(),
        metrics,
        audit: config.audit,
        version: config.version,
    });
    let stores = backend.stores().cloned().collect();
    follow_sizes(&state, backend.clone());
    forget_metrics(&state);
    if let Some(control) = flow_control {
        share_seats(control, &state.hooks);
    }
    let context = HookContext {
        registry,
        backend,
        verbs,
        advertise: advertised,
        controllers: controllers.clone(),
    };
    run_hooks(&state, config.hooks, &context);
    let of_worker = state.clone();
    let serving = bound.serve(move || app(of_worker.clone()), shutdown.clone())?;
    Ok(Running {
        state,
        serving,
        shutdown,
        stores,
        controllers,
    })
}

/// Has stores hold in memory what decisions read there. A store that lies elsewhere tries on by itself.
fn hold(held: Vec<Held>) {
    tokio::task::spawn_local(async move {
        for Held {
            store,
            prefix,
            transformer,
        } in held
        {
            match store.snapshot(&prefix).await {
                Ok(held) => {
                    // So that no decision has to wait for a key management service.
                    for asked in held
                        .range(&prefix, &prefix)
                        .filter_map(|e| transformer.prepare(&e.value))
                    {
                        asked.await;
                    }
                }
                Err(error) => tracing::warn!(%error, prefix, "reading what decisions need"),
            }
        }
    });
}

/// The address that discovery names: clients elsewhere can't reach a loopback or unspecified one, so for these it is
/// that of the interface which leads outwards, if there is any. Connecting a datagram socket sends nothing.
fn outward_address(listening: SocketAddr) -> SocketAddr {
    let ip = listening.ip();
    if !ip.is_loopback() && !ip.is_unspecified() {
        return listening;
    }
    let (here, there) = match ip {
        IpAddr::V4(_) => ("0.0.0.0:0", "192.0.2.1:9"),
        IpAddr::V6(_) => ("[::]:0", "[2001:db8::1]:9"),
    };
    let outward = UdpSocket::bind(here).and_then(|socket| socket.connect(there).and_then(|()| socket.local_addr()));
    outward.map_or(listening, |address| SocketAddr::new(address.ip(), listening.port()))
}

/// Shows how large the stores are, for as long as this thread's `LocalSet` runs.
fn follow_sizes(state: &Data<ServerState>, backend: Backend) {
    let Some(interval) = backend.placement.size_interval else {
        return;
    };
    let state = state.clone();
    tokio::task::spawn_local(async move {
        loop {
            for (n, store) in backend.stores().enumerate() {
                match store.size().await {
                    Ok(Some(bytes)) => state.metrics.set_store_size(n, bytes),
                    Ok(None) => {}
                    Err(error) => tracing::warn!(%error, "asking a store for its size"),
                }
            }
            tokio::time::sleep(interval).await;
        }
    });
}

/// Forgets the metrics of resources that have gone, for as long as this thread's `LocalSet` runs.
fn forget_metrics(state: &Data<ServerState>) {
    /// Requests that are under way when a resource goes still count.
    const PAUSE: Duration = Duration::from_secs(1);
    let state = state.clone();
    let mut changes = state.rest.registry.changes();
    tokio::task::spawn_local(async move {
        while changes.changed().await.is_ok() {
            tokio::time::sleep(PAUSE).await;
            changes.mark_unchanged();
            let is_served = |group: &str, version: &str, plural: &str| {
                let mut delegates = state.delegates.iter();
                delegates.any(|delegate| delegate.lookup(group, version, plural).is_some())
            };
            state.metrics.requests.retain(is_served);
        }
    });
}

/// Shares seats out anew again and again, for as long as this thread's `LocalSet` runs.
fn share_seats(control: Arc<FlowControl>, hooks: &Hooks) {
    hooks.finish("priority-and-fairness-filter", Ok(()));
    tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(flowcontrol::PERIOD).await;
            control.adjust();
        }
    });
}

fn run_hooks(state: &Data<ServerState>, hooks: Vec<Hook>, context: &HookContext) {
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

impl Running {
    pub fn local_addr(&self) -> SocketAddr {
        self.serving.local_addr()
    }

    /// The signal that this server ends.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Takes leave as [`crate::settings::ShutdownSettings`] says, ends watches and controllers, lets other requests finish, closes the
    /// store.
    pub async fn stop(self) {
        let graceful = self.state.requests.shutdown;
        self.shutdown.enter(Phase::Leaving);
        tokio::time::sleep(graceful.delay).await;
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
