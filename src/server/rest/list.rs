//! GET of a collection: selectors, pages, resource versions.

use std::sync::Arc;

use actix_web::HttpResponse;
use keelson_machinery::meta::v1::ListMeta;
use keelson_machinery::object::Object;
use keelson_machinery::scheme::KindDesc;
use keelson_machinery::status::StatusError;
use keelson_registry::Endpoint;
use keelson_registry::cache::Items;
use keelson_registry::select::{Next, Query};
use keelson_storage::{Revision, Timeline};

use super::continue_token::Token;
use super::options::{self, ListOptions, Match};
use super::output::metadata_list;
use super::{Rest, namespace};
use crate::negotiate::{Accepted, Offer, Shape};
use crate::request::Request;

/// The entries of a list and its metadata.
pub(super) struct Selection {
    pub items: Items,
    pub meta: ListMeta,
}

impl Rest {
    pub(super) async fn list(&self, request: &Request, endpoint: &Arc<Endpoint>) -> Result<HttpResponse, StatusError> {
        let accepted = request.negotiate(Offer::Objects)?;
        let options = ListOptions::parse(&request.query, false)?;
        let selection = self.select(request, endpoint, &options).await?;
        let answer = self.answer_list(request, endpoint, accepted, &selection).await;
        if matches!(&answer, Err(error) if error.code == 500) {
            // All that can't be read is named, not the first alone.
            endpoint.resource.check_none_corrupt(&selection.items).await?;
        }
        answer
    }

    async fn answer_list(
        &self,
        request: &Request,
        endpoint: &Arc<Endpoint>,
        accepted: Accepted,
        selection: &Selection,
    ) -> Result<HttpResponse, StatusError> {
        let Selection { items, meta } = selection;
        if let Some(response) = self.ready_list(request, endpoint, accepted, meta, items).await? {
            return Ok(response);
        }
        let items = items.clone();
        if let Shape::PartialMetadataList(version) = accepted.shape {
            let shown = (accepted.format, version);
            let mut found = items.entries().map(|entry| endpoint.resource.decode_metadata(&entry));
            return metadata_list(request, endpoint, shown, meta, &mut found).await;
        }
        self.list_response(request, endpoint, accepted, meta, &mut objects(endpoint, items))
            .await
    }

    /// What the options select, in the order of keys.
    pub(super) async fn select(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        options: &ListOptions,
    ) -> Result<Selection, StatusError> {
        let options = &resolve_fields(endpoint, options.clone())?;
        let resource = &endpoint.resource;
        let namespace = namespace(request, endpoint);
        let prefix = resource.prefix(namespace)?;
        // One object is read as by GET: its newest state will do.
        let in_place = !resource.hub.namespaced || !namespace.is_empty();
        let one_object = in_place && options.fields.required_value("metadata.name").is_some();
        let start = Start::of(options, &prefix, one_object)?;
        // Asked before anything is read: if the store goes back meanwhile, a token is refused rather than wrong.
        let timeline = resource.backend.store.timeline();
        if let Some(revision) = start.at_least {
            resource.wait_for(revision).await?;
        }
        // Whatever version is at hand is answered whole, as from kube-apiserver's cache; one object has no second page.
        let whole = options.resource_version == "0" || one_object;
        let query = Query {
            namespace,
            labels: &options.labels,
            fields: &options.fields,
            limit: if whole { 0 } else { options.limit },
            revision: start.revision,
            from: start.from,
            left: start.left,
        };
        let chosen = match self.verbs.list(resource, &query).await {
            Err(e) if e.code == 410 => return Err(expired(&query, &prefix)),
            done => done?,
        };
        // Asked after the page is read, since that may be what finds out that the store has gone back.
        let is_other = |of| resource.backend.store.is_other_timeline(of);
        if start.timeline.is_some_and(is_other) {
            return Err(expired(&query, &prefix));
        }
        resource.check_all_readable(&chosen.items).await?;
        Ok(Selection {
            meta: list_meta(chosen.revision, timeline, &prefix, chosen.next),
            items: chosen.items,
        })
    }
}

/// The objects (hub version) of a list's entries, each decoded when it is its turn.
pub(super) fn objects(
    endpoint: &Endpoint,
    items: Items,
) -> impl Iterator<Item = Result<Box<dyn Object>, StatusError>> + use<'_> {
    items.entries().map(|entry| endpoint.resource.decode(&entry))
}

/// 410: for a continue token whose revision is gone, with a token that goes on at the newest one.
fn expired(query: &Query<'_>, prefix: &str) -> StatusError {
    match &query.from {
        None => StatusError::expired_list(),
        Some(from) => {
            let token = Token {
                revision: None,
                start: from.strip_prefix(prefix).unwrap_or_default().to_owned(),
                left: None,
                timeline: None,
            };
            StatusError::expired_continue(&token.write())
        }
    }
}

fn list_meta(revision: Revision, timeline: Option<Timeline>, prefix: &str, next: Option<Next>) -> ListMeta {
    let mut meta = ListMeta {
        resource_version: revision.to_string(),
        ..ListMeta::default()
    };
    if let Some(Next { last, left }) = next {
        let token = Token {
            revision: Some(revision),
            start: format!("{}\0", last.strip_prefix(prefix).unwrap_or_default()),
            left,
            timeline,
        };
        meta.r#continue = token.write();
        meta.remaining_item_count = left.and_then(|left| i64::try_from(left).ok());
    }
    meta
}

/// Where a list starts.
#[derive(Default)]
struct Start {
    /// Presented as of this revision.
    revision: Option<Revision>,
    /// Presented not older than this.
    at_least: Option<Revision>,
    from: Option<String>,
    left: Option<usize>,
    /// What the revision is of, if a token says so.
    timeline: Option<Timeline>,
}

impl Start {
    fn of(options: &ListOptions, prefix: &str, one_object: bool) -> Result<Start, StatusError> {
        if !options.continue_token.is_empty() {
            if !options.resource_version.is_empty() && options.resource_version != "0" {
                return Err(StatusError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let token = Token::read(&options.continue_token)?;
            return Ok(Start {
                revision: token.revision,
                from: Some(format!("{prefix}{}", token.start)),
                left: token.left,
                timeline: token.timeline.filter(|_| token.revision.is_some()),
                ..Start::default()
            });
        }
        let at_least = options::revision(&options.resource_version)
            .map_err(|e| StatusError::bad_request(format!("invalid resource version: {e}")))?;
        let exact = match options.version_match {
            Some(Match::Exact) => true,
            None => options.limit > 0 && !one_object,
            Some(_) => false,
        };
        Ok(Start {
            revision: at_least.filter(|_| exact),
            // A revision that is yet to come is waited for.
            at_least,
            ..Start::default()
        })
    }
}

/// Whether a custom resource selects by a label, which is the path of the field.
fn is_selectable(kind: &KindDesc, label: &str) -> bool {
    match label {
        "metadata.name" => true,
        "metadata.namespace" => kind.namespaced,
        label => kind.selectable_fields.contains(label),
    }
}

/// The options with paths for field labels; an error for a label that the kind does not select by.
pub(super) fn resolve_fields(endpoint: &Endpoint, mut options: ListOptions) -> Result<ListOptions, StatusError> {
    let kind = &endpoint.kind;
    if endpoint.resource.is_custom()
        && let Some(term) = options
            .fields
            .terms()
            .iter()
            .find(|term| !is_selectable(kind, &term.field))
    {
        let text = format!("field label not supported: {}", term.field);
        return Err(StatusError::bad_request(text));
    }
    let resolved = options
        .fields
        .resolve(&kind.selectable_fields.to_vec(), kind.namespaced);
    options.fields = resolved.map_err(|e| StatusError::bad_request(e.to_string()))?;
    Ok(options)
}
