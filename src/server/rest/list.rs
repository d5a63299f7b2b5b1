//! GET of a collection: selectors, pages, resource versions.

use actix_web::HttpResponse;
use base64::engine::general_purpose::{self, GeneralPurpose};
use base64::{Engine, alphabet};
use keelson_machinery::jsonpath;
use keelson_machinery::meta::v1::ListMeta;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_storage::{ListOptions as StoreOptions, Revision};
use std::borrow::Cow;
use std::sync::Arc;

use super::options::{self, ListOptions, Match};
use super::request::Request;
use super::{Rest, namespace};
use crate::negotiate::Offer;
use crate::registry::{Endpoint, Page};

/// Entries that one step of a selective, limited list reads from the store.
const STEP: usize = 500;
const TOKEN_VERSION: &str = "meta.k8s.io/v1";
/// The bits that the last character has too many are of no account.
const TOKEN_ENCODING: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    general_purpose::NO_PAD.with_decode_allow_trailing_bits(true),
);

/// Objects of a list and its metadata.
pub(super) struct Selection {
    pub objects: Vec<Box<dyn Object>>,
    pub meta: ListMeta,
}

impl Rest {
    pub(super) async fn list(&self, request: &Request, endpoint: &Endpoint) -> Result<HttpResponse, StatusError> {
        let accepted = request.negotiate(Offer::Objects)?;
        let options = ListOptions::parse(&request.query, false)?;
        let selection = self.select(request, endpoint, &options).await?;
        self.list_response(request, endpoint, accepted, &selection.meta, selection.objects)
    }

    /// The objects that the options select, in the order of their keys.
    pub(super) async fn select(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        options: &ListOptions,
    ) -> Result<Selection, StatusError> {
        let options = &resolve_fields(endpoint, options.clone())?;
        let prefix = endpoint.resource.prefix(namespace(request, endpoint))?;
        let (mut page, consistent) = first_page(options, &prefix)?;
        let selective = options.is_selective();
        // Whatever version is at hand is answered whole, as from kube-apiserver's cache.
        let limit = if options.resource_version == "0" {
            0
        } else {
            options.limit
        };
        if limit > 0 {
            page.options.limit = if selective { limit.max(STEP) } else { limit };
        }
        let mut objects: Vec<Box<dyn Object>> = Vec::new();
        loop {
            let listed = match endpoint.resource.list(&prefix, page.clone()).await {
                Ok(listed) => listed,
                Err(e) if e.code == 410 && consistent => return Err(self.expired(endpoint, &page, &prefix).await),
                Err(e) => return Err(e),
            };
            let mut last = None;
            let mut used = 0;
            for entry in &listed.entries {
                if limit > 0 && objects.len() == limit {
                    break;
                }
                used += 1;
                last = Some(entry.key.clone());
                let object = endpoint.resource.decode(entry)?;
                if matches(options, &*object) {
                    objects.push(object);
                }
            }
            let left = listed.count.saturating_sub(used);
            let full = limit > 0 && objects.len() == limit;
            let more = left > 0 && (listed.more || used < listed.entries.len());
            if !more || full {
                let meta = list_meta(listed.revision, &prefix, last.filter(|_| more), left, selective);
                return Ok(Selection { objects, meta });
            }
            page.at_least = None;
            page.options.revision = Some(listed.revision);
            page.options.from = last.map(|key| format!("{key}\0"));
        }
    }

    /// 410 for a continue token whose revision is gone, with a token that goes on at the newest one.
    async fn expired(&self, endpoint: &Endpoint, page: &Page, prefix: &str) -> StatusError {
        let Some(from) = &page.options.from else {
            return StatusError::expired_list();
        };
        match endpoint.resource.backend.store.current_revision().await {
            Ok(_) => StatusError::expired_continue(&token(None, from.strip_prefix(prefix).unwrap_or_default())),
            Err(e) => endpoint.resource.store_error(e),
        }
    }
}

fn list_meta(revision: Revision, prefix: &str, last: Option<Arc<str>>, left: usize, selective: bool) -> ListMeta {
    let mut meta = ListMeta {
        resource_version: revision.to_string(),
        ..ListMeta::default()
    };
    if let Some(last) = last {
        let next = format!("/{}\0", last.strip_prefix(prefix).unwrap_or_default());
        meta.r#continue = token(Some(revision), &next);
        if !selective {
            meta.remaining_item_count = i64::try_from(left).ok();
        }
    }
    meta
}

/// Where a list starts. The flag says that it goes on from a continue token or a revision that may be compacted.
fn first_page(options: &ListOptions, prefix: &str) -> Result<(Page, bool), StatusError> {
    let mut page = Page::default();
    if !options.continue_token.is_empty() {
        if !options.resource_version.is_empty() && options.resource_version != "0" {
            return Err(StatusError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let (revision, start) = read_token(&options.continue_token)?;
        page.options = StoreOptions {
            revision,
            from: Some(format!("{prefix}{start}")),
            ..StoreOptions::default()
        };
        return Ok((page, true));
    }
    let revision = options::revision(&options.resource_version)
        .map_err(|e| StatusError::bad_request(format!("invalid resource version: {e}")))?;
    match options.version_match {
        Some(Match::Exact) => page.options.revision = revision,
        None if options.limit > 0 => page.options.revision = revision,
        _ => page.at_least = revision,
    }
    let exact = page.options.revision.is_some();
    if exact {
        // A revision that is yet to come is waited for, as with the other reads.
        page.at_least = page.options.revision;
    }
    Ok((page, exact))
}

/// A continue token: base64 of `{"v","rv","start"}`, as kube-apiserver's; clients may not look inside, but a client that
/// moves between two servers must be understood by both.
fn token(revision: Option<Revision>, start: &str) -> String {
    let revision = revision.map_or(-1, |r| i64::try_from(r.0).unwrap_or(-1));
    let json = serde_json::json!({ "v": TOKEN_VERSION, "rv": revision, "start": start });
    TOKEN_ENCODING.encode(json.to_string())
}

/// Revision (`None`: the newest) and first key below the prefix.
fn read_token(token: &str) -> Result<(Option<Revision>, String), StatusError> {
    let invalid =
        |why: &str| StatusError::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
    let bytes = TOKEN_ENCODING
        .decode(token)
        .map_err(|_| invalid(&format!("illegal base64 data at input byte {}", first_illegal(token))))?;
    let json: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| invalid(&e.to_string()))?;
    let version = json["v"].as_str().unwrap_or_default();
    if version != TOKEN_VERSION {
        return Err(invalid(&format!(
            "server does not recognize this encoded version {version}"
        )));
    }
    let revision = json["rv"].as_i64().unwrap_or(0);
    if revision == 0 {
        return Err(invalid(
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ));
    }
    let start = json["start"].as_str().unwrap_or_default();
    if start.is_empty() {
        return Err(invalid("encoded start key empty (version meta.k8s.io/v1)"));
    }
    // A key that leads elsewhere than below the prefix is nobody's.
    let below = start.strip_prefix('/').unwrap_or(start);
    if below.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(invalid(start));
    }
    Ok((u64::try_from(revision).ok().map(Revision), below.to_owned()))
}

/// Where Go's decoder stops in a token that is no base64.
fn first_illegal(token: &str) -> usize {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    let position = token.bytes().position(|b| !legal(b));
    position.unwrap_or_else(|| token.len().saturating_sub(1))
}

/// The options with paths for field labels; an error for a label that the kind does not select by.
pub(super) fn resolve_fields(endpoint: &Endpoint, mut options: ListOptions) -> Result<ListOptions, StatusError> {
    let kind = endpoint.kind;
    let resolved = options.fields.resolve(kind.selectable_fields, kind.namespaced);
    options.fields = resolved.map_err(|e| StatusError::bad_request(e.to_string()))?;
    Ok(options)
}

/// Whether an object (hub version) is selected.
pub(super) fn matches(options: &ListOptions, object: &dyn Object) -> bool {
    if !options.labels.matches(&object.meta().labels) {
        return false;
    }
    options.fields.is_everything() || options.fields.matches(|label| field_value(object, label))
}

fn field_value<'a>(object: &'a dyn Object, label: &str) -> Cow<'a, str> {
    match label {
        "metadata.name" => Cow::Borrowed(&object.meta().name),
        "metadata.namespace" => Cow::Borrowed(&object.meta().namespace),
        paths => {
            let mut values = paths
                .split('|')
                .map(|path| jsonpath::lookup_text(object.as_reflect(), path));
            values.find(|value| !value.is_empty()).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back() {
        let text = token(Some(Revision(7)), "/ns/a\0");
        assert_eq!(read_token(&text).unwrap(), (Some(Revision(7)), "ns/a\0".to_owned()));
        assert_eq!(read_token(&token(None, "x\0")).unwrap().0, None);
        for bad in [
            "",
            "!",
            "e30",
            &TOKEN_ENCODING.encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../x"}"#),
            &TOKEN_ENCODING.encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"/x//y"}"#),
        ] {
            assert_eq!(read_token(bad).unwrap_err().code, 400, "{bad}");
        }
    }

    #[test]
    fn tokens_that_are_no_base64_say_where() {
        for (bad, at) in [("x", 0), ("abcde", 4), ("e30=", 3), ("!!!!", 0)] {
            let error = read_token(bad).unwrap_err();
            let end = format!("illegal base64 data at input byte {at}");
            assert!(error.message.ends_with(&end), "{bad}: {error}");
        }
    }
}
