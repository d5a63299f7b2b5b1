//! Webhooks: where they are, and by whom they are certified.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keelson_api::apiextensions_k8s_io::v1::ServiceReference;
use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path};
use keelson_machinery::validation::webhook;
pub use keelson_machinery::validation::webhook::url;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

/// Faults of the service of a webhook.
pub fn service(service: &ServiceReference, path: &Path) -> ErrorList {
    let names = (service.namespace.as_str(), service.name.as_str());
    webhook::service(names, service.port.unwrap_or_default(), service.path.as_deref(), path)
}

/// Faults of PEM text that should have certificates.
pub fn ca_bundle(bundle: &[u8], path: &Path) -> ErrorList {
    match parse_certificates(bundle) {
        Ok(()) => ErrorList::default(),
        Err(why) => {
            let shown = BadValue::json(format!("\"{}\"", STANDARD.encode(bundle)));
            FieldError::invalid(path, shown, format!("unable to load root certificates: {why}")).into()
        }
    }
}

/// Reads all certificates of PEM text; what else stands there is passed over.
fn parse_certificates(text: &[u8]) -> Result<(), &'static str> {
    const NONE: &str = "data does not contain any valid RSA or ECDSA certificates";
    let mut any = false;
    for certificate in CertificateDer::pem_slice_iter(text) {
        // What is no whole block ends the text.
        let Ok(certificate) = certificate else { break };
        x509_parser::parse_x509_certificate(&certificate).map_err(|_| "x509: malformed certificate")?;
        any = true;
    }
    if any { Ok(()) } else { Err(NONE) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::tests::lines;

    #[test]
    fn bundles_have_a_certificate() {
        let found = lines(&ca_bundle(b"not a cert", &Path::new("caBundle")));
        assert_eq!(
            found,
            "caBundle: Invalid value: \"bm90IGEgY2VydA==\": unable to load root certificates: data does not contain any \
             valid RSA or ECDSA certificates"
        );
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(lines(&ca_bundle(broken, &Path::new("a"))).ends_with("x509: malformed certificate"));
    }
}
