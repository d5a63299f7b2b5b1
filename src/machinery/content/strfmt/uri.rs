//! Request URIs, as Go parses them: an absolute URI or an absolute path.

/// Whether the text is one. There is no fragment: `#` is a character as others are.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return false;
    };
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        // What follows a scheme without a slash is not looked at.
        return !scheme.is_empty();
    }
    match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            is_authority(authority) && escapes_are_whole(path)
        }
        None => escapes_are_whole(rest),
    }
}

/// The scheme, "" if there is none, and what follows it; `None` for a text that begins with a colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (at, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return None,
            b':' => return Some((text.get(..at)?, text.get(at + 1..)?)),
            _ => return Some(("", text)),
        }
    }
    Some(("", text))
}

fn is_authority(authority: &str) -> bool {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", authority),
    };
    is_user(user) && is_host(host)
}

fn is_user(user: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    user.chars().all(plain) && escapes_are_whole(user)
}

fn is_host(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.rsplit_once(']') else {
            return false;
        };
        let (address, zone) = address.split_once("%25").unwrap_or((address, ""));
        return is_optional_port(port)
            && address.parse::<std::net::Ipv6Addr>().is_ok()
            && host_escapes_are_good(zone, true);
    }
    let port = host.rfind(':').map_or("", |at| host.get(at..).unwrap_or_default());
    // A colon stands before a port alone.
    is_optional_port(port) && host.matches(':').count() <= 1 && host_escapes_are_good(host, false)
}

fn is_optional_port(port: &str) -> bool {
    match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_digit()),
        None => port.is_empty(),
    }
}

/// In a host escapes are for what is not ASCII, and few characters stand for themselves.
fn host_escapes_are_good(host: &str, zone: bool) -> bool {
    let bytes = host.as_bytes();
    let mut at = 0;
    while let Some(b) = bytes.get(at) {
        match b {
            b'%' => {
                let Some([a, b]) = bytes.get(at + 1..at + 3) else {
                    return false;
                };
                let hex = a.is_ascii_hexdigit() && b.is_ascii_hexdigit();
                if !hex || (!zone && *a < b'8') {
                    return false;
                }
                at += 3;
            }
            0x80.. => at += 1,
            b if b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(b) => at += 1,
            _ => return false,
        }
    }
    true
}

fn escapes_are_whole(text: &str) -> bool {
    let mut parts = text.split('%');
    parts.next();
    parts.all(|after| after.len() >= 2 && after.bytes().take(2).all(|b| b.is_ascii_hexdigit()))
}
