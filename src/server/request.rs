//! A request on its way through the REST handlers.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use actix_web::dev::{Payload, ServiceRequest};
use actix_web::http::header::{self, HeaderMap};
use actix_web::web::BytesMut;
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use futures_util::StreamExt;
use keelson_access::authz::Authorization;
use keelson_access::request_info::{Query, RequestInfo};
use keelson_access::user::User;
use keelson_machinery::fieldset::FieldSet;
use keelson_machinery::managedfields::{self, Writer};
use keelson_machinery::object::api_version;
use keelson_machinery::status::StatusError;
use keelson_machinery::time::Time;
use keelson_net::listener::Connection;
use keelson_registry::managed::{RequestWriter, Tracking};
use keelson_registry::{Context, Endpoint, Warnings};
use tokio::time::Instant;

use crate::audit::{Audited, Trail};
use crate::compress;
use crate::negotiate::{self, Accepted, Format, Offer, Whole, header_text};
use crate::pretty;
use crate::respond::{self, Rendering};
use crate::seat::{Seat, WatchSeat};

/// A larger body is decoded on another thread.
pub(crate) const LARGE_BODY_BYTES: usize = 64 * 1024;

/// Largest request body, in bytes, as in kube-apiserver.
pub const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// What answers for the resource of a request: looked up once, when it comes.
#[derive(Clone)]
pub struct Found {
    /// The place of its server in the chain.
    pub(crate) server: usize,
    pub endpoint: Arc<Endpoint>,
}

/// A request on its way. The filters learn who sends it and what it asks for; behind them the sender is known and
/// allowed to do that.
pub struct Request {
    /// Method, target and what the listener knows. Its headers are in [`Request::headers`].
    pub http: HttpRequest,
    pub info: Arc<RequestInfo>,
    /// What answers for the resource that it names, if any server has it; it does so to the end, whatever comes or
    /// goes.
    pub found: Option<Found>,
    pub query: Query,
    /// Behind authentication without credentials.
    pub headers: HeaderMap,
    pub user: Arc<User>,
    /// Who let it pass, and may be asked about more; `None` before.
    pub authorization: Option<Authorization>,
    /// When the answer comes too late; whoever asks others for it tells them. `None`: never.
    pub deadline: Option<Instant>,
    /// What is recorded of it.
    pub audit: Trail,
    pub payload: RefCell<Option<Payload>>,
    /// Of a watch, for whoever opens it: given back when it has begun.
    pub watch_seat: RefCell<Option<WatchSeat>>,
    /// Of a request that may change something: lent while its body does not come.
    pub seat: Option<Rc<Seat>>,
    /// Texts for `Warning` headers.
    pub warnings: Warnings,
    /// The empty lists and maps that the body writes out; see [`managedfields::written_empty`].
    pub written_empty: Rc<RefCell<FieldSet>>,
}

impl Request {
    /// A request as it came: nothing is known of its sender, and its path has not been read.
    pub fn new(mut http: ServiceRequest) -> Request {
        let headers = std::mem::take(http.headers_mut());
        let (http, payload) = http.into_parts();
        Request {
            info: Arc::default(),
            found: None,
            query: Query::parse(http.query_string()),
            headers,
            user: Arc::default(),
            authorization: None,
            deadline: None,
            audit: Trail::default(),
            payload: RefCell::new(Some(payload)),
            watch_seat: RefCell::default(),
            seat: None,
            warnings: Warnings::default(),
            written_empty: Rc::default(),
            http,
        }
    }

    /// The resource that it names in its version, if any server has it.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.found.as_ref().map(|found| &*found.endpoint)
    }

    /// The connection it came on; `None` only for requests no listener made.
    pub fn connection(&self) -> Option<Rc<Connection>> {
        Connection::of(&self.http)
    }

    pub fn negotiate(&self, offer: Offer) -> Result<Accepted, StatusError> {
        let custom = self.endpoint().is_some_and(|endpoint| endpoint.resource.is_custom());
        let whole = if custom { Whole::Text } else { Whole::AnyFormat };
        negotiate::negotiate_whole(header_text(&self.headers, &header::ACCEPT), offer, whole)
    }

    pub fn rendering(&self, format: Format) -> Rendering {
        Rendering {
            format,
            pretty: pretty::wanted(&self.headers, &self.query),
            gzip: compress::accepted(&self.headers),
            recording: self.audit.recording(),
        }
    }

    /// How an error is shown: as the `Accept` header wants it as far as that can be met, else as indented JSON.
    pub fn status_rendering(&self) -> Rendering {
        let accepted = self.negotiate(Offer::Plain).ok();
        Rendering {
            format: accepted.map_or(Format::Json, |a| a.format),
            pretty: accepted.is_none() || pretty::wanted(&self.headers, &self.query),
            gzip: compress::accepted(&self.headers),
            // As in kube-apiserver: what a client gets that takes nothing of what there is, is not recorded.
            recording: accepted.map(|_| self.audit.recording()).unwrap_or_default(),
        }
    }

    /// An error as the sender sees it.
    pub fn error(&self, error: &StatusError) -> HttpResponse {
        respond::error(self.status_rendering(), error)
    }

    /// What an audit reads of it.
    pub fn audited(&self) -> Audited<'_> {
        Audited {
            trail: &self.audit,
            info: &self.info,
            uri: self.http.uri(),
            headers: &self.headers,
            peer: self.connection().map(|connection| connection.peer),
        }
    }

    pub fn header(&self, name: &header::HeaderName) -> Option<&str> {
        header_text(&self.headers, name)
    }

    pub fn warn(&self, text: impl Into<String>) {
        self.warnings.borrow_mut().push(text.into());
    }

    /// What strategies may know.
    pub fn context(&self, endpoint: &Endpoint, now: Time, dry_run: bool) -> Context {
        let namespace = if endpoint.kind.namespaced {
            self.info.namespace.clone()
        } else {
            String::new()
        };
        Context {
            now,
            namespace,
            user: (*self.user).clone(),
            asked: self.info.clone(),
            verbs: None,
            authorization: self.authorization.clone().unwrap_or_default(),
            dry_run,
            tracking: Tracking::Update(self.writer(endpoint, now)),
            warnings: self.warnings.clone(),
            audit: self.audit.annotations(),
        }
    }

    /// Who writes: the `fieldManager` of the query, or the client program.
    pub fn writer(&self, endpoint: &Endpoint, now: Time) -> RequestWriter {
        let named = self.query.get("fieldManager").filter(|name| !name.is_empty());
        let manager = named.map_or_else(
            || managedfields::manager_of_agent(self.header(&header::USER_AGENT).unwrap_or_default()),
            str::to_owned,
        );
        let kind = &endpoint.kind;
        RequestWriter {
            kind: kind.clone(),
            writer: Writer {
                manager,
                api_version: api_version(&kind.group, &kind.version),
                subresource: self.info.subresource.clone(),
                now: Some(now.truncate_to_seconds()),
            },
            written_empty: self.written_empty.clone(),
        }
    }

    /// The whole body; 413 above the limit, 429 where it does not come while others wait.
    pub async fn body(&self) -> Result<Bytes, StatusError> {
        // The handler of the verb reads it once; a second reader would find nothing.
        let Some(mut payload) = self.payload.take() else {
            return Ok(Bytes::new());
        };
        let mut body = BytesMut::new();
        let since = Instant::now();
        loop {
            let coming = payload.next();
            let chunk = match &self.seat {
                Some(seat) => seat.wait_for(coming, since).await?,
                None => coming.await,
            };
            let Some(chunk) = chunk else { break };
            let chunk = chunk.map_err(|e| StatusError::bad_request(e.to_string()))?;
            if body.len() + chunk.len() > MAX_BODY_BYTES {
                return Err(StatusError::request_entity_too_large(MAX_BODY_BYTES));
            }
            body.extend_from_slice(&chunk);
        }
        if let Some(seat) = &self.seat {
            seat.take_again().await?;
        }
        Ok(body.freeze())
    }

    /// The format of the body; 415 for one that is not known.
    pub fn body_format(&self) -> Result<Format, StatusError> {
        Format::of_body(self.header(&header::CONTENT_TYPE)).ok_or_else(|| {
            StatusError::unsupported_media_type(&[
                Format::Json.media_type(),
                Format::Yaml.media_type(),
                Format::Protobuf.media_type(),
            ])
        })
    }
}
