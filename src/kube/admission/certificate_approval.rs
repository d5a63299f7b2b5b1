//! CertificateApproval: who approves or denies a request for a certificate needs the right to `approve` in the name of
//! its signer.

use keelson_api::certificates_k8s_io::v1::CertificateSigningRequest;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};

use crate::certificates::signers;

pub struct CertificateApproval;

impl Plugin for CertificateApproval {
    fn name(&self) -> &'static str {
        "CertificateApproval"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let approval = scope.subresource == "approval" && scope.operation == Operation::Update;
        Handles::VALIDATES.when(approval && signers::is_request(scope))
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        match attributes.old_typed::<CertificateSigningRequest>() {
            Some(old) => later(signers::check(attributes, "approve", &old.spec.signer_name)),
            None => now(Ok(())),
        }
    }
}
