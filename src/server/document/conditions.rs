//! Conditional and partial requests for a document that has an ETag and a date (RFC 9110, sections 13 and 14).

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, ETAG, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::{Document, empty, http_date, parse_http_date, with_body};

/// The part of a document that a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Whole,
    /// First byte and the one behind the last.
    Range(usize, usize),
    /// Begins behind the end.
    Beyond,
    Malformed,
}

/// The answer to a GET with these request headers: 200, 206, 304, 412 or 416. `modified` is when the document was made,
/// in seconds since 1970; `gzip` says whether it may be compressed.
pub(crate) fn answer(document: &Document, modified: i64, gzip: bool, headers: &HeaderMap) -> Response<Bytes> {
    let etag = document.etag();
    if fails(headers, &etag, modified) {
        let mut response = with_body(StatusCode::PRECONDITION_FAILED, document.content_type(), "");
        response.headers_mut().remove(CONTENT_LENGTH);
        stamp(&mut response, &etag, modified);
        return response;
    }
    if is_known(headers, &etag, modified) {
        let mut response = empty(StatusCode::NOT_MODIFIED);
        stamp(&mut response, &etag, modified);
        response.headers_mut().remove(LAST_MODIFIED);
        return response;
    }
    let mut response = match part(headers, &etag, modified, document.len()) {
        Part::Whole => document.whole(gzip && accepts_gzip(headers)),
        Part::Range(from, to) => partial(document, from, to),
        Part::Beyond => {
            let mut response = refused("invalid range: failed to overlap\n");
            insert(&mut response, CONTENT_RANGE, &format!("bytes */{}", document.len()));
            return response;
        }
        Part::Malformed => return refused("invalid range\n"),
    };
    insert(&mut response, ACCEPT_RANGES, "bytes");
    stamp(&mut response, &etag, modified);
    response
}

fn stamp(response: &mut Response<Bytes>, etag: &str, modified: i64) {
    insert(response, ETAG, etag);
    insert(response, LAST_MODIFIED, &http_date(modified, "GMT"));
}

fn insert(response: &mut Response<Bytes>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        response.headers_mut().insert(name, value);
    }
}

fn partial(document: &Document, from: usize, to: usize) -> Response<Bytes> {
    let Ok(body) = document.unpacked() else {
        return empty(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let part = body.slice(from.min(body.len())..to.min(body.len()));
    let mut response = with_body(StatusCode::PARTIAL_CONTENT, document.content_type(), part);
    let range = format!("bytes {from}-{}/{}", to.saturating_sub(1), document.len());
    insert(&mut response, CONTENT_RANGE, &range);
    response
}

fn refused(text: &'static str) -> Response<Bytes> {
    let mut response = with_body(StatusCode::RANGE_NOT_SATISFIABLE, "text/plain; charset=utf-8", text);
    insert(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|v| v.to_str().ok())
}

/// Whether If-Match or If-Unmodified-Since forbids an answer.
fn fails(headers: &HeaderMap, etag: &str, modified: i64) -> bool {
    if headers.contains_key(IF_MATCH) {
        return !tags(headers, IF_MATCH).any(|tag| tag == "*" || tag == etag);
    }
    let since = text(headers, &IF_UNMODIFIED_SINCE).and_then(parse_http_date);
    since.is_some_and(|since| modified > since)
}

/// Whether the client has this very document, as If-None-Match or else If-Modified-Since says. Tags are compared
/// weakly.
fn is_known(headers: &HeaderMap, etag: &str, modified: i64) -> bool {
    if headers.contains_key(IF_NONE_MATCH) {
        return tags(headers, IF_NONE_MATCH).any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag);
    }
    let since = text(headers, &IF_MODIFIED_SINCE).and_then(parse_http_date);
    since.is_some_and(|since| modified <= since)
}

fn tags(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let sent = headers.get_all(name).into_iter().filter_map(|v| v.to_str().ok());
    sent.flat_map(|v| v.split(',')).map(str::trim)
}

/// What Range asks for, unless If-Range names another document. Several ranges are answered with the whole.
fn part(headers: &HeaderMap, etag: &str, modified: i64, len: usize) -> Part {
    let Some(range) = text(headers, &RANGE) else {
        return Part::Whole;
    };
    let current = |tag: &str| tag == etag || parse_http_date(tag) == Some(modified);
    if text(headers, &IF_RANGE).is_some_and(|tag| !current(tag)) {
        return Part::Whole;
    }
    match range.strip_prefix("bytes=") {
        Some(ranges) if ranges.contains(',') => Part::Whole,
        Some(range) => one_range(range.trim(), len),
        None => Part::Malformed,
    }
}

/// `0-9`, `10-` or `-10` of `len` bytes.
fn one_range(range: &str, len: usize) -> Part {
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let number = |text: &str| text.parse::<usize>().unwrap_or(usize::MAX);
    let Some((first, last)) = range.split_once('-').filter(|(a, b)| digits(a) && digits(b)) else {
        return Part::Malformed;
    };
    match (first, last) {
        ("", "") => Part::Malformed,
        ("", "0") => Part::Beyond,
        ("", suffix) => Part::Range(len.saturating_sub(number(suffix)), len),
        (first, _) if number(first) >= len => Part::Beyond,
        (first, "") => Part::Range(number(first), len),
        (first, last) if number(last) < number(first) => Part::Malformed,
        (first, last) => Part::Range(number(first), number(last).saturating_add(1).min(len)),
    }
}

/// Whether the client takes gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    tags(headers, ACCEPT_ENCODING).any(|part| {
        let mut pieces = part.split(';').map(str::trim);
        let named = pieces
            .next()
            .is_some_and(|coding| coding.eq_ignore_ascii_case("gzip") || coding == "*");
        named && !pieces.any(|p| p.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0_f32)))
    })
}

/// The answer to a GET of a document that has no ETag, made anew at `modified`.
pub(crate) fn made_now(
    content_type: &'static str,
    body: impl Into<Bytes>,
    modified: i64,
    headers: &HeaderMap,
) -> Response<Bytes> {
    let since = text(headers, &IF_MODIFIED_SINCE).and_then(parse_http_date);
    let known = !headers.contains_key(IF_NONE_MATCH) && since.is_some_and(|since| modified <= since);
    let mut response = if known {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        let mut response = with_body(StatusCode::OK, content_type, body);
        insert(&mut response, ACCEPT_RANGES, "bytes");
        response
    };
    insert(&mut response, LAST_MODIFIED, &http_date(modified, "GMT"));
    response
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_ENCODING;

    use super::*;

    const MODIFIED: i64 = 1_795_260_840;

    fn ask(pairs: &[(HeaderName, &str)]) -> Response<Bytes> {
        let document = Document::new("application/json", "0123456789".as_bytes()).unwrap();
        let etag = document.etag();
        let header = |(name, value): &(HeaderName, &str)| {
            (
                name.clone(),
                HeaderValue::try_from(value.replace("ETAG", &etag)).unwrap(),
            )
        };
        answer(&document, MODIFIED, true, &pairs.iter().map(header).collect())
    }

    #[test]
    fn known_content_is_not_sent_again() {
        for (name, value, status) in [
            (IF_NONE_MATCH, "ETAG", 304),
            (IF_NONE_MATCH, "\"x\", W/ETAG", 304),
            (IF_NONE_MATCH, "*", 304),
            (IF_NONE_MATCH, "\"x\"", 200),
            (IF_MODIFIED_SINCE, "Sat, 21 Nov 2026 11:34:00 GMT", 304),
            (IF_MODIFIED_SINCE, "Sat, 21 Nov 2026 11:33:59 GMT", 200),
            (IF_MODIFIED_SINCE, "yesterday", 200),
            (IF_MATCH, "\"x\"", 412),
            (IF_MATCH, "ETAG", 200),
            (IF_UNMODIFIED_SINCE, "Sat, 21 Nov 2026 11:33:59 GMT", 412),
        ] {
            let response = ask(&[(name.clone(), value)]);
            assert_eq!(response.status(), status, "{name}: {value}");
            assert_eq!(response.body().is_empty(), status != 200);
            assert!(response.headers().contains_key(ETAG));
        }
        let both = ask(&[
            (IF_NONE_MATCH, "\"x\""),
            (IF_MODIFIED_SINCE, "Sat, 21 Nov 2026 11:34:00 GMT"),
        ]);
        assert_eq!(both.status(), 200, "the tag decides");
    }

    #[test]
    fn parts() {
        for (range, status, body) in [
            ("bytes=0-3", 206, "0123"),
            ("bytes=4-", 206, "456789"),
            ("bytes=-2", 206, "89"),
            ("bytes=-99", 206, "0123456789"),
            ("bytes=8-99", 206, "89"),
            ("bytes=0-1,4-5", 200, "0123456789"),
            ("bytes=10-", 416, "invalid range: failed to overlap\n"),
            ("bytes=-0", 416, "invalid range: failed to overlap\n"),
            ("bytes=5-2", 416, "invalid range\n"),
            ("bytes=-", 416, "invalid range\n"),
            ("bytes=x-1", 416, "invalid range\n"),
            ("lines=1-2", 416, "invalid range\n"),
            ("bytes=0-99999999999999999999", 206, "0123456789"),
        ] {
            let response = ask(&[(RANGE, range)]);
            assert_eq!(
                (response.status().as_u16(), &response.body()[..]),
                (status, body.as_bytes()),
                "{range}"
            );
        }
        assert_eq!(ask(&[(RANGE, "bytes=0-3")]).headers()[CONTENT_RANGE], "bytes 0-3/10");
        for (tag, status) in [("\"x\"", 200), ("ETAG", 206), ("Sat, 21 Nov 2026 11:34:00 GMT", 206)] {
            assert_eq!(ask(&[(RANGE, "bytes=0-3"), (IF_RANGE, tag)]).status(), status, "{tag}");
        }
    }

    #[test]
    fn compressed_only_for_those_who_take_it() {
        for (sent, encoded) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("*", true),
            ("gzip;q=0", false),
            ("br", false),
        ] {
            let response = ask(&[(ACCEPT_ENCODING, sent)]);
            assert_eq!(response.headers().contains_key(CONTENT_ENCODING), encoded, "{sent}");
        }
    }
}
