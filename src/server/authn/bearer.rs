//! The token of an `Authorization: Bearer` header.

use actix_web::http::header::{self, HeaderMap};

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
    let Some(text) = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()) else {
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

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

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
        }
        assert_eq!(token(&HeaderMap::new()), Bearer::None);
    }
}
