//! Authorization: authorizers, asked one after the other until one decides.

mod abac;
pub mod configuration;
mod decision;
mod default_roles;
mod fixed;
mod metrics;
pub mod node;
pub mod rbac;
mod refusal;
mod rules;
mod union;
pub mod webhook;

use crate::lister::Listers;
use crate::request_info::RequestInfo;
use crate::user::User;

pub use abac::{Abac, PolicyError, PolicyFault};
pub use decision::{Answer, Decision, Verdict};
pub use default_roles::DefaultRoles;
pub use fixed::{AlwaysAllow, AlwaysDeny, PrivilegedGroup};
pub use metrics::{AuthorizationMetrics, Label};
pub use refusal::{refusal, refused, resource_path};
pub use rules::{PathRule, ResourceRule, Rules};
pub use union::{Authorization, Labeled, aggregate};

/// One source of permissions.
pub trait Authorizer: Send + Sync {
    fn authorize<'a>(&'a self, user: &'a User, info: &'a RequestInfo) -> Answer<'a>;

    /// What the user may do in a namespace, as far as this authorizer can list it. One that decides case by case says
    /// so in [`Rules::incomplete`].
    fn rules(&self, user: &User, namespace: &str) -> Rules;

    /// What it is called in metrics; `None`: its decisions are not counted.
    fn label(&self) -> Option<&Label> {
        None
    }

    /// Hands over the objects of the server, once, before anybody is asked.
    fn attach(&self, _listers: &dyn Listers) {}
}
