//! Node objects, as a node may write its own.

use keelson_api::certificates_k8s_io::v1::CertificateSigningRequest;
use keelson_api::core::v1::Node;
use keelson_machinery::equality;
use keelson_machinery::field::text::quote;
use keelson_machinery::meta::v1::OwnerReference;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::{Attributes, Operation};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;

use super::labels::forbidden;

/// Sign certificates of nodes.
const SIGNERS: [&str; 2] = [
    "kubernetes.io/kubelet-serving",
    "kubernetes.io/kube-apiserver-client-kubelet",
];

/// A write of the node itself.
pub fn check(attributes: &Attributes<'_>, node: &str) -> Result<(), StatusError> {
    let name = attributes.name();
    let me = quote(node);
    if name != node {
        return Err(attributes.forbidden(format!("node {me} is not allowed to modify node {}", quote(name))));
    }
    let why = match (attributes.operation, attributes.typed(), attributes.old_typed()) {
        (Operation::Create, Some(new), _) => of_new(new, &me),
        (Operation::Update, Some(new), Some(old)) => of_changed(new, old, &me),
        _ => None,
    };
    why.map_or(Ok(()), |why| Err(attributes.forbidden(why)))
}

fn of_new(new: &Node, me: &str) -> Option<String> {
    if new.spec.config_source.is_some() {
        return Some(format!(
            "node {me} is not allowed to create pods with a non-nil configSource"
        ));
    }
    let none = Default::default();
    let labels = forbidden(&new.metadata.labels, &none);
    (!labels.is_empty()).then(|| {
        format!(
            "node {me} is not allowed to set the following labels: {}",
            labels.join(", ")
        )
    })
}

fn of_changed(new: &Node, old: &Node, me: &str) -> Option<String> {
    let is_other_source = match (new.spec.config_source.as_deref(), old.spec.config_source.as_deref()) {
        (None, _) => false,
        (Some(new), Some(old)) => !equality::equal(new, old),
        (Some(_), None) => true,
    };
    if is_other_source {
        return Some(format!(
            "node {me} is not allowed to update configSource to a new non-nil configSource"
        ));
    }
    let (taints, had) = (&new.spec.taints, &old.spec.taints);
    if taints.len() != had.len() || taints.iter().zip(had).any(|(new, old)| !equality::equal(new, old)) {
        return Some(format!("node {me} is not allowed to modify taints"));
    }
    if !are_same(&new.metadata.owner_references, &old.metadata.owner_references) {
        return Some(format!("node {me} is not allowed to modify ownerReferences"));
    }
    let labels = forbidden(&new.metadata.labels, &old.metadata.labels);
    (!labels.is_empty()).then(|| format!("is not allowed to modify labels: {}", labels.join(", ")))
}

fn are_same(new: &[OwnerReference], old: &[OwnerReference]) -> bool {
    new.len() == old.len() && new.iter().zip(old).all(|(new, old)| equality::equal(new, old))
}

/// A request for a certificate, which has to be one for the node.
pub fn check_request(attributes: &Attributes<'_>, node: &str) -> Result<(), StatusError> {
    let request = attributes.typed::<CertificateSigningRequest>();
    let request = request.filter(|_| attributes.operation == Operation::Create);
    let Some(request) = request.filter(|request| SIGNERS.contains(&request.spec.signer_name.as_str())) else {
        return Ok(());
    };
    let expected = format!("system:node:{node}");
    match common_name(&request.spec.request) {
        Err(why) => Err(attributes.forbidden(format!("unable to parse csr: {why}"))),
        Ok(name) if name == expected => Ok(()),
        Ok(_) => Err(attributes.forbidden(format!("can only create a node CSR with CN={expected}"))),
    }
}

/// The error is that there is no such thing in the text.
fn common_name(pem: &[u8]) -> Result<String, &'static str> {
    let Some(Ok(block)) = Pem::iter_from_buffer(pem).next() else {
        return Err("PEM block type must be CERTIFICATE REQUEST");
    };
    if block.label != "CERTIFICATE REQUEST" {
        return Err("PEM block type must be CERTIFICATE REQUEST");
    }
    let read = X509CertificationRequest::from_der(&block.contents);
    let (_, request) = read.map_err(|_| "asn1: structure error")?;
    let subject = &request.certification_request_info.subject;
    let names = subject.iter_common_name().filter_map(|name| name.as_str().ok());
    Ok(names.last().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn a_node_does_not_change_what_it_is_for() {
        let old = r#"{"metadata":{"name":"n","labels":{"a":"1"}}}"#;
        for (new, expected) in [
            (
                r#"{"metadata":{"name":"n","labels":{"a":"2"}},"status":{"phase":"x"}}"#,
                None,
            ),
            (
                r#"{"metadata":{"name":"n","labels":{"a":"1"}},"spec":{"taints":[{"key":"k","effect":"e"}]}}"#,
                Some("node \"n\" is not allowed to modify taints"),
            ),
            (
                r#"{"metadata":{"name":"n","ownerReferences":[{"uid":"u"}]}}"#,
                Some("node \"n\" is not allowed to modify ownerReferences"),
            ),
            (
                r#"{"spec":{"configSource":{"configMap":{"name":"c"}}}}"#,
                Some("node \"n\" is not allowed to update configSource to a new non-nil configSource"),
            ),
            (
                r#"{"metadata":{"labels":{"kubernetes.io/b":"1","kubernetes.io/a":"1"}}}"#,
                Some("is not allowed to modify labels: kubernetes.io/a, kubernetes.io/b"),
            ),
        ] {
            let found = of_changed(&read(new), &read(old), "\"n\"");
            assert_eq!(found.as_deref(), expected, "{new}");
        }
        let new = read(r#"{"metadata":{"labels":{"kubernetes.io/b":"1"}}}"#);
        assert_eq!(
            of_new(&new, "\"n\"").unwrap(),
            "node \"n\" is not allowed to set the following labels: kubernetes.io/b"
        );
    }

    #[test]
    fn what_is_no_request_has_no_name() {
        assert_eq!(common_name(b"x"), Err("PEM block type must be CERTIFICATE REQUEST"));
    }
}
