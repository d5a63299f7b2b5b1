//! Cells of quotas, classes of pods, and what else the core group has that is small.

use keelson_api::core::v1::{ComponentStatus, ResourceQuota};
use keelson_api::node_k8s_io::v1::RuntimeClass;
use keelson_api::scheduling_k8s_io::v1::PriorityClass;
use keelson_machinery::quantity::Quantity;

/// Names of resources that start so are limits; all others are requests.
const LIMITS: &str = "limits";

cells! { pub const RESOURCE_QUOTA: ResourceQuota =
    "resource_quota_limit" => |o| used(o, true),
    "resource_quota_request" => |o| used(o, false),
}
cells! { pub const COMPONENT_STATUS: ComponentStatus =
    "component_status_error" => |o| healthy(o).map_or_else(String::new, |c| c.error.clone()),
    "component_status_message" => |o| healthy(o).map_or_else(String::new, |c| c.message.clone()),
    "component_status_status" => component_status,
}
cells! { pub const PRIORITY_CLASS: PriorityClass =
    "priority_class_global_default" => |o| o.global_default,
    "priority_class_preemption_policy" => |o| o.preemption_policy.clone().unwrap_or_default(),
    "priority_class_value" => |o| o.value,
}
cells! { pub const RUNTIME_CLASS: RuntimeClass =
    "runtime_class_handler" => |o| o.handler.clone(),
}

/// `cpu: 500m/2, pods: 1/10`: what is used of what the quota grants.
fn used(o: &ResourceQuota, limits: bool) -> String {
    let part = |(name, hard): (&String, &Quantity)| {
        let used = o.status.used.get(name).map_or("0", Quantity::as_str);
        format!("{name}: {used}/{}", hard.as_str())
    };
    let granted = o
        .status
        .hard
        .iter()
        .filter(|(name, _)| name.starts_with(LIMITS) == limits);
    granted.map(part).collect::<Vec<_>>().join(", ")
}

fn healthy(o: &ComponentStatus) -> Option<&keelson_api::core::v1::ComponentCondition> {
    o.conditions.iter().rfind(|c| c.r#type == "Healthy")
}

fn component_status(o: &ComponentStatus) -> String {
    match healthy(o).map(|c| c.status.as_str()) {
        Some("True") => "Healthy",
        Some("False") => "Unhealthy",
        _ => "Unknown",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;

    use super::*;

    #[test]
    fn quotas_show_requests_and_limits_apart() {
        let mut o = ResourceQuota::default();
        let text = br#"{"spec":{"hard":{"services":"1"}},"status":{"hard":{"pods":"10","limits.cpu":"4","cpu":"2"},
            "used":{"cpu":"500m","secrets":"3"}}}"#;
        json::read(text, &mut o).unwrap();
        assert_eq!(used(&o, false), "cpu: 500m/2, pods: 0/10");
        assert_eq!(used(&o, true), "limits.cpu: 0/4");
    }
}
