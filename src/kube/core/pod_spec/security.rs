//! Security contexts of pods and containers, and what the system of the nodes has of them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use keelson_api::core::v1::{
    AppArmorProfile, Container, EnvVar, PodSecurityContext, PodSpec, SeccompProfile, SecurityContext, VolumeDevice,
    WindowsSecurityContextOptions,
};
use regex::Regex;

use super::Options;
use crate::faults::Faults;
use crate::typed;

const NOT_ON_WINDOWS: &str = "cannot be set for a windows pod";
const NOT_ON_LINUX: &str = "windows options cannot be set for a linux pod";
const NOT_IN_NAMESPACE: &str = "when `hostUsers` is false";
const SECCOMP_TYPE: &str = "can only be set when seccomp type is Localhost";
const APP_ARMOR_NAME: &str = "must be set when AppArmor type is Localhost";
/// Longest name of a profile of AppArmor, in bytes: that of a path.
const PROFILE_MAX: usize = 4095;
const SYSCTL: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
const SYSCTL_MAX: usize = 253;
/// Settings of what processes tell each other with, beside queues of messages that are files.
const IPC_SYSCTLS: [&str; 10] = [
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.msg",
];
/// Most bytes of a specification of credentials, of the domain and the name of a user of Windows.
const CREDENTIALS_MAX: usize = 64 * 1024;
const DOMAIN_MAX: usize = 256;
const USER_MAX: usize = 104;
const USER_CHARACTERS: &str = r#""/\:;|=,+*?<>@[]"#;

/// The containers of a pod that are there from its start, and those that were added, with the names of their lists.
pub fn containers(spec: &PodSpec) -> impl Iterator<Item = (&'static str, usize, &Container)> {
    let init = spec.init_containers.iter().enumerate();
    let init = init.map(|(place, container)| ("initContainers", place, container));
    let usual = spec.containers.iter().enumerate();
    init.chain(usual.map(|(place, container)| ("containers", place, container)))
}

/// What the checks of all containers look at: name, variables, devices, and the security context if there is one.
pub type AnyContainer<'a> = (&'a str, &'a [EnvVar], &'a [VolumeDevice], Option<&'a SecurityContext>);

/// Calls `check` at each container of a pod, those that were added to it included.
pub fn each_container(f: &mut Faults<'_>, spec: &PodSpec, mut check: impl FnMut(&mut Faults<'_>, AnyContainer<'_>)) {
    macro_rules! each {
        ($containers:expr) => {
            for (list, place, c) in $containers {
                let context = c.security_context.as_deref();
                let container = (&*c.name, &*c.env, &*c.volume_devices, context);
                check(&mut f.at(list).index(place), container);
            }
        };
    }
    each!(containers(spec));
    let added = spec.ephemeral_containers.iter().enumerate();
    each!(added.map(|(place, c)| ("ephemeralContainers", place, &c.ephemeral_container_common)));
}

/// The same at the security contexts of those that have one, with the names of the containers.
pub fn each_context(
    f: &mut Faults<'_>,
    spec: &PodSpec,
    mut check: impl FnMut(&mut Faults<'_>, &SecurityContext, &str),
) {
    each_container(f, spec, |f, (name, _, _, context)| {
        if let Some(context) = context {
            check(&mut f.at("securityContext"), context, name);
        }
    });
}

/// Checks the context of a container. `host_users`: its users are those of the host.
pub fn of_container(f: &mut Faults<'_>, context: &SecurityContext, host_users: bool) {
    f.at("runAsUser").user_id(context.run_as_user);
    f.at("runAsGroup").user_id(context.run_as_group);
    if host_users && context.proc_mount.as_deref() == Some("Unmasked") {
        f.at("procMount")
            .invalid("Unmasked", "`hostUsers` must be false to use `Unmasked`");
    }
    f.some("seccompProfile", context.seccomp_profile.as_deref(), seccomp);
    if context.allow_privilege_escalation == Some(false) {
        let both = |what| format!("cannot set `allowPrivilegeEscalation` to false and {what}");
        if context.privileged == Some(true) {
            f.invalid(typed::shown_internal(context), both("`privileged` to true"));
        }
        let added = context.capabilities.iter().flat_map(|capabilities| &capabilities.add);
        let administers = added.filter(|capability| *capability == "CAP_SYS_ADMIN");
        f.while_room(administers, |f, _| {
            f.invalid(typed::shown_internal(context), both("`capabilities.Add` CAP_SYS_ADMIN"));
        });
    }
    f.some("windowsOptions", context.windows_options.as_deref(), windows_options);
    f.some("appArmorProfile", context.app_armor_profile.as_deref(), app_armor);
}

/// Checks the context of a pod.
pub fn of_pod(f: &mut Faults<'_>, spec: &PodSpec, options: &Options) {
    let empty = PodSecurityContext::default();
    let context = spec.security_context.as_deref().unwrap_or(&empty);
    let mut f = f.at("securityContext");
    f.at("fsGroup").user_id(context.fs_group);
    f.at("runAsUser").user_id(context.run_as_user);
    f.at("runAsGroup").user_id(context.run_as_group);
    f.each("supplementalGroups", &context.supplemental_groups, |f, group| {
        f.user_id(Some(*group));
    });
    let text = "ShareProcessNamespace and HostPID cannot both be enabled";
    f.at("shareProcessNamespace")
        .invalid_if(spec.share_process_namespace == Some(true) && spec.host_pid, true, text);
    sysctls(&mut f, context, spec, options);
    f.some("seccompProfile", context.seccomp_profile.as_deref(), seccomp);
    f.some("windowsOptions", context.windows_options.as_deref(), windows_options);
    f.some("appArmorProfile", context.app_armor_profile.as_deref(), app_armor);
    if let Some(policy) = context.se_linux_change_policy.as_deref() {
        let known: &[&str] = match options.any_se_linux_policy {
            true => &["MountOption", "Recursive"],
            false => &["Recursive"],
        };
        f.at("seLinuxChangePolicy").one_of(policy, known);
    }
}

static SYSCTL_FORM: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SYSCTL).ok());

fn sysctls(f: &mut Faults<'_>, context: &PodSecurityContext, spec: &PodSpec, options: &Options) {
    let mut seen = BTreeSet::new();
    f.each("sysctls", &context.sysctls, |f, sysctl| {
        let name = sysctl.name.as_str();
        let is_good = name.len() <= SYSCTL_MAX && SYSCTL_FORM.as_ref().is_some_and(|form| form.is_match(name));
        let mut f = f.at("name");
        if f.filled(name) {
            if !is_good {
                let text = format!("must have at most {SYSCTL_MAX} characters and match regex {SYSCTL}");
                f.invalid(name, text);
            } else if seen.contains(name) {
                f.duplicate(name);
            }
        }
        if !options.host_sysctls
            && let Some(text) = host_sysctl(name, spec)
        {
            f.invalid(name, text);
        }
        seen.insert(name);
    });
}

/// Why a setting of a namespace can't be that of a pod which shares it with the host.
pub fn host_sysctl(name: &str, spec: &PodSpec) -> Option<&'static str> {
    // Where the first separator is a slash, dots and slashes stand for each other.
    let name = match name.find(['.', '/']) {
        Some(at) if name[at..].starts_with('/') => name
            .chars()
            .map(|c| match c {
                '/' => '.',
                '.' => '/',
                other => other,
            })
            .collect(),
        _ => name.to_owned(),
    };
    let of_ipc = name.starts_with("fs.mqueue.") || IPC_SYSCTLS.contains(&name.as_str());
    match name.starts_with("net.") {
        true if spec.host_network => Some("may not be specified when 'hostNetwork' is true"),
        false if of_ipc && spec.host_ipc => Some("may not be specified when 'hostIPC' is true"),
        _ => None,
    }
}

fn seccomp(f: &mut Faults<'_>, profile: &SeccompProfile) {
    f.at("type")
        .required_if(profile.r#type.is_empty(), "type is required when seccompProfile is set");
    let is_local = profile.r#type == "Localhost";
    let mut f = f.at("localhostProfile");
    match profile.localhost_profile.as_deref() {
        None => f.required_if(is_local, "must be set when seccomp type is Localhost"),
        Some(path) if is_local => f.descending_path(path),
        Some(_) => f.invalid(typed::shown_internal(profile), SECCOMP_TYPE),
    }
}

fn app_armor(f: &mut Faults<'_>, profile: &AppArmorProfile) {
    let name = profile.localhost_profile.as_deref();
    match (profile.r#type.as_str(), name) {
        ("", _) => f.at("type").required("type is required when appArmorProfile is set"),
        ("Localhost", None | Some("")) => f.at("localhostProfile").required(APP_ARMOR_NAME),
        ("Localhost", Some(name)) => {
            f.at("localhostProfile")
                .invalid_if(name.trim() != name, name, "must not be padded with whitespace");
            f.at("localhostProfile").max_bytes(name, PROFILE_MAX);
        }
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            f.at("localhostProfile")
                .invalid(name, "can only be set when AppArmor type is Localhost");
        }
        _ => {}
    }
}

fn windows_options(f: &mut Faults<'_>, options: &WindowsSecurityContextOptions) {
    f.at("gmsaCredentialSpecName")
        .subdomain(options.gmsa_credential_spec_name.as_deref());
    if let Some(text) = options.gmsa_credential_spec.as_deref() {
        let mut f = f.at("gmsaCredentialSpec");
        if text.is_empty() {
            f.invalid(text, "gmsaCredentialSpec cannot be an empty string");
        } else if text.len() > CREDENTIALS_MAX {
            f.invalid(text, "gmsaCredentialSpec size must be under 64 KiB");
        }
    }
    if let Some(name) = options.run_as_user_name.as_deref() {
        user_name(&mut f.at("runAsUserName"), name);
    }
}

/// A user of Windows: `DOMAIN\user`.
fn user_name(f: &mut Faults<'_>, name: &str) {
    let mut wrong = |text: &str| f.invalid(name, format!("runAsUserName{text}"));
    if name.is_empty() {
        return wrong(" cannot be an empty string");
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return wrong(" cannot contain control characters");
    }
    let (domain, user) = match name.split_once('\\') {
        Some((_, user)) if user.contains('\\') => return wrong(" cannot contain more than one backslash"),
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    if domain.is_some_and(|domain| domain.len() >= DOMAIN_MAX) {
        wrong("'s Domain length must be under 256 characters");
    }
    if domain.is_some_and(|domain| !is_net_bios(domain) && !is_windows_dns(domain)) {
        wrong("'s Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        wrong("'s User cannot be empty");
    } else if user.len() > USER_MAX {
        wrong("'s User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        wrong("'s User cannot contain only periods or spaces");
    }
    if user.contains(|c| USER_CHARACTERS.contains(c)) {
        wrong(&format!(
            "'s User cannot contain the following characters: {USER_CHARACTERS}"
        ));
    }
}

fn is_net_bios(domain: &str) -> bool {
    (1..=15).contains(&domain.chars().count())
        && !domain.starts_with('.')
        && !domain.contains(|c| r#"\/:*?"<>|"#.contains(c))
}

fn is_windows_dns(domain: &str) -> bool {
    domain.split('.').all(|label| {
        let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = label.as_bytes();
        bytes.len() <= 63
            && ends(bytes.first())
            && ends(bytes.last())
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
    })
}

/// Containers that are processes of a node of Windows: all of a pod's are, or none.
pub fn host_processes(f: &mut Faults<'_>, spec: &PodSpec) {
    let options = |of: Option<&WindowsSecurityContextOptions>| of.and_then(|options| options.host_process);
    let context = spec.security_context.as_deref();
    let of_pod = options(context.and_then(|context| context.windows_options.as_deref()));
    let (mut all, mut of_host) = (0, 0);
    each_container(f, spec, |f, (_, _, _, context)| {
        let own = options(context.and_then(|context| context.windows_options.as_deref()));
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let text = format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
            let mut context = f.at("securityContext");
            context.at("windowsOptions").at("hostProcess").invalid(own, text);
        }
        all += 1;
        of_host += usize::from(own.or(of_pod) == Some(true));
    });
    if of_host == 0 {
        return;
    }
    let text = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
    f.invalid_if(of_host != all, "", text);
    let text = "hostNetwork must be true if pod contains any hostProcess containers";
    f.at("hostNetwork").invalid_if(!spec.host_network, false, text);
}

/// A pod whose users are not those of its host shares no other namespace with it.
pub fn host_users(f: &mut Faults<'_>, spec: &PodSpec, options: &Options) {
    if spec.host_users != Some(false) {
        return;
    }
    for (name, shares) in [
        ("hostNetwork", spec.host_network && !options.users_on_host_network),
        ("HostPID", spec.host_pid),
        ("HostIPC", spec.host_ipc),
    ] {
        f.at(name).forbidden_if(shares, NOT_IN_NAMESPACE);
    }
    if !options.users_with_devices {
        each_container(f, spec, |f, (_, _, devices, _)| {
            f.at("volumeDevices")
                .forbidden_if(!devices.is_empty(), NOT_IN_NAMESPACE);
        });
    }
}

/// What a pod says that runs on nodes of one system alone.
pub fn system(f: &mut Faults<'_>, spec: &PodSpec) {
    let Some(os) = &spec.os else { return };
    match os.name.as_str() {
        "" => f.at("os").at("name").required(""),
        "linux" => not_linux(f, spec),
        "windows" => not_windows(f, spec),
        other => f.at("os").not_supported(other, &["linux", "windows"]),
    }
}

fn not_linux(f: &mut Faults<'_>, spec: &PodSpec) {
    let of_pod = spec.security_context.as_deref();
    let is_said = of_pod.is_some_and(|context| context.windows_options.is_some());
    f.at("securityContext")
        .at("windowsOptions")
        .forbidden_if(is_said, NOT_ON_LINUX);
    each_context(f, spec, |f, context, _| {
        f.at("windowsOptions")
            .forbidden_if(context.windows_options.is_some(), NOT_ON_LINUX);
    });
}

/// What pods of Windows have none of, in the order in which it is told; of their security context where that is said.
const NOT_OF_PODS: [(bool, &str); 15] = [
    (true, "appArmorProfile"),
    (true, "seLinuxOptions"),
    (false, "hostUsers"),
    (false, "hostPID"),
    (false, "hostIPC"),
    (true, "seccompProfile"),
    (true, "fsGroup"),
    (true, "fsGroupChangePolicy"),
    (true, "sysctls"),
    (false, "shareProcessNamespace"),
    (true, "runAsUser"),
    (true, "runAsGroup"),
    (true, "supplementalGroups"),
    (true, "supplementalGroupsPolicy"),
    (true, "seLinuxChangePolicy"),
];
/// The same of the security context of containers.
const NOT_OF_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

fn not_windows(f: &mut Faults<'_>, spec: &PodSpec) {
    let context = spec.security_context.as_deref();
    let in_context: Vec<&str> = context.map_or_else(Vec::new, |context| typed::fields_beside(context, &[]));
    let is_there = |is_of_context: bool, name: &str| match (is_of_context, name) {
        (true, name) => in_context.contains(&name),
        (false, "hostUsers") => spec.host_users.is_some(),
        (false, "hostPID") => spec.host_pid,
        (false, "hostIPC") => spec.host_ipc,
        (false, _) => spec.share_process_namespace.is_some(),
    };
    for (is_of_context, name) in NOT_OF_PODS.into_iter().filter(|(of, name)| is_there(*of, name)) {
        match is_of_context {
            true => f.at("securityContext").at(name).forbidden(NOT_ON_WINDOWS),
            false => f.at(name).forbidden(NOT_ON_WINDOWS),
        }
    }
    each_context(f, spec, |f, context, _| {
        let set = typed::fields_beside(context, &[]);
        for name in NOT_OF_CONTAINERS.into_iter().filter(|name| set.contains(name)) {
            f.at(name).forbidden(NOT_ON_WINDOWS);
        }
    });
}
