//! `/openapi/v2`, `/openapi/v3` and `/openapi/v3/<group version>` over HTTP, without a server.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, LOCATION, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use keelson_machinery::env::Clock;
use keelson_machinery::scheme::Scheme;

use super::v2::PROTOBUF as V2_PROTOBUF;
use super::v3::{PROTOBUF as V3_PROTOBUF, url};
use super::{Documents, Encoding, Info};
use crate::discovery::Catalog;
use crate::document::{Document, conditions, empty, http_date, with_body};
use crate::negotiate::accept::{self, Clause};

const JSON: &str = "application/json";
/// The other spelling that clients ask for has a character that media types may not have.
const V2_PROTOBUF_ALIAS: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const V3_PROTOBUF_ALIAS: &str = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
const PLAIN_TEXT: &str = "text/plain; charset=utf-8";
const SECONDS_PER_YEAR: i64 = 365 * 86_400;

/// The served documents.
pub struct OpenApi {
    documents: Documents,
    clock: Arc<dyn Clock>,
}

impl OpenApi {
    /// Nothing is made yet.
    pub fn new(schemes: &[&'static Scheme], catalog: Arc<dyn Catalog>, info: Info, clock: Arc<dyn Clock>) -> OpenApi {
        OpenApi {
            documents: Documents::new(schemes, catalog, info, clock.clone()),
            clock,
        }
    }

    /// The answer to a request for `path` with `query` (without the question mark), whatever its method; `None` where
    /// the path is none of these documents'. The answers are 200, 206, 301 (a v3 document under an outdated hash), 304,
    /// 404 (no such v3 document), 406, 412, 416, and 500 if definitions are broken.
    pub fn answer(&self, path: &str, query: &str, headers: &HeaderMap) -> Option<Response<Bytes>> {
        let answer = match path {
            "/openapi/v2" => self.answer_v2(headers),
            "/openapi/v3" => self.answer_index(headers),
            other => self.answer_v3(other.strip_prefix("/openapi/v3/")?, query, headers),
        };
        Some(answer.unwrap_or_else(|fault| {
            let text = fault.to_string();
            with_body(StatusCode::INTERNAL_SERVER_ERROR, PLAIN_TEXT, text)
        }))
    }

    fn answer_v2(&self, headers: &HeaderMap) -> io::Result<Response<Bytes>> {
        let mut response = match encoding(headers, [V2_PROTOBUF, V2_PROTOBUF_ALIAS]) {
            None => empty(StatusCode::NOT_ACCEPTABLE),
            Some(encoding) => {
                let made = self.documents.whole(encoding)?;
                conditions::answer(&made.document, made.at, true, headers)
            }
        };
        let vary = response.headers_mut();
        vary.append(VARY, HeaderValue::from_static("Accept-Encoding"));
        vary.append(VARY, HeaderValue::from_static("Accept"));
        Ok(response)
    }

    /// The list of v3 documents; kube-apiserver calls it plain text, and so clients have learnt not to look.
    fn answer_index(&self, headers: &HeaderMap) -> io::Result<Response<Bytes>> {
        let text = self.documents.v3.index(&self.documents.model)?;
        Ok(conditions::made_now(
            PLAIN_TEXT,
            String::clone(&text),
            self.clock.now().unix_seconds(),
            headers,
        ))
    }

    fn answer_v3(&self, name: &str, query: &str, headers: &HeaderMap) -> io::Result<Response<Bytes>> {
        let documents = &self.documents;
        let Some(made) = documents.v3.json(&documents.model, name)? else {
            return Ok(empty(StatusCode::NOT_FOUND));
        };
        let hash = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("hash="))
            .unwrap_or_default();
        let mut response = match encoding(headers, [V3_PROTOBUF, V3_PROTOBUF_ALIAS]) {
            None => empty(StatusCode::NOT_ACCEPTABLE),
            Some(_) if !hash.is_empty() && hash != made.document.hash() => moved(name, &made.document),
            Some(Encoding::Json) => conditions::answer(&made.document, made.at, false, headers),
            Some(Encoding::Protobuf) => match documents.v3.protobuf(&documents.model, name)? {
                Some(made) => conditions::answer(&made.document, made.at, false, headers),
                // It went a moment ago.
                None => empty(StatusCode::NOT_FOUND),
            },
        };
        if hash == made.document.hash() {
            self.never_changes(response.headers_mut());
        }
        insert(&mut response, VARY, "Accept");
        Ok(response)
    }

    /// What stands under a hash never changes. The zone is not what HTTP wants, but what kube-apiserver writes.
    fn never_changes(&self, headers: &mut HeaderMap) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        let next_year = self.clock.now().unix_seconds().saturating_add(SECONDS_PER_YEAR);
        if let Ok(date) = HeaderValue::try_from(http_date(next_year, "UTC")) {
            headers.insert(EXPIRES, date);
        }
    }
}

/// The encoding that the client prefers; `None` if it takes neither.
fn encoding(headers: &HeaderMap, protobuf: [&str; 2]) -> Option<Encoding> {
    let of_clause = |clause: &Clause<'_>| {
        if clause.takes(JSON) {
            Some(Encoding::Json)
        } else if protobuf.iter().any(|name| clause.takes(name)) {
            Some(Encoding::Protobuf)
        } else {
            None
        }
    };
    let header = headers.get(ACCEPT).and_then(|v| v.to_str().ok());
    accept::clauses(header.unwrap_or_default()).iter().find_map(of_clause)
}

/// To the document's own hash.
fn moved(name: &str, document: &Document) -> Response<Bytes> {
    let mut response = empty(StatusCode::MOVED_PERMANENTLY);
    insert(&mut response, CONTENT_TYPE, document.content_type());
    insert(&mut response, ETAG, &document.etag());
    insert(&mut response, LOCATION, &url(name, document));
    response
}

fn insert(response: &mut Response<Bytes>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        response.headers_mut().insert(name, value);
    }
}
