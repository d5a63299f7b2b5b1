//! Versions in the sense of semver.org: `semver("1.2.3-rc.1")`.

use std::any::Any;
use std::cmp::Ordering;

use super::super::error::{Fault, FunctionResult};
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::{Opaque, Value};
use super::{Result, strings};
use crate::field::text::quote;

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

#[derive(Clone, Debug)]
struct Version {
    numbers: [u64; 3],
    /// What makes it come before the version with these numbers.
    before: Vec<String>,
}

impl Version {
    fn parse(text: &str) -> FunctionResult<Version> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(patch)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (major, minor) = (number(major, "Major")?, number(minor, "Minor")?);
        let (patch, build) = match patch.split_once('+') {
            Some((patch, build)) => (patch, build.split('.').collect()),
            None => (patch, Vec::new()),
        };
        let (patch, before) = match patch.split_once('-') {
            Some((patch, before)) => (patch, before.split('.').collect()),
            None => (patch, Vec::new()),
        };
        let numbers = [major, minor, number(patch, "Patch")?];
        let before = before
            .into_iter()
            .map(before_release)
            .collect::<std::result::Result<_, _>>()?;
        build.into_iter().try_for_each(build_part)?;
        Ok(Version { numbers, before })
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
fn number(text: &str, name: &str) -> FunctionResult<u64> {
    if !is_number(text) {
        let name = name.to_lowercase();
        return Err(format!("Invalid character(s) found in {name} number {}", quote(text)));
    }
    if has_leading_zeros(text) {
        return Err(format!("{name} number must not contain leading zeroes {}", quote(text)));
    }
    whole(text)
}

fn whole(text: &str) -> FunctionResult<u64> {
    let parsed = match text {
        "" => Err("invalid syntax"),
        text => text.parse().map_err(|_| "value out of range"),
    };
    parsed.map_err(|why| format!("strconv.ParseUint: parsing {}: {why}", quote(text)))
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn has_leading_zeros(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn is_identifier(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// A part of what makes a version come before its release.
fn before_release(text: &str) -> FunctionResult<String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if is_number(text) {
        if has_leading_zeros(text) {
            let why = "Numeric PreRelease version must not contain leading zeroes";
            return Err(format!("{why} {}", quote(text)));
        }
        whole(text)?;
    } else if !is_identifier(text) {
        return Err(format!("Invalid character(s) found in prerelease {}", quote(text)));
    }
    Ok(text.to_owned())
}

/// Checks a part of what is said of a build, which no comparison sees.
fn build_part(text: &str) -> FunctionResult<()> {
    if text.is_empty() {
        return Err("Build meta data is empty".to_owned());
    }
    if !is_identifier(text) {
        return Err(format!("Invalid character(s) found in build meta data {}", quote(text)));
    }
    Ok(())
}

/// Numbers come before texts and are compared as numbers; of two that begin alike the shorter comes first.
fn compare_identifiers(a: &[String], b: &[String]) -> Ordering {
    let numeric = |text: &String| is_number(text).then(|| text.parse::<u64>().unwrap_or(u64::MAX));
    let one = |a: &String, b: &String| match (numeric(a), numeric(b)) {
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
    let parsed = match tolerant {
        true => normalized(text).and_then(|text| Version::parse(&text)),
        false => Version::parse(text),
    };
    parsed.map_err(Fault::function)
}

/// Without a `v` and leading zeros, and with zeros for what is left out.
fn normalized(text: &str) -> FunctionResult<String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let parts = text.splitn(3, '.').map(|part| {
        let stripped = part.trim_start_matches('0');
        match stripped.starts_with(|c: char| c.is_ascii_digit()) {
            _ if part.len() < 2 => part.to_owned(),
            true => stripped.to_owned(),
            false => format!("0{stripped}"),
        }
    });
    let mut parts: Vec<String> = parts.collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err("short version cannot contain PreRelease/Build meta data".to_owned());
    }
    parts.resize(3, "0".to_owned());
    Ok(parts.join("."))
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
