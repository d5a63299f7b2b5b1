//! Cells of dynamic resources: claims, slices, taints, pools.

use keelson_api::resource_k8s_io::v1::{ResourceClaim, ResourceSlice};
use keelson_api::resource_k8s_io::v1alpha3::{PoolStatus, ResourcePoolStatusRequest};
use keelson_api::resource_k8s_io::v1beta2::DeviceTaintRule;
use keelson_machinery::meta::v1::Condition;
use keelson_machinery::table::Cell;

use super::{NONE, count};

cells! { pub const RESOURCE_CLAIM: ResourceClaim =
    "resource_claim_state" => state,
}
cells! { pub const RESOURCE_SLICE: ResourceSlice =
    "resource_slice_driver" => |o| o.spec.driver.clone(),
    "resource_slice_node" => |o| o.spec.node_name.clone().unwrap_or_default(),
    "resource_slice_pool" => |o| o.spec.pool.name.clone(),
}
cells! { pub const DEVICE_TAINT_RULE: DeviceTaintRule =
    "device_taint_rule_effect" => |o| o.spec.taint.effect.clone(),
    "device_taint_rule_key" => |o| o.spec.taint.key.clone(),
    "device_taint_rule_time_added" => |o| o.spec.taint.time_added.map_or_else(|| "".into(), Cell::age),
    "device_taint_rule_value" => |o| o.spec.taint.value.clone(),
}
cells! { pub const RESOURCE_POOL_STATUS_REQUEST: ResourcePoolStatusRequest =
    "resource_pool_status_request_driver" => |o| o.spec.driver.clone(),
    "resource_pool_status_request_allocated" => |o| sum(o, |p| p.allocated_devices),
    "resource_pool_status_request_available" => |o| sum(o, |p| p.available_devices),
    "resource_pool_status_request_completed" => completed,
    "resource_pool_status_request_errors" => |o| sum(o, |p| p.validation_error.is_some().then_some(1)),
    "resource_pool_status_request_pools" => |o| matching(o),
    "resource_pool_status_request_status" => request_status,
    "resource_pool_status_request_total" => |o| sum(o, |p| p.total_devices),
    "resource_pool_status_request_unavailable" => |o| sum(o, |p| p.unavailable_devices),
}

/// `allocated,reserved`: everything that is true of the claim; `pending` if nothing is.
fn state(o: &ResourceClaim) -> String {
    let mut words = Vec::new();
    if o.metadata.deletion_timestamp.is_some() {
        words.push("deleted");
    }
    match (&o.status.allocation, words.is_empty()) {
        (Some(_), _) => words.push("allocated"),
        (None, true) => words.push("pending"),
        (None, false) => {}
    }
    if !o.status.reserved_for.is_empty() {
        words.push("reserved");
    }
    words.join(",")
}

/// The condition that ends the observation well.
fn complete(o: &ResourcePoolStatusRequest) -> Option<&Condition> {
    let mut conditions = o.status.iter().flat_map(|s| &s.conditions);
    conditions.find(|c| c.r#type == "Complete" && c.status == "True")
}

/// A number summed over the pools; `-` until all were looked at.
fn sum(o: &ResourcePoolStatusRequest, number: fn(&PoolStatus) -> Option<i32>) -> String {
    if complete(o).is_none() {
        return "-".to_owned();
    }
    let pools = o.status.iter().flat_map(|s| &s.pools);
    pools.filter_map(number).map(i64::from).sum::<i64>().to_string()
}

/// How many pools there are, looked at or not.
fn matching(o: &ResourcePoolStatusRequest) -> i64 {
    o.status.as_ref().and_then(|s| s.pool_count).unwrap_or(0).into()
}

fn request_status(o: &ResourcePoolStatusRequest) -> String {
    let Some(status) = &o.status else {
        return "Pending".to_owned();
    };
    let failed = status
        .conditions
        .iter()
        .any(|c| c.r#type == "Failed" && c.status == "True");
    let (seen, all) = (count(status.pools.len()), matching(o));
    match (failed, complete(o)) {
        (true, _) => "Failed".to_owned(),
        (false, None) => "Pending".to_owned(),
        (false, Some(_)) if seen < all => format!("Complete ({seen}/{all} pools)"),
        (false, Some(_)) => "Complete".to_owned(),
    }
}

fn completed(o: &ResourcePoolStatusRequest) -> Cell {
    complete(o).map_or_else(|| NONE.into(), |c| Cell::age(c.last_transition_time))
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;

    use super::*;

    #[test]
    fn the_state_adds_up() {
        let deleted = r#"{"deletionTimestamp":"2020-01-01T00:00:00Z"}"#;
        for (metadata, status, expected) in [
            ("{}", "{}", "pending"),
            ("{}", r#"{"allocation":{}}"#, "allocated"),
            (deleted, "{}", "deleted"),
            (
                deleted,
                r#"{"allocation":{},"reservedFor":[{"name":"p"}]}"#,
                "deleted,allocated,reserved",
            ),
        ] {
            let mut o = ResourceClaim::default();
            let text = format!(r#"{{"metadata":{metadata},"status":{status}}}"#);
            json::read(text.as_bytes(), &mut o).unwrap();
            assert_eq!(state(&o), expected);
        }
    }

    #[test]
    fn pools_are_summed_when_all_were_seen() {
        let pools = r#"{"totalDevices":10,"allocatedDevices":3},{"totalDevices":5,"validationError":"x"}"#;
        let complete = r#"{"type":"Complete","status":"True"}"#;
        for (status, expected) in [
            (String::new(), ["-", "-", "Pending"]),
            (format!(r#""pools":[{pools}]"#), ["-", "-", "Pending"]),
            (
                format!(r#""poolCount":2,"pools":[{pools}],"conditions":[{complete}]"#),
                ["15", "1", "Complete"],
            ),
            (
                format!(r#""poolCount":3,"pools":[{pools}],"conditions":[{complete}]"#),
                ["15", "1", "Complete (2/3 pools)"],
            ),
        ] {
            let mut o = ResourcePoolStatusRequest::default();
            json::read(format!(r#"{{"status":{{{status}}}}}"#).as_bytes(), &mut o).unwrap();
            let errors = sum(&o, |p| p.validation_error.is_some().then_some(1));
            let found = [sum(&o, |p| p.total_devices), errors, request_status(&o)];
            assert_eq!(found, expected, "{status}");
        }
    }
}
