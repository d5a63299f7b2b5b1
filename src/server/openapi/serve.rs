//! `/openapi/v2`, `/openapi/v3` and `/openapi/v3/<group version>` over HTTP, without a server.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, EXPIRES, LOCATION};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use keelson_machinery::env::Clock;
use keelson_machinery::scheme::Scheme;
use serde_json::{Map, Value, json};

use super::{Documents, Info};
use crate::discovery::Served;
use crate::document::accept::{self, Clause};
use crate::document::{Document, empty};

const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// Both spellings that clients ask for; the second has a character that media types may not have.
const V2_PROTOBUF_SUBTYPES: [&str; 2] = [
    "com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "com.github.proto-openapi.spec.v2@v1.0+protobuf",
];
const SECONDS_PER_YEAR: i64 = 365 * 86_400;

/// The served documents.
pub struct OpenApi {
    schemes: Vec<&'static Scheme>,
    served: Arc<Served>,
    info: Info,
    clock: Arc<dyn Clock>,
    v2: OnceLock<Result<V2, String>>,
    v3: OnceLock<Result<BTreeMap<String, Document>, String>>,
}

struct V2 {
    json: Document,
    protobuf: Document,
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

    /// The answer to a GET of `path` with `query` (without the question mark); `None` where the path is none of these
    /// documents'. The answers are 200, 301 (a v3 document under an outdated hash), 304, 404 (no such v3 document),
    /// 406, and 500 if the definitions of the build are broken.
    pub fn answer(&self, path: &str, query: &str, headers: &HeaderMap) -> Option<Response<Bytes>> {
        let answer = match path.trim_end_matches('/') {
            "/openapi/v2" => self.answer_v2(headers),
            "/openapi/v3" => self.answer_index(),
            other => self.answer_v3(other.strip_prefix("/openapi/v3/")?, query, headers),
        };
        Some(answer.unwrap_or_else(|fault| text(StatusCode::INTERNAL_SERVER_ERROR, fault)))
    }

    fn documents(&self) -> Result<Documents, String> {
        Documents::new(&self.schemes, &self.served, self.info.clone()).map_err(|e| e.to_string())
    }

    fn v2(&self) -> Result<&V2, String> {
        let made = self.v2.get_or_init(|| {
            let value = self.documents()?.v2();
            let document = |content_type, bytes: &[u8]| Document::new(content_type, bytes).map_err(|e| e.to_string());
            Ok(V2 {
                json: document("application/json", value.to_string().as_bytes())?,
                protobuf: document(V2_PROTOBUF, &super::protobuf::encode(&value))?,
            })
        });
        made.as_ref().map_err(Clone::clone)
    }

    fn v3(&self) -> Result<&BTreeMap<String, Document>, String> {
        let made = self.v3.get_or_init(|| {
            let documents = self.documents()?;
            let mut all = BTreeMap::new();
            for name in documents.v3_names() {
                let Some(value) = documents.v3(name) else { continue };
                let document = Document::new("application/json", value.to_string().as_bytes());
                all.insert(name.to_owned(), document.map_err(|e| e.to_string())?);
            }
            Ok(all)
        });
        made.as_ref().map_err(Clone::clone)
    }

    fn answer_v2(&self, headers: &HeaderMap) -> Result<Response<Bytes>, String> {
        for clause in accept::clauses(headers) {
            if clause.takes("application", "json") {
                return Ok(self.v2()?.json.answer(headers, "Accept-Encoding"));
            }
            if V2_PROTOBUF_SUBTYPES.iter().any(|sub| clause.takes("application", sub)) {
                return Ok(self.v2()?.protobuf.answer(headers, "Accept-Encoding"));
            }
        }
        Ok(empty(StatusCode::NOT_ACCEPTABLE))
    }

    /// The list of v3 documents; kube-apiserver calls it plain text, and so clients have learnt not to look.
    fn answer_index(&self) -> Result<Response<Bytes>, String> {
        let paths: Map<String, Value> = self
            .v3()?
            .iter()
            .map(|(name, document)| (name.clone(), json!({"serverRelativeURL": url(name, document)})))
            .collect();
        Ok(text(StatusCode::OK, json!({"paths": paths}).to_string()))
    }

    fn answer_v3(&self, name: &str, query: &str, headers: &HeaderMap) -> Result<Response<Bytes>, String> {
        let json = |clause: &Clause| clause.takes("application", "json");
        let Some(document) = self.v3()?.get(name) else {
            return Ok(empty(StatusCode::NOT_FOUND));
        };
        if !accept::clauses(headers).iter().any(json) {
            return Ok(empty(StatusCode::NOT_ACCEPTABLE));
        }
        let hash = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("hash="))
            .unwrap_or_default();
        if !hash.is_empty() && hash != document.hash() {
            return Ok(moved(&url(name, document)));
        }
        let mut response = document.answer(headers, "Accept");
        if !hash.is_empty() {
            self.never_changes(response.headers_mut());
        }
        Ok(response)
    }

    /// What stands under a hash never changes.
    fn never_changes(&self, headers: &mut HeaderMap) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        let next_year = self.clock.now().unix_seconds().saturating_add(SECONDS_PER_YEAR);
        if let Ok(date) = HeaderValue::try_from(http_date(next_year)) {
            headers.insert(EXPIRES, date);
        }
    }
}

fn url(name: &str, document: &Document) -> String {
    format!("/openapi/v3/{name}?hash={}", document.hash())
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Bytes> {
    let body = body.into();
    let len = body.len();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(len));
    response
}

fn moved(to: &str) -> Response<Bytes> {
    let mut response = text(
        StatusCode::MOVED_PERMANENTLY,
        format!("<a href=\"{to}\">Moved Permanently</a>.\n\n"),
    );
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    if let Ok(to) = HeaderValue::try_from(to) {
        headers.insert(LOCATION, to);
    }
    response
}

/// `Sat, 21 Nov 2026 11:34:00 GMT`, of seconds since 1970.
fn http_date(seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let weekday = usize::try_from(days.rem_euclid(7))
        .ok()
        .and_then(|d| DAYS.get(d))
        .unwrap_or(&"");
    let month = MONTHS.get(month).unwrap_or(&"");
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Year, month (from 0) and day of a day since 1970, counted in eras of 400 years that begin on 1 March.
fn civil(days: i64) -> (i64, usize, i64) {
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let month = (march + 2) % 12;
    let year = year + era * 400 + i64::from(month < 2);
    (
        year,
        usize::try_from(month).unwrap_or_default(),
        day - (153 * march + 2) / 5 + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_dates() {
        for (seconds, date) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (1_795_260_840, "Sat, 21 Nov 2026 11:34:00 GMT"),
            (951_827_696, "Tue, 29 Feb 2000 12:34:56 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(http_date(seconds), date);
        }
    }
}
