//! LimitPodHardAntiAffinityTopology: pods keep others away from their node alone.

use keelson_api::core::v1::Pod;
use keelson_machinery::status::StatusError;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;

const HOSTNAME: &str = "kubernetes.io/hostname";

pub struct LimitPodHardAntiAffinityTopology;

impl Plugin for LimitPodHardAntiAffinityTopology {
    fn name(&self) -> &'static str {
        "LimitPodHardAntiAffinityTopology"
    }

    fn enabled_by_default(&self) -> bool {
        false
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let writes = matches!(scope.operation, Operation::Create | Operation::Update);
        Handles::VALIDATES.when(writes && scope.is("", "pods"))
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        now(attributes.typed().map_or(Ok(()), check))
    }
}

fn check(pod: &Pod) -> Result<(), StatusError> {
    let affinity = pod
        .spec
        .affinity
        .as_deref()
        .and_then(|all| all.pod_anti_affinity.as_deref());
    let terms = affinity.map_or(&[][..], |anti| {
        &anti.required_during_scheduling_ignored_during_execution
    });
    let Some(other) = terms.iter().find(|term| term.topology_key != HOSTNAME) else {
        return Ok(());
    };
    let key = &other.topology_key;
    let why = format!(
        "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOSTNAME} is allowed"
    );
    Err(StatusError::forbidden("", "pods", &pod.metadata.name, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn only_hosts_are_kept_for_oneself() {
        for (which, key, fits) in [
            ("required", HOSTNAME, true),
            ("required", "zone", false),
            ("preferred", "zone", true),
        ] {
            let term = match which {
                "required" => format!(r#"{{"topologyKey":"{key}"}}"#),
                _ => format!(r#"{{"weight":1,"podAffinityTerm":{{"topologyKey":"{key}"}}}}"#),
            };
            let pod = read(&format!(
                r#"{{"spec":{{"affinity":{{"podAntiAffinity":{{
                    "{which}DuringSchedulingIgnoredDuringExecution":[{term}]}}}}}}}}"#
            ));
            assert_eq!(check(&pod).is_ok(), fits, "{which} {key}");
        }
    }
}
