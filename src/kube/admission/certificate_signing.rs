//! CertificateSigning: who issues a certificate, or says why there is none, needs the right to `sign` in the name of
//! the signer.

use keelson_api::certificates_k8s_io::v1::{CertificateSigningRequest, CertificateSigningRequestStatus};
use keelson_machinery::equality;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};

use crate::certificates::signers;

pub struct CertificateSigning;

impl Plugin for CertificateSigning {
    fn name(&self) -> &'static str {
        "CertificateSigning"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let status = scope.subresource == "status" && scope.operation == Operation::Update;
        Handles::VALIDATES.when(status && signers::is_request(scope))
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        let new = attributes.typed::<CertificateSigningRequest>();
        match (new, attributes.old_typed::<CertificateSigningRequest>()) {
            (Some(new), Some(old)) if !is_same(&new.status, &old.status) => {
                later(signers::check(attributes, "sign", &old.spec.signer_name))
            }
            _ => now(Ok(())),
        }
    }
}

fn is_same(new: &CertificateSigningRequestStatus, old: &CertificateSigningRequestStatus) -> bool {
    let mut conditions = new.conditions.iter().zip(&old.conditions);
    new.certificate == old.certificate
        && new.conditions.len() == old.conditions.len()
        && conditions.all(|(a, b)| equality::equal(a, b))
}
