//! The checks of the Pod Security Standards: which of them hold at which level and by the rules of which version.

use keelson_api::core::v1::{ContainerPort, Lifecycle, PodSpec, Probe, SecurityContext};
use keelson_machinery::meta::v1::ObjectMeta;

use super::policy::{Demand, Level, Version};
use super::{baseline, restricted};

/// A pod, or the template of one.
pub struct Subject<'a> {
    /// Its metadata.
    pub metadata: &'a ObjectMeta,
    /// What it is to be.
    pub spec: &'a PodSpec,
}

/// What of a container checks look at.
pub struct View<'a> {
    /// Its name.
    pub name: &'a str,
    /// The ports that it opens.
    pub ports: &'a [ContainerPort],
    /// What it may do.
    pub security: Option<&'a SecurityContext>,
    /// Its probes.
    pub probes: [Option<&'a Probe>; 3],
    /// What happens at its beginning and end.
    pub lifecycle: Option<&'a Lifecycle>,
}

impl<'a> Subject<'a> {
    /// All containers, those that run before first, those that were added last.
    pub fn containers(&self) -> impl Iterator<Item = View<'a>> {
        let spec = self.spec;
        let all = spec.init_containers.iter().chain(&spec.containers).map(|c| View {
            name: &c.name,
            ports: &c.ports,
            security: c.security_context.as_deref(),
            probes: [&c.liveness_probe, &c.readiness_probe, &c.startup_probe].map(Option::as_deref),
            lifecycle: c.lifecycle.as_deref(),
        });
        let added = spec.ephemeral_containers.iter().map(|c| &c.ephemeral_container_common);
        all.chain(added.map(|c| View {
            name: &c.name,
            ports: &c.ports,
            security: c.security_context.as_deref(),
            probes: [&c.liveness_probe, &c.readiness_probe, &c.startup_probe].map(Option::as_deref),
            lifecycle: c.lifecycle.as_deref(),
        }))
    }

    /// The names of the containers of which this is true.
    pub fn those(&self, mut is_bad: impl FnMut(&View<'a>) -> bool) -> Vec<&'a str> {
        self.containers()
            .filter(|view| is_bad(view))
            .map(|view| view.name)
            .collect()
    }

    /// The pod is one of Windows.
    pub fn is_windows(&self) -> bool {
        self.spec.os.as_deref().is_some_and(|os| os.name == "windows")
    }

    /// Users of the pod are others than those of its node.
    pub fn has_own_users(&self) -> bool {
        self.spec.host_users == Some(false)
    }
}

/// What a check found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// In few words.
    pub reason: &'static str,
    /// What exactly; may be empty.
    pub detail: String,
}

impl Finding {
    /// In a check's own words.
    pub fn new(reason: &'static str, detail: impl Into<String>) -> Option<Finding> {
        Some(Finding {
            reason,
            detail: detail.into(),
        })
    }
}

type Function = fn(&Subject<'_>) -> Option<Finding>;

/// A check, by the rules of one version and those after it.
struct Check {
    id: &'static str,
    level: Level,
    /// From which minor version on which rules hold, the oldest first.
    versions: &'static [(u32, Function)],
    /// A check of the level below that need not be made beside it.
    instead_of: Option<&'static str>,
}

const fn check(id: &'static str, level: Level, versions: &'static [(u32, Function)]) -> Check {
    Check {
        id,
        level,
        versions,
        instead_of: None,
    }
}

const fn stricter(id: &'static str, instead_of: &'static str, versions: &'static [(u32, Function)]) -> Check {
    Check {
        id,
        level: Level::Restricted,
        versions,
        instead_of: Some(instead_of),
    }
}

/// The last minor version that has rules of its own.
const NEWEST: u32 = 35;

/// In the order in which findings are told.
const CHECKS: [Check; 19] = [
    check("appArmorProfile", Level::Baseline, &[(0, baseline::app_armor)]),
    check("capabilities_baseline", Level::Baseline, &[(0, baseline::capabilities)]),
    check("hostNamespaces", Level::Baseline, &[(0, baseline::host_namespaces)]),
    check("hostPathVolumes", Level::Baseline, &[(0, baseline::host_paths)]),
    check("hostPorts", Level::Baseline, &[(0, baseline::host_ports)]),
    check("hostProbesAndHostLifecycle", Level::Baseline, &[(34, baseline::probes)]),
    check("privileged", Level::Baseline, &[(0, baseline::privileged)]),
    check(
        "procMount",
        Level::Baseline,
        &[(0, baseline::proc_mount), (NEWEST, baseline::proc_mount_of_own_users)],
    ),
    check(
        "seLinuxOptions",
        Level::Baseline,
        &[(0, baseline::se_linux), (31, baseline::se_linux_31)],
    ),
    check(
        "seccompProfile_baseline",
        Level::Baseline,
        &[(0, baseline::seccomp_annotations), (19, baseline::seccomp)],
    ),
    check(
        "sysctls",
        Level::Baseline,
        &[
            (0, baseline::sysctls),
            (27, baseline::sysctls_27),
            (29, baseline::sysctls_29),
            (32, baseline::sysctls_32),
        ],
    ),
    check("windowsHostProcess", Level::Baseline, &[(0, baseline::host_process)]),
    check(
        "allowPrivilegeEscalation",
        Level::Restricted,
        &[(8, restricted::escalation), (25, restricted::escalation_25)],
    ),
    stricter(
        "capabilities_restricted",
        "capabilities_baseline",
        &[(22, restricted::capabilities), (25, restricted::capabilities_25)],
    ),
    stricter("procMount_restricted", "procMount", &[(NEWEST, baseline::proc_mount)]),
    stricter("restrictedVolumes", "hostPathVolumes", &[(0, restricted::volumes)]),
    check(
        "runAsNonRoot",
        Level::Restricted,
        &[(0, restricted::non_root), (NEWEST, restricted::non_root_35)],
    ),
    check(
        "runAsUser",
        Level::Restricted,
        &[(23, restricted::user), (NEWEST, restricted::user_35)],
    ),
    stricter(
        "seccompProfile_restricted",
        "seccompProfile_baseline",
        &[(19, restricted::seccomp), (25, restricted::seccomp_25)],
    ),
];

impl Check {
    fn function(&self, minor: u32) -> Option<Function> {
        let mut fitting = self.versions.iter().rev().filter(|(from, _)| *from <= minor);
        fitting.next().map(|(_, function)| *function)
    }
}

/// What of a pod does not meet a demand.
pub fn findings(demand: Demand, subject: &Subject<'_>) -> Vec<Finding> {
    let minor = match demand.version {
        Version::Minor(minor) => minor.min(NEWEST),
        Version::Latest => NEWEST,
    };
    let holds = |check: &&Check| check.level <= demand.level && check.function(minor).is_some();
    let holding: Vec<&Check> = CHECKS
        .iter()
        .filter(holds)
        .filter(|_| demand.level != Level::Privileged)
        .collect();
    let is_replaced = |id: &str| holding.iter().any(|other| other.instead_of == Some(id));
    let made = holding.iter().filter(|check| !is_replaced(check.id));
    made.filter_map(|check| check.function(minor)?(subject)).collect()
}

/// Reasons and details: `a (b), c`.
pub fn details(findings: &[Finding]) -> String {
    let text = |finding: &Finding| match finding.detail.as_str() {
        "" => finding.reason.to_owned(),
        detail => format!("{} ({detail})", finding.reason),
    };
    findings.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Reasons alone.
pub fn reasons(findings: &[Finding]) -> String {
    let reasons: Vec<&str> = findings.iter().map(|finding| finding.reason).collect();
    reasons.join(", ")
}

/// `"a", "b"`.
pub fn quoted<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> = texts.into_iter().map(|text| format!("\"{}\"", text.as_ref())).collect();
    texts.join(", ")
}

/// `container "a"`, `containers "a", "b"`.
pub fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", names.len()), quoted(names))
}

/// With an s where there is not just one.
pub fn plural(word: &str, count: usize) -> String {
    match count {
        1 => word.to_owned(),
        _ => format!("{word}s"),
    }
}

/// Who sets something that may not be set: `pod and containers "a", "b"`.
pub fn setters(of_pod: bool, names: &[&str]) -> Option<String> {
    match (of_pod, names.is_empty()) {
        (false, true) => None,
        (true, true) => Some("pod".to_owned()),
        (false, false) => Some(containers(names)),
        (true, false) => Some(format!("pod and {}", containers(names))),
    }
}

#[cfg(test)]
mod tests;
