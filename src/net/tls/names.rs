//! The names that a certificate is for, read out of it: where nobody says for which names to serve it, it is served for
//! these.

use std::net::IpAddr;

use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The common name, if it is one that a host may have, then the DNS names and the addresses of the certificate.
pub(super) fn of_certificate(der: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else {
        return Vec::new();
    };
    let common = certificate.subject().iter_common_name().filter_map(|a| a.as_str().ok());
    let mut names: Vec<String> = common.filter(|name| is_pattern(name)).map(str::to_owned).collect();
    if let Ok(Some(alternatives)) = certificate.subject_alternative_name() {
        names.extend(alternatives.value.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => address(bytes).map(|ip| ip.to_string()),
            _ => None,
        }));
    }
    names
}

/// A host name, with or without `*.` in front of it, or an address.
fn is_pattern(name: &str) -> bool {
    let rest = name.strip_prefix("*.").unwrap_or(name);
    let label = |label: &str| {
        let sound = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !label.is_empty() && label.chars().all(sound) && !label.starts_with('-') && !label.ends_with('-')
    };
    name.parse::<IpAddr>().is_ok() || rest.split('.').all(label)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::tls::certificates;
    use crate::tls::certs::{CertificateAuthority, Validity};

    #[test]
    fn names_are_the_common_one_and_the_alternatives() {
        let validity = Validity::years_from(UNIX_EPOCH + Duration::from_secs(1_800_000_000), 1);
        let authority = CertificateAuthority::create("test", validity).unwrap();
        for (common, expected) in [
            (
                "api.example.com",
                &["api.example.com", "*.example.org", "127.0.0.1", "::1"][..],
            ),
            ("not a host name", &["*.example.org", "127.0.0.1", "::1"]),
        ] {
            let addresses = ["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()];
            let pair = authority
                .issue_server(common, &["*.example.org"], &addresses, validity)
                .unwrap();
            let chain = certificates(&pair.certificate_pem).unwrap();
            assert_eq!(of_certificate(&chain[0]), expected);
        }
    }
}
