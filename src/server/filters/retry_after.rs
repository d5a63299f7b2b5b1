//! Sends requests to another server while this one ends and those under way are finished
//! (`--shutdown-send-retry-after`). Probes are answered, so that whoever looks sees what is going on, and so are
//! servers of this kind: they may be this one, which can't finish without.

use actix_web::HttpResponse;
use actix_web::http::header::{self, HeaderValue};
use keelson_net::listener::Phase;

use super::Next;
use crate::request::Request;
use crate::respond;
use crate::state::ServerState;

const TEXT: &str = "The apiserver is shutting down, please try again later.\n";
const SECONDS: HeaderValue = HeaderValue::from_static("5");
const PROBES: [&str; 3] = ["/healthz", "/livez", "/readyz"];

pub async fn retry_after(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    let leaving = state.requests.shutdown.send_retry_after && state.rest.shutdown.phase() >= Phase::Refusing;
    if !leaving || is_exempt(request) {
        return next(request).await;
    }
    refusal()
}

fn is_exempt(request: &Request) -> bool {
    let path = request.info.path.as_str();
    let agent = request.header(&header::USER_AGENT).unwrap_or_default();
    PROBES.contains(&path) || agent.starts_with("kube-apiserver/")
}

fn refusal() -> HttpResponse {
    let mut response = respond::text(429, TEXT);
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, SECONDS);
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use super::super::tests::{body, header, request};
    use super::*;

    #[test]
    fn probes_and_servers_are_exempt() {
        for (target, agent, exempt) in [
            ("/readyz", "kube-probe/1", true),
            ("/livez?verbose", "", true),
            ("/api/v1/pods", "kube-apiserver/v1.36", true),
            ("/api/v1/pods", "kubectl/v1.36", false),
            ("/version", "", false),
        ] {
            let request = request("GET", target, &[("user-agent", agent)]);
            assert_eq!(is_exempt(&request), exempt, "{target} {agent}");
        }
    }

    #[tokio::test]
    async fn others_are_told_when_to_come_again() {
        let response = refusal();
        assert_eq!(response.status(), 429);
        assert_eq!(header(&response, "retry-after"), "5");
        assert_eq!(header(&response, "connection"), "close");
        assert_eq!(body(response).await, TEXT);
    }
}
