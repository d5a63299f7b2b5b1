//! The documents of discovery over HTTP, without a server.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use keelson_machinery::meta::v1::{APIGroup, APIGroupDiscoveryList, APIGroupList, APIVersions};
use keelson_machinery::object::Kind;
use keelson_machinery::{json, protobuf, yaml};
use serde_json::Value;

use super::{Served, documents};
use crate::document::accept::{self, Clause};
use crate::document::{Document, empty};

const AGGREGATED_JSON: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED_PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The served documents.
pub struct Discovery {
    served: Arc<Served>,
    /// Where clients outside the cluster reach the server, `host:port`.
    address: String,
    legacy: Aggregated,
    named: Aggregated,
}

#[derive(Default)]
struct Aggregated {
    json: OnceLock<Result<Document, String>>,
    protobuf: OnceLock<Result<Document, String>>,
}

/// The encodings of documents that are not aggregated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

impl Discovery {
    /// `address` is shown to clients as the server's address, `host:port`.
    pub fn new(served: Arc<Served>, address: String) -> Discovery {
        Discovery {
            served,
            address,
            legacy: Aggregated::default(),
            named: Aggregated::default(),
        }
    }

    /// The paths of discovery for the list at `/`, sorted.
    pub fn paths(&self) -> Vec<String> {
        documents::paths(&self.served)
    }

    /// The answer to a GET of `path` with `query` (without the question mark); `None` where the path is not discovery's
    /// or names a group or version that is not served. The answers are 200, 304 (aggregated only) and 406.
    pub fn answer(&self, path: &str, query: &str, headers: &HeaderMap) -> Option<Response<Bytes>> {
        let parts: Vec<&str> = path.strip_prefix('/')?.trim_end_matches('/').split('/').collect();
        let served = &self.served;
        match parts[..] {
            ["api"] => {
                served.group("")?;
                Some(self.root(true, query, headers))
            }
            ["apis"] => Some(self.root(false, query, headers)),
            ["api", version] => {
                let value = documents::api_resource_list(served, "", served.version("", version)?);
                Some(plain(&value, None, query, headers))
            }
            ["apis", group] if !group.is_empty() => {
                let value = documents::api_group(served.group(group)?);
                Some(plain(&value, Some(&mut APIGroup::default()), query, headers))
            }
            ["apis", group, version] if !group.is_empty() => {
                let value = documents::api_resource_list(served, group, served.version(group, version)?);
                Some(plain(&value, None, query, headers))
            }
            _ => None,
        }
    }

    /// `/api` or `/apis`: aggregated, if the client prefers that.
    fn root(&self, legacy: bool, query: &str, headers: &HeaderMap) -> Response<Bytes> {
        let documents = if legacy { &self.legacy } else { &self.named };
        for clause in accept::clauses(headers) {
            if is_aggregated(&clause) {
                let json = clause.takes("application", "json");
                if json || clause.takes("application", "vnd.kubernetes.protobuf") {
                    return answer_aggregated(documents.get(&self.served, legacy, json), headers);
                }
            } else if encoding(&clause).is_some() {
                break;
            }
        }
        if legacy {
            let value = documents::api_versions(&self.served, &self.address);
            plain(&value, Some(&mut APIVersions::default()), query, headers)
        } else {
            let value = documents::api_group_list(&self.served);
            plain(&value, Some(&mut APIGroupList::default()), query, headers)
        }
    }
}

impl Aggregated {
    fn get(&self, served: &Served, legacy: bool, json: bool) -> Result<&Document, String> {
        let value = || documents::aggregated(served, legacy);
        let document = |content_type, bytes: &[u8]| Document::new(content_type, bytes).map_err(|e| e.to_string());
        let made = if json {
            self.json
                .get_or_init(|| document(AGGREGATED_JSON, value().to_string().as_bytes()))
        } else {
            self.protobuf.get_or_init(|| {
                let bytes = to_protobuf(&value(), &mut APIGroupDiscoveryList::default())?;
                document(AGGREGATED_PROTOBUF, &bytes)
            })
        };
        made.as_ref().map_err(Clone::clone)
    }
}

fn answer_aggregated(document: Result<&Document, String>, headers: &HeaderMap) -> Response<Bytes> {
    let Ok(document) = document else {
        return empty(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let mut response = document.answer(headers, "Accept");
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    response
}

/// Whether the clause asks for aggregated discovery in the version that there is.
fn is_aggregated(clause: &Clause) -> bool {
    (clause.param("g"), clause.param("v"), clause.param("as")) == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")
}

/// The encoding that a clause asks for; none if it asks for another form of the document.
fn encoding(clause: &Clause) -> Option<Encoding> {
    if !clause.param("as").is_empty() {
        None
    } else if clause.takes("application", "json") {
        Some(Encoding::Json)
    } else if clause.takes("application", "yaml") {
        Some(Encoding::Yaml)
    } else if clause.takes("application", "vnd.kubernetes.protobuf") {
        Some(Encoding::Protobuf)
    } else {
        None
    }
}

/// A document that is made anew for each request. `object` is an empty object of its kind; without it there is no
/// protobuf form. (Of APIResourceList: its verbs are a message of their own there, which the definitions cannot say.)
fn plain(value: &Value, object: Option<&mut dyn Kind>, query: &str, headers: &HeaderMap) -> Response<Bytes> {
    let possible = |e: &Encoding| *e != Encoding::Protobuf || object.is_some();
    let Some(encoding) = accept::clauses(headers).iter().filter_map(encoding).find(possible) else {
        return not_acceptable();
    };
    let text = || value.to_string().into_bytes();
    let (content_type, body) = match (encoding, object) {
        (Encoding::Yaml, _) => ("application/yaml", yaml::from_json(&text()).map_err(|e| e.to_string())),
        (Encoding::Protobuf, Some(object)) => ("application/vnd.kubernetes.protobuf", to_protobuf(value, object)),
        _ if wants_pretty(query, headers) => ("application/json", Ok(format!("{value:#}").into_bytes())),
        _ => ("application/json", Ok([text(), b"\n".to_vec()].concat())),
    };
    match body {
        Ok(body) => ok(content_type, body),
        Err(_) => empty(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn to_protobuf(value: &Value, object: &mut dyn Kind) -> Result<Vec<u8>, String> {
    json::read(value.to_string().as_bytes(), object.as_reflect_mut()).map_err(|e| e.to_string())?;
    Ok(protobuf::encode(object))
}

fn ok(content_type: &'static str, body: Vec<u8>) -> Response<Bytes> {
    let len = body.len();
    let mut response = Response::new(body.into());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(len));
    response
}

/// Whether a person reads: `?pretty`, or else a browser, curl or wget.
fn wants_pretty(query: &str, headers: &HeaderMap) -> bool {
    if let Some(value) = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("pretty="))
        .filter(|v| !v.is_empty())
    {
        return matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    let agent = headers
        .get(USER_AGENT)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"]
        .iter()
        .any(|name| agent.starts_with(name))
}

fn not_acceptable() -> Response<Bytes> {
    let message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf";
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": "NotAcceptable", "details": {}, "code": 406,
    });
    let mut response = ok("application/json", status.to_string().into_bytes());
    *response.status_mut() = StatusCode::NOT_ACCEPTABLE;
    response
}
