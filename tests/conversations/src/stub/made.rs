//! Certificates of the stub, made for it: an authority and a certificate that it has signed.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use crate::fault::Fault;

/// Names that the stub is called by.
const NAMES: [&str; 3] = ["localhost", "stub.default.svc", "127.0.0.1"];
/// The files of an area's stub.
pub const AUTHORITY: &str = "stub-ca.crt";
pub const CERTIFICATE: &str = "stub.crt";
pub const KEY: &str = "stub.key";

/// Writes an authority's certificate, and a certificate of the stub with its key, into a folder.
pub fn make(folder: &Path) -> Result<(), Fault> {
    let authority_key = KeyPair::generate().map_err(Fault::unusable)?;
    let mut params = params(&[], "stub-ca")?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority = params.self_signed(&authority_key).map_err(Fault::unusable)?;
    let issuer = Issuer::new(params, authority_key);
    let key = KeyPair::generate().map_err(Fault::unusable)?;
    let certificate = self::params(&NAMES, "localhost")?;
    let certificate = certificate.signed_by(&key, &issuer).map_err(Fault::unusable)?;
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).map_err(Fault::unusable);
    write(AUTHORITY, authority.pem())?;
    write(CERTIFICATE, certificate.pem())?;
    write(KEY, key.serialize_pem())
}

fn params(names: &[&str], common_name: &str) -> Result<CertificateParams, Fault> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).map_err(Fault::unusable)?;
    params.distinguished_name.push(DnType::CommonName, common_name);
    Ok(params)
}
