//! Access to ResourceClaims: devices are bound by the scheduler, described by the drivers of their nodes, and had with
//! the rights of an administrator only in namespaces that are marked for it.

use std::collections::HashMap;

use keelson_access::authz::refused;
use keelson_access::request_info::RequestInfo;
use keelson_access::user::User;
use keelson_api::resource_k8s_io::v1::{
    AllocatedDeviceStatus, AllocationResult, DeviceRequest, DeviceRequestAllocationResult, ResourceClaimStatus,
};
use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::validation::names;
use keelson_registry::Context;

use crate::typed::same;

/// Marks namespaces whose claims may ask for the rights of an administrator.
const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";
/// The node that a token of an account is bound to.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";
/// Before the verb of a driver on the node of the device, and on any.
const ASSOCIATED: &str = "associated-node:";
const ARBITRARY: &str = "arbitrary-node:";

/// A fault if a new claim, or a template of claims, asks for the rights of an administrator where it may not.
pub async fn of_requests(context: &Context, requests: &[DeviceRequest]) -> Option<FieldError> {
    let asks = |request: &DeviceRequest| {
        let exactly = request.exactly.as_ref();
        exactly.is_some_and(|exactly| exactly.admin_access == Some(true))
    };
    let place = requests.iter().position(asks)?;
    let path = Path::new("spec").child("devices").child("requests").index(place);
    admin(context, &path.child("adminAccess")).await
}

/// The same of what a claim was given; what it was given before stays.
pub async fn of_results(
    context: &Context,
    new: &[DeviceRequestAllocationResult],
    old: &[DeviceRequestAllocationResult],
) -> Option<FieldError> {
    let asks = |result: &DeviceRequestAllocationResult| result.admin_access == Some(true);
    if old.iter().any(asks) {
        return None;
    }
    let place = new.iter().position(asks)?;
    let path = Path::new("status")
        .child("allocation")
        .child("devices")
        .child("results")
        .index(place);
    admin(context, &path.child("adminAccess")).await
}

async fn admin(context: &Context, path: &Path) -> Option<FieldError> {
    let namespaces = context
        .registry()
        .and_then(|registry| registry.resource("", "namespaces"));
    let found = match namespaces {
        Some(namespaces) => namespaces
            .get("", &context.namespace)
            .await
            .map_err(|error| error.message),
        None => Err("this server has no namespaces".to_owned()),
    };
    let namespace = match found {
        Ok(stored) => stored.object,
        Err(why) => {
            let text = format!("could not retrieve namespace to verify admin access: {why}");
            return Some(FieldError::internal(path, text));
        }
    };
    let marked = namespace
        .meta()
        .labels
        .get(ADMIN_LABEL)
        .is_some_and(|value| value == "true");
    let text = format!("admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace");
    (!marked).then(|| FieldError::forbidden(path, text))
}

/// A fault unless the sender may bind claims, if the write binds this one or lets go of it.
pub async fn of_binding(context: &Context, new: &ResourceClaimStatus, old: &ResourceClaimStatus) -> Option<FieldError> {
    let is_same = |a: &ResourceClaimStatus, b: &ResourceClaimStatus| {
        let reserved = a.reserved_for.len() == b.reserved_for.len()
            && a.reserved_for
                .iter()
                .zip(&b.reserved_for)
                .all(|(a, b)| equality::equal(a, b));
        reserved && same(a.allocation.as_deref(), b.allocation.as_deref())
    };
    if is_same(new, old) {
        return None;
    }
    let verb = &context.asked.verb;
    let info = RequestInfo {
        subresource: "binding".to_owned(),
        namespace: String::new(),
        name: String::new(),
        ..(*context.asked).clone()
    };
    let why = refusal(context, &info).await?;
    let text = format!(
        "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
         verb=\"{verb}\" permission: {why}"
    );
    Some(FieldError::forbidden(&Path::new("status").child("allocation"), text))
}

/// A fault for each driver in whose name the sender may not speak, of those whose devices are described anew.
pub async fn of_drivers(context: &Context, new: &ResourceClaimStatus, old: &ResourceClaimStatus) -> ErrorList {
    let mut errors = ErrorList::default();
    let verb = &context.asked.verb;
    let own = is_on_node(&context.user, node_of(new.allocation.as_deref()));
    let prefixes: &[&str] = if own { &[ASSOCIATED, ARBITRARY] } else { &[ARBITRARY] };
    let verbs: Vec<String> = prefixes.iter().map(|prefix| format!("{prefix}{verb}")).collect();
    for driver in changed_drivers(&new.devices, &old.devices) {
        if let Some(why) = driver_refusal(context, &verbs, driver).await {
            let text = format!(
                "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{}]\" permission: {why}",
                verbs.join(" ")
            );
            errors.push(FieldError::forbidden(&Path::new("status").child("devices"), text));
        }
    }
    errors
}

/// Why none of the verbs may be used; the first refusal is told.
async fn driver_refusal(context: &Context, verbs: &[String], driver: &str) -> Option<String> {
    let mut first = None;
    for verb in verbs {
        let info = RequestInfo {
            verb: verb.clone(),
            subresource: "driver".to_owned(),
            name: driver.to_owned(),
            ..(*context.asked).clone()
        };
        let why = refusal(context, &info).await?;
        first.get_or_insert(why);
    }
    first
}

/// Why the sender may not do this; `None`: they may.
async fn refusal(context: &Context, info: &RequestInfo) -> Option<String> {
    let verdict = context.authorization.decide(&context.user, info).await;
    let reason = match verdict.error {
        _ if verdict.allowed => return None,
        Some(error) if verdict.reason.is_empty() => error,
        Some(error) => format!("{error}: {}", verdict.reason),
        None => verdict.reason,
    };
    Some(refused(&context.user, info, &reason).message)
}

/// Drivers of devices that are described for the first time, in other words, or no longer; sorted.
fn changed_drivers<'a>(new: &'a [AllocatedDeviceStatus], old: &'a [AllocatedDeviceStatus]) -> Vec<&'a str> {
    // Of those of one device the last counts.
    let by_key = |devices: &'a [AllocatedDeviceStatus]| -> HashMap<[&'a str; 4], &'a AllocatedDeviceStatus> {
        devices.iter().map(|device| (device_key(device), device)).collect()
    };
    let (before, now) = (by_key(old), by_key(new));
    let told = new.iter().filter(|device| {
        let before = before.get(&device_key(device));
        before.is_none_or(|before| !equality::equal(*before, *device))
    });
    let gone = old.iter().filter(|device| !now.contains_key(&device_key(device)));
    let mut drivers: Vec<&str> = told.chain(gone).map(|device| device.driver.as_str()).collect();
    drivers.sort_unstable();
    drivers.dedup();
    drivers
}

fn device_key(device: &AllocatedDeviceStatus) -> [&str; 4] {
    let share = device.share_id.as_deref().unwrap_or_default();
    [&device.driver, &device.pool, &device.device, share]
}

/// The one node that the devices are on, if they are on one.
fn node_of(allocation: Option<&AllocationResult>) -> Option<&str> {
    let terms = &allocation?.node_selector.as_ref()?.node_selector_terms;
    let [term] = terms.as_slice() else { return None };
    let ([], [field]) = (term.match_expressions.as_slice(), term.match_fields.as_slice()) else {
        return None;
    };
    match field.values.as_slice() {
        [name] if field.key == "metadata.name" && field.operator == "In" => Some(name),
        _ => None,
    }
}

/// Whether the sender is an account whose token belongs to this node.
fn is_on_node(user: &User, node: Option<&str>) -> bool {
    let account = user
        .name
        .strip_prefix(ACCOUNT_PREFIX)
        .and_then(|name| name.split_once(':'));
    let is_account = account.is_some_and(|(namespace, name)| {
        names::dns_label(namespace).is_empty() && names::dns_subdomain(name).is_empty()
    });
    let own = user.extra.get(NODE_NAME).map(Vec::as_slice);
    match (own, node) {
        (Some([own]), Some(node)) => is_account && names::dns_subdomain(own).is_empty() && own == node,
        _ => false,
    }
}
