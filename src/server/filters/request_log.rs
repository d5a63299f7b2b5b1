//! The request log: a line for each answer that blames the server (5xx), at every verbosity; one for each other request
//! where debugging events of this module are logged, which is from verbosity 3 on. Fields are called as
//! kube-apiserver's are.

use std::time::Instant;

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderValue, USER_AGENT};
use tracing::Level;

use super::Next;
use crate::health;
use crate::request::Request;
use crate::respond::Failure;
use crate::state::ServerState;

pub async fn request_log(_: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    logged(request, next).await
}

async fn logged(request: &mut Request, next: impl Next) -> HttpResponse {
    let began = tracing::enabled!(Level::ERROR).then(Instant::now);
    let response = next(request).await;
    if let Some(began) = began {
        let resp = response.status().as_u16();
        // Why a health check fails is logged where it does, as often as it changes.
        if resp >= 500 && !health::is_endpoint(request.http.path()) {
            let reason = response.extensions().get::<Failure>().map(|failure| failure.0.clone());
            let line = Line::of(request, began);
            tracing::error!(
                verb = line.verb,
                URI = line.uri,
                latency = line.latency,
                userAgent = line.agent,
                "audit-ID" = line.id,
                srcIP = line.peer,
                resp,
                reason,
                "HTTP"
            );
        } else if tracing::enabled!(Level::DEBUG) {
            let line = Line::of(request, began);
            tracing::debug!(
                verb = line.verb,
                URI = line.uri,
                latency = line.latency,
                userAgent = line.agent,
                "audit-ID" = line.id,
                srcIP = line.peer,
                resp,
                "HTTP"
            );
        }
    }
    response
}

/// What is said of a request.
struct Line<'a> {
    verb: &'a str,
    uri: String,
    latency: String,
    agent: &'a str,
    id: &'a str,
    peer: String,
}

impl Line<'_> {
    fn of(request: &Request, began: Instant) -> Line<'_> {
        Line {
            verb: match request.info.verb.as_str() {
                "" => request.http.method().as_str(),
                verb => verb,
            },
            uri: request.http.uri().to_string(),
            latency: format!("{:?}", began.elapsed()),
            agent: text(request.headers.get(USER_AGENT)),
            id: text(request.audit.id()),
            peer: request
                .connection()
                .map_or(String::new(), |connection| connection.peer.to_string()),
        }
    }
}

/// "" where there is none, or none of ASCII.
fn text(value: Option<&HeaderValue>) -> &str {
    value.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::filters::tests::{fine, request};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    async fn broken(_: &mut Request) -> HttpResponse {
        HttpResponse::InternalServerError().body("broken")
    }

    /// What is logged up to a level of a request for this path.
    async fn logged_of(level: Level, path: &str, next: impl Next) -> Vec<String> {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        logged(&mut request("GET", path, &[]), next).await;
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn what_blames_the_server_is_one_line_and_the_rest_is_for_debugging() {
        let maps = "/api/v1/configmaps";
        let [line] = logged_of(Level::ERROR, maps, broken).await.try_into().unwrap();
        assert!(
            line.contains("ERROR") && line.contains(maps) && line.contains("resp=500"),
            "{line}"
        );
        assert!(logged_of(Level::INFO, maps, fine).await.is_empty());
        let [line] = logged_of(Level::DEBUG, maps, fine).await.try_into().unwrap();
        assert!(line.contains("DEBUG") && line.contains("resp=200"), "{line}");
        assert!(logged_of(Level::INFO, "/readyz", broken).await.is_empty());
    }
}
