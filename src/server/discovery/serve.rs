//! The documents of discovery over HTTP, without a server.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, ETAG, IF_NONE_MATCH, USER_AGENT, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use keelson_machinery::decode::DecodeError;
use keelson_machinery::meta::v1::{APIGroup, APIGroupList, APIVersions};
use keelson_machinery::object::Kind;
use keelson_machinery::status::StatusError;
use keelson_machinery::{json, protobuf, yaml};
use serde_json::Value;

use super::aggregated::{self, Aggregated};
use super::{Catalog, IssuerDocuments, Served, ServedKind, ServedVersion, documents, resource_list};
use crate::document::{Document, conditions, empty, with_body};
use crate::negotiate::accept::{self, Clause};
use crate::negotiate::{Format, Offer, negotiate, route};
use crate::pretty;

/// Larger documents are compressed for those who take it.
const MIN_GZIP_BYTES: usize = 128 << 10;

/// The served documents.
pub struct Discovery {
    catalog: Arc<dyn Catalog>,
    /// Where clients outside the cluster reach the server, `host:port`.
    address: String,
    legacy: Aggregated,
    named: Aggregated,
    issuer: Option<IssuerDocuments>,
}

/// A request for a document.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub method: &'a str,
    pub path: &'a str,
    /// Without the question mark.
    pub query: &'a str,
    pub headers: &'a HeaderMap,
}

impl<'a> Ask<'a> {
    fn accept(self) -> Option<&'a str> {
        self.headers.get(ACCEPT).and_then(|v| v.to_str().ok())
    }

    /// What a router says that knows the path: only GET, and only types that are named as a whole.
    pub(super) fn routed_to(self, makes: &[&str]) -> Result<(), StatusError> {
        if self.method != "GET" {
            return Err(StatusError::method_not_allowed());
        }
        route::check_accept(self.accept(), makes)
    }

    /// Whether a person reads: `?pretty`, or else a browser, curl or wget.
    fn wants_pretty(self) -> bool {
        let mut pairs = self.query.split('&');
        if let Some(value) = pairs
            .find_map(|pair| pair.strip_prefix("pretty="))
            .filter(|v| !v.is_empty())
        {
            return matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True");
        }
        let agent = self.headers.get(USER_AGENT).and_then(|v| v.to_str().ok());
        ["curl", "Wget", "Mozilla/5.0"]
            .iter()
            .any(|name| agent.unwrap_or_default().starts_with(name))
    }
}

/// An answer, or the Status that says why not.
type Answer = Result<Response<Bytes>, StatusError>;

impl Discovery {
    /// `address` is shown to clients as the server's address, `host:port`.
    pub fn new(catalog: Arc<dyn Catalog>, address: String) -> Discovery {
        Discovery {
            catalog,
            address,
            legacy: Aggregated::new(true),
            named: Aggregated::new(false),
            issuer: None,
        }
    }

    /// Serves the documents of the issuer of service account tokens too.
    #[must_use]
    pub fn with_issuer(mut self, documents: Option<IssuerDocuments>) -> Discovery {
        self.issuer = documents;
        self
    }

    /// The paths of discovery for the list at `/`, sorted.
    pub fn paths(&self) -> Vec<String> {
        let issuer = self.issuer.iter().map(|documents| documents.path().to_owned());
        let mut paths = documents::paths(&self.catalog.served());
        paths.extend(issuer);
        paths.sort();
        paths
    }

    /// The answer to a request; `None` where the path is not discovery's or names a group or version that is not
    /// served. The answers are 200, 304 (aggregated only), 405 and 406. `/apis`, `/apis/<group>` and
    /// versions of custom resources take any method.
    pub fn answer(&self, ask: Ask<'_>) -> Option<Answer> {
        let path = ask.path.strip_prefix('/')?;
        let parts: Vec<&str> = path.strip_suffix('/').unwrap_or(path).split('/').collect();
        let served = &*self.catalog.served();
        match parts[..] {
            ["api"] => {
                served.group("")?;
                Some(
                    ask.routed_to(route::OBJECTS)
                        .and_then(|()| self.root(served, true, ask)),
                )
            }
            ["apis"] => Some(self.root(served, false, ask)),
            ["api", version] => Some(resources(ask, "", served.version("", version)?)),
            ["apis", group] if !group.is_empty() => {
                let value = documents::api_group(served.group(group)?);
                Some(plain(ask, &value, || encoded(&value, &mut APIGroup::default())))
            }
            ["apis", group, version] if !group.is_empty() => {
                Some(resources(ask, group, served.version(group, version)?))
            }
            _ => self.issuer.as_ref()?.answer(ask),
        }
    }

    /// `/api` or `/apis`: aggregated, if the client takes that at all. `/apis/` is never aggregated.
    fn root(&self, served: &Served, legacy: bool, ask: Ask<'_>) -> Answer {
        let documents = if legacy { &self.legacy } else { &self.named };
        let clauses = accept::clauses(ask.accept().unwrap_or_default());
        let mut aggregated = clauses.iter().filter(|clause| is_aggregated(clause));
        if ask.path != "/apis/"
            && let Some(format) = aggregated.find_map(format)
        {
            return documents.answer(served, format, ask);
        }
        if legacy {
            let value = documents::api_versions(served, &self.address);
            plain(ask, &value, || {
                let mut versions = APIVersions::default();
                read(&value, &mut versions)?;
                // Its version stands nowhere, as in JSON.
                let mut out = Vec::new();
                protobuf::encode_as(&versions, "", &versions.gvk().kind, &mut out);
                Ok(out)
            })
        } else {
            let value = documents::api_group_list(served);
            plain(ask, &value, || encoded(&value, &mut APIGroupList::default()))
        }
    }
}

impl Aggregated {
    fn answer(&self, served: &Served, format: Format, ask: Ask<'_>) -> Answer {
        let json = self.json(served).map_err(StatusError::internal_error)?;
        let etag = json.etag();
        let known = ask.headers.get(IF_NONE_MATCH).is_some_and(|sent| *sent == etag);
        let mut response = match format {
            _ if known => empty(StatusCode::NOT_MODIFIED),
            Format::Json if ask.wants_pretty() => {
                let text = json.unpacked().map_err(StatusError::internal_error)?;
                with_body(StatusCode::OK, aggregated::JSON, pretty::indent(text.trim_ascii_end()))
            }
            Format::Json => whole(&json, ask),
            Format::Protobuf => {
                let document = self.protobuf(served, &json);
                let document = document.map_err(StatusError::internal_error)?;
                whole(&document, ask)
            }
            Format::Yaml => {
                let text = json.unpacked().map_err(StatusError::internal_error)?;
                let text = yaml::from_json(&text).map_err(StatusError::internal_error)?;
                with_body(StatusCode::OK, aggregated::YAML, text)
            }
        };
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        if let Ok(etag) = HeaderValue::try_from(etag) {
            headers.insert(ETAG, etag);
        }
        Ok(response)
    }
}

fn resources(ask: Ask<'_>, group: &str, version: &ServedVersion) -> Answer {
    // Versions of custom resources have no router, and take any method.
    if version.kinds.is_empty() || !version.kinds.iter().all(ServedKind::is_custom) {
        ask.routed_to(route::OBJECTS)?;
    }
    let value = documents::api_resource_list(group, version);
    plain(ask, &value, || Ok(resource_list::encode(&value)))
}

fn whole(document: &Document, ask: Ask<'_>) -> Response<Bytes> {
    let large = document.len() > MIN_GZIP_BYTES;
    document.whole(large && conditions::accepts_gzip(ask.headers))
}

/// Whether the clause asks for aggregated discovery in the version that there is.
fn is_aggregated(clause: &Clause<'_>) -> bool {
    (clause.param("g"), clause.param("v"), clause.param("as")) == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")
}

/// The first format that a clause takes.
fn format(clause: &Clause<'_>) -> Option<Format> {
    let formats = [Format::Json, Format::Yaml, Format::Protobuf];
    formats.into_iter().find(|format| clause.takes(format.media_type()))
}

/// A document that is made anew for each request.
fn plain(ask: Ask<'_>, value: &Value, protobuf: impl FnOnce() -> Result<Vec<u8>, DecodeError>) -> Answer {
    let accepted = negotiate(ask.accept(), Offer::Plain)?;
    let text = || value.to_string().into_bytes();
    let body = match accepted.format {
        Format::Yaml => yaml::from_json(&text()).map_err(StatusError::internal_error)?,
        Format::Protobuf => protobuf().map_err(StatusError::internal_error)?,
        Format::Json if accepted.pretty || ask.wants_pretty() => pretty::indent(&text()),
        Format::Json => [text(), b"\n".to_vec()].concat(),
    };
    Ok(with_body(StatusCode::OK, accepted.format.media_type(), body))
}

/// The protobuf form of `value`; `object` is an empty object of its kind.
fn encoded(value: &Value, object: &mut dyn Kind) -> Result<Vec<u8>, DecodeError> {
    read(value, object)?;
    Ok(protobuf::encode(object))
}

pub(super) fn read(value: &Value, object: &mut dyn Kind) -> Result<(), DecodeError> {
    let text = value.to_string();
    json::read(text.as_bytes(), object.as_reflect_mut()).map(drop)
}
