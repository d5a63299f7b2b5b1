//! What the rules of built-in kinds check of the metadata once more: clients see a cause for each time.

use keelson_server::registry::{Again, KindCode, MetadataChecks};

use crate::api::SCHEME;

/// What most kinds do.
const USUAL: MetadataChecks = MetadataChecks {
    standard_finalizers: true,
    update: Again::BOTH,
    status: Again::CHANGE,
};

const ADMISSION: &str = "admissionregistration.k8s.io";

/// Kinds that look at what changed alone.
const CHANGE: [(&str, &str); 16] = [
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("", "resourcequotas"),
    ("", "services"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("batch", "cronjobs"),
    ("events.k8s.io", "events"),
    ("networking.k8s.io", "networkpolicies"),
    ("networking.k8s.io", "servicecidrs"),
    ("resource.k8s.io", "resourceslices"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("storage.k8s.io", "csidrivers"),
];

/// Kinds that look at the whole alone.
const WHOLE: [(&str, &str); 6] = [
    ("", "limitranges"),
    ("discovery.k8s.io", "endpointslices"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "volumeattachments"),
];

/// Kinds that take any finalizer, and what they check again.
const ANY_FINALIZER: [(&str, &str, Again); 11] = [
    ("", "events", Again::NOTHING),
    ("apiextensions.k8s.io", "customresourcedefinitions", Again::CHANGE),
    ("coordination.k8s.io", "leases", Again::CHANGE),
    ("node.k8s.io", "runtimeclasses", Again::BOTH),
    ("policy", "poddisruptionbudgets", Again::NOTHING),
    (ADMISSION, "mutatingadmissionpolicies", Again::WHOLE),
    (ADMISSION, "mutatingadmissionpolicybindings", Again::WHOLE),
    (ADMISSION, "mutatingwebhookconfigurations", Again::WHOLE),
    (ADMISSION, "validatingadmissionpolicies", Again::WHOLE),
    (ADMISSION, "validatingadmissionpolicybindings", Again::WHOLE),
    (ADMISSION, "validatingwebhookconfigurations", Again::WHOLE),
];

/// Sets the checks of all built-in kinds. What was observed of each with faulty labels, annotations and finalizers.
pub fn register(code: &mut KindCode) {
    let kinds = SCHEME.groups.iter().flat_map(|g| g.versions).flat_map(|v| v.kinds);
    for kind in kinds.filter(|k| k.message.name.starts_with("io.k8s.")) {
        code.metadata_checks(&kind.group, &kind.plural, of(&kind.group, &kind.plural));
    }
}

fn of(group: &str, plural: &str) -> MetadataChecks {
    let is = |(g, p): &(&str, &str)| (*g, *p) == (group, plural);
    if let Some((_, _, update)) = ANY_FINALIZER.iter().find(|(g, p, _)| is(&(*g, *p))) {
        return MetadataChecks {
            standard_finalizers: false,
            update: *update,
            status: *update,
        };
    }
    let update = match () {
        () if CHANGE.iter().any(is) => Again::CHANGE,
        () if WHOLE.iter().any(is) => Again::WHOLE,
        () => Again::BOTH,
    };
    let status = match plural {
        "cronjobs" => Again::NOTHING,
        "certificatesigningrequests" => Again::BOTH,
        _ => USUAL.status,
    };
    MetadataChecks {
        update,
        status,
        ..USUAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exception_is_a_kind_that_there_is() {
        let exceptions = ANY_FINALIZER.iter().map(|(g, p, _)| (*g, *p));
        for (group, plural) in exceptions.chain(CHANGE).chain(WHOLE) {
            let mut kinds = SCHEME.groups.iter().flat_map(|g| g.versions).flat_map(|v| v.kinds);
            assert!(
                kinds.any(|k| k.group == group && k.plural == plural),
                "{plural}.{group}"
            );
        }
    }

    #[test]
    fn what_is_checked_again() {
        assert_eq!(of("", "configmaps"), USUAL);
        assert_eq!(of("apps", "deployments").update, Again::CHANGE);
        assert_eq!(of("batch", "cronjobs").status, Again::NOTHING);
        assert_eq!(of("policy", "poddisruptionbudgets"), MetadataChecks::ONCE);
    }
}
