//! URLs from text, as Go's `net/url` reads them, in its words.

use super::super::addresses;
use crate::cel::error::FunctionResult;
use crate::field::text::quote;

/// The parts of a URL.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cel::library) struct Url {
    /// In small letters.
    pub scheme: String,
    /// What stands before `@` in the authority.
    pub user: String,
    /// With its port, without escapes.
    pub host: String,
    /// As it is written, escaped where it has to be.
    pub path: String,
    /// As it is written.
    pub query: String,
    /// What stands behind `#`, as it is written.
    pub fragment: String,
}

/// Where a part stands that escapes are taken out of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Host,
    Zone,
    /// Everything else, where any byte may be escaped.
    Other,
}

/// An absolute URL, or a path alone, with or without a fragment.
pub(in crate::cel::library) fn url(text: &str) -> FunctionResult<Url> {
    request(text)?;
    let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
    let read = parse(before, false).map_err(|why| format!("parse {}: {why}", quote(before)))?;
    unescaped(fragment, Place::Other).map_err(|why| format!("parse {}: {why}", quote(text)))?;
    Ok(Url {
        fragment: fragment.to_owned(),
        ..read
    })
}

/// Whether a text is what requests may ask for: an absolute URL, or a path, without a fragment.
pub(in crate::cel::library) fn request(text: &str) -> FunctionResult<()> {
    match parse(text, true) {
        Ok(_) => Ok(()),
        Err(why) => Err(format!("parse {}: {why}", quote(text))),
    }
}

fn parse(text: &str, for_request: bool) -> FunctionResult<Url> {
    if text.bytes().any(|b| b.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && for_request {
        return Err("empty url".to_owned());
    }
    let (scheme, rest) = match text {
        "*" => ("", text),
        text => split_scheme(text)?,
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url {
        scheme: scheme.to_ascii_lowercase(),
        user: String::new(),
        host: String::new(),
        path: String::new(),
        query: query.to_owned(),
        fragment: String::new(),
    };
    if !rest.starts_with('/') && text != "*" {
        if !scheme.is_empty() {
            return Ok(url);
        }
        let first = rest.split('/').next().unwrap_or_default();
        match for_request {
            true => return Err("invalid URI for request".to_owned()),
            false if first.contains(':') => return Err("first path segment in URL cannot contain colon".to_owned()),
            false => {}
        }
    }
    let may_have_host = !scheme.is_empty() || !for_request && !rest.starts_with("///");
    let path = match rest.strip_prefix("//").filter(|_| may_have_host) {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
            url.host = read_host(&url.scheme, host)?;
            url.user = read_user(user)?;
            path
        }
        None => rest,
    };
    url.path = escaped(path, &unescaped(path, Place::Other)?);
    Ok(url)
}

/// The scheme, if there is one, and what stands behind its colon.
fn split_scheme(text: &str) -> FunctionResult<(&str, &str)> {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    let end = text.bytes().position(|b| !is_part(b)).unwrap_or(text.len());
    match text.split_at(end) {
        ("", rest) if rest.starts_with(':') => Err("missing protocol scheme".to_owned()),
        (scheme, rest) if rest.starts_with(':') && scheme.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            Ok((scheme, rest.get(1..).unwrap_or_default()))
        }
        _ => Ok(("", text)),
    }
}

fn read_user(text: &str) -> FunctionResult<String> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
    if !text.bytes().all(fits) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    for part in text.splitn(2, ':') {
        unescaped(part, Place::Other)?;
    }
    Ok(text.to_owned())
}

fn read_host(scheme: &str, text: &str) -> FunctionResult<String> {
    let check_port = |port: &str| {
        let fits = port
            .strip_prefix(':')
            .is_none_or(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        match fits && (port.is_empty() || port.starts_with(':')) {
            true => Ok(()),
            false => Err(format!("invalid port {} after host", quote(port))),
        }
    };
    match text.rfind('[') {
        None => {}
        Some(0) => {
            let end = text.rfind(']').ok_or("missing ']' in host")?;
            let port = text.get(end + 1..).unwrap_or_default();
            check_port(port)?;
            return read_literal(text.get(1..end).unwrap_or_default()).map(|host| format!("[{host}]{port}"));
        }
        Some(_) => return Err("invalid IP-literal".to_owned()),
    }
    // Hosts of other schemes may be several, each with its port.
    let colon = match scheme {
        "http" | "https" => text.find(':'),
        _ => text.rfind(':'),
    };
    check_port(colon.and_then(|at| text.get(at..)).unwrap_or_default())?;
    into_text(unescaped(text, Place::Host)?)
}

/// An address in brackets.
fn read_literal(text: &str) -> FunctionResult<String> {
    let (address, zone) = text.split_at(text.find("%25").unwrap_or(text.len()));
    let mut host = unescaped(address, Place::Host)?;
    host.extend(unescaped(zone, Place::Zone)?);
    let host = into_text(host)?;
    match addresses::has_six_fields(&host).map_err(|why| format!("invalid host: {why}"))? {
        true => Ok(host),
        false => Err("invalid IP-literal".to_owned()),
    }
}

fn into_text(bytes: Vec<u8>) -> FunctionResult<String> {
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Takes escapes out.
fn unescaped(text: &str, place: Place) -> FunctionResult<Vec<u8>> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        if b != b'%' {
            if place != Place::Other && b.is_ascii() && !may_stand_in_host(b) {
                let shown = quote(char::from(b).encode_utf8(&mut [0; 4]));
                return Err(format!("invalid character {shown} in host name"));
            }
            out.push(b);
            at += 1;
            continue;
        }
        let escape = &bytes[at..bytes.len().min(at + 3)];
        let value = escaped_byte(escape).filter(|value| match place {
            Place::Other => true,
            Place::Host => !value.is_ascii() || escape == b"%25",
            Place::Zone => escape == b"%25" || *value == b' ' || may_stand_in_host(*value),
        });
        let Some(value) = value else {
            return Err(format!(
                "invalid URL escape {}",
                quote(&String::from_utf8_lossy(escape))
            ));
        };
        out.push(value);
        at += 3;
    }
    Ok(out)
}

/// The byte that `%xx` stands for.
fn escaped_byte(escape: &[u8]) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|n| u8::try_from(n).ok());
    match escape {
        [b'%', high, low] => Some(digit(*high)? * 16 + digit(*low)?),
        _ => None,
    }
}

fn may_stand_in_host(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!$&'()*+,;=:[]<>\"-_.~".contains(&b)
}

/// A path as it is written, if that can stand in a URL; otherwise escaped anew.
fn escaped(path: &str, bytes: &[u8]) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&b);
    if path.bytes().all(|b| plain(b) || b"!'()*[]%".contains(&b)) {
        return path.to_owned();
    }
    let mut out = String::with_capacity(path.len());
    for &b in bytes {
        match plain(b) {
            true => out.push(char::from(b)),
            false => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

/// A part of a query without escapes, where `+` is a space; `None`: an escape is wrong.
pub(in crate::cel::library) fn query_part(text: &str) -> Option<String> {
    let bytes = unescaped(&text.replace('+', " "), Place::Other).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
