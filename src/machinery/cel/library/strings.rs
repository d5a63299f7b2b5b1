//! Functions on texts. Places and lengths count characters.

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::Value;
use super::{Result, regex};

/// Bytes of a text that a function makes.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

pub(super) fn define(to: &mut Functions) {
    let sizes = [
        "(bytes) int",
        "(list(A)) int",
        "(map(A, B)) int",
        "(string) int",
        "bytes.() int",
        "list(A).() int",
        "map(A, B).() int",
        "string.() int",
    ];
    add(to, "size", Cost::One, size, &sizes);
    let test = ["string.(string) bool"];
    add(
        to,
        "startsWith",
        Cost::Traverse,
        |v| two(v, |a, b| Value::Bool(a.starts_with(b))),
        &test,
    );
    add(
        to,
        "endsWith",
        Cost::Traverse,
        |v| two(v, |a, b| Value::Bool(a.ends_with(b))),
        &test,
    );
    add(
        to,
        "contains",
        Cost::Search,
        |v| two(v, |a, b| Value::Bool(a.contains(b))),
        &test,
    );
    add(
        to,
        "matches",
        Cost::Search,
        matches,
        &["string.(string) bool", "(string, string) bool"],
    );
    add(to, "find", Cost::Search, find, &["string.(string) string"]);
    let all = ["string.(string) list(string)", "string.(string, int) list(string)"];
    add(to, "findAll", Cost::Search, find_all, &all);
    add(to, "charAt", Cost::One, char_at, &["string.(int) string"]);
    add(
        to,
        "lowerAscii",
        Cost::Traverse,
        |v| map(v, str::to_ascii_lowercase),
        &["string.() string"],
    );
    add(
        to,
        "upperAscii",
        Cost::Traverse,
        |v| map(v, str::to_ascii_uppercase),
        &["string.() string"],
    );
    add(
        to,
        "trim",
        Cost::Traverse,
        |v| map(v, |text| text.trim().to_owned()),
        &["string.() string"],
    );
    let replaces = ["string.(string, string) string", "string.(string, string, int) string"];
    add(to, "replace", Cost::Make, replace, &replaces);
    add(
        to,
        "split",
        Cost::Traverse,
        split,
        &["string.(string) list(string)", "string.(string, int) list(string)"],
    );
    add(
        to,
        "substring",
        Cost::Traverse,
        substring,
        &["string.(int) string", "string.(int, int) string"],
    );
    add(
        to,
        "join",
        Cost::Make,
        join,
        &["list(string).() string", "list(string).(string) string"],
    );
    add(to, "strings.quote", Cost::Traverse, quote, &["(string) string"]);
}

fn size<'a>(v: &[Value<'a>]) -> Result<'a> {
    let count = match v {
        [Value::String(text)] => text.as_str().chars().count(),
        [Value::Bytes(bytes)] => bytes.len(),
        [Value::List(list)] => list.len(),
        [Value::Map(map)] => map.len(),
        _ => return Err(Fault::NoSuchOverload),
    };
    Ok(Value::Int(i64::try_from(count).unwrap_or(i64::MAX)))
}

fn two<'a>(v: &[Value<'a>], f: impl Fn(&str, &str) -> Value<'a>) -> Result<'a> {
    match v {
        [Value::String(a), Value::String(b)] => Ok(f(a.as_str(), b.as_str())),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn map<'a>(v: &[Value<'a>], f: impl Fn(&str) -> String) -> Result<'a> {
    match v {
        [Value::String(text)] => Ok(Value::text(f(text.as_str()))),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn matches<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::String(text), Value::String(pattern)] => {
            Ok(Value::Bool(regex(pattern.as_str())?.is_match(text.as_str())))
        }
        _ => Err(Fault::NoSuchOverload),
    }
}

fn find<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::String(text), Value::String(pattern)] => {
            let found = regex(pattern.as_str())?
                .find(text.as_str())
                .map_or("", |found| found.as_str());
            Ok(Value::text(found))
        }
        _ => Err(Fault::NoSuchOverload),
    }
}

fn find_all<'a>(v: &[Value<'a>]) -> Result<'a> {
    let (text, pattern, limit) = match v {
        [Value::String(text), Value::String(pattern)] => (text, pattern, -1),
        [Value::String(text), Value::String(pattern), Value::Int(limit)] => (text, pattern, *limit),
        _ => return Err(Fault::NoSuchOverload),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let regex = regex(pattern.as_str())?;
    let found = regex.find_iter(text.as_str()).take(limit);
    Ok(Value::texts(found.map(|found| found.as_str())))
}

/// A place in a text.
fn place(n: i64, length: usize) -> std::result::Result<usize, Fault> {
    let out = || Fault::function(format!("index out of range: {n}"));
    usize::try_from(n).ok().filter(|n| *n <= length).ok_or_else(out)
}

fn char_at<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::String(text), Value::Int(n)] => {
            let at = place(*n, text.as_str().chars().count())?;
            let found: String = text.as_str().chars().skip(at).take(1).collect();
            Ok(Value::text(found))
        }
        _ => Err(Fault::NoSuchOverload),
    }
}

/// Where a text stands in another one, from a place on; backwards the last one before it.
pub(super) fn index_of<'a>(v: &[Value<'a>], last: bool) -> Result<'a> {
    let (text, wanted, from) = match v {
        [Value::String(text), Value::String(wanted)] => (text.as_str(), wanted.as_str(), None),
        [Value::String(text), Value::String(wanted), Value::Int(from)] => (text.as_str(), wanted.as_str(), Some(*from)),
        _ => return Err(Fault::NoSuchOverload),
    };
    let starts: Vec<usize> = text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect();
    if let Some(from) = from.filter(|_| !wanted.is_empty()) {
        // Nothing is found behind the end.
        if usize::try_from(from).is_ok_and(|from| from + 1 >= starts.len()) {
            return Ok(Value::Int(-1));
        }
    } else if let Some(from) = from {
        return Ok(Value::Int(from));
    }
    let from = from.map(|from| place(from, starts.len() - 1)).transpose()?;
    let fits = |n: &usize| {
        starts
            .get(*n)
            .and_then(|at| text.get(*at..))
            .is_some_and(|rest| rest.starts_with(wanted))
    };
    let found = match last {
        true => (0..=from.unwrap_or(starts.len() - 1)).rev().find(fits),
        false => (from.unwrap_or(0)..starts.len()).find(fits),
    };
    Ok(Value::Int(found.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1)))
}

fn replace<'a>(v: &[Value<'a>]) -> Result<'a> {
    let (text, from, into, times) = match v {
        [Value::String(text), Value::String(from), Value::String(into)] => (text, from, into, -1),
        [
            Value::String(text),
            Value::String(from),
            Value::String(into),
            Value::Int(n),
        ] => (text, from, into, *n),
        _ => return Err(Fault::NoSuchOverload),
    };
    let (text, from, into) = (text.as_str(), from.as_str(), into.as_str());
    let times = usize::try_from(times).unwrap_or(usize::MAX);
    let found = text.matches(from).take(times).count();
    match found.saturating_mul(into.len()).saturating_add(text.len()) > MAX_TEXT_BYTES {
        true => Err(Fault::function("the text becomes too long")),
        false => Ok(Value::text(text.replacen(from, into, times))),
    }
}

fn split<'a>(v: &[Value<'a>]) -> Result<'a> {
    let (text, separator, limit) = match v {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [Value::String(text), Value::String(separator), Value::Int(limit)] => (text, separator, *limit),
        _ => return Err(Fault::NoSuchOverload),
    };
    let (text, separator) = (text.as_str(), separator.as_str());
    let limit = match limit {
        0 => return Ok(Value::texts(std::iter::empty())),
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    let parts = match separator {
        // Characters, of which the last part takes the rest.
        "" => {
            let cut = text
                .char_indices()
                .nth(limit.saturating_sub(1))
                .map_or(text.len(), |(byte, _)| byte);
            let (head, tail) = text.split_at(cut);
            let last = Some(tail).filter(|tail| !tail.is_empty());
            let characters = head
                .char_indices()
                .map(|(at, c)| head.get(at..at + c.len_utf8()).unwrap_or_default());
            Value::texts(characters.chain(last))
        }
        separator => Value::texts(text.splitn(limit, separator)),
    };
    Ok(parts)
}

fn substring<'a>(v: &[Value<'a>]) -> Result<'a> {
    let (text, start, end) = match v {
        [Value::String(text), Value::Int(start)] => (text.as_str(), *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text.as_str(), *start, Some(*end)),
        _ => return Err(Fault::NoSuchOverload),
    };
    let length = text.chars().count();
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(Fault::function(format!(
            "invalid substring range. start: {start}, end: {end}"
        )));
    }
    let first = place(start, length)?;
    let last = end.map_or(Ok(length), |end| place(end, length))?;
    let cut: String = text.chars().skip(first).take(last - first).collect();
    Ok(Value::text(cut))
}

fn join<'a>(v: &[Value<'a>]) -> Result<'a> {
    let (list, separator) = match v {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, separator.as_str()),
        _ => return Err(Fault::NoSuchOverload),
    };
    let mut out = String::new();
    for (n, element) in list.iter().enumerate() {
        let text = element.as_str().ok_or(Fault::NoSuchOverload)?;
        if n > 0 {
            out.push_str(separator);
        }
        out.push_str(text);
        if out.len() > MAX_TEXT_BYTES {
            return Err(Fault::function("the text becomes too long"));
        }
    }
    Ok(Value::text(out))
}

fn quote<'a>(v: &[Value<'a>]) -> Result<'a> {
    map(v, crate::field::text::quote)
}

/// A text's own view, for functions that take texts of any kind.
pub(super) fn text<'v>(value: &'v Value<'_>) -> std::result::Result<&'v str, Fault> {
    match value {
        Value::String(text) => Ok(text.as_str()),
        _ => Err(Fault::NoSuchOverload),
    }
}
