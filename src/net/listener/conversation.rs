//! The requests of one connection, each through the application.

use std::convert::Infallible;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use actix_http::Request;
use actix_http::body::{BoxBody, EitherBody, MessageBody};
use actix_service::Service;
use futures_util::FutureExt;
use http::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::accept::Admission;
use super::answer::Answer;
use super::connection::Activity;
use super::drive::{drive, http1_settings, http2_settings};
use super::head_timed::HeadTimed;
use super::lingering::Lingering;
use super::paced::Paced;
use super::request_body::Rest;
use super::response::{self, AnswerBody, Asked};
use super::serve::{Context, ServeError};
use super::{Connection, Goaway, Upgrade, request};

/// The answer when a handler panics, as kube-apiserver gives it.
const PANICKED: &str = "This request caused apiserver to panic. Look in the logs for details.\n";

/// A client with its connection: what each of its requests needs.
pub(super) struct Conversation<S, B> {
    service: Rc<S>,
    connection: Rc<Connection>,
    activity: Rc<Activity>,
    admission: Arc<Admission>,
    context: Arc<Context>,
    /// The body of the application's answers.
    body: PhantomData<fn() -> B>,
}

impl<S, B> Conversation<S, B>
where
    S: Service<Request> + 'static,
    S::Error: Into<actix_web::Error>,
    S::Response: Into<actix_http::Response<B>>,
    B: MessageBody + 'static,
{
    pub(super) fn new(
        service: Rc<S>,
        connection: Connection,
        admission: Arc<Admission>,
        context: Arc<Context>,
    ) -> Self {
        let (connection, activity) = (Rc::new(connection), Rc::new(Activity::new()));
        Conversation {
            service,
            connection,
            activity,
            admission,
            context,
            body: PhantomData,
        }
    }

    /// Speaks HTTP until the connection ends.
    pub(super) async fn converse<T>(self, stream: T) -> Result<(), ServeError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let this = Rc::new(self);
        let activity = Rc::clone(&this.activity);
        let context = Arc::clone(&this.context);
        let http2 = this.connection.http2;
        let answer = service_fn(move |request| {
            let this = Rc::clone(&this);
            let under_way = this.activity.begin();
            if http2 {
                // hyper has it sent by the executor next.
                this.activity.leave_for_its_task(&under_way);
            }
            // Boxed: hyper keeps room for this future as long as the answer goes on, and a watch goes on for long.
            Box::pin(async move { Ok::<_, Infallible>(this.answer(request, under_way).await) })
        });
        if http2 {
            let settings = http2_settings(&context.limits, &activity);
            let connection = settings.serve_connection(TokioIo::new(Paced::new(stream)), answer);
            Ok(drive(pin!(connection), http2, &activity, &context).await?)
        } else {
            let stream = Lingering::new(stream, activity.unread());
            let stream = HeadTimed::new(stream, activity.turns(), context.limits.head_timeout);
            let connection = http1_settings(&context.limits)
                .serve_connection(TokioIo::new(stream), answer)
                .with_upgrades();
            Ok(drive(pin!(connection), http2, &activity, &context).await?)
        }
    }

    async fn answer(
        &self,
        request: http::Request<Incoming>,
        under_way: Rc<Answer>,
    ) -> http::Response<AnswerBody<EitherBody<B>>> {
        let asked = Asked {
            head: request.method() == http::Method::HEAD,
            http2: self.connection.http2,
            timeout: self.context.limits.answer_timeout,
        };
        let (request, rest) = match self.translate(request) {
            Ok(translated) => translated,
            Err(error) => {
                tracing::debug!(%error, "refused a request");
                let mut refusal = response::refusal(http::StatusCode::BAD_REQUEST, error.text(), under_way);
                if !asked.http2 {
                    // Where one request ended and the next begins is no longer certain.
                    refusal
                        .headers_mut()
                        .insert(CONNECTION, HeaderValue::from_static("close"));
                }
                return refusal;
            }
        };
        let called = AssertUnwindSafe(self.call(request)).catch_unwind().await;
        // Boxed: few requests come here, and this future lives as long as its answer.
        let unread = match rest.filter(|_| !asked.http2) {
            Some(rest) => Box::pin(rest.read()).await,
            None => false,
        };
        let (mut answer, close) = match called {
            Ok(answer) => response::into_hyper(answer, &asked, under_way),
            Err(panic) => {
                tracing::error!(panic = response::panic_text(panic.as_ref()), "a handler panicked");
                let status = http::StatusCode::INTERNAL_SERVER_ERROR;
                (response::refusal(status, PANICKED, under_way), false)
            }
        };
        if unread {
            self.activity.leave_unread();
            answer
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let sent_away = asked.http2 && self.context.goaway.as_ref().is_some_and(Goaway::decide);
        if sent_away || (close && asked.http2) {
            self.activity.close();
        }
        answer
    }

    fn translate(&self, mut request: http::Request<Incoming>) -> Result<(Request, Option<Rest>), request::HeadError> {
        let upgrade = self.upgrade(&mut request);
        let (head, body) = request.into_parts();
        let (mut request, rest) = request::from_hyper(head, body)?;
        request.head_mut().peer_addr = Some(self.connection.peer);
        {
            let mut extensions = actix_web::HttpMessage::extensions_mut(&request);
            extensions.insert(Rc::clone(&self.connection));
            extensions.insert(self.context.shutdown.clone());
            if let Some(upgrade) = upgrade {
                extensions.insert(upgrade);
            }
        }
        Ok((request, rest))
    }

    fn upgrade(&self, request: &mut http::Request<Incoming>) -> Option<Upgrade> {
        if request.version() != http::Version::HTTP_11 {
            return None;
        }
        let protocol = request.headers().get(UPGRADE)?.to_str().ok()?.to_owned();
        let pending = hyper::upgrade::on(request);
        Some(Upgrade {
            protocol,
            pending,
            admission: Arc::clone(&self.admission),
        })
    }

    async fn call(&self, request: Request) -> actix_http::Response<EitherBody<B>> {
        let called = match poll_fn(|cx| self.service.poll_ready(cx)).await {
            Ok(()) => self.service.call(request).await,
            Err(error) => Err(error),
        };
        match called {
            Ok(answer) => answer.into().map_body(|_, body| EitherBody::left(body)),
            Err(error) => {
                let answer: actix_http::Response<BoxBody> = error.into().error_response().into();
                answer.map_body(|_, body| EitherBody::right(body))
            }
        }
    }
}
