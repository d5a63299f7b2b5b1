//! Bootstrap objects, which clients find when the server has started: each is made by a post-start hook that `/readyz`
//! names as kube-apiserver does. The writes of a hook, and the hooks, run side by side, so that the store commits them
//! together.

mod authentication_info;
mod endpoints;
mod flow_control;
mod identity;
pub(super) mod maker;
mod priority_classes;
mod reconcile;
mod roles;
mod service;
mod service_range;
mod service_repair;
mod system_namespaces;
#[cfg(test)]
mod tests;
mod token_tracking;

use std::net::IpAddr;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use keelson_access::authn::request_header::IdentityHeaders;
use keelson_server::server::{Hook, HookContext, HookError};
use tokio::sync::oneshot;

use crate::ServiceOptions;
use crate::admissionregistration::PolicyTypeChecking;

pub use endpoints::EndpointReconciler;
pub use maker::DataError;
pub use roles::node_rules;

/// The manager of what the server makes, in `managedFields`.
const MANAGER: &str = "kube-apiserver";

/// What the objects depend on.
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
            node_ports: ServiceOptions::default().node_ports,
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

/// All hooks, in the order in which kube-apiserver lists them.
pub fn hooks(setting: &Setting) -> Vec<Hook> {
    let setting = Rc::new(setting.clone());
    let (flow_control, roles) = (setting.flow_control, setting.roles);
    let (info, service, range, ports) = (setting.clone(), setting.clone(), setting.clone(), setting.node_ports);
    let (made, levels_made) = oneshot::channel();
    let (range_sent, range_made) = oneshot::channel();
    let consumer = hook("priority-and-fairness-config-consumer", |context| {
        flow_control::consume(context, levels_made)
    });
    let policies = ManagedController::ValidatingAdmissionPolicyStatus;
    let mut hooks = Vec::from_iter(setting.controllers.contains(&policies).then(policy_status));
    hooks.extend(flow_control.then_some(consumer));
    hooks.extend([
        namespaces(),
        hook("start-cluster-authentication-info-controller", move |context| {
            authentication_info::run(context, info)
        }),
        hook("start-kube-apiserver-identity-lease-controller", identity::run),
        hook(
            "start-kube-apiserver-identity-lease-garbage-collector",
            identity::collect,
        ),
        hook("start-legacy-token-tracking-controller", token_tracking::run),
        hook("start-service-ip-repair-controllers", move |context| {
            service_repair::run(context, ports)
        }),
    ]);
    hooks.extend(roles.then(default_roles));
    hooks.extend([
        hook("scheduling/bootstrap-system-priority-classes", priority_classes::run),
        hook("priority-and-fairness-config-producer", |context| {
            flow_control::produce(context, made)
        }),
        hook("bootstrap-controller", move |context| {
            service::run(context, service, range_made)
        }),
        hook("start-kubernetes-service-cidr-controller", move |context| {
            service_range::run(context, range, range_sent)
        }),
    ]);
    hooks
}

/// Makes the namespaces that a server cannot be without, and looks after them.
pub(crate) fn namespaces() -> Hook {
    hook("start-system-namespaces-controller", system_namespaces::run)
}

/// Tells policies whether their expressions fit.
fn policy_status() -> Hook {
    hook("start-apiserver-admission-initializer", |context| async move {
        if !PolicyTypeChecking::has_policies(&context.registry) {
            return Ok(());
        }
        let controller = PolicyTypeChecking::new(context.registry.clone());
        context.run(controller).map_err(HookError::from)
    })
}

/// Makes the default roles and bindings.
pub(crate) fn default_roles() -> Hook {
    hook("rbac/bootstrap-roles", roles::run)
}

fn hook<F: Future<Output = Result<(), HookError>> + 'static>(
    name: &'static str,
    run: impl FnOnce(HookContext) -> F + 'static,
) -> Hook {
    Hook {
        name,
        run: Box::new(|context| -> LocalBoxFuture<'static, _> { Box::pin(run(context)) }),
    }
}
