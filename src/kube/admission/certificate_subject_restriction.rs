//! CertificateSubjectRestriction: nobody gets a client certificate for the group that may do everything.

use keelson_api::certificates_k8s_io::v1::CertificateSigningRequest;
use keelson_machinery::status::StatusError;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;

use crate::certificates::signers;

/// Signs for clients of this server, whatever their groups.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// The group that may do everything.
const MASTERS: &str = "system:masters";

pub struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let creation = scope.subresource.is_empty() && scope.operation == Operation::Create;
        Handles::VALIDATES.when(creation && signers::is_request(scope))
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        let request = attributes.typed::<CertificateSigningRequest>();
        now(request.map_or(Ok(()), check))
    }
}

fn check(request: &CertificateSigningRequest) -> Result<(), StatusError> {
    if request.spec.signer_name != CLIENT_SIGNER || !organizations(&request.spec.request).iter().any(|o| o == MASTERS) {
        return Ok(());
    }
    let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
    Err(signers::refusal(&request.metadata.name, why))
}

fn organizations(pem: &[u8]) -> Vec<String> {
    let Some(Ok(block)) = Pem::iter_from_buffer(pem).next() else {
        return Vec::new();
    };
    let Ok((_, request)) = X509CertificationRequest::from_der(&block.contents) else {
        return Vec::new();
    };
    let subject = &request.certification_request_info.subject;
    let names = subject.iter_organization().filter_map(|name| name.as_str().ok());
    names.map(str::to_owned).collect()
}
