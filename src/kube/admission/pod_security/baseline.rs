//! Checks of the level `baseline`: what is known to lead out of a container.

use std::collections::BTreeSet;

use keelson_api::core::v1::{HTTPGetAction, LifecycleHandler, Probe, SELinuxOptions, TCPSocketAction};
use keelson_machinery::field::text::quote;

use super::checks::{Finding, Subject, containers, plural, quoted, setters};

const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Profiles of AppArmor, in fields and annotations.
pub fn app_armor(subject: &Subject<'_>) -> Option<Finding> {
    let is_allowed = |profile: &str| matches!(profile, "RuntimeDefault" | "Localhost");
    let mut bad = BTreeSet::new();
    let of_pod = subject
        .spec
        .security_context
        .as_deref()
        .and_then(|c| c.app_armor_profile.as_deref());
    let of_pod = of_pod.filter(|profile| !is_allowed(&profile.r#type));
    bad.extend(of_pod.map(|profile| profile.r#type.as_str()));
    let names = subject.those(|view| {
        let profile = view.security.and_then(|security| security.app_armor_profile.as_deref());
        let profile = profile.filter(|profile| !is_allowed(&profile.r#type));
        bad.extend(profile.map(|profile| profile.r#type.as_str()));
        profile.is_some()
    });
    let is_free = |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let annotations = subject.metadata.annotations.iter();
    let annotations = annotations.filter(|(key, value)| key.starts_with(APP_ARMOR_ANNOTATION) && !is_free(value));
    let annotations: Vec<String> = annotations
        .map(|(key, value)| format!("{key}={}", quote(value)))
        .collect();
    let set: Vec<String> = setters(of_pod.is_some(), &names)
        .into_iter()
        .chain((!annotations.is_empty()).then(|| plural("annotation", annotations.len())))
        .collect();
    if set.is_empty() {
        return None;
    }
    let values: Vec<String> = bad.into_iter().map(str::to_owned).chain(annotations).collect();
    let reason = match values.len() {
        1 => "forbidden AppArmor profile",
        _ => "forbidden AppArmor profiles",
    };
    let detail = format!(
        "{} must not set AppArmor profile type to {}",
        set.join(" and "),
        quoted(values)
    );
    Finding::new(reason, detail)
}

/// Capabilities beyond those that runtimes give.
pub fn capabilities(subject: &Subject<'_>) -> Option<Finding> {
    let mut bad = BTreeSet::new();
    let names = subject.those(|view| {
        let added = view.security.and_then(|security| security.capabilities.as_deref());
        let added = added.into_iter().flat_map(|capabilities| &capabilities.add);
        let others: Vec<&String> = added.filter(|name| !CAPABILITIES.contains(&name.as_str())).collect();
        bad.extend(others.iter().copied());
        !others.is_empty()
    });
    if names.is_empty() {
        return None;
    }
    let who = containers(&names);
    let detail = format!(
        "{who} must not include {} in securityContext.capabilities.add",
        quoted(bad)
    );
    Finding::new("non-default capabilities", detail)
}

/// Namespaces of the node.
pub fn host_namespaces(subject: &Subject<'_>) -> Option<Finding> {
    let spec = subject.spec;
    let all = [
        (spec.host_network, "hostNetwork=true"),
        (spec.host_pid, "hostPID=true"),
        (spec.host_ipc, "hostIPC=true"),
    ];
    let used: Vec<&str> = all
        .into_iter()
        .filter(|(is_used, _)| *is_used)
        .map(|(_, text)| text)
        .collect();
    if used.is_empty() {
        return None;
    }
    Finding::new("host namespaces", used.join(", "))
}

/// Folders of the node.
pub fn host_paths(subject: &Subject<'_>) -> Option<Finding> {
    let volumes = subject
        .spec
        .volumes
        .iter()
        .filter(|v| v.volume_source.host_path.is_some());
    let names: Vec<&str> = volumes.map(|volume| volume.name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let detail = format!("{} {}", plural("volume", names.len()), quoted(&names));
    Finding::new("hostPath volumes", detail)
}

/// Ports of the node.
pub fn host_ports(subject: &Subject<'_>) -> Option<Finding> {
    let mut ports = BTreeSet::new();
    let names = subject.those(|view| {
        let used = view.ports.iter().map(|port| port.host_port).filter(|port| *port != 0);
        let used: Vec<String> = used.map(|port| port.to_string()).collect();
        ports.extend(used.iter().cloned());
        !used.is_empty()
    });
    let (who, uses) = (containers(&names), if names.len() == 1 { "uses" } else { "use" });
    if names.is_empty() {
        return None;
    }
    let word = plural("hostPort", ports.len());
    let ports: Vec<String> = ports.into_iter().collect();
    let detail = format!("{who} {uses} {word} {}", ports.join(", "));
    Finding::new("hostPort", detail)
}

/// Hosts that probes and handlers of a container's life ask.
pub fn probes(subject: &Subject<'_>) -> Option<Finding> {
    let mut hosts = BTreeSet::new();
    let names = subject.those(|view| {
        let of_probes = view.probes.into_iter().flatten().flat_map(hosts_of_probe);
        let handlers = view
            .lifecycle
            .map(|cycle| [&cycle.post_start, &cycle.pre_stop].map(Option::as_deref));
        let of_handlers = handlers.into_iter().flatten().flatten().flat_map(hosts_of_handler);
        let asked: Vec<&str> = of_probes.chain(of_handlers).collect();
        hosts.extend(asked.iter().copied());
        !asked.is_empty()
    });
    let names: BTreeSet<&str> = names.into_iter().collect();
    let names: Vec<&str> = names.into_iter().collect();
    let (who, uses) = (containers(&names), if names.len() == 1 { "uses" } else { "use" });
    if names.is_empty() {
        return None;
    }
    let word = plural("probe or lifecycle host", hosts.len());
    let detail = format!("{who} {uses} {word} {}", quoted(hosts));
    Finding::new("probe or lifecycle host", detail)
}

fn hosts<'a>(http: Option<&'a HTTPGetAction>, tcp: Option<&'a TCPSocketAction>) -> impl Iterator<Item = &'a str> {
    let all = [http.map(|http| http.host.as_str()), tcp.map(|tcp| tcp.host.as_str())];
    all.into_iter().flatten().filter(|host| !host.is_empty())
}

fn hosts_of_probe(probe: &Probe) -> impl Iterator<Item = &str> {
    let handler = &probe.probe_handler;
    hosts(handler.http_get.as_deref(), handler.tcp_socket.as_deref())
}

fn hosts_of_handler(handler: &LifecycleHandler) -> impl Iterator<Item = &str> {
    hosts(handler.http_get.as_deref(), handler.tcp_socket.as_deref())
}

/// Containers that may do everything.
pub fn privileged(subject: &Subject<'_>) -> Option<Finding> {
    let names = subject.those(|view| view.security.is_some_and(|security| security.privileged == Some(true)));
    if names.is_empty() {
        return None;
    }
    let detail = format!("{} must not set securityContext.privileged=true", containers(&names));
    Finding::new("privileged", detail)
}

/// Other views of `/proc`.
pub fn proc_mount(subject: &Subject<'_>) -> Option<Finding> {
    let mut types = BTreeSet::new();
    let names = subject.those(|view| {
        let mount = view.security.and_then(|security| security.proc_mount.as_deref());
        let mount = mount.filter(|mount| *mount != "Default");
        types.extend(mount);
        mount.is_some()
    });
    if names.is_empty() {
        return None;
    }
    let detail = format!(
        "{} must not set securityContext.procMount to {}",
        containers(&names),
        quoted(types)
    );
    Finding::new("procMount", detail)
}

/// The same but for pods with users of their own.
pub fn proc_mount_of_own_users(subject: &Subject<'_>) -> Option<Finding> {
    proc_mount(subject).filter(|_| !subject.has_own_users())
}

const SE_LINUX: [&str; 5] = [
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];

/// Labels of SELinux.
pub fn se_linux(subject: &Subject<'_>) -> Option<Finding> {
    se_linux_of(subject, &SE_LINUX[..4])
}

/// The same with one more type.
pub fn se_linux_31(subject: &Subject<'_>) -> Option<Finding> {
    se_linux_of(subject, &SE_LINUX)
}

fn se_linux_of(subject: &Subject<'_>, allowed: &[&str]) -> Option<Finding> {
    let (mut types, mut user, mut role) = (BTreeSet::new(), false, false);
    let mut is_bad = |options: &SELinuxOptions| {
        let other = !allowed.contains(&options.r#type.as_str());
        types.extend(other.then(|| options.r#type.clone()));
        user |= !options.user.is_empty();
        role |= !options.role.is_empty();
        other || !options.user.is_empty() || !options.role.is_empty()
    };
    let of_pod = subject
        .spec
        .security_context
        .as_deref()
        .and_then(|c| c.se_linux_options.as_deref());
    let of_pod = of_pod.is_some_and(&mut is_bad);
    let names = subject.those(|view| {
        let options = view.security.and_then(|security| security.se_linux_options.as_deref());
        options.is_some_and(&mut is_bad)
    });
    let who = setters(of_pod, &names)?;
    let mut what = Vec::new();
    if !types.is_empty() {
        what.push(format!("{} {}", plural("type", types.len()), quoted(types)));
    }
    what.extend(user.then(|| "user may not be set".to_owned()));
    what.extend(role.then(|| "role may not be set".to_owned()));
    let detail = format!(
        "{who} set forbidden securityContext.seLinuxOptions: {}",
        what.join("; ")
    );
    Finding::new("seLinuxOptions", detail)
}

const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Profiles of seccomp by annotations, before there were fields.
pub fn seccomp_annotations(subject: &Subject<'_>) -> Option<Finding> {
    let is_allowed =
        |value: &str| matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
    let names = subject
        .containers()
        .map(|view| format!("{SECCOMP_OF_CONTAINER}{}", view.name));
    let keys = std::iter::once(SECCOMP_OF_POD.to_owned()).chain(names);
    let said = keys.filter_map(|key| Some((subject.metadata.annotations.get(&key)?, key)));
    let forbidden = said.filter(|(value, _)| !is_allowed(value));
    let forbidden: BTreeSet<String> = forbidden
        .map(|(value, key)| format!("{key}={}", quote(value)))
        .collect();
    let word = plural("annotation", forbidden.len());
    let texts: Vec<String> = forbidden.into_iter().collect();
    if texts.is_empty() {
        return None;
    }
    let detail = format!("forbidden {word} {}", texts.join(", "));
    Finding::new("seccompProfile", detail)
}

/// Whether a profile of seccomp may be set.
pub fn is_seccomp_allowed(profile: &str) -> bool {
    matches!(profile, "Localhost" | "RuntimeDefault")
}

/// Profiles of seccomp by fields.
pub fn seccomp(subject: &Subject<'_>) -> Option<Finding> {
    let mut bad = BTreeSet::new();
    let of_pod = subject
        .spec
        .security_context
        .as_deref()
        .and_then(|c| c.seccomp_profile.as_deref());
    let of_pod = of_pod.filter(|profile| !is_seccomp_allowed(&profile.r#type));
    bad.extend(of_pod.map(|profile| profile.r#type.as_str()));
    let names = subject.those(|view| {
        let profile = view.security.and_then(|security| security.seccomp_profile.as_deref());
        let profile = profile.filter(|profile| !is_seccomp_allowed(&profile.r#type));
        bad.extend(profile.map(|profile| profile.r#type.as_str()));
        profile.is_some()
    });
    let who = setters(of_pod.is_some(), &names)?;
    let detail = format!(
        "{who} must not set securityContext.seccompProfile.type to {}",
        quoted(bad)
    );
    Finding::new("seccompProfile", detail)
}

/// Switches of the kernel that are those of the pod alone; the later ones came with later versions.
const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// Switches of the kernel.
pub fn sysctls(subject: &Subject<'_>) -> Option<Finding> {
    sysctls_of(subject, &SYSCTLS[..5])
}

/// The same of v1.27.
pub fn sysctls_27(subject: &Subject<'_>) -> Option<Finding> {
    sysctls_of(subject, &SYSCTLS[..6])
}

/// The same of v1.29.
pub fn sysctls_29(subject: &Subject<'_>) -> Option<Finding> {
    sysctls_of(subject, &SYSCTLS[..10])
}

/// The same of v1.32.
pub fn sysctls_32(subject: &Subject<'_>) -> Option<Finding> {
    sysctls_of(subject, &SYSCTLS)
}

fn sysctls_of(subject: &Subject<'_>, allowed: &[&str]) -> Option<Finding> {
    let set = subject
        .spec
        .security_context
        .as_deref()
        .into_iter()
        .flat_map(|context| &context.sysctls);
    let others = set
        .map(|sysctl| sysctl.name.as_str())
        .filter(|name| !allowed.contains(name));
    let others: Vec<&str> = others.collect();
    if others.is_empty() {
        return None;
    }
    Finding::new("forbidden sysctls", others.join(", "))
}

/// Processes of the node itself, on Windows.
pub fn host_process(subject: &Subject<'_>) -> Option<Finding> {
    let of_pod = subject
        .spec
        .security_context
        .as_deref()
        .and_then(|c| c.windows_options.as_deref());
    let of_pod = of_pod.is_some_and(|options| options.host_process == Some(true));
    let names = subject.those(|view| {
        let options = view.security.and_then(|security| security.windows_options.as_deref());
        options.is_some_and(|options| options.host_process == Some(true))
    });
    let who = setters(of_pod, &names)?;
    Finding::new(
        "hostProcess",
        format!("{who} must not set securityContext.windowsOptions.hostProcess=true"),
    )
}
