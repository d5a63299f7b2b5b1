//! Targets of calls: a server, and a path of it.

use http::Uri;
use http::uri::InvalidUri;

/// Where a call goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub origin: Origin,
    /// Path and query, with the slash.
    pub path: String,
    /// The whole address, as errors show it.
    pub text: String,
}

/// A server. Connections to one are not used for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub tls: bool,
    /// A name or address, without brackets.
    pub host: String,
    pub port: u16,
    /// The `Host` header.
    pub authority: String,
}

/// An address that no call goes to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("parse {url:?}: {reason}")]
    Syntax { url: String, reason: String },
    #[error("unsupported protocol scheme {0:?}")]
    Scheme(String),
    #[error("http: no Host in request URL")]
    NoHost,
    #[error("the address holds a user, which belongs into the credentials")]
    HasUser,
}

impl Target {
    /// Reads `https://host[:port]/path?query` or the same with `http`.
    pub fn parse(url: &str) -> Result<Target, TargetError> {
        let syntax = |error: InvalidUri| TargetError::Syntax {
            url: url.to_owned(),
            reason: error.to_string(),
        };
        let uri: Uri = url.parse().map_err(syntax)?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            other => return Err(TargetError::Scheme(other.unwrap_or_default().to_owned())),
        };
        let host = uri.host().unwrap_or_default();
        if host.is_empty() {
            return Err(TargetError::NoHost);
        }
        let authority = uri.authority().map(|a| a.as_str()).unwrap_or_default();
        if authority.contains('@') {
            return Err(TargetError::HasUser);
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Target {
            origin: Origin {
                tls,
                host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
                port: uri.port_u16().unwrap_or(if tls { 443 } else { 80 }),
                authority: authority.to_owned(),
            },
            path: match path.starts_with('/') {
                true => path.to_owned(),
                false => format!("/{path}"),
            },
            text: url.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (url, want) in [
            ("https://a.b/c?d=e", Ok((true, "a.b", 443, "/c?d=e"))),
            ("http://127.0.0.1:8080", Ok((false, "127.0.0.1", 8080, "/"))),
            ("https://[::1]:6443/", Ok((true, "::1", 6443, "/"))),
            ("https://a?x", Ok((true, "a", 443, "/?x"))),
            ("ftp://a/", Err("unsupported protocol scheme \"ftp\"")),
            ("a", Err("unsupported protocol scheme \"\"")),
            (
                "https://u:p@a/",
                Err("the address holds a user, which belongs into the credentials"),
            ),
        ] {
            let got = Target::parse(url);
            let got = got
                .as_ref()
                .map(|t| (t.origin.tls, t.origin.host.as_str(), t.origin.port, t.path.as_str()));
            assert_eq!(got.map_err(ToString::to_string), want.map_err(str::to_owned), "{url}");
        }
        assert!(Target::parse("https://a b/").is_err());
    }
}
