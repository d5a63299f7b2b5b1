//! Options of the validation of pod specifications: faults that are let through because they are stored already.

use keelson_api::core::v1::{Affinity, PodAffinityTerm, PodSpec};

use super::affinity::{all_pod_terms, has_bad_keys, has_bad_values};
use super::resources::is_restarted;
use super::security::{containers, host_sysctl};
use crate::core::resource_check::is_whole_pages;
use crate::core::resource_name::is_huge_pages;
use crate::faults;

/// What is let through. By default nothing is.
#[derive(Clone, Default)]
pub struct Options {
    /// The specification is that of a pod, not of a template.
    pub is_pod: bool,
    /// Amounts of huge pages that are no whole pages.
    pub indivisible_huge_pages: bool,
    /// Values in selectors of pods that no label can have.
    pub bad_selector_values: bool,
    /// Values in selectors of nodes that no label can have.
    pub bad_node_values: bool,
    /// Selectors of pods that are spread.
    pub bad_spread_selector: bool,
    /// Label keys that selectors have as well.
    pub bad_label_keys: bool,
    /// Tokens beside their volume.
    pub outside_token_paths: bool,
    /// Settings of a namespace that is shared with the host.
    pub host_sysctls: bool,
    /// Policies of SELinux other than the one that was always there.
    pub any_se_linux_policy: bool,
    /// Containers that run once and are to be restarted for other resources.
    pub init_restarts: bool,
    /// Devices of pods with users of their own.
    pub users_with_devices: bool,
    /// The host's network for such pods.
    pub users_on_host_network: bool,
    /// Tolerations that compare numbers.
    pub comparing_tolerations: bool,
}

impl Options {
    /// What is let through because `old` has it.
    pub fn of_stored(old: &PodSpec) -> Options {
        let context = old.security_context.as_deref();
        let has_own_users = old.host_users == Some(false);
        let constraints = &old.topology_spread_constraints;
        Options {
            is_pod: false,
            indivisible_huge_pages: has_indivisible_pages(old),
            bad_selector_values: old.affinity.as_deref().is_some_and(has_bad_selectors),
            bad_node_values: required_nodes(old).is_some_and(|nodes| has_bad_values(&nodes.node_selector_terms)),
            bad_spread_selector: constraints
                .iter()
                .any(|constraint| faults::are_in(|f| f.selector("", constraint.label_selector.as_deref()))),
            bad_label_keys: constraints.iter().any(has_bad_keys),
            outside_token_paths: has_outside_token_path(old),
            host_sysctls: context.is_some_and(|context| {
                let mut names = context.sysctls.iter().map(|sysctl| &sysctl.name);
                names.any(|name| host_sysctl(name, old).is_some())
            }),
            any_se_linux_policy: context.is_some_and(|context| context.se_linux_change_policy.is_some()),
            init_restarts: old.init_containers.iter().any(|container| {
                let restarts = |policy: &str| policy == "RestartContainer";
                !is_restarted(container) && container.resize_policy.iter().any(|p| restarts(&p.restart_policy))
            }),
            users_with_devices: has_own_users && containers(old).any(|(_, _, c)| !c.volume_devices.is_empty()),
            users_on_host_network: has_own_users && old.host_network,
            comparing_tolerations: old.tolerations.iter().any(|t| matches!(&*t.operator, "Lt" | "Gt")),
        }
    }
}

fn required_nodes(spec: &PodSpec) -> Option<&keelson_api::core::v1::NodeSelector> {
    let nodes = spec.affinity.as_deref()?.node_affinity.as_deref()?;
    nodes.required_during_scheduling_ignored_during_execution.as_deref()
}

fn has_indivisible_pages(spec: &PodSpec) -> bool {
    let of_containers = containers(spec).flat_map(|(_, _, c)| c.resources.limits.iter().chain(&c.resources.requests));
    let mut pages = of_containers
        .chain(&spec.overhead)
        .filter(|(name, _)| is_huge_pages(name));
    pages.any(|(name, amount)| !is_whole_pages(name, amount))
}

fn has_bad_selectors(affinity: &Affinity) -> bool {
    let is_bad = |term: &PodAffinityTerm| {
        faults::are_in(|f| {
            f.selector("", term.label_selector.as_deref());
            f.selector("", term.namespace_selector.as_deref());
        })
    };
    all_pod_terms(affinity).any(is_bad)
}

fn has_outside_token_path(spec: &PodSpec) -> bool {
    let projected = spec
        .volumes
        .iter()
        .filter_map(|volume| volume.volume_source.projected.as_deref());
    let mut tokens = projected
        .flat_map(|p| &p.sources)
        .filter_map(|s| s.service_account_token.as_deref());
    tokens.any(|token| faults::are_in(|f| f.unreserved_path(&token.path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn what_is_stored_is_let_through() {
        let nothing = Options::of_stored(&PodSpec::default());
        assert!(!nothing.host_sysctls && !nothing.bad_label_keys && !nothing.indivisible_huge_pages);
        let stored: PodSpec = read(
            r#"{"hostUsers":false,"hostNetwork":true,"overhead":{"hugepages-2Mi":"1"},
            "securityContext":{"sysctls":[{"name":"net.a"}],"seLinuxChangePolicy":"MountOption"},
            "containers":[{"name":"c","volumeDevices":[{"name":"v"}]}],
            "initContainers":[{"name":"i","resizePolicy":[{"restartPolicy":"RestartContainer"}]}],
            "volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"../t"}}]}}],
            "tolerations":[{"operator":"Gt"}],
            "affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
                {"labelSelector":{"matchLabels":{"a":"b c"}}}]},
                "nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
                {"matchExpressions":[{"key":"a","values":["b c"]}]}]}}},
            "topologySpreadConstraints":[{"matchLabelKeys":["a"]},{"labelSelector":{"matchLabels":{"a":"b c"}}}]}"#,
        );
        let stored = Options::of_stored(&stored);
        let all = [
            stored.indivisible_huge_pages,
            stored.bad_selector_values,
            stored.bad_node_values,
            stored.bad_spread_selector,
            stored.bad_label_keys,
            stored.outside_token_paths,
            stored.host_sysctls,
            stored.any_se_linux_policy,
            stored.init_restarts,
            stored.users_with_devices,
            stored.users_on_host_network,
            stored.comparing_tolerations,
        ];
        assert_eq!(all, [true; 12]);
    }
}
