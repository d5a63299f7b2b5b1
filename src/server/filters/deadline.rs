//! Ends requests that take longer than they may, their answers included, and tells handlers when that will be. Streams
//! are as long as their clients like.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::body::{BodySize, MessageBody};
use keelson_access::request_info::Query;
use keelson_machinery::status::StatusError;
use keelson_machinery::time;
use keelson_net::listener::AnswerDeadline;
use tokio::time::Instant;

use super::audit::refused;
use super::{Next, refuse};
use crate::request::Request;
use crate::respond;
use crate::state::ServerState;

pub async fn deadline(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    let longest = state.requests.timeout;
    match limit_of(request, longest) {
        Ok(limit) => within(limit, request, next, |request| state.terminated(request, 504)).await,
        Err(error) => refused(state, request, |request| refuse(request, &error)).await,
    }
}

/// How long the request may take; `None`: as long as it likes.
fn limit_of(request: &Request, longest: Duration) -> Result<Option<Duration>, StatusError> {
    match request.info.is_long_running() {
        true => Ok(None),
        false => time_limit(&request.query, longest).map(Some),
    }
}

/// `late` is told of a request whose time is over.
async fn within(
    limit: Option<Duration>,
    request: &mut Request,
    next: impl Next,
    late: impl FnOnce(&Request),
) -> HttpResponse {
    let Some(limit) = limit else {
        return next(request).await;
    };
    let deadline = Instant::now() + limit;
    request.deadline = Some(deadline);
    match tokio::time::timeout_at(deadline, next(request)).await {
        Ok(mut answer) => {
            // What is made while it is sent holds a place, and a snapshot, until it has been read.
            let has_one = answer.extensions().contains::<AnswerDeadline>();
            if matches!(answer.body().size(), BodySize::Stream) && !has_one {
                answer.extensions_mut().insert(AnswerDeadline::at(deadline));
            }
            answer
        }
        Err(_) => {
            late(request);
            respond::out_of_time()
        }
    }
}

/// What `?timeout=` asks for, as far as it is allowed.
fn time_limit(query: &Query, longest: Duration) -> Result<Duration, StatusError> {
    let Some(text) = query.get("timeout").filter(|text| !text.is_empty()) else {
        return Ok(longest);
    };
    let asked = time::Duration::parse(text)
        .map_err(|e| StatusError::bad_request(format!("invalid timeout specified in the request URL - {e}")))?;
    Ok(match u64::try_from(asked.as_nanos()) {
        Ok(nanos) if nanos > 0 => Duration::from_nanos(nanos).min(longest),
        _ => longest,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{body, fine, header, request};
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn the_client_may_only_shorten_the_time() {
        for (query, seconds) in [
            ("", 60),
            ("timeout=5s", 5),
            ("timeout=1h", 60),
            ("timeout=0s", 60),
            ("timeout=-1s", 60),
        ] {
            let limit = time_limit(&Query::parse(query), MINUTE);
            assert_eq!(limit, Ok(Duration::from_secs(seconds)), "{query}");
        }
        let error = time_limit(&Query::parse("timeout=5"), MINUTE).unwrap_err();
        let text = "invalid timeout specified in the request URL - time: missing unit in duration \"5\"";
        assert_eq!((error.code, error.message.as_str()), (400, text));
    }

    #[tokio::test]
    async fn what_takes_too_long_is_told_so() {
        let mut list = request("GET", "/api/v1/pods?timeout=10ms", &[]);
        let begin = Instant::now();
        let limit = limit_of(&list, MINUTE).unwrap();
        let response = within(
            limit,
            &mut list,
            async |request: &mut Request| {
                assert!(request.deadline.unwrap() >= begin + Duration::from_millis(10));
                std::future::pending().await
            },
            |_| (),
        )
        .await;
        assert_eq!(response.status(), 504);
        assert_eq!(header(&response, "content-type"), "text/plain; charset=utf-8");
        let text = r#"{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}"#;
        assert_eq!(body(response).await, format!("{text}\n"));
    }

    #[tokio::test]
    async fn streams_have_no_deadline() {
        for target in [
            "/api/v1/pods?watch=1",
            "/api/v1/namespaces/n/pods/p/log",
            "/api/v1/namespaces/n/pods/p/exec",
        ] {
            let mut stream = request("GET", target, &[]);
            let limit = limit_of(&stream, Duration::ZERO).unwrap();
            let response = within(
                limit,
                &mut stream,
                async |request: &mut Request| {
                    assert_eq!(request.deadline, None);
                    tokio::task::yield_now().await;
                    fine(request).await
                },
                |_| (),
            );
            assert_eq!(response.await.status(), 200, "{target}");
        }
    }
}
