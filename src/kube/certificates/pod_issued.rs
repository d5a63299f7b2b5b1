//! The certificate that a pod is given: of the key that was asked for, for as long as was asked for, with the times
//! that it says itself.

use keelson_api::certificates_k8s_io::v1beta1::{
    PodCertificateRequestSpec as Spec, PodCertificateRequestStatus as Status,
};
use keelson_machinery::field::{BadValue, FieldError, Path};
use keelson_machinery::time::Time;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, GeneralName, SubjectPublicKeyInfo, X509Certificate};

const LABEL: &str = "CERTIFICATE";
const MAX_CHAIN: usize = 100 * 1024;
const MINUTE: i64 = 60;
/// Seconds.
const SHORTEST: i64 = 60 * MINUTE;
const CLOCKS_DIFFER: i64 = 5 * MINUTE;
const MARGIN: i64 = 10 * MINUTE;

/// What is wrong with what was issued: the first fault, as kube-apiserver says one.
pub fn validate(new: &Status, asked: &Spec, now: Time) -> Option<FieldError> {
    chain(new, asked).and_then(|leaf| times(new, asked, leaf, now)).err()
}

/// From when to when the first certificate is valid, in seconds of Unix time.
type Valid = (i64, i64);

fn chain(new: &Status, asked: &Spec) -> Result<Valid, FieldError> {
    let path = at("certificateChain");
    let text = &new.certificate_chain;
    if text.len() > MAX_CHAIN {
        return Err(FieldError::too_long(&path, MAX_CHAIN));
    }
    let wrong = |why: &str| FieldError::invalid(&path, text, why);
    let blocks: Vec<Pem> = Pem::iter_from_buffer(text.as_bytes()).filter_map(Result::ok).collect();
    let Some((leaf, rest)) = blocks.split_first() else {
        return Err(wrong("issued certificate chain must contain at least one certificate"));
    };
    if blocks.iter().any(|block| block.label != LABEL) {
        return Err(wrong(
            "issued certificate chain must consist entirely of CERTIFICATE PEM blocks",
        ));
    }
    let Some(leaf) = read(leaf) else {
        return Err(wrong("leaf certificate does not parse as valid X.509"));
    };
    for name in names(&leaf) {
        name_fault(&name).map_or(Ok(()), |why| Err(FieldError::invalid(&path, name, why)))?;
    }
    if key_asked_for(asked).is_none_or(|key| key != leaf.tbs_certificate.subject_pki.raw) {
        return Err(wrong("leaf certificate was not issued to the requested public key"));
    }
    if rest.iter().any(|block| read(block).is_none()) {
        return Err(wrong("intermediate certificate does not parse as valid X.509"));
    }
    let valid = leaf.validity();
    Ok((valid.not_before.timestamp(), valid.not_after.timestamp()))
}

fn read(block: &Pem) -> Option<X509Certificate<'_>> {
    let (rest, certificate) = X509Certificate::from_der(&block.contents).ok()?;
    rest.is_empty().then_some(certificate)
}

fn names(leaf: &X509Certificate<'_>) -> Vec<String> {
    let names = leaf.subject_alternative_name().ok().flatten();
    let names = names.iter().flat_map(|extension| &extension.value.general_names);
    let of_dns = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    };
    names.filter_map(of_dns).collect()
}

fn name_fault(name: &str) -> Option<&'static str> {
    match name {
        "" => Some("leaf certificate should not contain empty DNSName"),
        _ if name.contains("..") => Some("leaf certificate's DNSName should not contain '..'"),
        _ if name.starts_with('.') || name.ends_with('.') => {
            Some("leaf certificate's DNSName should not start or end with '.'")
        }
        _ => None,
    }
}

/// The key in its encoded form, from either of the fields that may say it.
fn key_asked_for(asked: &Spec) -> Option<&[u8]> {
    if asked.pkix_public_key.is_empty() {
        let (_, request) = X509CertificationRequest::from_der(&asked.stub_pkcs10_request).ok()?;
        return Some(request.certification_request_info.subject_pki.raw);
    }
    let (rest, key) = SubjectPublicKeyInfo::from_der(&asked.pkix_public_key).ok()?;
    rest.is_empty().then_some(key.raw)
}

fn times(new: &Status, asked: &Spec, leaf: Valid, now: Time) -> Result<(), FieldError> {
    let seconds = |time: &Option<Time>| time.filter(|time| !time.is_zero()).map(|time| time.unix_seconds());
    let required = |name: &'static str, why: &str| FieldError::required(&at(name), why);
    let consistent = "must be present and consistent with the issued certificate";
    let begin = seconds(&new.not_before).ok_or_else(|| required("notBefore", consistent))?;
    let end = seconds(&new.not_after).ok_or_else(|| required("notAfter", consistent))?;
    let range = "must be present and in the range [notbefore+10min, notafter-10min]";
    let refresh = seconds(&new.begin_refresh_at).ok_or_else(|| required("beginRefreshAt", range))?;
    let wrong = |name: &'static str, why: &str| Err(FieldError::invalid(&at(name), BadValue::Omitted, why));
    let lifetime = leaf.1 - leaf.0;
    let longest = asked.max_expiration_seconds.unwrap_or_default();
    match () {
        () if begin != leaf.0 => wrong(
            "notBefore",
            "must be set to the NotBefore time encoded in the leaf certificate",
        ),
        () if (begin - now.unix_seconds()).abs() >= CLOCKS_DIFFER => wrong(
            "notBefore",
            "must be set to within 5 minutes of kube-apiserver's current time",
        ),
        () if end != leaf.1 => wrong(
            "notAfter",
            "must be set to the NotAfter time encoded in the leaf certificate",
        ),
        () if lifetime < SHORTEST => wrong("certificateChain", "leaf certificate lifetime must be >= 1 hour"),
        () if lifetime > i64::from(longest) => wrong(
            "certificateChain",
            &format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({longest})"),
        ),
        () if refresh < begin + MARGIN => wrong("beginRefreshAt", "must be at least 10 minutes after status.notBefore"),
        () if refresh > end - MARGIN => wrong("beginRefreshAt", "must be at least 10 minutes before status.notAfter"),
        () => Ok(()),
    }
}

fn at(name: &'static str) -> Path {
    Path::new("status").child(name)
}

#[cfg(test)]
mod tests;
