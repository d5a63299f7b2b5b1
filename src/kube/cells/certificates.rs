//! Cells of certificate requests and trust bundles.

use keelson_api::certificates_k8s_io::v1::CertificateSigningRequest;
use keelson_api::certificates_k8s_io::v1beta1::{ClusterTrustBundle, PodCertificateRequest};
use keelson_machinery::table::human_duration;

use super::{NONE, or_none, pairs};

const NANOS_PER_SECOND: i128 = 1_000_000_000;

cells! { pub const CERTIFICATE_SIGNING_REQUEST: CertificateSigningRequest =
    "certificate_signing_request_condition" => condition,
    "certificate_signing_request_requested_duration" => requested_duration,
    "certificate_signing_request_requestor" => |o| o.spec.username.clone(),
    "certificate_signing_request_signer_name" => |o| or_none(&o.spec.signer_name),
}
cells! { pub const CLUSTER_TRUST_BUNDLE: ClusterTrustBundle =
    "cluster_trust_bundle_signer_name" => |o| or_none(&o.spec.signer_name),
}
cells! { pub const POD_CERTIFICATE_REQUEST: PodCertificateRequest =
    "pod_certificate_request_node_name" => |o| o.spec.node_name.clone(),
    "pod_certificate_request_pod_name" => |o| o.spec.pod_name.clone(),
    "pod_certificate_request_service_account_name" => |o| o.spec.service_account_name.clone(),
    "pod_certificate_request_signer_name" => |o| o.spec.signer_name.clone(),
    "pod_certificate_request_state" => pod_request_state,
    "pod_certificate_request_user_annotations" => |o| pairs(&o.spec.unverified_user_annotations),
}

fn requested_duration(o: &CertificateSigningRequest) -> String {
    o.spec
        .expiration_seconds
        .map_or_else(|| NONE.to_owned(), |s| human_duration(i128::from(s) * NANOS_PER_SECOND))
}

/// `Approved,Issued`: the decision, then whether it failed, then whether there is a certificate.
fn condition(o: &CertificateSigningRequest) -> String {
    let has = |ty: &str| o.status.conditions.iter().any(|c| c.r#type == ty);
    let mut words = vec![if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }];
    if has("Failed") {
        words.push("Failed");
    }
    if !o.status.certificate.is_empty() {
        words.push("Issued");
    }
    words.join(",")
}

/// The last of the conditions that end a request, if any.
fn pod_request_state(o: &PodCertificateRequest) -> String {
    let ends = |ty: &str| matches!(ty, "Denied" | "Failed" | "Issued");
    let last = o.status.conditions.iter().rfind(|c| ends(&c.r#type));
    last.map_or("Pending", |c| c.r#type.as_str()).to_owned()
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;

    use super::*;

    #[test]
    fn conditions_add_up() {
        for (status, expected) in [
            ("{}", "Pending"),
            (r#"{"conditions":[{"type":"Denied"}]}"#, "Denied"),
            (r#"{"conditions":[{"type":"Failed"}]}"#, "Pending,Failed"),
            (
                r#"{"conditions":[{"type":"Approved"}],"certificate":"YQ=="}"#,
                "Approved,Issued",
            ),
        ] {
            let mut o = CertificateSigningRequest::default();
            json::read(format!(r#"{{"status":{status}}}"#).as_bytes(), &mut o).unwrap();
            assert_eq!(condition(&o), expected);
        }
    }

    #[test]
    fn durations_are_short() {
        let mut o = CertificateSigningRequest::default();
        for (seconds, expected) in [(None, "<none>"), (Some(600), "10m"), (Some(100_000), "27h")] {
            o.spec.expiration_seconds = seconds;
            assert_eq!(requested_duration(&o), expected);
        }
    }
}
