//! Records requests as the policy says: when they are received, and when they end, however that comes about. Also those
//! that are refused before it is known who asks.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;
use keelson_machinery::meta::v1::Status;
use keelson_machinery::status::reason;
use tokio::time::Instant;

use super::Next;
use crate::audit::sink::Wait;
use crate::audit::{Outcome, Record, Stage};
use crate::request::Request;
use crate::respond;
use crate::state::ServerState;

/// The status that is recorded of a request whose client went away: nobody was sent any.
const CLIENT_CLOSED: u16 = 499;

pub async fn audit(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    if !state.audit.is_on() {
        return next(request).await;
    }
    let user = Arc::clone(&request.user);
    let record = state.audit.open(&request.audited(), Some(&user));
    request.audit.decided(record.clone());
    let Some(record) = record else {
        return next(request).await;
    };
    if !record.emit(Stage::RequestReceived, None, Wait::IfStrict).await {
        state.audit.rejected();
        return rejection(request);
    }
    let ending = Ending {
        record: Some(record),
        deadline: request.deadline,
        answer: None,
    };
    let response = next(request).await;
    ending.answered(response).await
}

/// Records a request that was refused before it is known who asks. Its one event tells how.
pub async fn refused(
    state: &ServerState,
    request: &mut Request,
    refuse: impl FnOnce(&Request) -> HttpResponse,
) -> HttpResponse {
    let record = match state.audit.is_on() {
        true => state.audit.open(&request.audited(), None),
        false => None,
    };
    request.audit.decided(record.clone());
    let mut response = refuse(request);
    if let Some(record) = record {
        let outcome = outcome_of(&mut response);
        let answer = Some((response.status().as_u16(), &outcome));
        record.emit(Stage::ResponseStarted, answer, Wait::Always).await;
    }
    response
}

fn outcome_of(response: &mut HttpResponse) -> Outcome {
    response.extensions_mut().remove().unwrap_or_default()
}

/// The log that must have an event of every request can't be written.
fn rejection(request: &Request) -> HttpResponse {
    let path = request.http.uri().to_string();
    let text = format!("Internal Server Error: {path:?}: failed to store audit event\n");
    respond::text(500, text)
}

/// Sees to it that a request that was received also ends: with its answer, or with what kept it from having one.
struct Ending {
    /// `None`: it has ended.
    record: Option<Rc<Record>>,
    deadline: Option<Instant>,
    /// What was answered, if the end of the body is the end.
    answer: Option<(u16, Outcome)>,
}

impl Ending {
    async fn answered(mut self, mut response: HttpResponse) -> HttpResponse {
        let outcome = outcome_of(&mut response);
        let code = response.status().as_u16();
        let Some(record) = self.record.clone() else {
            return response;
        };
        if record.is_long_running() {
            let (head, body) = response.into_parts();
            record
                .emit(Stage::ResponseStarted, Some((code, &outcome)), Wait::IfStrict)
                .await;
            response = match body.try_into_bytes() {
                Ok(bytes) => head.set_body(BoxBody::new(bytes)),
                Err(body) => {
                    self.answer = Some((code, outcome));
                    return head.set_body(BoxBody::new(Followed { body, ending: self }));
                }
            };
        }
        record
            .emit(Stage::ResponseComplete, Some((code, &outcome)), Wait::Always)
            .await;
        self.record = None;
        response
    }

    fn end(&mut self) {
        let Some(record) = self.record.take() else { return };
        if std::thread::panicking() {
            let status = failure("APIServer panic'd", reason::INTERNAL_ERROR);
            return record.emit_now(Stage::Panic, Some((500, &status)));
        }
        let (code, outcome) = self.answer.take().unwrap_or_else(|| match self.deadline {
            Some(deadline) if deadline <= Instant::now() => (504, failure(respond::OUT_OF_TIME, reason::TIMEOUT)),
            _ => (CLIENT_CLOSED, failure("the client went away", reason::UNKNOWN)),
        });
        record.emit_now(Stage::ResponseComplete, Some((code, &outcome)));
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.end();
    }
}

fn failure(message: &str, reason: &str) -> Outcome {
    Outcome {
        status: Some(Status {
            status: "Failure".to_owned(),
            message: message.to_owned(),
            reason: reason.to_owned(),
            ..Status::default()
        }),
        object: None,
    }
}

/// A body whose end is that of its request.
struct Followed {
    body: BoxBody,
    ending: Ending,
}

impl MessageBody for Followed {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let next = Pin::new(&mut self.body).poll_next(cx);
        if matches!(next, Poll::Ready(None)) {
            self.ending.end();
        }
        next
    }
}
