//! URLs: `url("https://host:80/path?a=b")`.

pub(super) mod read;

use std::any::Any;
use std::rc::Rc;

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::{Map, Opaque, Value};
use super::{Result, strings};
use read::Url;

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
    read::url(text).map_err(|why| Fault::function(format!("URL parse error during conversion from string: {why}")))
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
    for pair in own(v)?
        .query
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.contains(';'))
    {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        // What can't be read is left out.
        let (Some(key), Some(value)) = (read::query_part(key), read::query_part(value)) else {
            continue;
        };
        let value = Value::text(value);
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
