//! The rules of claims of devices and of templates of them.

use std::collections::HashSet;

use keelson_api::resource_k8s_io::v1::{
    DeviceRequestAllocationResult, ResourceClaim, ResourceClaimStatus, ResourceClaimTemplate,
};
use keelson_api::resource_k8s_io::{v1beta1, v1beta2};
use keelson_machinery::field::ErrorList;
use keelson_registry::write::Part;
use keelson_registry::{Answer, Confirming, Context, Kept, KindCode, Strategy};

use super::allocation::{self, DeviceKey, key_of_device, key_of_result};
use super::claim_access::{of_binding, of_drivers, of_requests, of_results};
use super::{claim, requests};
use crate::cells;
use crate::status_alone::StatusAlone;
use crate::{faults, metadata};

/// Registers the rules of claims and of templates of them, in all versions.
pub fn register(code: &mut KindCode) {
    code.kind::<ResourceClaim>()
        .strategy(ClaimStrategy)
        .metadata_checks(metadata::METADATA_FIRST)
        .defaults(claim::v1::claim)
        .kept([Kept::at("spec")])
        .cells(cells::resource::RESOURCE_CLAIM);
    code.kind::<ResourceClaimTemplate>()
        .strategy(ClaimTemplateStrategy)
        .metadata_checks(metadata::WHOLE_FIRST)
        .defaults(claim::v1::template);
    code.kind::<v1beta2::ResourceClaim>().defaults(claim::v1beta2::claim);
    code.kind::<v1beta2::ResourceClaimTemplate>()
        .defaults(claim::v1beta2::template);
    code.kind::<v1beta1::ResourceClaim>().defaults(claim::v1beta1::claim);
    code.kind::<v1beta1::ResourceClaimTemplate>()
        .defaults(claim::v1beta1::template);
}

/// The rules of claims.
struct ClaimStrategy;
/// The rules of templates.
struct ClaimTemplateStrategy;

impl Strategy for ClaimStrategy {
    type Object = ResourceClaim;

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        StatusAlone.reset_fields(part)
    }

    fn prepare_for_status_update(&self, context: &Context, new: &mut ResourceClaim, old: &ResourceClaim) {
        StatusAlone.prepare_for_status_update(context, new, old);
        drop_given_back(&mut new.status, &old.status);
    }

    /// What is asked for never changes: another rule says so, and nothing else is told.
    fn validate(&self, _context: &Context, new: &ResourceClaim, old: Option<&ResourceClaim>) -> ErrorList {
        match old {
            None => faults::of_spec(|f| requests::claim(&mut f.at("devices"), &new.spec.devices)),
            Some(_) => ErrorList::default(),
        }
    }

    fn validate_status_update(&self, _context: &Context, new: &ResourceClaim, old: &ResourceClaim) -> ErrorList {
        faults::of_status(|f| allocation::check(f, new, old))
    }

    fn confirm<'a>(
        &'a self,
        context: &'a Context,
        write: Confirming<'a, ResourceClaim>,
        _faulty: bool,
    ) -> Option<Answer<'a, ErrorList>> {
        let new = write.new;
        match (write.part, write.old) {
            (Part::Main, None) => Some(Box::pin(async move {
                let fault = of_requests(context, &new.spec.devices.requests).await;
                Ok(fault.into_iter().collect())
            })),
            (Part::Status, Some(old)) => {
                let (now, was) = (&new.status, &old.status);
                Some(Box::pin(async move { Ok(of_status(context, now, was).await) }))
            }
            _ => None,
        }
    }
}

impl Strategy for ClaimTemplateStrategy {
    type Object = ResourceClaimTemplate;

    fn validate(
        &self,
        _context: &Context,
        new: &ResourceClaimTemplate,
        _old: Option<&ResourceClaimTemplate>,
    ) -> ErrorList {
        faults::of_spec(|f| {
            metadata::of_template(&mut f.at("metadata"), &new.spec.metadata);
            requests::claim(&mut f.at("spec").at("devices"), &new.spec.spec.devices);
        })
    }

    fn validate_change(
        &self,
        _context: &Context,
        new: &ResourceClaimTemplate,
        old: &ResourceClaimTemplate,
    ) -> ErrorList {
        Kept::at("spec").fault(new, old).into_iter().collect()
    }

    fn confirm<'a>(
        &'a self,
        context: &'a Context,
        write: Confirming<'a, ResourceClaimTemplate>,
        _faulty: bool,
    ) -> Option<Answer<'a, ErrorList>> {
        let requests = &write.new.spec.spec.devices.requests;
        write.old.is_none().then(|| -> Answer<'a, ErrorList> {
            Box::pin(async move { Ok(of_requests(context, requests).await.into_iter().collect()) })
        })
    }
}

async fn of_status(context: &Context, new: &ResourceClaimStatus, old: &ResourceClaimStatus) -> ErrorList {
    let mut errors = ErrorList::default();
    errors.extend(of_results(context, results(new), results(old)).await);
    errors.extend(of_binding(context, new, old).await);
    if new.allocation.is_some() {
        errors.extend(of_drivers(context, new, old).await);
    }
    errors
}

/// The devices that a claim has.
pub fn results(status: &ResourceClaimStatus) -> &[DeviceRequestAllocationResult] {
    let allocation = status.allocation.as_ref();
    allocation.map_or(&[], |allocation| &allocation.devices.results)
}

/// What was said of devices that the claim no longer has.
fn drop_given_back(new: &mut ResourceClaimStatus, old: &ResourceClaimStatus) {
    let still: HashSet<DeviceKey> = results(new).iter().map(key_of_result).collect();
    let were = results(old).iter().map(key_of_result);
    let gone: HashSet<DeviceKey> = were.filter(|device| !still.contains(device)).collect();
    new.devices.retain(|device| !gone.contains(&key_of_device(device)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn a_status_speaks_of_devices_that_the_claim_has() {
        let bound = r#""allocation":{"devices":{"results":[{"request":"r","driver":"d","pool":"p","device":"a"}]}}"#;
        let other = bound.replace("\"a\"", "\"b\"");
        let device = |name: &str| format!(r#""devices":[{{"driver":"d","pool":"p","device":"{name}"}}]"#);
        let reserved = r#""reservedFor":[{"resource":"pods","name":"p","uid":"u"}]"#;
        for (old, new, expected) in [
            (String::new(), bound.to_owned(), ""),
            (bound.to_owned(), String::new(), ""),
            (bound.to_owned(), other, "status.allocation"),
            (bound.to_owned(), format!("{bound},{}", device("a")), ""),
            (
                bound.to_owned(),
                format!("{bound},{}", device("b")),
                "status.devices[0]",
            ),
            (String::new(), reserved.to_owned(), "status.reservedFor"),
            (bound.to_owned(), format!("{bound},{reserved}"), ""),
        ] {
            let claim = |status: &str, metadata: &str| -> ResourceClaim {
                let spec = r#"{"devices":{"requests":[{"name":"r"}]}}"#;
                read(&format!(
                    r#"{{"metadata":{metadata},"spec":{spec},"status":{{{status}}}}}"#
                ))
            };
            let found = |metadata: &str| {
                let (new, old) = (claim(&new, metadata), claim(&old, "{}"));
                lines(&ClaimStrategy.validate_status_update(&context(), &new, &old))
            };
            assert_eq!(found("{}").split(": ").next().unwrap(), expected, "{new}");
            let ending = found(r#"{"deletionTimestamp":"2020-01-01T00:00:00Z"}"#);
            assert_eq!(
                ending.contains("status.reservedFor"),
                new.contains("reservedFor"),
                "{new}"
            );
        }
    }

    #[test]
    fn what_is_given_back_is_no_longer_described() {
        let device = |name: &str| format!(r#"{{"driver":"d","pool":"p","device":"{name}"}}"#);
        let status = |results: &str, devices: &str| -> ResourceClaim {
            read(&format!(
                r#"{{"status":{{"allocation":{{"devices":{{"results":[{results}]}}}},"devices":[{devices}]}}}}"#
            ))
        };
        let both = format!("{},{}", device("a"), device("b"));
        let old = status(&both, &both);
        let mut new = status(&device("b"), &both);
        ClaimStrategy.prepare_for_status_update(&context(), &mut new, &old);
        let left: Vec<&str> = new.status.devices.iter().map(|d| d.device.as_str()).collect();
        assert_eq!(left, ["b"]);
    }
}
