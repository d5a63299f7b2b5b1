//! The shared state of a server's workers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use keelson_access::authn::Authentication;
use keelson_access::authz::Authorization;
use keelson_access::flowcontrol::FlowControl;
use keelson_access::flowcontrol::in_flight::InFlight;
use keelson_access::impersonation::Impersonation;
use keelson_access::request_info::RequestInfo;

use crate::audit::Audit;
use crate::delegate::Delegate;
use crate::discovery::Discovery;
use crate::lifecycle::Hooks;
use crate::metrics::{HealthIndicators, Metrics};
use crate::openapi::OpenApi;
use crate::request::{Found, Request};
use crate::rest::Rest;
use crate::settings::RequestSettings;
use crate::version::Version;

/// What all workers share.
pub struct ServerState {
    pub started: Instant,
    pub requests: Arc<RequestSettings>,
    pub in_flight: Arc<InFlight>,
    /// `None`: requests are only counted and bounded ([`ServerState::in_flight`]).
    pub flow_control: Option<Arc<FlowControl>>,
    pub rest: Arc<Rest>,
    pub delegates: Vec<Arc<dyn Delegate>>,
    pub audit: Audit,
    pub authentication: Authentication,
    pub authorization: Authorization,
    pub(crate) impersonation: Impersonation,
    pub discovery: Discovery,
    pub openapi: Arc<OpenApi>,
    pub hooks: Hooks,
    pub metrics: Metrics,
    pub(crate) indicators: HealthIndicators,
    pub version: Version,
    /// The flags that the server runs with, by their names.
    pub flags: BTreeMap<String, String>,
}

impl ServerState {
    /// What answers for the resource that a request asks for; `None`: no server has such a resource.
    pub(crate) fn find(&self, info: &RequestInfo) -> Option<Found> {
        if !info.is_resource || info.unrouted {
            return None;
        }
        let mut delegates = self.delegates.iter().enumerate();
        delegates.find_map(|(server, delegate)| {
            let endpoint = delegate.lookup(&info.group, &info.version, &info.resource)?;
            Some(Found { server, endpoint })
        })
    }

    /// Whether any server serves something of this group.
    pub(crate) fn serves_group(&self, group: &str) -> bool {
        self.delegates.iter().any(|delegate| delegate.serves_group(group))
    }

    /// Counts a request that no handler answers.
    pub(crate) fn terminated(&self, request: &Request, code: u16) {
        self.metrics.requests.terminated(request, code);
    }
}
