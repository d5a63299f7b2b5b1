//! Versions in the sense of semver.org: `semver("1.2.3-rc.1")`.

use std::any::Any;
use std::cmp::Ordering;

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::{Opaque, Value};
use super::{Result, strings};

pub(super) fn define(to: &mut Functions) {
    add(
        to,
        "semver",
        Cost::Traverse,
        |v| parse(v).map(Value::opaque),
        &["(string) semver", "(string, bool) semver"],
    );
    add(
        to,
        "isSemver",
        Cost::Traverse,
        |v| super::is_readable(parse(v)),
        &["(string) bool", "(string, bool) bool"],
    );
    let number = ["semver.() int"];
    add(
        to,
        "major",
        Cost::One,
        |v| part(v, |version| version.numbers[0]),
        &number,
    );
    add(
        to,
        "minor",
        Cost::One,
        |v| part(v, |version| version.numbers[1]),
        &number,
    );
    add(
        to,
        "patch",
        Cost::One,
        |v| part(v, |version| version.numbers[2]),
        &number,
    );
}

/// How two versions stand to each other; `None`: they are none.
pub(super) fn order(v: &[Value<'_>]) -> Option<Ordering> {
    match v {
        [Value::Opaque(a), Value::Opaque(b)] => {
            let version = |value: &dyn Opaque| value.as_any().downcast_ref::<Version>().cloned();
            Some(version(&**a)?.precedence(&version(&**b)?))
        }
        _ => None,
    }
}

/// The version as a text, if it is one.
pub(super) fn show(value: &dyn Opaque) -> Option<String> {
    let version = value.as_any().downcast_ref::<Version>()?;
    let [major, minor, patch] = version.numbers;
    let mut text = format!("{major}.{minor}.{patch}");
    for (mark, parts) in [('-', &version.before), ('+', &version.build)] {
        if !parts.is_empty() {
            text.push(mark);
            text.push_str(&parts.join("."));
        }
    }
    Some(text)
}

#[derive(Clone, Debug)]
struct Version {
    numbers: [u64; 3],
    /// What makes it come before the version with these numbers.
    before: Vec<String>,
    build: Vec<String>,
}

impl Version {
    fn parse(text: &str) -> Option<Version> {
        let (text, build) = match text.split_once('+') {
            Some((text, build)) => (text, identifiers(build, true)?),
            None => (text, Vec::new()),
        };
        let (text, before) = match text.split_once('-') {
            Some((text, before)) => (text, identifiers(before, false)?),
            None => (text, Vec::new()),
        };
        let mut parts = text.split('.').map(number);
        let numbers = [parts.next()??, parts.next()??, parts.next()??];
        let whole = parts.next().is_none();
        whole.then_some(Version { numbers, before, build })
    }

    fn precedence(&self, other: &Version) -> Ordering {
        let before = match (self.before.is_empty(), other.before.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => compare_identifiers(&self.before, &other.before),
        };
        self.numbers.cmp(&other.numbers).then(before)
    }
}

impl Opaque for Version {
    fn name(&self) -> &'static str {
        "kubernetes.Semver"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        let other = other.as_any().downcast_ref::<Version>();
        other.is_some_and(|other| self.precedence(other) == Ordering::Equal)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Digits without a leading zero.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match digits && (text == "0" || !text.starts_with('0')) {
        true => text.parse().ok(),
        false => None,
    }
}

fn identifiers(text: &str, zeros: bool) -> Option<Vec<String>> {
    let fits = |part: &str| {
        let characters = !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let numeric = part.bytes().all(|b| b.is_ascii_digit());
        characters && (zeros || !numeric || number(part).is_some())
    };
    let parts = text.split('.').map(|part| fits(part).then(|| part.to_owned()));
    parts.collect()
}

/// Numbers come before texts and are compared as numbers; of two that begin alike the shorter comes first.
fn compare_identifiers(a: &[String], b: &[String]) -> Ordering {
    let one = |a: &String, b: &String| match (number(a), number(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    };
    let differing = a.iter().zip(b).map(|(a, b)| one(a, b)).find(|order| order.is_ne());
    differing.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// With a second argument that is true, `v1.2` and `01.2.3` are read too.
fn parse(v: &[Value<'_>]) -> std::result::Result<Version, Fault> {
    let (text, tolerant) = match v {
        [text] => (strings::text(text)?, false),
        [text, Value::Bool(tolerant)] => (strings::text(text)?, *tolerant),
        _ => return Err(Fault::NoSuchOverload),
    };
    let normalized = match tolerant {
        true => normalized(text),
        false => text.to_owned(),
    };
    Version::parse(&normalized).ok_or_else(|| Fault::function(format!("invalid semantic version {text:?}")))
}

fn normalized(text: &str) -> String {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let mut parts: Vec<&str> = numbers
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            part => part,
        })
        .collect();
    while parts.len() < 3 && rest.is_empty() {
        parts.push("0");
    }
    format!("{}{rest}", parts.join("."))
}

fn part<'a>(v: &[Value<'a>], of: impl Fn(&Version) -> u64) -> Result<'a> {
    match v {
        [Value::Opaque(value)] => {
            let version = value.as_any().downcast_ref::<Version>().ok_or(Fault::NoSuchOverload)?;
            i64::try_from(of(version)).map(Value::Int).map_err(|_| Fault::Overflow)
        }
        _ => Err(Fault::NoSuchOverload),
    }
}
