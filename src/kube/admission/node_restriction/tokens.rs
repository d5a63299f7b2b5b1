//! Tokens that a node asks for: of accounts of its pods, bound to these, for those who the pods say they are for.

use keelson_access::authz::aggregate;
use keelson_access::request_info::RequestInfo;
use keelson_api::authentication_k8s_io::v1::TokenRequest;
use keelson_api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use keelson_api::storage_k8s_io::v1::CSIDriver;
use keelson_machinery::field::text::quote;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::{Attributes, Operation};

use super::super::lookup;

const PODS: (&str, &str) = ("", "pods");
const CLAIMS: (&str, &str) = ("", "persistentvolumeclaims");
const VOLUMES: (&str, &str) = ("", "persistentvolumes");
const DRIVERS: (&str, &str) = ("storage.k8s.io", "csidrivers");
/// The right to tokens for anybody.
const VERB: &str = "request-serviceaccounts-token-audience";

/// A request for a token.
pub async fn check(attributes: &Attributes<'_>, node: &str) -> Result<(), StatusError> {
    let request = attributes
        .typed::<TokenRequest>()
        .filter(|_| attributes.operation == Operation::Create);
    let Some(request) = request else { return Ok(()) };
    let bound = request.spec.bound_object_ref.as_deref();
    let bound = bound.filter(|bound| bound.api_version == "v1" && bound.kind == "Pod" && !bound.name.is_empty());
    let Some(bound) = bound else {
        return Err(attributes.forbidden("node requested token not bound to a pod"));
    };
    if bound.uid.is_empty() {
        return Err(attributes.forbidden("node requested token with a pod binding without a uid"));
    }
    let found = lookup::find::<Pod>(attributes, PODS, attributes.namespace(), &bound.name).await;
    let found = found.map_err(|error| attributes.forbidden(error.message))?;
    let pod = found.ok_or_else(|| StatusError::not_found("", "pod", &bound.name))?;
    if bound.uid != pod.metadata.uid {
        return Err(attributes.forbidden(format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been \
             deleted and then recreated",
            bound.uid
        )));
    }
    if pod.spec.node_name != node {
        return Err(attributes.forbidden("node requested token bound to a pod scheduled on a different node"));
    }
    let audience = match &request.spec.audiences[..] {
        [] => "",
        [one] => one,
        _ => return Err(attributes.forbidden("node may only request 0 or 1 audiences")),
    };
    check_audience(attributes, &pod, audience).await
}

async fn check_audience(attributes: &Attributes<'_>, pod: &Pod, audience: &str) -> Result<(), StatusError> {
    let mut errors = Vec::new();
    for volume in &pod.spec.volumes {
        match is_for(attributes, pod, volume, audience).await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => errors.push(error.message),
        }
    }
    let audience_text = quote(audience);
    if !errors.is_empty() {
        let why = aggregate(&errors);
        return Err(attributes.forbidden(format!("error validating audience {audience_text}: {why}")));
    }
    let info = RequestInfo {
        is_resource: true,
        verb: VERB.to_owned(),
        namespace: attributes.namespace().to_owned(),
        version: "v1".to_owned(),
        resource: audience.to_owned(),
        name: attributes.name().to_owned(),
        ..RequestInfo::default()
    };
    let user = attributes.user();
    let verdict = attributes.context.authorization.decide(user, &info).await;
    let who = &user.name;
    match verdict.error {
        _ if verdict.allowed => Ok(()),
        Some(error) => Err(attributes.forbidden(format!(
            "audience {audience_text} not found in pod spec volume, error authorizing {who} to request tokens for this \
             audience: {error}"
        ))),
        None => Err(attributes.forbidden(format!(
            "audience {audience_text} not found in pod spec volume, {who} is not authorized to request tokens for this \
             audience"
        ))),
    }
}

/// Whether a volume of the pod has a token in it that is for this audience, or a driver that asks for one.
async fn is_for(attributes: &Attributes<'_>, pod: &Pod, volume: &Volume, audience: &str) -> Result<bool, StatusError> {
    let source = &volume.volume_source;
    let projected = source
        .projected
        .as_deref()
        .into_iter()
        .flat_map(|projected| &projected.sources);
    let mut tokens = projected.filter_map(|source| source.service_account_token.as_deref());
    if tokens.any(|token| token.audience == audience) {
        return Ok(true);
    }
    let claim = match (&source.ephemeral, &source.persistent_volume_claim) {
        (Some(_), _) => Some(format!("{}-{}", pod.metadata.name, volume.name)),
        (None, Some(claim)) => Some(claim.claim_name.clone()),
        (None, None) => None,
    };
    let driver = match claim {
        Some(claim) => driver_of_claim(attributes, &pod.metadata.namespace, &claim).await?,
        None => source.csi.as_deref().map(|csi| csi.driver.clone()),
    };
    let Some(driver) = driver.filter(|driver| !driver.is_empty()) else {
        return Ok(false);
    };
    let driver: CSIDriver = found(attributes, DRIVERS, "", &driver).await?;
    Ok(driver
        .spec
        .token_requests
        .iter()
        .any(|request| request.audience == audience))
}

async fn driver_of_claim(
    attributes: &Attributes<'_>,
    namespace: &str,
    claim: &str,
) -> Result<Option<String>, StatusError> {
    let claim: PersistentVolumeClaim = found(attributes, CLAIMS, namespace, claim).await?;
    let volume: PersistentVolume = found(attributes, VOLUMES, "", &claim.spec.volume_name).await?;
    let source = &volume.spec.persistent_volume_source;
    Ok(source.csi.as_deref().map(|csi| csi.driver.clone()))
}

/// As listers of Go say what is not there.
async fn found<T: keelson_machinery::reflect::Reflect + Clone>(
    attributes: &Attributes<'_>,
    (group, plural): (&str, &str),
    namespace: &str,
    name: &str,
) -> Result<T, StatusError> {
    let found = lookup::find(attributes, (group, plural), namespace, name).await?;
    let singular = plural.strip_suffix('s').unwrap_or(plural);
    found.ok_or_else(|| StatusError::not_found(group, singular, name))
}
