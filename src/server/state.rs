//! The shared state of a server's workers.

use std::sync::Arc;
use std::time::Instant;

use crate::audit::Audit;
use crate::authn::Authentication;
use crate::authz::Authorization;
use crate::delegate::Delegate;
use crate::discovery::Discovery;
use crate::filters::in_flight::InFlight;
use crate::flowcontrol::FlowControl;
use crate::impersonation::Impersonation;
use crate::lifecycle::Hooks;
use crate::metrics::Metrics;
use crate::openapi::OpenApi;
use crate::registry::Endpoint;
use crate::request_info::RequestInfo;
use crate::rest::Rest;
use crate::rest::request::Request;
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
    pub version: Version,
}

impl ServerState {
    /// That of the resource that a request asks for; `None`: the server has no such resource.
    pub(crate) fn endpoint(&self, info: &RequestInfo) -> Option<&Endpoint> {
        let registry = &self.rest.registry;
        registry.endpoint(&info.group, &info.version, &info.resource)
    }

    /// Counts a request that no handler answers.
    pub(crate) fn terminated(&self, request: &Request, code: u16) {
        let endpoint = self.endpoint(&request.info);
        self.metrics.requests.terminated(request, endpoint, code);
    }
}
