//! Settings of the kinds of Kubernetes, as the command line says them.

use std::net::IpAddr;
use std::time::Duration;

use keelson_access::authn::request_header::IdentityHeaders;

/// The ports that services get on nodes, as in kube-apiserver: the first and the last.
pub(crate) const NODE_PORTS: (u16, u16) = (30_000, 32_767);

/// How long an event is kept after it was written last, unless told otherwise.
const EVENT_TIME_TO_LIVE: Duration = Duration::from_secs(60 * 60);

/// What the command line says of the rules of kinds.
#[derive(Clone, Debug)]
pub struct CodeOptions {
    /// How long events are kept after their last write; `None`: for ever.
    pub event_time_to_live: Option<Duration>,
    /// The addresses and ports of services.
    pub services: ServiceOptions,
}

impl Default for CodeOptions {
    fn default() -> CodeOptions {
        CodeOptions {
            event_time_to_live: Some(EVENT_TIME_TO_LIVE),
            services: ServiceOptions::default(),
        }
    }
}

/// What the command line says of services.
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// An address of each range that services get theirs of: of the first the family is that of services which ask for
    /// none.
    pub ranges: Vec<IpAddr>,
    /// The first and the last of the ports that services get on nodes.
    pub node_ports: (u16, u16),
}

impl Default for ServiceOptions {
    /// Those of kube-apiserver.
    fn default() -> Self {
        ServiceOptions {
            ranges: vec![[10, 0, 0, 0].into()],
            node_ports: NODE_PORTS,
        }
    }
}

/// What the objects of a fresh server depend on.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The ranges of cluster IPs, in CIDR form, each with its first address.
    pub service_ranges: Vec<(String, IpAddr)>,
    /// The first and the last port that services get on nodes.
    pub node_ports: (u16, u16),
    /// That of the service `kubernetes`; `None`: it has none.
    pub kubernetes_node_port: Option<u16>,
    /// How the endpoints of that service are known.
    pub endpoint_reconciler: EndpointReconciler,
    /// PEM text of the authorities of client certificates; empty: there are none.
    pub client_ca_pem: String,
    /// A proxy that is believed who sends requests.
    pub front_proxy: Option<FrontProxy>,
    /// Requests have priorities, and flow schemas say whether theirs is there.
    pub flow_control: bool,
    /// Roles decide who may do what; without them nobody needs the default ones.
    pub roles: bool,
    /// Controllers that run on this server because no kube-controller-manager does.
    pub controllers: Vec<ManagedController>,
}

/// A controller of kube-controller-manager that this server has, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ManagedController {
    /// The status of ValidatingAdmissionPolicies: whether their expressions fit the types of what they mean.
    ValidatingAdmissionPolicyStatus,
}

impl ManagedController {
    /// All of them.
    pub const ALL: [ManagedController; 1] = [ManagedController::ValidatingAdmissionPolicyStatus];

    /// As kube-controller-manager's flag `--controllers` knows it.
    pub fn name(self) -> &'static str {
        match self {
            ManagedController::ValidatingAdmissionPolicyStatus => "validatingadmissionpolicy-status-controller",
        }
    }
}

/// Whose headers are believed, and which.
#[derive(Clone, Debug)]
pub struct FrontProxy {
    /// PEM text of the authorities of proxies.
    pub client_ca_pem: String,
    pub allowed_names: Vec<String>,
    pub headers: IdentityHeaders,
}

impl Default for Setting {
    /// The range of kube-apiserver, no client certificates, flow control, and roles.
    fn default() -> Setting {
        Setting {
            service_ranges: vec![("10.0.0.0/24".to_owned(), [10, 0, 0, 0].into())],
            node_ports: NODE_PORTS,
            kubernetes_node_port: None,
            endpoint_reconciler: EndpointReconciler::default(),
            client_ca_pem: String::new(),
            front_proxy: None,
            flow_control: true,
            roles: true,
            controllers: ManagedController::ALL.to_vec(),
        }
    }
}

/// How the endpoints of the service `kubernetes` are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EndpointReconciler {
    /// Each server notes in the store that it runs, for a while.
    #[default]
    Lease,
    /// There are so many servers, and each adds itself.
    Count(usize),
    /// Others see to it.
    None,
}
