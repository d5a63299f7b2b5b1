//! Bootstrap objects, which clients find when the server has started: each is made by a post-start hook that `/readyz`
//! names as kube-apiserver does. The writes of a hook, and the hooks, run side by side, so that the store commits them
//! together.

#[cfg(feature = "kubernetes")]
mod authentication_info;
#[cfg(feature = "kubernetes")]
mod endpoints;
#[cfg(feature = "kubernetes")]
mod flow_control;
#[cfg(feature = "kubernetes")]
mod identity;
pub(super) mod maker;
#[cfg(feature = "kubernetes")]
mod priority_classes;
mod reconcile;
mod roles;
#[cfg(feature = "kubernetes")]
mod service;
#[cfg(feature = "kubernetes")]
mod service_range;
#[cfg(feature = "kubernetes")]
mod service_repair;
mod system_namespaces;
#[cfg(test)]
mod tests;
#[cfg(feature = "kubernetes")]
mod token_tracking;

#[cfg(feature = "kubernetes")]
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use keelson_server::server::{Hook, HookContext, HookError};
#[cfg(feature = "kubernetes")]
use tokio::sync::oneshot;

#[cfg(feature = "kubernetes")]
use crate::admissionregistration::PolicyTypeChecking;

pub use crate::setting::{EndpointReconciler, FrontProxy, ManagedController, Setting};
pub use maker::DataError;
pub use roles::node_rules;

/// The manager of what the server makes, in `managedFields`.
const MANAGER: &str = "kube-apiserver";

/// All hooks, in the order in which kube-apiserver lists them.
#[cfg(feature = "kubernetes")]
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
#[cfg(feature = "kubernetes")]
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
