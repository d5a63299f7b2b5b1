//! The start of a server: its parts, each made of those before it, then everything that runs.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use actix_web::web::Data;
use keelson_access::authn::jwt::VerifyingKey;
use keelson_access::flowcontrol::FlowControl;
use keelson_access::flowcontrol::in_flight::InFlight;
use keelson_access::flowcontrol::metrics::FlowMetrics;
use keelson_net::listener::{self, Bound, Shutdown};
use keelson_registry::controller::Controllers;
use keelson_registry::{Backend, Registry, ServerListers, Verbs};

use super::background::{follow_sizes, forget_metrics, hold, share_seats};
use super::config::{AccessConfig, Config, ResourceConfig, ShowMetrics};
use super::hooks::run_hooks;
use super::{Ending, HookContext, Running, ServerError};
use crate::app::app;
use crate::audit::Audit;
use crate::delegate::Delegate;
use crate::discovery::{Catalog, Discovery, IssuerDocuments, MergedCatalog};
use crate::lifecycle::Hooks;
use crate::metrics::Metrics;
use crate::openapi::{Info, OpenApi};
use crate::rest::Rest;
use crate::settings::RequestSettings;
use crate::state::ServerState;
use crate::version::Version;

/// Binds the listener and starts the hooks. Must be called within a `LocalSet`.
///
/// # Errors
/// The address can't be listened on, or code and definitions don't fit.
pub fn start(mut config: Config) -> Result<Running, ServerError> {
    config.listener.limits.answer_timeout = config.requests.timeout;
    let bound = listener::bind(config.listener)?;
    let prefix = config.storage.prefix.clone();
    let backend = config.storage.backend(config.clock, config.entropy);
    let registry = config.resources.registry(&backend, &prefix)?;
    registry.listens_at(bound.local_addr());
    let parts = Parts {
        advertise: advertised(&config.advertise, &bound),
        verbs: verbs(&registry, &backend, &config.access),
        flow_control: config.access.flow_control(&config.requests),
        requests: Arc::new(config.requests),
        resources: config.resources,
        access: config.access,
        audit: config.audit,
        version: config.version,
        flags: config.flags,
        metrics: config.metrics,
        shutdown: Shutdown::new(),
        controllers: Controllers::default(),
        ending: Ending::default(),
        registry,
        backend,
    };
    parts.attach();
    let state = Data::new(parts.state());
    parts.run_background(&state);
    run_hooks(&state, config.hooks, &parts.hook_context());
    let of_worker = state.clone();
    let serving = bound.serve(move || app(of_worker.clone()), parts.shutdown.clone())?;
    Ok(Running {
        state,
        serving,
        shutdown: parts.shutdown,
        stores: parts.backend.stores().cloned().collect(),
        controllers: parts.controllers,
        ending: parts.ending,
    })
}

/// A server before it runs.
struct Parts {
    resources: ResourceConfig,
    access: AccessConfig,
    audit: Audit,
    version: Version,
    flags: BTreeMap<String, String>,
    metrics: Vec<ShowMetrics>,
    requests: Arc<RequestSettings>,
    backend: Backend,
    registry: Arc<Registry>,
    verbs: Arc<Verbs>,
    flow_control: Option<Arc<FlowControl>>,
    controllers: Controllers,
    ending: Ending,
    shutdown: Shutdown,
    /// `host:port` that discovery tells clients.
    advertise: String,
}

impl Parts {
    /// Hands the objects of the server to those who decide by them.
    fn attach(&self) {
        let listers = ServerListers::new(self.verbs.clone());
        self.access.authorization.attach(&listers);
        self.access.authentication.attach(&listers, &self.backend.clock);
        if let Some(control) = &self.flow_control {
            control.attach(&listers);
        }
        self.resources.admission.attach(&listers, &self.verbs);
        for (group, plural) in self.resources.admission.follows() {
            listers.hold(group, plural);
        }
        hold(listers.into_held());
    }

    /// What all workers share.
    fn state(&self) -> ServerState {
        let in_flight = Arc::new(self.in_flight());
        let rest = Arc::new(Rest {
            registry: self.registry.clone(),
            backend: self.backend.clone(),
            verbs: self.verbs.clone(),
            shutdown: self.shutdown.clone(),
            requests: self.requests.clone(),
        });
        let delegates: Vec<Arc<dyn Delegate>> = vec![rest.clone()];
        let servers = delegates.iter().map(|server| server.clone() as Arc<dyn Catalog>);
        let catalog = Arc::new(MergedCatalog::new(servers.collect()));
        let issuer = self.issuer_documents();
        let openapi = self.openapi(catalog.clone(), issuer.is_some());
        ServerState {
            started: Instant::now(),
            requests: self.requests.clone(),
            metrics: self.metrics(in_flight.clone()),
            indicators: Default::default(),
            in_flight,
            flow_control: self.flow_control.clone(),
            delegates,
            rest,
            authentication: self.access.authentication.clone(),
            authorization: self.access.authorization.clone(),
            impersonation: Default::default(),
            discovery: Discovery::new(catalog, self.advertise.clone()).with_issuer(issuer),
            openapi: Arc::new(openapi),
            hooks: Hooks::default(),
            audit: self.audit.clone(),
            version: self.version.clone(),
            flags: self.flags.clone(),
        }
    }

    fn in_flight(&self) -> InFlight {
        match &self.flow_control {
            // It has its own limits.
            Some(_) => InFlight::new(0, 0),
            None => InFlight::new(self.requests.max_reads, self.requests.max_writes),
        }
    }

    /// What tells others how the tokens of this server are checked.
    fn issuer_documents(&self) -> Option<IssuerDocuments> {
        let authentication = &self.access.authentication;
        let issuer = authentication.issuer.as_ref()?;
        let keys: Vec<_> = authentication.keys.iter().map(VerifyingKey::to_jwk).collect();
        IssuerDocuments::new(issuer.issuer(), &keys, &authentication.keys_url, &self.advertise)
    }

    fn openapi(&self, catalog: Arc<MergedCatalog>, issuer: bool) -> OpenApi {
        let info = Info {
            title: "Kubernetes".into(),
            version: format!("{}.{}", self.version.major, self.version.minor),
            issuer,
            known: self.resources.known_versions,
        };
        OpenApi::new(&self.resources.schemes, catalog, info, self.backend.clock.clone())
    }

    fn metrics(&self, in_flight: Arc<InFlight>) -> Metrics {
        let mut metrics = Metrics::new(self.backend.budget.clone(), in_flight, self.backend.encryption.clone());
        self.access.authentication.metrics.register(metrics.registry());
        self.audit.register(metrics.registry());
        if let Some(control) = &self.flow_control {
            let collector = Box::new(FlowMetrics(control.clone()));
            metrics.registry().register_collector(collector);
        }
        self.access.authorization.metrics().register(metrics.registry());
        self.controllers.metrics().register(metrics.registry());
        self.backend.corrupt.register(metrics.registry());
        self.resources.admission.register(metrics.registry());
        self.metrics.iter().for_each(|show| show(metrics.registry()));
        metrics
    }

    fn run_background(&self, state: &Data<ServerState>) {
        follow_sizes(state, self.backend.clone());
        forget_metrics(state);
        if let Some(control) = &self.flow_control {
            share_seats(control.clone(), &state.hooks);
        }
    }

    fn hook_context(&self) -> HookContext {
        HookContext {
            registry: self.registry.clone(),
            backend: self.backend.clone(),
            verbs: self.verbs.clone(),
            advertise: self.advertise.clone(),
            controllers: self.controllers.clone(),
            ending: self.ending.clone(),
        }
    }
}

fn verbs(registry: &Arc<Registry>, backend: &Backend, access: &AccessConfig) -> Arc<Verbs> {
    Arc::new(Verbs {
        registry: registry.clone(),
        backend: backend.clone(),
        authentication: access.authentication.clone(),
        authorization: access.authorization.clone(),
    })
}

fn advertised(given: &str, bound: &Bound) -> String {
    match (given, given.parse::<IpAddr>()) {
        ("", _) => outward_address(bound.local_addr()).to_string(),
        (_, Ok(ip)) => SocketAddr::new(ip, bound.local_addr().port()).to_string(),
        (given, _) => given.to_owned(),
    }
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
