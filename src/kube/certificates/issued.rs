//! The certificate of a request that was signed: PEM of certificates and nothing else, since clients use what they
//! find.

use keelson_machinery::field::ErrorList;
use keelson_machinery::field::text::quote;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::faults;

const LABEL: &str = "CERTIFICATE";
const BEGIN: &[u8] = b"-----BEGIN ";

/// Faults of a certificate that is set, and that stays then.
pub fn validate(new: &[u8], old: &[u8]) -> ErrorList {
    if new == old {
        return ErrorList::default();
    }
    faults::of_status(|f| {
        let mut f = f.at("certificate");
        // What was stored before this was looked at may be mended.
        if let Some(why) = fault(new).filter(|_| fault(old).is_none()) {
            f.invalid("<certificate data>", why);
        }
        f.forbidden_if(!old.is_empty(), "updates may not modify existing certificate content");
    })
}

fn fault(pem: &[u8]) -> Option<String> {
    if pem.is_empty() {
        return None;
    }
    if has_headers(pem) {
        return Some("no PEM block headers are permitted".to_owned());
    }
    let mut blocks = Pem::iter_from_buffer(pem).filter_map(Result::ok).peekable();
    if blocks.peek().is_none() {
        return Some("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    blocks.find_map(|block| {
        if block.label != LABEL {
            let found = quote(&block.label);
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {found}"));
        }
        if block.contents.is_empty() {
            return Some("found CERTIFICATE PEM block containing 0 certificates".to_owned());
        }
        let read = X509Certificate::from_der(&block.contents);
        let whole = read.is_ok_and(|(rest, _)| rest.is_empty());
        (!whole).then(|| "x509: malformed certificate".to_owned())
    })
}

/// Whether a line with a colon follows the beginning of a block.
fn has_headers(pem: &[u8]) -> bool {
    let mut lines = pem.split(|b| *b == b'\n');
    while let Some(line) = lines.next() {
        let next = lines.clone().next();
        if line.starts_with(BEGIN) && next.is_some_and(|line| line.contains(&b':')) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use base64::Engine;

    use super::*;
    use crate::testing::lines;

    /// A certificate that signs itself.
    const CERTIFICATE: &str = "MIIBBDCBt6ADAgECAgEAMAUGAytlcDAQMQ4wDAYDVQQDEwVyb290MTAiGA8wMDAxMDEwMTAwMDAwMFoYDzAwMDEw\
        MTAxMDAwMDAwWjAQMQ4wDAYDVQQDEwVyb290MTAqMAUGAytlcAMhAF2MoFeGa97gK2NGT1h6p1/a1GlMXAXbcjI/OShyIobPozIwMDAPBgNVHRMBAf8E\
        BTADAQH/MB0GA1UdDgQWBBTWDdK2CNQiHqRjPaAWYPPtIykQgjAFBgMrZXADQQCtom9WGl7m2SAa4tXM9Soo/mbInBsRhn187BMoqTAHInHchKup5/3y\
        l1tYJSZZsEXnXrCvw2qLCBNif6+2YYgE";

    fn block(label: &str, headers: &str, content: &str) -> String {
        let lines: Vec<&str> = (0..content.len())
            .step_by(64)
            .map(|i| &content[i..content.len().min(i + 64)])
            .collect();
        format!(
            "-----BEGIN {label}-----\n{headers}{}\n-----END {label}-----\n",
            lines.join("\n")
        )
    }

    #[test]
    fn a_certificate_is_one() {
        let content: String = CERTIFICATE.split_whitespace().collect();
        let fine = block(LABEL, "", &content);
        let doubled = base64::engine::general_purpose::STANDARD;
        let twice = doubled
            .decode(&content)
            .map(|der| doubled.encode([der.clone(), der].concat()))
            .unwrap();
        assert_eq!(lines(&validate(fine.as_bytes(), b"")), "");
        assert_eq!(lines(&validate(format!("words\n{fine}{fine}").as_bytes(), b"")), "");
        for (text, why) in [
            ("words".to_owned(), "must contain at least one CERTIFICATE PEM block"),
            (
                fine.replace(LABEL, "PRIVATE KEY"),
                "only CERTIFICATE PEM blocks are allowed, found \"PRIVATE KEY\"",
            ),
            (block(LABEL, "a: b\n\n", &content), "no PEM block headers are permitted"),
            (block(LABEL, "", "YWJj"), "x509: malformed certificate"),
            (block(LABEL, "", &twice), "x509: malformed certificate"),
        ] {
            let expected = format!("status.certificate: Invalid value: \"<certificate data>\": {why}");
            assert_eq!(lines(&validate(text.as_bytes(), b"")), expected, "{text}");
        }
    }

    #[test]
    fn a_certificate_stays() {
        let content: String = CERTIFICATE.split_whitespace().collect();
        let fine = block(LABEL, "", &content);
        let two = format!("{fine}{fine}");
        let kept = "status.certificate: Forbidden: updates may not modify existing certificate content";
        assert_eq!(lines(&validate(fine.as_bytes(), fine.as_bytes())), "");
        assert_eq!(lines(&validate(two.as_bytes(), fine.as_bytes())), kept);
        assert_eq!(lines(&validate(b"", fine.as_bytes())), kept);
        assert_eq!(lines(&validate(b"other", b"no pem")), kept);
    }
}
