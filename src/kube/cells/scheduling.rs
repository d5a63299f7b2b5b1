//! Cells of kinds that only a server with alpha and beta groups switched on has, each the one of its group.

use keelson_api::internal_apiserver_k8s_io::v1alpha1::{ServerStorageVersion, StorageVersion};
use keelson_api::scheduling_k8s_io::v1alpha2::PodGroup;
use keelson_api::storagemigration_k8s_io::v1beta1::StorageVersionMigration;

use super::{NONE, UNSET, first_few};

cells! { pub const POD_GROUP: PodGroup =
    "pod_group_policy" => |o| if o.spec.scheduling_policy.gang.is_some() { "Gang" } else { "Basic" },
    "pod_group_status" => pod_group_status,
    "pod_group_workload" => pod_group_workload,
}
cells! { pub const STORAGE_VERSION: StorageVersion =
    "storage_version_common_encoding_version" => |o| {
        o.status.common_encoding_version.clone().unwrap_or_else(|| UNSET.to_owned())
    },
    "storage_version_storage_versions" => storage_versions,
}
cells! { pub const STORAGE_VERSION_MIGRATION: StorageVersionMigration =
    "storage_version_migration_resource" => migrated,
    "storage_version_migration_status" => migration_status,
}

fn pod_group_workload(o: &PodGroup) -> String {
    let template = o.spec.pod_group_template_ref.as_ref();
    let workload = template.and_then(|t| t.workload.as_ref());
    workload.map_or_else(|| NONE.to_owned(), |w| w.workload_name.clone())
}

/// Why the group is about to end, or else whether it was scheduled.
fn pod_group_status(o: &PodGroup) -> String {
    let of = |ty: &str| o.status.conditions.iter().find(|c| c.r#type == ty);
    match (of("DisruptionTarget"), of("PodGroupScheduled")) {
        (Some(disruption), _) => disruption.reason.clone(),
        (None, Some(scheduled)) if scheduled.status == "True" => "Scheduled".to_owned(),
        (None, Some(_)) => "Unschedulable".to_owned(),
        (None, None) => "Pending".to_owned(),
    }
}

/// `server=version` for each server.
fn storage_versions(o: &StorageVersion) -> String {
    let text = |v: &ServerStorageVersion| format!("{}={}", v.api_server_id, v.encoding_version);
    first_few(o.status.storage_versions.iter().map(text).collect(), UNSET)
}

/// `resource.group`.
fn migrated(o: &StorageVersionMigration) -> String {
    let resource = &o.spec.resource;
    match resource.group.as_str() {
        "" => resource.resource.clone(),
        group => format!("{}.{group}", resource.resource),
    }
}

/// The last of the conditions that are true.
fn migration_status(o: &StorageVersionMigration) -> String {
    let known = |ty: &str| matches!(ty, "Running" | "Succeeded" | "Failed");
    let last = o
        .status
        .conditions
        .iter()
        .rfind(|c| c.status == "True" && known(&c.r#type));
    last.map_or("Unknown", |c| c.r#type.as_str()).to_owned()
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;

    use super::*;

    #[test]
    fn a_disruption_counts_for_more_than_scheduling() {
        let scheduled = r#"{"type":"PodGroupScheduled","status":"True","reason":"x"}"#;
        let unscheduled = r#"{"type":"PodGroupScheduled","status":"Unknown","reason":"x"}"#;
        let disrupted = r#"{"type":"DisruptionTarget","status":"True","reason":"Gone"}"#;
        for (conditions, expected) in [
            (String::new(), "Pending"),
            (scheduled.to_owned(), "Scheduled"),
            (unscheduled.to_owned(), "Unschedulable"),
            (format!("{scheduled},{disrupted}"), "Gone"),
        ] {
            let mut o = PodGroup::default();
            json::read(
                format!(r#"{{"status":{{"conditions":[{conditions}]}}}}"#).as_bytes(),
                &mut o,
            )
            .unwrap();
            assert_eq!(pod_group_status(&o), expected);
        }
    }

    #[test]
    fn a_migration_is_where_it_last_was() {
        for (conditions, expected) in [
            ("", "Unknown"),
            (r#"{"type":"Running","status":"False"}"#, "Unknown"),
            (
                r#"{"type":"Running","status":"True"},{"type":"Succeeded","status":"True"}"#,
                "Succeeded",
            ),
        ] {
            let mut o = StorageVersionMigration::default();
            json::read(
                format!(r#"{{"status":{{"conditions":[{conditions}]}}}}"#).as_bytes(),
                &mut o,
            )
            .unwrap();
            assert_eq!(migration_status(&o), expected);
        }
    }
}
