//! Serving of the OpenAPI documents: media types, ETags, hashes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH, LOCATION,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use keelson::api::SCHEME;
use keelson_machinery::env::Clock;
use keelson_machinery::scheme::Scheme;
use keelson_machinery::time::Time;
use keelson_server::discovery::{RuntimeConfig, Served};
use keelson_server::openapi::{Info, OpenApi};
use serde_json::Value;

static SCHEMES: [&Scheme; 1] = [&SCHEME];

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Time {
        Time::from_unix(1_795_260_840, 0)
    }
}

/// Made once: unoptimized code takes seconds to hash and compress the documents.
static OPENAPI: LazyLock<OpenApi> = LazyLock::new(|| {
    let served = Served::new(&SCHEMES, &RuntimeConfig::default());
    let info = Info {
        title: "Kubernetes".to_owned(),
        version: "1.36".to_owned(),
        issuer: true,
        known: &[],
    };
    OpenApi::new(&SCHEMES, served.fixed(), info, Arc::new(Fixed))
});

fn get(path: &str, query: &str, headers: &[(HeaderName, &str)]) -> Response<Bytes> {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
        .collect();
    OPENAPI
        .answer(path, query, &headers)
        .unwrap_or_else(|| panic!("{path} is not answered"))
}

#[test]
fn v2_comes_in_two_encodings() {
    let protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    for (accept, content_type) in [
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", protobuf),
        ("application/com.github.proto-openapi.spec.v2.v1.0+protobuf", protobuf),
        (
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf, application/json;q=0.5",
            protobuf,
        ),
        ("text/html, application/json;q=0.5", "application/json"),
    ] {
        let response = get("/openapi/v2", "", &[(ACCEPT, accept)]);
        assert_eq!(response.status(), 200, "{accept}");
        assert_eq!(response.headers()[CONTENT_TYPE], content_type, "{accept}");
        // A JSON object, or field 1 of protobuf, the swagger version.
        let start: &[u8] = if content_type == protobuf {
            b"\x0a\x032.0"
        } else {
            b"{\"swagger\":\"2.0\""
        };
        assert!(response.body().starts_with(start), "{accept}");
    }
    assert_eq!(get("/openapi/v2", "", &[(ACCEPT, "text/html")]).status(), 406);
}

#[test]
fn an_unchanged_document_is_not_sent_again() {
    let packed = get("/openapi/v2", "", &[(ACCEPT_ENCODING, "gzip")]);
    assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
    let etag = packed.headers()[ETAG].to_str().unwrap();
    assert_eq!(get("/openapi/v2", "", &[(IF_NONE_MATCH, etag)]).status(), 304);
    assert_eq!(get("/openapi/v2", "", &[(IF_NONE_MATCH, "\"other\"")]).status(), 200);
}

#[test]
fn v3_documents_are_cached_by_their_hash() {
    let index: Value = serde_json::from_slice(get("/openapi/v3", "", &[]).body()).unwrap();
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
    let (path, query) = url.split_once('?').unwrap();
    assert_eq!(path, "/openapi/v3/apis/apps/v1");

    let fresh = get(path, query, &[]);
    assert_eq!(fresh.status(), 200);
    assert_eq!(fresh.headers()[CACHE_CONTROL], "public, immutable");
    assert_eq!(fresh.headers()[EXPIRES], "Sun, 21 Nov 2027 11:34:00 UTC");
    assert_eq!(
        fresh.headers()[ETAG].to_str().unwrap(),
        format!("\"{}\"", query.strip_prefix("hash=").unwrap())
    );

    let outdated = get(path, "hash=0", &[]);
    assert_eq!(
        (
            outdated.status().as_u16(),
            outdated.headers()[LOCATION].to_str().unwrap()
        ),
        (301, url)
    );
    let without = get(path, "", &[]);
    assert!(without.status() == 200 && !without.headers().contains_key(CACHE_CONTROL));
}

#[test]
fn v3_comes_in_two_encodings_under_one_tag() {
    let json = get("/openapi/v3/version", "", &[]);
    for accept in [
        "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    ] {
        let response = get("/openapi/v3/version", "", &[(ACCEPT, accept)]);
        assert_eq!(
            response.headers()[CONTENT_TYPE],
            "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
        );
        assert_eq!(response.headers()[ETAG], json.headers()[ETAG]);
        // Field 1 is the version of OpenAPI.
        assert!(response.body().starts_with(b"\x0a\x053.0.0"));
    }
}

#[test]
fn other_paths() {
    for path in ["/openapi/v3/apis/none/v1", "/openapi/v3/", "/openapi/v3/version/"] {
        let response = get(path, "", &[]);
        assert_eq!((response.status().as_u16(), response.body().len()), (404, 0), "{path}");
    }
    assert_eq!(get("/openapi/v3/version", "", &[(ACCEPT, "text/html")]).status(), 406);
    let index = get("/openapi/v3", "", &[(ACCEPT, "text/html")]);
    assert_eq!(index.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
    for path in ["/openapi", "/openapi/v2/", "/openapi/v4"] {
        assert!(OPENAPI.answer(path, "", &HeaderMap::new()).is_none(), "{path}");
    }
}
