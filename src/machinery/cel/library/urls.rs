//! URLs: `url("https://host:80/path?a=b")`.

use std::any::Any;
use std::rc::Rc;

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::{Map, Opaque, Value};
use super::{Result, strings};

pub(super) fn define(to: &mut Functions) {
    add(to, "url", Cost::Traverse, url, &["(string) url"]);
    add(to, "isURL", Cost::Traverse, is_url, &["(string) bool"]);
    let text = ["url.() string"];
    add(to, "getScheme", Cost::One, |v| part(v, |url| url.scheme.clone()), &text);
    add(to, "getHost", Cost::One, |v| part(v, |url| url.host.clone()), &text);
    add(
        to,
        "getHostname",
        Cost::One,
        |v| part(v, |url| split_port(&url.host).0),
        &text,
    );
    add(
        to,
        "getPort",
        Cost::One,
        |v| part(v, |url| split_port(&url.host).1),
        &text,
    );
    add(
        to,
        "getEscapedPath",
        Cost::One,
        |v| part(v, |url| url.path.clone()),
        &text,
    );
    add(to, "getQuery", Cost::One, query, &["url.() map(string, list(string))"]);
}

#[derive(Debug, PartialEq, Eq)]
struct Url {
    scheme: String,
    /// With its port.
    host: String,
    path: String,
    query: String,
}

impl Opaque for Url {
    fn name(&self) -> &'static str {
        "kubernetes.URL"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<Url>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Url {
    /// An absolute URL, or a path alone.
    fn parse(text: &str) -> Option<Url> {
        if text.chars().any(|c| c.is_control() || c == ' ') || !escapes_are_whole(text) {
            return None;
        }
        let text = text.split('#').next().unwrap_or_default();
        let (before, query) = text.split_once('?').unwrap_or((text, ""));
        let (scheme, rest) = match before.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_ascii_lowercase(), rest),
            _ => (String::new(), before),
        };
        if scheme.is_empty() && !rest.starts_with('/') {
            return None;
        }
        let (host, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let (_, port) = split_port(host);
        port.bytes().all(|b| b.is_ascii_digit()).then(|| Url {
            scheme,
            host: host.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
        })
    }
}

fn escapes_are_whole(text: &str) -> bool {
    let mut rest = text.split('%');
    rest.next();
    rest.all(|after| after.len() >= 2 && after.bytes().take(2).all(|b| b.is_ascii_hexdigit()))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

fn split_port(host: &str) -> (String, String) {
    let after_bracket = host.rfind(']').map_or(0, |at| at + 1);
    let (name, port) = match host[after_bracket..].rfind(':') {
        Some(at) => (&host[..after_bracket + at], &host[after_bracket + at + 1..]),
        None => (host, ""),
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    (name.to_owned(), port.to_owned())
}

fn parse(v: &[Value<'_>]) -> std::result::Result<Url, Fault> {
    let text = strings::text(v.first().unwrap_or(&Value::Null))?;
    let wrong = || {
        Fault::function(format!(
            "URL parse error during conversion from string: parse {text:?}: invalid URI for request"
        ))
    };
    Url::parse(text).ok_or_else(wrong)
}

fn url<'a>(v: &[Value<'a>]) -> Result<'a> {
    Ok(Value::opaque(parse(v)?))
}

fn is_url<'a>(v: &[Value<'a>]) -> Result<'a> {
    super::is_readable(parse(v))
}

fn own<'v>(v: &'v [Value<'_>]) -> std::result::Result<&'v Url, Fault> {
    match v {
        [Value::Opaque(value)] => value.as_any().downcast_ref().ok_or(Fault::NoSuchOverload),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn part<'a>(v: &[Value<'a>], get: fn(&Url) -> String) -> Result<'a> {
    Ok(Value::text(get(own(v)?)))
}

fn query<'a>(v: &[Value<'a>]) -> Result<'a> {
    let mut entries: Vec<(String, Vec<Value<'a>>)> = Vec::new();
    for pair in own(v)?.query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (key, value) = (unescape(key), Value::text(unescape(value)));
        match entries.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => entries.push((key, vec![value])),
        }
    }
    let entries = entries
        .into_iter()
        .map(|(key, values)| (Value::text(key), Value::list(values)));
    Ok(Value::Map(Map::Own(Rc::new(entries.collect()))))
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(b) = rest.next() {
        let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16)).unwrap_or(0);
        match b {
            b'+' => bytes.push(b' '),
            b'%' => {
                let (high, low) = (digit(rest.next()), digit(rest.next()));
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
            }
            b => bytes.push(b),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
