//! Tests of PEM texts, and of the certificate that a name gets.

use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::tls::certs::{CertificateAuthority, Validity};

fn authority() -> (CertificateAuthority, Validity) {
    let validity = Validity::years_from(UNIX_EPOCH + Duration::from_secs(1_800_000_000), 1);
    (CertificateAuthority::create("test", validity).unwrap(), validity)
}

fn pair(name: &str) -> CertifiedKeyPem {
    let (ca, validity) = authority();
    ca.issue_server(name, &[], &[], validity).unwrap()
}

#[test]
fn a_name_gets_its_certificate_and_any_other_the_default() {
    let (default, exact, wildcard) = (pair("default"), pair("exact"), pair("wildcard"));
    let set = ServingCertificates::new(&default)
        .and_then(|set| set.with_named(&["*.example.com"], &wildcard))
        .and_then(|set| set.with_named(&["api.example.com", "*.example.com"], &exact))
        .unwrap();
    for (asked, expected) in [
        (Some("api.example.com"), &exact),
        (Some("API.Example.com"), &exact),
        (Some("other.example.com"), &wildcard),
        (Some("a.b.example.com"), &default),
        (Some("example.com"), &default),
        (None, &default),
    ] {
        let expected = certificates(&expected.certificate_pem).unwrap();
        assert_eq!(set.for_name(asked).cert, expected, "{asked:?}");
    }
}

#[test]
fn a_chain_is_served_whole() {
    let (ca, validity) = authority();
    let mut pair = ca.issue_server("leaf", &[], &[], validity).unwrap();
    pair.certificate_pem.push_str(&ca.pem().certificate_pem);
    assert_eq!(ServingCertificates::new(&pair).unwrap().default.cert.len(), 2);
}

#[test]
fn what_is_wrong_with_a_pair_is_said() {
    let (one, other) = (pair("one"), pair("other"));
    let message = |certificate: &str, key: &str| {
        let pair = CertifiedKeyPem {
            certificate_pem: certificate.into(),
            key_pem: key.into(),
        };
        ServingCertificates::new(&pair).unwrap_err().to_string()
    };
    assert_eq!(message("", &one.key_pem), "no certificate found in the PEM data");
    assert_eq!(
        message(&one.certificate_pem, ""),
        "no private key found in the PEM data"
    );
    assert!(message(&one.certificate_pem, &other.key_pem).starts_with("certificate and private key: "));
    assert!(message("-----BEGIN CERTIFICATE-----\n!!", &one.key_pem).starts_with("malformed PEM data: "));
}

/// `openssl ecparam -genkey` writes this form; a PKCS#8 key holds it inside.
#[test]
fn a_sec1_key_is_taken() {
    let pkcs8 = pair("leaf");
    let der = PrivateKeyDer::from_pem_slice(pkcs8.key_pem.as_bytes()).unwrap();
    let begin = der
        .secret_der()
        .windows(5)
        .position(|bytes| bytes == [0x30, 0x6b, 0x02, 0x01, 0x01])
        .unwrap();
    let sec1 = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &der.secret_der()[begin..]);
    let key_pem = format!("-----BEGIN EC PRIVATE KEY-----\n{sec1}\n-----END EC PRIVATE KEY-----\n");
    ServingCertificates::new(&CertifiedKeyPem { key_pem, ..pkcs8 }).unwrap();
}
