//! Bounds how many requests are under way at once, those that read and those that may change something apart
//! (`--max-requests-inflight`, `--max-mutating-requests-inflight`). Where flow control by priority is on it has bounded
//! them already, and this only counts.
//!
//! A stream counts for nothing here: a server is meant to have many. Members of `system:masters` get through when all
//! places are taken, so that whoever has to repair a flooded server can.

use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::http::header::{self, HeaderValue};
use bytes::Bytes;
use keelson_access::flowcontrol::in_flight::InFlight;
use keelson_access::user::GROUP_MASTERS;

use super::Next;
use crate::request::Request;
use crate::respond;
use crate::state::ServerState;

/// The status of who finds no place.
pub(super) const TOO_MANY: u16 = 429;
const TEXT: &str = "Too many requests, please try again later.\n";

pub async fn in_flight(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    let is_stream = request.info.is_long_running();
    let open = || state.metrics.requests.open(request);
    let stream = is_stream.then(open).flatten();
    let turn_away = |request: &Request| state.terminated(request, TOO_MANY);
    let response = bounded(&state.in_flight, request, next, turn_away).await;
    match stream {
        Some(stream) => hold(response, stream),
        None => response,
    }
}

/// `turn_away` is told of a request that finds no place.
async fn bounded(
    in_flight: &InFlight,
    request: &mut Request,
    next: impl Next,
    turn_away: impl FnOnce(&Request),
) -> HttpResponse {
    let may_exceed = || request.user.in_group(GROUP_MASTERS);
    let Some(place) = in_flight.take(&request.info, may_exceed) else {
        turn_away(request);
        return too_many();
    };
    hold(next(request).await, place)
}

/// Keeps what a request holds until its answer is out, as far as that is made while it is sent.
pub(super) fn hold<P: Unpin + 'static>(response: HttpResponse, place: P) -> HttpResponse {
    response.map_body(|_, body| match body.try_into_bytes() {
        Ok(bytes) => BoxBody::new(bytes),
        Err(body) => BoxBody::new(Held { body, _place: place }),
    })
}

struct Held<P> {
    body: BoxBody,
    _place: P,
}

impl<P: Unpin> MessageBody for Held<P> {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}

/// The answer to who finds no place.
pub(super) fn too_many() -> HttpResponse {
    let mut response = respond::text(TOO_MANY, TEXT);
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::stream;

    use super::super::tests::{body, fine, header, request};
    use std::sync::Arc;

    use super::*;
    use keelson_access::user::User;

    /// The answer to a request that comes while another one is under way.
    async fn beside(held: (&str, &str), method: &str, target: &str, groups: &[&str]) -> HttpResponse {
        let places = InFlight::new(1, 1);
        let mut first = request(held.0, held.1, &[]);
        let forever = bounded(
            &places,
            &mut first,
            async |_: &mut Request| std::future::pending().await,
            |_| (),
        );
        let mut forever = Box::pin(forever);
        assert!(forever.as_mut().now_or_never().is_none());
        let mut second = request(method, target, &[]);
        second.user = Arc::new(User {
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..User::default()
        });
        bounded(&places, &mut second, fine, |_| ()).await
    }

    #[tokio::test]
    async fn reads_writes_and_streams_are_counted_apart() {
        let (read, write) = (("GET", "/api/v1/pods"), ("POST", "/api/v1/pods"));
        let watch = ("GET", "/api/v1/pods?watch=1");
        for (held, method, target, status) in [
            (read, "GET", "/version", 429),
            (read, "GET", "/api/v1/pods/p", 429),
            (read, "DELETE", "/api/v1/pods", 200),
            (read, "GET", "/api/v1/pods?watch=1", 200),
            (write, "PATCH", "/api/v1/pods/p", 429),
            (write, "OPTIONS", "/", 429),
            (write, "GET", "/", 200),
            (watch, "GET", "/api/v1/pods?watch=1", 200),
            (watch, "GET", "/api/v1/pods", 200),
        ] {
            let response = beside(held, method, target, &[]).await;
            assert_eq!(response.status(), status, "{held:?} {method} {target}");
        }
    }

    #[tokio::test]
    async fn those_turned_away_are_told_when_to_come_again() {
        let response = beside(("GET", "/version"), "GET", "/version", &["system:authenticated"]).await;
        assert_eq!(header(&response, "retry-after"), "1");
        assert_eq!(header(&response, "content-type"), "text/plain; charset=utf-8");
        assert_eq!(header(&response, "x-content-type-options"), "nosniff");
        assert_eq!(body(response).await, TEXT);
        let response = beside(("GET", "/version"), "GET", "/version", &["system:masters"]).await;
        assert_eq!(response.status(), 200);
    }

    #[tokio::test]
    async fn a_place_is_held_until_the_answer_is_out() {
        let places = InFlight::new(1, 1);
        let mut list = request("GET", "/api/v1/pods", &[]);
        let streamed = async |_: &mut Request| {
            let chunks = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"one"))]);
            HttpResponse::Ok().streaming(chunks)
        };
        let response = bounded(&places, &mut list, streamed, |_| ()).await;
        assert_eq!(places.reads(), 1);
        assert_eq!(bounded(&places, &mut list, fine, |_| ()).await.status(), 429);
        assert_eq!(body(response).await, "one");
        assert_eq!(places.reads(), 0);
        assert_eq!(bounded(&places, &mut list, fine, |_| ()).await.status(), 200);
        assert_eq!(places.reads(), 0);
    }
}
