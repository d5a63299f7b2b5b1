//! Quality of service: how sure a pod may be of its resources.

use std::collections::BTreeMap;

use keelson_api::core::v1::{PodSpec, ResourceRequirements};
use keelson_machinery::quantity::Quantity;

/// The resources that count.
const RESOURCES: [&str; 2] = ["cpu", "memory"];

/// `Guaranteed` if every container has what it may use, `BestEffort` if none asks for anything, else `Burstable`.
/// Resources of the whole pod stand in the place of those of its containers, even if they name none.
pub fn class(spec: &PodSpec) -> &'static str {
    let all: Vec<&ResourceRequirements> = match spec.resources.as_deref() {
        Some(resources) => vec![resources],
        None => spec
            .containers
            .iter()
            .chain(&spec.init_containers)
            .map(|c| &c.resources)
            .collect(),
    };
    if !all.iter().any(|r| asks(r)) {
        "BestEffort"
    } else if all.iter().all(|r| is_guaranteed(r)) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

fn amount<'a>(amounts: &'a BTreeMap<String, Quantity>, name: &str) -> Option<&'a Quantity> {
    amounts.get(name).filter(|q| !q.is_zero() && !q.is_negative())
}

fn asks(resources: &ResourceRequirements) -> bool {
    RESOURCES.iter().any(|r| {
        amount(&resources.limits, r)
            .or_else(|| amount(&resources.requests, r))
            .is_some()
    })
}

/// Requests are never above limits, so the sums are equal only if all of the parts are.
fn is_guaranteed(resources: &ResourceRequirements) -> bool {
    RESOURCES.iter().all(|r| {
        let limit = amount(&resources.limits, r);
        limit.is_some() && limit == amount(&resources.requests, r)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn the_class_follows_requests_and_limits() {
        let both = r#"{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1000m","memory":"1Gi"}}"#;
        for (resources, expected) in [
            (vec!["{}"], "BestEffort"),
            (vec![r#"{"requests":{"cpu":"0","example.com/gpu":"1"}}"#], "BestEffort"),
            (vec![r#"{"requests":{"cpu":"1"}}"#], "Burstable"),
            (vec![both], "Guaranteed"),
            (vec![both, "{}"], "Burstable"),
            (vec![r#"{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}"#], "Burstable"),
        ] {
            let containers: Vec<String> = resources
                .iter()
                .map(|r| format!(r#"{{"name":"c","resources":{r}}}"#))
                .collect();
            let spec: PodSpec = read(&format!(r#"{{"containers":[{}]}}"#, containers.join(",")));
            assert_eq!(class(&spec), expected, "{resources:?}");
        }
        let spec: PodSpec = read(&format!(r#"{{"containers":[{{"name":"c"}}],"resources":{both}}}"#));
        assert_eq!(class(&spec), "Guaranteed");
        let spec: PodSpec = read(&format!(
            r#"{{"containers":[{{"name":"c","resources":{both}}}],"resources":{{}}}}"#
        ));
        assert_eq!(class(&spec), "BestEffort");
    }
}
