//! The PKCS#10 request of a CertificateSigningRequest: a request that proves the key is its own, and what the key is
//! for.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keelson_api::certificates_k8s_io::v1::CertificateSigningRequestSpec;
use keelson_machinery::field::BadValue;
use keelson_machinery::validation::names;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;

use crate::faults::Faults;

const LABEL: &str = "CERTIFICATE REQUEST";
/// Name of those that no signer was asked by, which only an old version of the API takes.
const LEGACY: &str = "kubernetes.io/legacy-unknown";
const SECONDS_MIN: i32 = 600;
/// Longest parts of a signer's name, in bytes: its domain, and a label and a subdomain after the slash.
const DOMAIN_MAX: usize = 253;
const NAME_MAX: usize = DOMAIN_MAX + 1 + DOMAIN_MAX + 1 + 63;

/// Checks what is asked for.
pub fn check(f: &mut Faults<'_>, spec: &CertificateSigningRequestSpec) {
    if let Some(why) = request_fault(&spec.request) {
        let shown = match spec.request.is_empty() {
            true => BadValue::null(),
            false => STANDARD.encode(&spec.request).into(),
        };
        f.at("request").invalid(shown, why);
    }
    f.at("usages").required_if(spec.usages.is_empty(), "");
    f.unique("usages", &spec.usages, |usage| usage);
    match spec.signer_name.as_str() {
        LEGACY => f
            .at("signerName")
            .invalid(LEGACY, "the legacy signerName is not allowed via this API version"),
        name => signer_name(&mut f.at("signerName"), name),
    }
    if let Some(seconds) = spec.expiration_seconds.filter(|seconds| *seconds < SECONDS_MIN) {
        let text = "may not specify a duration less than 600 seconds (10 minutes)";
        f.at("expirationSeconds").invalid(seconds, text);
    }
}

fn request_fault(pem: &[u8]) -> Option<&'static str> {
    let first = Pem::iter_from_buffer(pem).find_map(Result::ok);
    let Some(block) = first.filter(|block| block.label == LABEL) else {
        return Some("PEM block type must be CERTIFICATE REQUEST");
    };
    match X509CertificationRequest::from_der(&block.contents) {
        Ok(([], request)) => request
            .verify_signature()
            .is_err()
            .then_some("x509: signature verification failure"),
        _ => Some("asn1: structure error: malformed certificate request"),
    }
}

/// `example.com/name`: a domain of at least two labels, and a name below it.
pub fn signer_name(f: &mut Faults<'_>, name: &str) {
    if !f.filled(name) {
        return;
    }
    let Some((domain, path)) = name.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let text = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return f.invalid(name, text);
    };
    f.max_bytes(domain, DOMAIN_MAX);
    labels(f, domain, names::dns_label);
    if !domain.contains('.') {
        f.invalid(
            domain,
            "should be a domain with at least two segments separated by dots",
        );
    }
    labels(f, path, names::dns_subdomain);
    f.max_bytes(name, NAME_MAX);
}

/// Tells of the first label that is none.
fn labels(f: &mut Faults<'_>, all: &str, check: fn(&str) -> Vec<String>) {
    if let Some(label) = all.split('.').find(|label| !check(label).is_empty()) {
        for text in check(label) {
            f.invalid(all, format!("validating label {label:?}: {text}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::of_object;
    use crate::testing::{lines, read};

    /// A request of a key that signed it.
    const REQUEST: &str = "MIGLMD8CAQAwDDEKMAgGA1UEAwwBYTAqMAUGAytlcAMhAPX9OvT5A49KrikYX81WdVm3AaR0JN+ISdE3xGZB9VKgoA\
        AwBQYDK2VwA0EAPbu3IbGa4lvzrehoREvQkY8/y1zMvIAhyEiI9Hnga5ftIWzO3Bga5Kr6vse6bh163bvquaT01Uen\
        utYhQnfOCQ==";

    fn pem(der: &[u8]) -> String {
        let body = STANDARD.encode(der);
        STANDARD.encode(format!("-----BEGIN {LABEL}-----\n{body}\n-----END {LABEL}-----\n"))
    }

    fn fields(spec: &str) -> String {
        let spec: CertificateSigningRequestSpec = read(spec);
        let found = lines(&of_object(|f| check(f, &spec)));
        let fields: Vec<&str> = found.lines().filter_map(|line| line.split(": ").next()).collect();
        fields.join(" ")
    }

    #[test]
    fn a_request_says_what_for_and_of_whom() {
        let mut der = STANDARD.decode(REQUEST).unwrap();
        let good = pem(&der);
        *der.last_mut().unwrap() ^= 1;
        let bad = pem(&der);
        for (request, rest, expected) in [
            (&good, r#""usages":["any"],"signerName":"a.b/c""#, ""),
            (&bad, r#""usages":["any"],"signerName":"a.b/c""#, "request"),
            (
                &"YQ==".to_owned(),
                r#""usages":["any","any"],"signerName":"a.b/c","expirationSeconds":599"#,
                "request usages[1] expirationSeconds",
            ),
            (
                &good,
                r#""signerName":"kubernetes.io/legacy-unknown""#,
                "usages signerName",
            ),
        ] {
            assert_eq!(
                fields(&format!(r#"{{"request":"{request}",{rest}}}"#)),
                expected,
                "{rest}"
            );
        }
    }

    #[test]
    fn names_of_signers_have_a_domain() {
        for (name, count) in [
            ("a.b/c", 0),
            ("a.b/c.d", 0),
            ("", 1),
            ("a", 1),
            ("a.b/c/d", 1),
            ("a/b", 1),
            ("A.b/c", 1),
            ("a.b/", 1),
        ] {
            assert_eq!(of_object(|f| signer_name(f, name)).len(), count, "{name}");
        }
    }
}
