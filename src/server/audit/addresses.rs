//! Source addresses: what proxies on the way wrote down, then the connection's own other end. Only the last of these is
//! certain.

use std::net::{IpAddr, SocketAddr};

use actix_web::http::header::{HeaderMap, HeaderName};

use crate::negotiate::header_text;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Addresses of one event; of a longer chain of proxies the last ones are kept.
const MAX_ADDRESSES: usize = 64;

/// The addresses, nearest last. What is no address is left out.
pub fn addresses(headers: &HeaderMap, peer: Option<SocketAddr>) -> Vec<IpAddr> {
    let mut found = Vec::new();
    if let Some(forwarded) = header_text(headers, &FORWARDED_FOR) {
        found.extend(forwarded.split(',').filter_map(address));
    }
    if let Some(real) = header_text(headers, &REAL_IP).and_then(address)
        && !found.contains(&real)
    {
        found.push(real);
    }
    if let Some(peer) = peer.map(|peer| peer.ip().to_canonical())
        && found.last() != Some(&peer)
    {
        found.push(peer);
    }
    found.drain(..found.len().saturating_sub(MAX_ADDRESSES));
    found
}

fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let parsed = text.parse::<IpAddr>().ok().or_else(|| with_zeros(text));
    parsed.map(|ip| ip.to_canonical())
}

/// Numbers with zeros before them are decimal, as they are to whoever wrote them.
fn with_zeros(text: &str) -> Option<IpAddr> {
    let mut bytes = [0; 4];
    let mut parts = text.split('.');
    for byte in &mut bytes {
        let part = parts.next()?;
        let digits = part.bytes().all(|b| b.is_ascii_digit());
        *byte = part.parse().ok().filter(|_| digits)?;
    }
    parts.next().is_none().then(|| IpAddr::from(bytes))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn addresses_are_those_that_kube_apiserver_finds() {
        for (forwarded, real, want) in [
            ("", "", "127.0.0.1"),
            ("1.2.3.4, 5.6.7.8,bogus", "9.9.9.9", "1.2.3.4 5.6.7.8 9.9.9.9 127.0.0.1"),
            ("", "9.9.9.9", "9.9.9.9 127.0.0.1"),
            ("", "127.0.0.1", "127.0.0.1"),
            ("127.0.0.1", "", "127.0.0.1"),
            ("bogus", "alsobogus", "127.0.0.1"),
            ("2001:DB8::1,::ffff:1.2.3.4", "", "2001:db8::1 1.2.3.4 127.0.0.1"),
            ("9.9.9.9,1.1.1.1", "9.9.9.9", "9.9.9.9 1.1.1.1 127.0.0.1"),
            ("127.0.0.1, 1.1.1.1", "", "127.0.0.1 1.1.1.1 127.0.0.1"),
            ("1.1.1.1,1.1.1.1", "2.2.2.2, 3.3.3.3", "1.1.1.1 1.1.1.1 127.0.0.1"),
            ("[2001:db8::1],4.3.2.1:80, 01.2.3.4, +1.2.3.4", "", "1.2.3.4 127.0.0.1"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(FORWARDED_FOR, HeaderValue::from_static(forwarded));
            headers.insert(REAL_IP, HeaderValue::from_static(real));
            let found = addresses(&headers, Some(([127, 0, 0, 1], 5000).into()));
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found.join(" "), want, "{forwarded} {real}");
        }
    }

    #[test]
    fn long_chains_are_cut_at_the_far_end() {
        let mut headers = HeaderMap::new();
        let many: Vec<String> = (0..200).map(|n| format!("10.0.0.{n}")).collect();
        headers.insert(FORWARDED_FOR, many.join(",").parse().unwrap());
        let found = addresses(&headers, Some(([127, 0, 0, 1], 5000).into()));
        assert_eq!(found.len(), MAX_ADDRESSES);
        assert_eq!(found.last().unwrap().to_string(), "127.0.0.1");
    }
}
