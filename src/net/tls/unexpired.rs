//! Certificates of a bundle that still count.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::certificates;

/// Characters of a line of PEM text.
const LINE: usize = 64;

/// The bundle's certificates whose time has not ended, as PEM text; empty if there are none. `now`: seconds since 1970.
pub fn unexpired(pem: &str, now: i64) -> String {
    let ends_later = |der: &[u8]| {
        X509Certificate::from_der(der).is_ok_and(|(_, certificate)| certificate.validity().not_after.timestamp() >= now)
    };
    let certificates = certificates(pem).unwrap_or_default();
    certificates
        .iter()
        .filter(|certificate| ends_later(certificate))
        .map(|certificate| block(certificate))
        .collect()
}

fn block(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut out = String::from("-----BEGIN CERTIFICATE-----\n");
    for (n, character) in text.chars().enumerate() {
        if n > 0 && n % LINE == 0 {
            out.push('\n');
        }
        out.push(character);
    }
    out.push_str("\n-----END CERTIFICATE-----\n");
    out
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::tls::certs::{CertificateAuthority, Validity};

    #[test]
    fn what_has_ended_is_left_out() {
        let validity = |from: u64| Validity::years_from(UNIX_EPOCH + Duration::from_secs(from), 1);
        let pem = |name: &str, from: u64| {
            let authority = CertificateAuthority::create(name, validity(from)).unwrap();
            authority.pem().certificate_pem.replace("\r\n", "\n")
        };
        let (old, new) = (pem("old", 1_000_000_000), pem("new", 1_800_000_000));
        let bundle = format!("# two\n{old}\n{new}");
        assert_eq!(unexpired(&bundle, 1_800_000_010), new);
        assert_eq!(unexpired(&bundle, 1_000_000_010), format!("{old}{new}"));
        assert_eq!(unexpired("", 0), "");
    }
}
