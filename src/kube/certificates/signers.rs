//! Signers: who approves, signs or vouches for anything in the name of one needs a right to that name, whatever may be
//! done to the objects.

use keelson_machinery::field::text::quote;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_server::registry::write::Part;
use keelson_server::registry::{Answer, Confirming, Context, Strategy};
use keelson_server::request_info::RequestInfo;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;

use crate::api::certificates_k8s_io::v1::{CertificateSigningRequest, CertificateSigningRequestStatus};
use crate::api::certificates_k8s_io::v1beta1::ClusterTrustBundle;
use crate::kube::rbac::is_only_collected;
use crate::kube::typed::typed;

const GROUP: &str = "certificates.k8s.io";
/// Signs for clients of this server, whatever their groups.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// Nobody gets a certificate for the group that may do everything.
const MASTERS: &str = "system:masters";

/// The rules of bundles of authorities that a signer vouches for.
pub struct TrustBundleStrategy;

impl Strategy for TrustBundleStrategy {
    fn admit<'a>(&'a self, context: &'a Context, write: Confirming<'a>) -> Option<Answer<'a, ()>> {
        let signer = &typed::<ClusterTrustBundle>(write.new)?.spec.signer_name;
        if signer.is_empty() || is_only_collected(write.new, write.old) {
            return None;
        }
        Some(Box::pin(async move {
            match may(context, "attest", signer).await {
                true => Ok(()),
                false => Err(bundle_refusal(write.new, signer)),
            }
        }))
    }
}

fn bundle_refusal(bundle: &dyn Object, signer: &str) -> StatusError {
    let why = format!("user not permitted to attest for signerName {}", quote(signer));
    StatusError::forbidden(GROUP, "clustertrustbundles", &bundle.meta().name, why)
}

/// Refuses what may be done to a request for a certificate only by who may act for its signer.
pub fn of_request<'a>(context: &'a Context, write: Confirming<'a>) -> Option<Answer<'a, ()>> {
    let new = typed::<CertificateSigningRequest>(write.new)?;
    let Some(old) = write.old else {
        return Some(Box::pin(std::future::ready(check_subject(new))));
    };
    let old = typed::<CertificateSigningRequest>(old)?;
    let (verb, what) = match write.part {
        Part::Named("approval") => ("approve", "approve"),
        Part::Status if !is_same(&new.status, &old.status) => ("sign", "sign"),
        _ => return None,
    };
    let signer = &old.spec.signer_name;
    Some(Box::pin(async move {
        if may(context, verb, signer).await {
            return Ok(());
        }
        let why = format!(
            "user not permitted to {what} requests with signerName {}",
            quote(signer)
        );
        Err(refusal(new, why))
    }))
}

fn refusal(request: &CertificateSigningRequest, why: String) -> StatusError {
    StatusError::forbidden(GROUP, "certificatesigningrequests", &request.metadata.name, why)
}

fn is_same(new: &CertificateSigningRequestStatus, old: &CertificateSigningRequestStatus) -> bool {
    let conditions = new.conditions.iter().zip(&old.conditions);
    new.certificate == old.certificate
        && new.conditions.len() == old.conditions.len()
        && conditions
            .into_iter()
            .all(|(a, b)| keelson_machinery::equality::equal(a, b))
}

/// Clients don't ask for a certificate of [`MASTERS`].
fn check_subject(request: &CertificateSigningRequest) -> Result<(), StatusError> {
    if request.spec.signer_name != CLIENT_SIGNER || !organizations(&request.spec.request).iter().any(|o| o == MASTERS) {
        return Ok(());
    }
    let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
    Err(refusal(request, why))
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

/// Whether the sender may do this in the name of a signer, or of all of its domain.
async fn may(context: &Context, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    for name in [signer.to_owned(), format!("{domain}/*")] {
        let info = RequestInfo {
            is_resource: true,
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            version: "*".to_owned(),
            resource: "signers".to_owned(),
            name,
            ..RequestInfo::default()
        };
        if context.authorization.allows(&context.user, &info).await {
            return true;
        }
    }
    false
}
