//! Watches: what is asked for, and where they begin. [`super::watching`] is how they go on.

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::header;
use keelson_machinery::selector::FieldSelector;
use keelson_machinery::status::StatusError;
use keelson_registry::Endpoint;
use keelson_registry::cache::Items;
use keelson_registry::select::Query;
use keelson_storage::{Revision, StoreError};
use tokio::time::Instant;

use super::events::Encoder;
use super::list::resolve_fields;
use super::options::{self, ListOptions};
use super::output::include_object;
use super::watching::{Ends, Watch};
use super::{Rest, namespace};
use crate::negotiate::{Format, Offer};
use crate::request::Request;

/// Where a watch begins.
enum Start {
    /// The present objects as ADDED events, then what follows.
    State,
    /// What follows this revision; `None`: the newest.
    After(Option<Revision>),
}

impl Rest {
    pub(super) async fn watch(
        self: &Rest,
        request: &Request,
        endpoint: &Arc<Endpoint>,
    ) -> Result<HttpResponse, StatusError> {
        request.negotiate(Offer::Objects)?;
        let mut options = ListOptions::parse(&request.query, true)?;
        options::revision(&options.resource_version).map_err(StatusError::unknown)?;
        let accepted = request.negotiate(Offer::Events)?;
        if request.info.legacy_watch && !request.info.path_name().is_empty() {
            options.fields = only_named(&options.fields, &request.info.name)?;
        }
        let options = resolve_fields(endpoint, options)?;
        let include = include_object(request, accepted)?;
        let encoder = Encoder::new(endpoint, accepted, include, self.backend.clock.clone());
        let namespace = namespace(request, endpoint);
        let prefix = endpoint.resource.prefix(namespace)?;
        let (initial, after) = begin(endpoint, &options, namespace).await?;
        let (initial, events) = match initial {
            Initial::Refused(error) => (None, Err(error)),
            Initial::None => (None, self.verbs.watch(&endpoint.resource, &prefix, after).await),
            Initial::State(items) => (Some(items), self.verbs.watch(&endpoint.resource, &prefix, after).await),
        };
        let watch = Watch::new(
            endpoint.clone(),
            &options,
            encoder,
            initial,
            after,
            events,
            self.ends(&options),
        );
        let (watch, deadline) = watch.begun(request.watch_seat.take(), Instant::now() + self.requests.timeout);
        let content_type = match accepted.format {
            Format::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            _ => "application/json",
        };
        let mut answer = HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, content_type))
            .body(BoxBody::new(watch));
        if let Some(deadline) = deadline {
            answer.extensions_mut().insert(deadline);
        }
        Ok(answer)
    }

    /// When a watch ends by itself, and how long after the server began to end.
    fn ends(&self, options: &ListOptions) -> Ends {
        const NANOSECONDS: i64 = 1_000_000_000;
        let lasts = match options.timeout_seconds.filter(|s| *s != 0) {
            // A time that has passed, or too many seconds for Go: over at once.
            Some(seconds) => Duration::from_nanos(seconds.wrapping_mul(NANOSECONDS).try_into().unwrap_or(0)),
            None => self.requests.min_watch.mul_f64(1.0 + self.chance()),
        };
        Ends {
            at: Instant::now() + lasts,
            shutdown: self.shutdown.clone(),
            grace: self.requests.shutdown.watch_grace.mul_f64(self.chance()),
        }
    }

    /// A number from 0 up to 1.
    fn chance(&self) -> f64 {
        let mut random = [0u8; 4];
        self.backend.entropy.fill(&mut random);
        f64::from(u32::from_le_bytes(random)) / (f64::from(u32::MAX) + 1.0)
    }
}

/// The selector of a watch of one object; one that the query has must name that object too.
fn only_named(fields: &FieldSelector, name: &str) -> Result<FieldSelector, StatusError> {
    if fields.is_everything() {
        return Ok(FieldSelector::name(name));
    }
    if fields.required_value("metadata.name") != Some(name) {
        return Err(StatusError::bad_request(
            "fieldSelector metadata.name doesn't match requested name",
        ));
    }
    Ok(fields.clone())
}

/// What a watch begins with.
enum Initial {
    None,
    /// The present objects.
    State(Items),
    /// There is no such watch: its stream tells why.
    Refused(StoreError),
}

/// What the watch begins with, and the revision whose successors it shows.
async fn begin(
    endpoint: &Endpoint,
    options: &ListOptions,
    namespace: &str,
) -> Result<(Initial, Revision), StatusError> {
    let asked = options::revision(&options.resource_version).map_err(StatusError::unknown)?;
    let start = match (options.send_initial_events, asked) {
        (Some(true), _) => Start::State,
        (Some(false), None) => Start::After(None),
        (None, None) => Start::State,
        (_, Some(revision)) => Start::After(Some(revision)),
    };
    match start {
        Start::State => state(endpoint, options, namespace, asked).await,
        Start::After(Some(revision)) => Ok((Initial::None, revision)),
        Start::After(None) => Ok((Initial::None, endpoint.resource.revision().await?)),
    }
}

/// The present objects; they are sent while the client takes them.
async fn state(
    endpoint: &Endpoint,
    options: &ListOptions,
    namespace: &str,
    at_least: Option<Revision>,
) -> Result<(Initial, Revision), StatusError> {
    let resource = &endpoint.resource;
    if let Some(wanted) = at_least {
        let current = resource.revision().await?;
        if wanted > current {
            return Ok((Initial::Refused(StoreError::Future { wanted, current }), wanted));
        }
    }
    let query = Query {
        namespace,
        labels: &options.labels,
        fields: &options.fields,
        limit: 0,
        revision: None,
        from: None,
        left: None,
    };
    let chosen = resource.select(&query).await?;
    resource.prepare_all(&chosen.items).await?;
    Ok((Initial::State(chosen.items), chosen.revision))
}
