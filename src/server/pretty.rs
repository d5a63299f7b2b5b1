//! Indented JSON for people who look at answers with curl or a browser.

use actix_web::http::header::{self, HeaderMap};
use keelson_access::request_info::Query;

use crate::negotiate::header_text;
use crate::negotiate::{Offer, negotiate};

/// `;pretty=1` of the clause that is taken, or `?pretty=`; without a value for it curl, wget and browsers get indented
/// JSON.
pub fn wanted(headers: &HeaderMap, query: &Query) -> bool {
    let accept = header_text(headers, &header::ACCEPT).unwrap_or_default();
    if accept.contains("pretty") && negotiate(Some(accept), Offer::Objects).is_ok_and(|a| a.pretty) {
        return true;
    }
    match query.get("pretty").unwrap_or_default() {
        // The words of Go's ParseBool.
        "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
        "" => {
            let agent = header_text(headers, &header::USER_AGENT).unwrap_or_default();
            ["curl", "Wget", "Mozilla/5.0"]
                .iter()
                .any(|name| agent.starts_with(name))
        }
        _ => false,
    }
}

/// The same JSON with two blanks of indentation per level, as Go's MarshalIndent writes it.
pub fn indent(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    let mut rest = json.iter().copied().peekable();
    while let Some(b) = rest.next() {
        if in_string {
            out.push(b);
            (in_string, escaped) = (escaped || b != b'"', !escaped && b == b'\\');
            continue;
        }
        match b {
            b'"' => {
                in_string = true;
                out.push(b);
            }
            b'{' | b'[' if rest.peek().is_some_and(|n| matches!(n, b'}' | b']')) => {
                out.push(b);
                out.extend(rest.next());
            }
            b'{' | b'[' => {
                depth += 1;
                out.push(b);
                new_line(&mut out, depth);
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(b);
            }
            b',' => {
                out.push(b);
                new_line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            b' ' | b'\n' | b'\t' | b'\r' => {}
            _ => out.push(b),
        }
    }
    out
}

fn new_line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', depth * 2));
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn query_accept_and_agent_decide() {
        for (query, accept, agent, want) in [
            ("", "", "kubectl/1", false),
            ("", "", "curl/8", true),
            ("pretty=", "", "Wget/1", true),
            ("pretty=2", "", "curl/8", false),
            ("pretty=0&pretty=1", "", "", false),
            ("pretty=True", "", "", true),
            ("pretty=false", "application/json;pretty=1", "", true),
            ("", "application/json;pretty=true", "", false),
            ("", "application/json,application/json;pretty=1", "", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
            assert_eq!(wanted(&headers, &Query::parse(query)), want, "{query} {accept} {agent}");
        }
    }

    #[test]
    fn looks_like_go() {
        let json = br#"{"a":"x{,}\"y","b":[],"c":{},"d":[1,{"e":null}]}"#;
        let want = "{\n  \"a\": \"x{,}\\\"y\",\n  \"b\": [],\n  \"c\": {},\n  \"d\": [\n    1,\n    {\n      \"e\": null\n    }\n  ]\n}";
        assert_eq!(String::from_utf8(indent(json)).unwrap(), want);
    }
}
