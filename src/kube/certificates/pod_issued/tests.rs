use std::time::{Duration, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keelson_net::tls::certs::{CertificateAuthority, Validity};

use super::*;
use crate::testing::read as from_json;

/// 2023-11-14T00:00:00Z.
const BEGIN: u64 = 1_699_920_000;
const DAY: u64 = 24 * 60 * 60;

fn certificate(authority: &CertificateAuthority, days: u64, name: &str) -> String {
    let validity = Validity {
        not_before: UNIX_EPOCH + Duration::from_secs(BEGIN),
        not_after: UNIX_EPOCH + Duration::from_secs(BEGIN + days * DAY),
    };
    let issued = authority.issue_server("pod", &[name], &[], validity).unwrap();
    issued.certificate_pem
}

fn key_of(pem: &str) -> String {
    let (_, block) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
    STANDARD.encode(read(&block).unwrap().tbs_certificate.subject_pki.raw)
}

/// What is wrong with a chain, given the key that was asked for, times and the clock.
fn found(chain: &str, key: &str, (end, refresh): (&str, &str), now: u64) -> String {
    let spec: Spec = from_json(&format!(r#"{{"pkixPublicKey":"{key}","maxExpirationSeconds":172800}}"#));
    let chain = serde_json::to_string(chain).unwrap();
    let status: Status = from_json(&format!(
        r#"{{"certificateChain":{chain},"notBefore":"2023-11-14T00:00:00Z","notAfter":"{end}","beginRefreshAt":"{refresh}"}}"#
    ));
    let now = Time::from_unix(i64::try_from(now).unwrap(), 0);
    validate(&status, &spec, now)
        .map(|fault| fault.to_string())
        .unwrap_or_default()
}

#[test]
fn what_was_issued_is_what_was_asked_for() {
    let validity = Validity::years_from(UNIX_EPOCH + Duration::from_secs(BEGIN), 1);
    let authority = CertificateAuthority::create("signer", validity).unwrap();
    let (end, refresh) = ("2023-11-15T00:00:00Z", "2023-11-14T12:00:00Z");
    let fine = certificate(&authority, 1, "pod");
    assert_eq!(found(&fine, &key_of(&fine), (end, refresh), BEGIN), "");
    let two = format!("{fine}{}", authority.pem().certificate_pem);
    assert_eq!(found(&two, &key_of(&fine), (end, refresh), BEGIN + 299), "");
    let (long, dots, dot) = (
        certificate(&authority, 3, "pod"),
        certificate(&authority, 1, "a..b"),
        certificate(&authority, 1, ".b"),
    );
    for (chain, asked, times, late, why) in [
        (
            "words",
            &fine,
            (end, refresh),
            0,
            "must contain at least one certificate",
        ),
        (
            &*fine.replace(LABEL, "PRIVATE KEY"),
            &fine,
            (end, refresh),
            0,
            "entirely of CERTIFICATE PEM",
        ),
        (
            &fine,
            &long,
            (end, refresh),
            0,
            "not issued to the requested public key",
        ),
        (&dots, &dots, (end, refresh), 0, "should not contain '..'"),
        (&dot, &dot, (end, refresh), 0, "should not start or end with '.'"),
        (&fine, &fine, (end, refresh), 300, "within 5 minutes"),
        (
            &fine,
            &fine,
            ("2023-11-15T00:00:01Z", refresh),
            0,
            "NotAfter time encoded",
        ),
        (&long, &long, ("2023-11-17T00:00:00Z", refresh), 0, "(172800)"),
        (&fine, &fine, (end, "2023-11-14T00:09:59Z"), 0, "after status.notBefore"),
        (&fine, &fine, (end, "2023-11-14T23:50:01Z"), 0, "before status.notAfter"),
    ] {
        let fault = found(chain, &key_of(asked), times, BEGIN + late);
        assert!(fault.contains(why), "{why}: {fault}");
    }
}
