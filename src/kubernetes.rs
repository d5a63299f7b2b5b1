//! All of Kubernetes, for servers that have it: a build without the feature `kubernetes` makes none.

use std::sync::Arc;

use keelson_access::authz::node::NodeAuthorizer;
use keelson_access::flowcontrol::spec::ReadFlowControl;
use keelson_kube::bootstrap::Setting;
use keelson_kube::{CodeOptions, DataError};
use keelson_machinery::scheme::Scheme;
use keelson_net::client::Egress;
use keelson_registry::KindCode;
use keelson_registry::admission::Plugin;
use keelson_server::server::Hook;

/// What it is made of.
pub(crate) struct Kubernetes {
    pub scheme: &'static Scheme,
    /// Group/versions that requests may name although nothing of them is served.
    pub known_versions: &'static [(&'static str, &'static str)],
    pub code: fn(&CodeOptions) -> KindCode,
    /// What is made at the start.
    pub hooks: fn(&Setting) -> Vec<Hook>,
    pub plugins: fn(&Egress) -> Vec<Arc<dyn Plugin>>,
    pub flow_control: fn() -> Box<dyn ReadFlowControl>,
    /// What decides for nodes.
    pub node_authorizer: fn() -> Result<Arc<NodeAuthorizer>, DataError>,
}

/// As it is.
#[cfg(feature = "kubernetes")]
pub(crate) static ALL: Kubernetes = Kubernetes {
    scheme: &crate::api::SCHEME,
    known_versions: keelson_kube::KNOWN_VERSIONS,
    code: keelson_kube::code,
    hooks: keelson_kube::bootstrap::hooks,
    plugins: keelson_kube::admission::plugins,
    flow_control: || Box::new(keelson_kube::flowcontrol::Reader),
    node_authorizer: || {
        let rules = keelson_kube::node_rules()?;
        Ok(Arc::new(NodeAuthorizer::new(keelson_kube::NodeGraph, rules)))
    },
};
