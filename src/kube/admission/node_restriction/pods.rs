//! Pods, as a node may write them: it shows those that run on it anyway, reports on its own, and ends them.

use keelson_api::core::v1::{Node, Pod, PodExtendedResourceClaimStatus, PodSpec};
use keelson_machinery::equality;
use keelson_machinery::field::text::quote;
use keelson_machinery::meta::v1::OwnerReference;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::{Attributes, Operation};

use super::super::lookup;
use crate::core::node_graph::{names_config_maps, names_secrets};

const MIRROR: &str = "kubernetes.io/config.mirror";
const PODS: (&str, &str) = ("", "pods");
const NODES: (&str, &str) = ("", "nodes");

/// A pod that is made or deleted.
pub async fn check(attributes: &Attributes<'_>, node: &str) -> Result<(), StatusError> {
    let me = quote(node);
    match attributes.operation {
        Operation::Create => check_new(attributes, node).await,
        Operation::Delete => {
            let pod = there(attributes, attributes.name()).await?;
            match pod.spec.node_name == node {
                true => Ok(()),
                false => Err(attributes.forbidden(format!(
                    "node {me} can only delete pods with spec.nodeName set to itself"
                ))),
            }
        }
        operation => {
            let operation = quote(name(operation));
            Err(attributes.forbidden(format!(
                "unexpected operation {operation}, node {me} can only create and delete mirror pods"
            )))
        }
    }
}

fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    }
}

async fn there(attributes: &Attributes<'_>, name: &str) -> Result<Pod, StatusError> {
    match lookup::get(attributes, PODS, attributes.namespace(), name).await {
        Err(error) if error.code != 404 => Err(attributes.forbidden(error.message)),
        other => other.map_err(|_| StatusError::not_found("", "pod", name)),
    }
}

async fn check_new(attributes: &Attributes<'_>, node: &str) -> Result<(), StatusError> {
    let Some(pod) = attributes.typed::<Pod>() else {
        return Ok(());
    };
    if let Some(why) = fault_of_mirror(pod, node) {
        return Err(attributes.forbidden(why));
    }
    let found = lookup::get::<Node>(attributes, NODES, "", node).await;
    let found = found.map_err(|error| match error.code {
        404 => StatusError::not_found("", "node", node),
        _ => attributes.forbidden(format!("error looking up node {node} to verify uid: {}", error.message)),
    })?;
    let (uid, claimed) = (
        &found.metadata.uid,
        pod.metadata.owner_references.first().map(|owner| &owner.uid),
    );
    if claimed != Some(uid) {
        let claimed = claimed.map_or("", String::as_str);
        return Err(attributes.forbidden(format!("node {node} UID mismatch: expected {claimed} got {uid}")));
    }
    match reference(&pod.spec) {
        Ok(None) => Ok(()),
        Ok(Some(what)) => {
            let me = quote(node);
            Err(attributes.forbidden(format!("node {me} can not create pods that reference {what}")))
        }
        Err(why) => Err(attributes.forbidden(format!("error checking mirror pod for API references: {why}"))),
    }
}

/// A pod that a node makes shows what runs there anyway.
fn fault_of_mirror(pod: &Pod, node: &str) -> Option<String> {
    let me = quote(node);
    if !pod.metadata.annotations.contains_key(MIRROR) {
        let mirror = quote(MIRROR);
        return Some(format!(
            "pod does not have {mirror} annotation, node {me} can only create mirror pods"
        ));
    }
    if pod.spec.node_name != node {
        return Some(format!(
            "node {me} can only create pods with spec.nodeName set to itself"
        ));
    }
    match &pod.metadata.owner_references[..] {
        [] => Some(format!(
            "node {me} can only create pods with an owner reference set to itself"
        )),
        [owner] => fault_of_owner(owner, node),
        _ => Some(format!(
            "node {me} can only create pods with a single owner reference set to itself"
        )),
    }
}

fn fault_of_owner(owner: &OwnerReference, node: &str) -> Option<String> {
    let me = quote(node);
    if (&*owner.api_version, &*owner.kind, &*owner.name) != ("v1", "Node", node) {
        return Some(format!(
            "node {me} can only create pods with an owner reference set to itself"
        ));
    }
    if owner.controller != Some(true) {
        return Some(format!(
            "node {me} can only create pods with a controller owner reference set to itself"
        ));
    }
    let blocks = owner.block_owner_deletion == Some(true);
    blocks.then(|| format!("node {me} must not set blockOwnerDeletion on an owner reference"))
}

/// What of the API a pod refers to. The error is the refusal of a volume of no known kind.
fn reference(spec: &PodSpec) -> Result<Option<&'static str>, String> {
    if !spec.service_account_name.is_empty() {
        return Ok(Some("serviceaccounts"));
    }
    if names_secrets(spec) {
        return Ok(Some("secrets"));
    }
    if names_config_maps(spec) {
        return Ok(Some("configmaps"));
    }
    if !spec.resource_claims.is_empty() {
        return Ok(Some("resourceclaims"));
    }
    for volume in &spec.volumes {
        let found = of_volume(volume)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn of_volume(volume: &keelson_api::core::v1::Volume) -> Result<Option<&'static str>, String> {
    let source = &volume.volume_source;
    let found = [
        (source.config_map.is_some(), "configmaps (via configmap volumes)"),
        (source.secret.is_some(), "secrets (via secret volumes)"),
        (source.csi.is_some(), "csidrivers (via CSI volumes)"),
        (source.glusterfs.is_some(), "endpoints (via glusterFS volumes)"),
        (source.persistent_volume_claim.is_some(), "persistentvolumeclaims"),
        (
            source.ephemeral.is_some(),
            "persistentvolumeclaims (via ephemeral volumes)",
        ),
        (source.azure_file.is_some(), "secrets (via azureFile volumes)"),
    ];
    if let Some((_, what)) = found.into_iter().find(|(is_set, _)| *is_set) {
        return Ok(Some(what));
    }
    let Some(projected) = source.projected.as_deref() else {
        return match equality::is_zero(source) {
            true => Err(format!("unknown volume type for volume  {}", quote(&volume.name))),
            false => Ok(None),
        };
    };
    for projection in &projected.sources {
        let found = [
            (projection.config_map.is_some(), "configmaps (via projected volumes)"),
            (projection.secret.is_some(), "secrets (via projected volumes)"),
            (
                projection.service_account_token.is_some(),
                "serviceaccounts (via projected volumes)",
            ),
            (projection.cluster_trust_bundle.is_some(), "clustertrustbundles"),
            (projection.pod_certificate.is_some(), "podcertificates"),
        ];
        match found.into_iter().find(|(is_set, _)| *is_set) {
            Some((_, what)) => return Ok(Some(what)),
            None if projection.downward_api.is_some() => {}
            None => return Err(format!("unknown source for projected volume {}", quote(&volume.name))),
        }
    }
    Ok(None)
}

/// What a node reports on a pod.
pub fn check_status(attributes: &Attributes<'_>, node: &str) -> Result<(), StatusError> {
    let (Some(new), Some(old)) = (attributes.typed::<Pod>(), attributes.old_typed::<Pod>()) else {
        return Ok(());
    };
    let me = quote(node);
    let why = if old.spec.node_name != node {
        format!("node {me} can only update pod status for pods with spec.nodeName set to itself")
    } else if new.metadata.labels != old.metadata.labels {
        format!("node {me} cannot update labels through pod status")
    } else if !has_same_claims(new, old) {
        format!("node {me} cannot update resource claim statues")
    } else if !is_same_extended(new, old) {
        format!("node {me} cannot update extended resource claim status")
    } else {
        return Ok(());
    };
    Err(attributes.forbidden(why))
}

fn has_same_claims(new: &Pod, old: &Pod) -> bool {
    let of = |pod: &Pod| {
        let statuses = pod.status.resource_claim_statuses.iter();
        statuses
            .map(|status| (status.name.clone(), status.resource_claim_name.clone()))
            .collect::<Vec<_>>()
    };
    of(new) == of(old)
}

fn is_same_extended(new: &Pod, old: &Pod) -> bool {
    let of = |pod: &Pod| -> Option<PodExtendedResourceClaimStatus> {
        pod.status.extended_resource_claim_status.as_deref().cloned()
    };
    match (of(new), of(old)) {
        (None, None) => true,
        (Some(new), Some(old)) => equality::equal(&new, &old),
        _ => false,
    }
}

/// A pod that a node ends.
pub async fn check_eviction(attributes: &Attributes<'_>, node: &str) -> Result<(), StatusError> {
    if attributes.operation != Operation::Create {
        return Ok(());
    }
    let name = attributes.name();
    if name.is_empty() {
        return Err(attributes.forbidden("could not determine pod from request data"));
    }
    let pod = there(attributes, name).await?;
    match pod.spec.node_name == node {
        true => Ok(()),
        false => Err(attributes.forbidden(format!(
            "node {node} can only evict pods with spec.nodeName set to itself"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn a_node_makes_mirrors_that_belong_to_it() {
        let mirror = r#""annotations":{"kubernetes.io/config.mirror":"x"}"#;
        let owner = r#"{"apiVersion":"v1","kind":"Node","name":"n","uid":"u","controller":true}"#;
        let other = owner.replace(r#""n""#, r#""m""#);
        let blocks = owner.replace('}', r#","blockOwnerDeletion":true}"#);
        let no_controller = owner.replace("true", "false");
        let itself = "node \"n\" can only create pods with an owner reference set to itself";
        for (metadata, node, expected) in [
            (format!(r#"{mirror},"ownerReferences":[{owner}]"#), "n", None),
            (
                format!(r#""ownerReferences":[{owner}]"#),
                "n",
                Some(
                    "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n\" can only create mirror pods",
                ),
            ),
            (
                mirror.to_owned(),
                "m",
                Some("node \"n\" can only create pods with spec.nodeName set to itself"),
            ),
            (mirror.to_owned(), "n", Some(itself)),
            (format!(r#"{mirror},"ownerReferences":[{other}]"#), "n", Some(itself)),
            (
                format!(r#"{mirror},"ownerReferences":[{owner},{owner}]"#),
                "n",
                Some("node \"n\" can only create pods with a single owner reference set to itself"),
            ),
            (
                format!(r#"{mirror},"ownerReferences":[{no_controller}]"#),
                "n",
                Some("node \"n\" can only create pods with a controller owner reference set to itself"),
            ),
            (
                format!(r#"{mirror},"ownerReferences":[{blocks}]"#),
                "n",
                Some("node \"n\" must not set blockOwnerDeletion on an owner reference"),
            ),
        ] {
            let pod = read(&format!(
                r#"{{"metadata":{{{metadata}}},"spec":{{"nodeName":"{node}"}}}}"#
            ));
            assert_eq!(fault_of_mirror(&pod, "n").as_deref(), expected, "{metadata}");
        }
    }

    /// security: CVE-2025-4563, and whatever else a pod may lead to.
    #[test]
    fn mirrors_refer_to_nothing() {
        for (spec, expected) in [
            (
                r#"{"volumes":[{"name":"v","hostPath":{"path":"/"}},{"name":"w","emptyDir":{}}]}"#,
                None,
            ),
            (r#"{"serviceAccountName":"a"}"#, Some("serviceaccounts")),
            (r#"{"imagePullSecrets":[{"name":"a"}]}"#, Some("secrets")),
            (
                r#"{"ephemeralContainers":[{"name":"e","envFrom":[{"configMapRef":{"name":"a"}}]}]}"#,
                Some("configmaps"),
            ),
            (r#"{"resourceClaims":[{"name":"a"}]}"#, Some("resourceclaims")),
            (
                r#"{"volumes":[{"name":"v","csi":{"driver":"d"}}]}"#,
                Some("csidrivers (via CSI volumes)"),
            ),
            (
                r#"{"volumes":[{"name":"v","projected":{"sources":[{"downwardAPI":{}},{"clusterTrustBundle":{"path":"p"}}]}}]}"#,
                Some("clustertrustbundles"),
            ),
        ] {
            assert_eq!(reference(&read(spec)), Ok(expected), "{spec}");
        }
        let unknown = read(r#"{"volumes":[{"name":"v"}]}"#);
        assert_eq!(
            reference(&unknown),
            Err("unknown volume type for volume  \"v\"".to_owned())
        );
    }
}
