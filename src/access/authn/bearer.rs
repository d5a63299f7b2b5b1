//! Bearer tokens in requests: of an `Authorization` header, or of a WebSocket's protocols where clients can't set
//! headers.

use actix_web::http::header::{self, HeaderMap, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

/// What a protocol begins with that is a token, base64url without padding.
const PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// What the header holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bearer<'a> {
    Token(&'a str),
    /// No header, another scheme, or no token: the request counts as one without credentials.
    None,
    /// A blank too many before the token: as none, and the client is warned.
    ExtraSpace,
}

/// Reads the first `Authorization` header; words after the token are ignored, the scheme's case does not matter.
pub fn token(headers: &HeaderMap) -> Bearer<'_> {
    let Some(text) = headers.get(header::AUTHORIZATION).and_then(text_of) else {
        return Bearer::None;
    };
    let mut parts = text.trim().splitn(3, ' ');
    let (scheme, token, more) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Bearer::None;
    }
    match (token, more) {
        (None, _) => Bearer::None,
        (Some(""), Some(_)) => Bearer::ExtraSpace,
        (Some(""), None) => Bearer::None,
        (Some(token), _) => Bearer::Token(token),
    }
}

/// The value if it is visible ASCII: as its own `to_str`, which looks at one byte after the other.
fn text_of(value: &HeaderValue) -> Option<&str> {
    // There are no control characters in a value.
    let text = std::str::from_utf8(value.as_bytes()).ok()?;
    text.is_ascii().then_some(text)
}

/// Whether there is a blank too many before the token: [`Bearer::ExtraSpace`], without reading the whole of a token.
pub fn has_extra_space(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return false;
    };
    let begin = value.as_bytes().trim_ascii_start();
    let looks_so = begin.get("bearer".len()..).is_some_and(|rest| rest.starts_with(b"  "));
    looks_so && token(headers) == Bearer::ExtraSpace
}

/// The token among the protocols that a WebSocket client offers; `None`: it is no such request, or has none.
///
/// # Errors
/// There are two, or it is no text, or there is no protocol beside it.
pub fn websocket_token(headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    if !asks_for_websocket(headers) {
        return Ok(None);
    }
    let mut token = None;
    let mut others = false;
    for protocol in protocols(headers) {
        let Some(encoded) = protocol.strip_prefix(PROTOCOL) else {
            others = true;
            continue;
        };
        if token.is_some() {
            return Err("multiple base64.bearer.authorization tokens specified");
        }
        let bytes = BASE64
            .decode(encoded)
            .map_err(|_| "invalid base64.bearer.authorization token encoding")?;
        token = Some(String::from_utf8(bytes).map_err(|_| "invalid base64.bearer.authorization token")?);
    }
    match token.filter(|token| !token.is_empty()) {
        Some(_) if !others => Err("missing additional subprotocol"),
        token => Ok(token),
    }
}

/// Takes tokens out of the protocols.
pub(super) fn strip_protocols(headers: &mut HeaderMap) {
    if !protocols(headers).any(|protocol| protocol.starts_with(PROTOCOL)) {
        return;
    }
    let others: Vec<&str> = protocols(headers).filter(|one| !one.starts_with(PROTOCOL)).collect();
    let value = HeaderValue::from_str(&others.join(","));
    headers.remove(header::SEC_WEBSOCKET_PROTOCOL);
    if let Ok(value) = value {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, value);
    }
}

fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL);
    lines
        .filter_map(|value| value.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim)
}

fn asks_for_websocket(headers: &HeaderMap) -> bool {
    let says = |name: header::HeaderName, what: &str| {
        let mut lines = headers.get_all(name).filter_map(|value| value.to_str().ok());
        lines.any(|line| line.split(',').any(|one| one.trim().eq_ignore_ascii_case(what)))
    };
    says(header::CONNECTION, "upgrade") && says(header::UPGRADE, "websocket")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_headers_are_no_credentials() {
        let cases = [
            ("Bearer abc", Bearer::Token("abc")),
            ("bEARER abc def", Bearer::Token("abc")),
            ("Bearer", Bearer::None),
            ("Bearer ", Bearer::None),
            ("Bearer  abc", Bearer::ExtraSpace),
            ("Bearer\tabc", Bearer::None),
            ("Basic abc", Bearer::None),
        ];
        for (text, want) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(text));
            assert_eq!(token(&headers), want, "{text:?}");
            assert_eq!(has_extra_space(&headers), want == Bearer::ExtraSpace, "{text:?}");
        }
        for bytes in [&b"Bearer \xc3\xa4"[..], b"Bearer \xff"] {
            let value = HeaderValue::from_bytes(bytes).unwrap();
            assert_eq!(text_of(&value), value.to_str().ok());
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value);
            assert_eq!(token(&headers), Bearer::None, "{bytes:?}");
        }
        assert_eq!(token(&HeaderMap::new()), Bearer::None);
    }

    fn websocket(protocols: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        for line in protocols {
            headers.append(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_str(line).unwrap());
        }
        headers
    }

    #[test]
    fn a_protocol_may_be_a_token() {
        let of = |text: &str| format!("{PROTOCOL}{}", BASE64.encode(text));
        let abc = of("abc");
        for (lines, want) in [
            (vec!["v4.channel.k8s.io".to_owned()], Ok(None)),
            (vec![format!("{abc}, v4.channel.k8s.io")], Ok(Some("abc"))),
            (vec!["v4".to_owned(), abc.clone()], Ok(Some("abc"))),
            (vec![abc.clone()], Err("missing additional subprotocol")),
            (
                vec![abc.clone(), of("d"), "v4".to_owned()],
                Err("multiple base64.bearer.authorization tokens specified"),
            ),
            (
                vec![format!("{PROTOCOL}YQ==, v4")],
                Err("invalid base64.bearer.authorization token encoding"),
            ),
            (
                vec![format!("{PROTOCOL}_w, v4")],
                Err("invalid base64.bearer.authorization token"),
            ),
            (vec![format!("{PROTOCOL}, v4")], Ok(None)),
        ] {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let got = websocket_token(&websocket(&lines));
            assert_eq!(
                got.as_ref().map(Option::as_deref),
                want.as_ref().map(|o| *o),
                "{lines:?}"
            );
        }
        let mut plain = websocket(&[&abc, "v4"]);
        plain.remove(header::UPGRADE);
        assert_eq!(websocket_token(&plain), Ok(None));
    }

    #[test]
    fn tokens_are_taken_out_of_the_protocols() {
        let token = format!("{PROTOCOL}{}", BASE64.encode("abc"));
        let mut headers = websocket(&[&format!("a, {token}"), "b"]);
        strip_protocols(&mut headers);
        assert_eq!(headers.get(header::SEC_WEBSOCKET_PROTOCOL).unwrap(), "a,b");
        let mut headers = websocket(&["a", "b"]);
        strip_protocols(&mut headers);
        assert_eq!(headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).count(), 2);
    }
}
