//! Fields of built-in kinds that never change. Those that may change in some ways are a matter of their strategies.

use keelson_server::registry::{Kept, KindCode};

const fn at(path: &'static str) -> Kept {
    Kept::at(path)
}

/// Group, plural, fields.
type Row = (&'static str, &'static str, &'static [Kept]);

const KEPT: &[Row] = &[
    ("certificates.k8s.io", "clustertrustbundles", &[at("spec.signerName")]),
    ("certificates.k8s.io", "podcertificaterequests", &[at("spec")]),
    ("coordination.k8s.io", "leasecandidates", &[at("spec.leaseName")]),
    ("discovery.k8s.io", "endpointslices", &[at("addressType")]),
    ("events.k8s.io", "events", &EVENT),
    ("networking.k8s.io", "ingressclasses", &[at("spec.controller")]),
    ("networking.k8s.io", "ipaddresses", &[at("spec.parentRef")]),
    ("node.k8s.io", "runtimeclasses", &[at("handler")]),
    ("resource.k8s.io", "resourceclaims", &[at("spec")]),
    ("resource.k8s.io", "resourceclaimtemplates", &[at("spec")]),
    ("resource.k8s.io", "resourcepoolstatusrequests", &[at("spec")]),
    (
        "resource.k8s.io",
        "resourceslices",
        &[at("spec.pool.name"), at("spec.driver"), at("spec.nodeName")],
    ),
    ("scheduling.k8s.io", "podgroups", &POD_GROUP),
    ("scheduling.k8s.io", "priorityclasses", &PRIORITY_CLASS),
    (
        "scheduling.k8s.io",
        "workloads",
        &[at("spec.controllerRef"), at("spec.podGroupTemplates")],
    ),
    ("storage.k8s.io", "csidrivers", &DRIVER),
    (
        "storage.k8s.io",
        "csistoragecapacities",
        &[at("nodeTopology"), at("storageClassName")],
    ),
    (
        "storage.k8s.io",
        "storageclasses",
        &[
            at("parameters"),
            at("provisioner"),
            at("reclaimPolicy"),
            at("volumeBindingMode"),
        ],
    ),
    ("storage.k8s.io", "volumeattachments", &[at("spec")]),
    ("storage.k8s.io", "volumeattributesclasses", &ATTRIBUTES_CLASS),
    ("storagemigration.k8s.io", "storageversionmigrations", &[at("spec")]),
];

/// Of the newer group alone: through the older one the same objects may change. The reason is looked at twice.
const EVENT: [Kept; 14] = [
    at("involvedObject"),
    at("reason"),
    at("message"),
    at("source"),
    at("firstTimestamp"),
    at("lastTimestamp"),
    at("count"),
    at("reason"),
    at("type"),
    at("eventTime"),
    at("action"),
    at("related"),
    Kept {
        told: "reportingController",
        ..at("reportingComponent")
    },
    at("reportingInstance"),
];

const POD_GROUP: [Kept; 7] = [
    at("spec.podGroupTemplateRef"),
    at("spec.schedulingPolicy"),
    at("spec.schedulingConstraints"),
    at("spec.resourceClaims"),
    at("spec.disruptionMode"),
    at("spec.priorityClassName"),
    at("spec.priority"),
];

const PRIORITY_CLASS: [Kept; 2] = [
    Kept {
        forbidden: Some("may not be changed in an update."),
        ..at("value")
    },
    at("preemptionPolicy"),
];

const DRIVER: [Kept; 2] = [
    Kept {
        told: "spec.attachedRequired",
        ..at("spec.attachRequired")
    },
    at("spec.volumeLifecycleModes"),
];

const ATTRIBUTES_CLASS: [Kept; 2] = [
    Kept {
        forbidden: Some("updates to driverName are forbidden."),
        ..at("driverName")
    },
    Kept {
        forbidden: Some("updates to parameters are forbidden."),
        ..at("parameters")
    },
];

/// Registers the fields.
pub fn register(code: &mut KindCode) {
    for (group, plural, fields) in KEPT {
        code.kept(group, plural, fields);
    }
}

#[cfg(test)]
mod tests {
    use keelson_machinery::reflect::Type;

    use super::*;
    use crate::api::SCHEME;

    #[test]
    fn every_field_is_one_of_its_kind() {
        for (group, plural, fields) in KEPT {
            let versions = SCHEME.groups.iter().flat_map(|group| group.versions);
            let mut kinds = versions.flat_map(|version| version.kinds);
            let own = kinds
                .find(|kind| kind.group == *group && kind.plural == *plural)
                .unwrap();
            let hub = match &own.same_as {
                Some(same) => kinds_of(&same.group, &same.kind),
                None => kinds_of(&own.group, &own.kind),
            };
            for field in *fields {
                let mut desc = &*hub.message;
                for name in field.path.split('.') {
                    let (_, found) = desc.field(name).unwrap_or_else(|| panic!("{plural}: {}", field.path));
                    if let Type::Message(inner) = &found.ty {
                        desc = inner;
                    }
                }
            }
        }
    }

    fn kinds_of(group: &str, kind: &str) -> &'static keelson_machinery::scheme::KindDesc {
        let versions = SCHEME.groups.iter().flat_map(|group| group.versions);
        let kinds = versions.flat_map(|version| version.kinds);
        let mut own = kinds.filter(|one| one.group == group && one.kind == kind);
        own.clone().find(|one| one.hub).or_else(|| own.next()).unwrap()
    }
}
