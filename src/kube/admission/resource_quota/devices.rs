//! Claims for devices in quotas: themselves, and devices by class, or by the name of the resource that a class stands
//! for.

use std::collections::BTreeMap;

use keelson_api::resource_k8s_io::v1::{DeviceClass, ResourceClaim};
use keelson_registry::Followed;

use super::amounts::{Amounts, count};
use super::evaluator::is_extended_request;
use crate::core::resource_name::REQUESTS;

const COUNT: &str = "count/resourceclaims.resource.k8s.io";
/// Ends the name of what is counted of a class.
const OF_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// Begins the name of a resource that stands for a class.
pub const CLASS: &str = "deviceclass.resource.kubernetes.io/";
/// The same of requests for it.
pub const IMPLICIT: &str = "requests.deviceclass.resource.kubernetes.io/";
/// Devices that a claim for all of them may get.
const MOST: i64 = 32;

/// Classes of devices, and the resources that they stand for.
pub struct Classes(Followed<Class>);

/// What of a class counts.
pub struct Class {
    name: String,
    resource: Option<String>,
}

impl Default for Classes {
    fn default() -> Self {
        Classes(Followed::new(|object| {
            let class = object.downcast_ref::<DeviceClass>()?;
            Some(Class {
                name: class.metadata.name.clone(),
                resource: class
                    .spec
                    .extended_resource_name
                    .clone()
                    .filter(|name| !name.is_empty()),
            })
        }))
    }
}

impl Classes {
    /// Where they are read from.
    pub fn followed(&self) -> &Followed<Class> {
        &self.0
    }

    fn resource_of(&self, class: &str) -> Option<String> {
        self.0.get("", class)?.resource.clone()
    }

    fn stands_for(&self, resource: &str) -> bool {
        let implicit = resource.strip_prefix(CLASS);
        let is_named = |class: &Class| class.resource.as_deref() == Some(resource) || implicit == Some(&*class.name);
        self.0.all().iter().any(|class| is_named(class))
    }
}

/// Whether claims use a resource of this name.
pub fn concerns(name: &str, classes: &Classes) -> bool {
    if name == COUNT || name.ends_with(OF_CLASS) {
        return true;
    }
    if name
        .strip_prefix(IMPLICIT)
        .is_some_and(|class| classes.resource_of(class).is_some())
    {
        return true;
    }
    let request = name.strip_prefix(REQUESTS).filter(|_| is_extended_request(name));
    request.is_some_and(|resource| classes.stands_for(resource))
}

/// What a claim uses.
pub fn usage(claim: &ResourceClaim, classes: &Classes) -> Amounts {
    let mut amounts = Amounts::from([(COUNT.to_owned(), count(1))]);
    for (class, number) in devices(claim) {
        let number = keelson_machinery::quantity::Quantity::from_int(number);
        amounts.insert(format!("{class}{OF_CLASS}"), number.clone());
        if number.is_zero() || class.is_empty() {
            continue;
        }
        amounts.insert(format!("{IMPLICIT}{class}"), number.clone());
        let resource = classes.resource_of(&class);
        amounts.extend(resource.map(|resource| (format!("{REQUESTS}{resource}"), number)));
    }
    amounts
}

/// Devices by class: of alternatives the one that takes most of it.
fn devices(claim: &ResourceClaim) -> BTreeMap<String, i64> {
    let number = |mode: &str, count: i64| match mode {
        "ExactCount" => count,
        "All" => MOST,
        _ => 0,
    };
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for request in &claim.spec.devices.requests {
        let mut most: BTreeMap<&str, i64> = BTreeMap::new();
        for option in &request.first_available {
            let known = most.entry(&option.device_class_name).or_default();
            *known = i64::max(*known, number(&option.allocation_mode, option.count));
        }
        if let Some(exactly) = request
            .exactly
            .as_deref()
            .filter(|_| request.first_available.is_empty())
        {
            most.insert(
                &exactly.device_class_name,
                number(&exactly.allocation_mode, exactly.count),
            );
        }
        for (class, number) in most {
            let sum = sums.entry(class.to_owned()).or_default();
            *sum = sum.saturating_add(number);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::resource_quota::amounts::text;
    use crate::testing::read;

    #[test]
    fn devices_are_counted_by_class() {
        let claim = read(
            r#"{"spec":{"devices":{"requests":[
                {"name":"a","exactly":{"deviceClassName":"x","allocationMode":"ExactCount","count":2}},
                {"name":"b","exactly":{"deviceClassName":"y","allocationMode":"All"}},
                {"name":"c","firstAvailable":[
                    {"name":"d","deviceClassName":"x","allocationMode":"ExactCount","count":1},
                    {"name":"e","deviceClassName":"x","allocationMode":"ExactCount","count":3}]}]}}}"#,
        );
        let usage = usage(&claim, &Classes::default());
        assert_eq!(
            text(&usage),
            "count/resourceclaims.resource.k8s.io=1,requests.deviceclass.resource.kubernetes.io/x=5,\
             requests.deviceclass.resource.kubernetes.io/y=32,x.deviceclass.resource.k8s.io/devices=5,\
             y.deviceclass.resource.k8s.io/devices=32"
        );
        let classes = Classes::default();
        assert!(concerns(COUNT, &classes) && concerns("x.deviceclass.resource.k8s.io/devices", &classes));
        assert!(!concerns("requests.cpu", &classes) && !concerns("requests.example.com/gpu", &classes));
    }
}
