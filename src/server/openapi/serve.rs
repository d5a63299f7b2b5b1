//! `/openapi/v2`, `/openapi/v3` and `/openapi/v3/<group version>` over HTTP, without a server.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, LOCATION, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use keelson_machinery::env::Clock;
use keelson_machinery::scheme::Scheme;

use super::{Documents, Info};
use crate::discovery::Served;
use crate::document::{Document, Writer, conditions, empty, http_date, with_body};
use crate::negotiate::accept::{self, Clause};

const JSON: &str = "application/json";
const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const V3_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
/// The other spelling that clients ask for has a character that media types may not have.
const V2_PROTOBUF_ALIAS: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const V3_PROTOBUF_ALIAS: &str = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
const PLAIN_TEXT: &str = "text/plain; charset=utf-8";
const SECONDS_PER_YEAR: i64 = 365 * 86_400;

/// The served documents.
pub struct OpenApi {
    schemes: Vec<&'static Scheme>,
    served: Arc<Served>,
    info: Info,
    clock: Arc<dyn Clock>,
    v2: OnceLock<Result<Made, String>>,
    v3: OnceLock<Result<BTreeMap<String, Made>, String>>,
}

/// A document in both encodings.
struct Made {
    json: Document,
    protobuf: OnceLock<Result<Document, String>>,
    /// Seconds since 1970.
    at: i64,
}

/// What the headers of a request choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Encoding {
    Json,
    Protobuf,
}

impl OpenApi {
    /// Nothing is made yet.
    pub fn new(schemes: &[&'static Scheme], served: Arc<Served>, info: Info, clock: Arc<dyn Clock>) -> OpenApi {
        OpenApi {
            schemes: schemes.to_vec(),
            served,
            info,
            clock,
            v2: OnceLock::new(),
            v3: OnceLock::new(),
        }
    }

    /// The answer to a request for `path` with `query` (without the question mark), whatever its method; `None` where
    /// the path is none of these documents'. The answers are 200, 206, 301 (a v3 document under an outdated hash), 304,
    /// 404 (no such v3 document), 406, 412, 416, and 500 if the definitions of the build are broken.
    pub fn answer(&self, path: &str, query: &str, headers: &HeaderMap) -> Option<Response<Bytes>> {
        let answer = match path {
            "/openapi/v2" => self.answer_v2(headers),
            "/openapi/v3" => self.answer_index(headers),
            other => self.answer_v3(other.strip_prefix("/openapi/v3/")?, query, headers),
        };
        Some(answer.unwrap_or_else(|fault| with_body(StatusCode::INTERNAL_SERVER_ERROR, PLAIN_TEXT, fault)))
    }

    fn documents(&self) -> Result<Documents, String> {
        Documents::new(&self.schemes, &self.served, self.info.clone()).map_err(|e| e.to_string())
    }

    fn v2(&self) -> Result<&Made, String> {
        let make = || {
            let documents = self.documents()?;
            self.made(|out| documents.v2(out))
        };
        self.v2.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    fn v3(&self) -> Result<&BTreeMap<String, Made>, String> {
        let make = || {
            let documents = self.documents()?;
            let mut all = BTreeMap::new();
            for name in documents.v3_names() {
                all.insert(name.to_owned(), self.made(|out| documents.v3(name, out).map(drop))?);
            }
            Ok(all)
        };
        self.v3.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    fn made(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<Made, String> {
        let mut out = Writer::new();
        let json = write(&mut out)
            .and_then(|()| out.finish(JSON))
            .map_err(|e| e.to_string())?;
        Ok(Made {
            json,
            protobuf: OnceLock::new(),
            at: self.clock.now().unix_seconds(),
        })
    }

    fn answer_v2(&self, headers: &HeaderMap) -> Result<Response<Bytes>, String> {
        let mut response = match encoding(headers, [V2_PROTOBUF, V2_PROTOBUF_ALIAS]) {
            None => empty(StatusCode::NOT_ACCEPTABLE),
            Some(encoding) => {
                let made = self.v2()?;
                let encode = || {
                    let bytes = self.documents()?.v2_protobuf();
                    protobuf(made, V2_PROTOBUF, bytes)
                };
                conditions::answer(made.encoded(encoding, encode)?, made.at, true, headers)
            }
        };
        let vary = response.headers_mut();
        vary.append(VARY, HeaderValue::from_static("Accept-Encoding"));
        vary.append(VARY, HeaderValue::from_static("Accept"));
        Ok(response)
    }

    /// The list of v3 documents; kube-apiserver calls it plain text, and so clients have learnt not to look.
    fn answer_index(&self, headers: &HeaderMap) -> Result<Response<Bytes>, String> {
        let mut text = String::from("{\"paths\":{");
        for (i, (name, made)) in self.v3()?.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let url = url(name, &made.json);
            text.push_str(&format!("{comma}\"{name}\":{{\"serverRelativeURL\":\"{url}\"}}"));
        }
        text.push_str("}}");
        Ok(conditions::made_now(
            PLAIN_TEXT,
            text,
            self.clock.now().unix_seconds(),
            headers,
        ))
    }

    fn answer_v3(&self, name: &str, query: &str, headers: &HeaderMap) -> Result<Response<Bytes>, String> {
        let Some(made) = self.v3()?.get(name) else {
            return Ok(empty(StatusCode::NOT_FOUND));
        };
        let hash = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("hash="))
            .unwrap_or_default();
        let mut response = match encoding(headers, [V3_PROTOBUF, V3_PROTOBUF_ALIAS]) {
            None => empty(StatusCode::NOT_ACCEPTABLE),
            Some(_) if !hash.is_empty() && hash != made.json.hash() => moved(name, &made.json),
            Some(encoding) => {
                let encode = || {
                    let bytes = self.documents()?.v3_protobuf(name);
                    protobuf(made, V3_PROTOBUF, bytes.map(Option::unwrap_or_default))
                };
                conditions::answer(made.encoded(encoding, encode)?, made.at, false, headers)
            }
        };
        if hash == made.json.hash() {
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

impl Made {
    fn encoded(
        &self,
        encoding: Encoding,
        encode: impl FnOnce() -> Result<Document, String>,
    ) -> Result<&Document, String> {
        match encoding {
            Encoding::Json => Ok(&self.json),
            Encoding::Protobuf => self.protobuf.get_or_init(encode).as_ref().map_err(Clone::clone),
        }
    }
}

/// The protobuf form of a document; its tag is that of the JSON form.
fn protobuf(made: &Made, content_type: &'static str, bytes: io::Result<Vec<u8>>) -> Result<Document, String> {
    let document = bytes.and_then(|bytes| Document::new(content_type, &bytes));
    document
        .map(|document| document.encoding_of(made.json.hash()))
        .map_err(|e| e.to_string())
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

fn url(name: &str, document: &Document) -> String {
    format!("/openapi/v3/{name}?hash={}", document.hash())
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
