//! Containers: those that run beside each other, those that run before, and those that are added while a pod runs.

use std::collections::{BTreeSet, HashMap, HashSet};

use keelson_api::core::v1::{
    Container, ContainerPort, ContainerResizePolicy, ContainerRestartRule, EphemeralContainer,
    EphemeralContainerCommon, PodSpec, VolumeDevice, VolumeMount,
};
use keelson_machinery::reflect::copy;

use super::resources::{self, is_restarted};
use super::volumes::Sources;
use super::{Options, env, handlers, security};
use crate::faults::{Faults, Unique, has_backsteps};
use crate::{names, typed};

const POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const ACTIONS: [&str; 2] = ["Restart", "RestartAllContainers"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const MESSAGES: [&str; 2] = ["File", "FallbackToLogsOnError"];
const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const RECURSIVE: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];
const MOST_RULES: usize = 20;
const MOST_CODES: usize = 255;
const NO_POLICY: &str = "must specify restartPolicy when restart rules are used";
const NOT_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";
/// What containers may say that are added while a pod runs.
const EPHEMERAL_FIELDS: [&str; 16] = [
    "name",
    "image",
    "command",
    "args",
    "workingDir",
    "envFrom",
    "env",
    "volumeMounts",
    "volumeDevices",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "imagePullPolicy",
    "securityContext",
    "stdin",
    "stdinOnce",
    "tty",
];

/// What of its pod a container is checked against.
pub struct Surroundings<'a> {
    pub spec: &'a PodSpec,
    pub volumes: Sources<'a>,
    /// Names of the pod's claims.
    pub claims: BTreeSet<&'a str>,
    pub options: &'a Options,
}

/// Checks all containers of a pod.
pub fn check(f: &mut Faults<'_>, around: &Surroundings<'_>) {
    let spec = around.spec;
    f.at("containers").required_if(spec.containers.is_empty(), "");
    let grace = spec.termination_grace_period_seconds;
    let mut names = Unique::default();
    f.each("containers", &spec.containers, |f, container| {
        common(f, container, around);
        names.check(&mut f.at("name"), &container.name);
        handlers::check(f, container, grace);
        restarts(f, container.restart_policy.as_deref(), &container.restart_policy_rules);
    });
    host_ports(f, "containers", spec.containers.iter().enumerate());
    init(f, around);
    ephemeral(f, around);
}

fn init(f: &mut Faults<'_>, around: &Surroundings<'_>) {
    let spec = around.spec;
    let grace = spec.termination_grace_period_seconds;
    let mut names: HashSet<&str> = spec.containers.iter().map(|c| c.name.as_str()).collect();
    for (place, container) in spec.init_containers.iter().enumerate() {
        let mut list = f.at("initContainers");
        let mut at = list.index(place);
        common(&mut at, container, around);
        init_restarts(&mut at, container);
        if names.contains(container.name.as_str()) {
            at.at("name").duplicate(&container.name);
        } else if !container.name.is_empty() {
            names.insert(&container.name);
        }
        // They run one after the other; the place is always the first in what is said of their ports.
        host_ports(f, "initContainers", std::iter::once((0, container)));
        let mut list = f.at("initContainers");
        let mut at = list.index(place);
        if is_restarted(container) {
            handlers::check(&mut at, container, grace);
            continue;
        }
        handlers::check_none(&mut at, container);
        if !around.options.init_restarts {
            not_restarted_for_resize(&mut at, &container.resize_policy);
        }
    }
}

fn init_restarts(f: &mut Faults<'_>, container: &Container) {
    let rules = &container.restart_policy_rules;
    match container.restart_policy.as_deref() {
        Some(policy) => restarts(f, Some(policy), rules),
        None if rules.is_empty() => {}
        None => f.at("restartPolicy").required(NO_POLICY),
    }
}

/// What runs once and ends can't be restarted for other resources.
fn not_restarted_for_resize(f: &mut Faults<'_>, policies: &[ContainerResizePolicy]) {
    f.each("resizePolicy", policies, |f, policy| {
        if policy.restart_policy == "RestartContainer" {
            let text = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            f.at("restartPolicy").invalid(&policy.restart_policy, text);
        }
    });
}

fn ephemeral(f: &mut Faults<'_>, around: &Surroundings<'_>) {
    let spec = around.spec;
    if spec.ephemeral_containers.is_empty() {
        return;
    }
    let others = spec.containers.iter().chain(&spec.init_containers);
    let others: HashSet<&str> = others.map(|c| c.name.as_str()).collect();
    let mut names = others.clone();
    f.each("ephemeralContainers", &spec.ephemeral_containers, |f, added| {
        let common_part = &added.ephemeral_container_common;
        let container = as_container(common_part);
        common(f, &container, around);
        plain_image(f, &container.image);
        if !names.insert(&common_part.name) {
            f.at("name").duplicate(&common_part.name);
        }
        let target = added.target_container_name.as_str();
        if !target.is_empty() && !others.contains(target) {
            f.at("targetContainerName").not_found(target, "");
        }
        only_ephemeral(f, added);
    });
}

fn only_ephemeral(f: &mut Faults<'_>, added: &EphemeralContainer) {
    let common = &added.ephemeral_container_common;
    for name in typed::fields_beside(common, &EPHEMERAL_FIELDS) {
        f.at(name).forbidden(NOT_EPHEMERAL);
    }
    f.each("volumeMounts", &common.volume_mounts, |f, mount| {
        f.at("subPath").forbidden_if(!mount.sub_path.is_empty(), NOT_EPHEMERAL);
        let is_said = !mount.sub_path_expr.is_empty();
        f.at("subPathExpr").forbidden_if(is_said, NOT_EPHEMERAL);
    });
}

/// The part of an ephemeral container that others have too.
fn as_container(common: &EphemeralContainerCommon) -> Container {
    let mut container = Container::default();
    copy::copy_named(&mut container, common);
    container
}

/// What all containers have in common.
fn common(f: &mut Faults<'_>, container: &Container, around: &Surroundings<'_>) {
    f.at("name").filled_label(&container.name);
    f.at("image").filled(&container.image);
    let message = &container.termination_message_policy;
    f.at("terminationMessagePolicy").one_of_filled(message, &MESSAGES);
    ports(f, &container.ports);
    env::variables(f, &container.env);
    env::sources(f, &container.env_from);
    mounts(f, container, around);
    devices(f, container, around);
    let wanted = &container.resources;
    resources::of_container(&mut f.at("resources"), wanted, &around.claims, around.options);
    resize_policy(f, &container.resize_policy, &around.spec.restart_policy);
    let host_users = around.spec.host_users != Some(false);
    f.some(
        "securityContext",
        container.security_context.as_deref(),
        |f, context| {
            security::of_container(f, context, host_users);
        },
    );
}

/// The image of a pod's container has no blanks around it; a template's may have, since others replace it.
pub fn plain_image(f: &mut Faults<'_>, image: &str) {
    if image.trim() != image {
        f.at("image")
            .invalid(image, "must not have leading or trailing whitespace");
    }
}

fn ports(f: &mut Faults<'_>, ports: &[ContainerPort]) {
    let mut names = Unique::default();
    f.each("ports", ports, |f, entry| {
        if !entry.name.is_empty() {
            let texts = names::port(&entry.name);
            if texts.is_empty() {
                names.check(&mut f.at("name"), &entry.name);
            }
            f.at("name").texts(&entry.name, texts);
        }
        match entry.container_port {
            0 => f.at("containerPort").required(""),
            number => f.at("containerPort").port(number),
        }
        if entry.host_port != 0 {
            f.at("hostPort").port(entry.host_port);
        }
    });
}

/// A port of the host is given once.
fn host_ports<'c>(f: &mut Faults<'_>, list: &str, containers: impl Iterator<Item = (usize, &'c Container)>) {
    let mut taken = HashSet::new();
    for (place, container) in containers {
        for (number, port) in container.ports.iter().enumerate().filter(|(_, p)| p.host_port != 0) {
            if !taken.insert((&port.protocol, &port.host_ip, port.host_port)) {
                let shown = format!("{}/{}/{}", port.protocol, port.host_ip, port.host_port);
                let mut list = f.at(list);
                list.index(place)
                    .at("ports")
                    .index(number)
                    .at("hostPort")
                    .duplicate(shown);
            }
        }
    }
}

fn mounts(f: &mut Faults<'_>, container: &Container, around: &Surroundings<'_>) {
    if container.volume_mounts.is_empty() {
        return;
    }
    let devices: HashMap<&str, &str> = container
        .volume_devices
        .iter()
        .map(|device| (device.name.as_str(), device.device_path.as_str()))
        .collect();
    let context = container.security_context.as_deref();
    let is_privileged = context.is_some_and(|context| context.privileged == Some(true));
    let mut paths = HashSet::new();
    let mut list = f.at("volumeMounts");
    list.while_room(container.volume_mounts.iter().enumerate(), |list, (place, mount)| {
        mount_names(&mut list.index(place), mount, &devices, around);
        let (path, mut f) = (mount.mount_path.as_str(), list.index(place));
        f.at("mountPath")
            .invalid_if(!paths.insert(path), path, "must be unique");
        // These are told at the list.
        if !mount.sub_path.is_empty() {
            list.at("subPath").descending_path(&mount.sub_path);
        }
        if !mount.sub_path_expr.is_empty() {
            if !mount.sub_path.is_empty() {
                let text = "subPathExpr and subPath are mutually exclusive";
                list.index(place).at("subPathExpr").invalid(&mount.sub_path_expr, text);
            }
            list.at("subPathExpr").descending_path(&mount.sub_path_expr);
        }
        if let Some(propagation) = mount.mount_propagation.as_deref() {
            let mut f = list.at("mountPropagation");
            f.one_of(propagation, &PROPAGATIONS);
            if propagation == "Bidirectional" && !is_privileged {
                f.forbidden("Bidirectional mount propagation is available only to privileged containers");
            }
        }
        recursive(&mut list.at("recursiveReadOnly"), mount);
    });
}

fn mount_names(f: &mut Faults<'_>, mount: &VolumeMount, devices: &HashMap<&str, &str>, around: &Surroundings<'_>) {
    let (name, path) = (mount.name.as_str(), mount.mount_path.as_str());
    f.at("name").filled(name);
    if !around.volumes.contains_key(name) {
        f.at("name").not_found(name, "");
    }
    f.at("mountPath").filled(path);
    if devices.contains_key(name) {
        f.at("name").invalid(name, "must not already exist in volumeDevices");
    }
    let text = "must not already exist as a path in volumeDevices";
    f.at("mountPath")
        .invalid_if(devices.values().any(|device| *device == path), path, text);
}

/// What is read-only all the way down is read-only, and shown to nobody else.
fn recursive(f: &mut Faults<'_>, mount: &VolumeMount) {
    match mount.recursive_read_only.as_deref() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            f.forbidden_if(!mount.read_only, "may only be specified when readOnly is true");
            if !matches!(mount.mount_propagation.as_deref(), None | Some("None")) {
                f.forbidden("may only be specified when mountPropagation is None or not specified");
            }
        }
        Some(other) => f.not_supported(other, &RECURSIVE),
    }
}

fn devices(f: &mut Faults<'_>, container: &Container, around: &Surroundings<'_>) {
    if container.volume_devices.is_empty() {
        return;
    }
    let mounts: HashMap<&str, &str> = container
        .volume_mounts
        .iter()
        .map(|mount| (mount.name.as_str(), mount.mount_path.as_str()))
        .collect();
    let (mut names, mut paths) = (HashSet::new(), HashSet::new());
    f.each("volumeDevices", &container.volume_devices, |f, device| {
        let (name, path) = (device.name.as_str(), device.device_path.as_str());
        f.at("name").filled(name);
        f.at("name").invalid_if(names.contains(name), name, "must be unique");
        device_source(&mut f.at("name"), device, around);
        f.at("devicePath").filled(path);
        f.at("devicePath")
            .invalid_if(paths.contains(path), path, "must be unique");
        if has_backsteps(path) {
            f.at("devicePath").invalid(path, "can not contain backsteps ('..')");
        } else {
            paths.insert(path);
        }
        if mounts.contains_key(name) {
            f.at("name").invalid(name, "must not already exist in volumeMounts");
        }
        let text = "must not already exist as a path in volumeMounts";
        f.at("devicePath")
            .invalid_if(mounts.values().any(|mount| *mount == path), path, text);
        if !name.is_empty() {
            names.insert(name);
        }
    });
}

/// Only what is claimed comes as a device.
fn device_source(f: &mut Faults<'_>, device: &VolumeDevice, around: &Surroundings<'_>) {
    match around.volumes.get(device.name.as_str()) {
        None => f.not_found(&device.name, ""),
        Some(source) if source.persistent_volume_claim.is_none() && source.ephemeral.is_none() => {
            let text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
            f.invalid(&device.name, text);
        }
        Some(_) => {}
    }
}

/// What becomes of a container when its resources change.
fn resize_policy(f: &mut Faults<'_>, policies: &[ContainerResizePolicy], pod_policy: &str) {
    let mut seen = HashSet::new();
    let mut list = f.at("resizePolicy");
    for (place, policy) in policies.iter().enumerate() {
        if !seen.insert(&policy.resource_name) {
            list.index(place).duplicate(&policy.resource_name);
        }
        list.one_of_filled(&policy.resource_name, &["cpu", "memory"]);
        list.one_of_filled(&policy.restart_policy, &["NotRequired", "RestartContainer"]);
        if pod_policy == "Never" && policy.restart_policy != "NotRequired" {
            let text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            list.invalid(&policy.restart_policy, text);
        }
    }
}

/// When a container is started again, if it says otherwise than its pod.
fn restarts(f: &mut Faults<'_>, policy: Option<&str>, rules: &[ContainerRestartRule]) {
    match policy {
        None if rules.is_empty() => return,
        None => f.at("restartPolicy").required(NO_POLICY),
        Some(policy) => f.at("restartPolicy").one_of(policy, &POLICIES),
    }
    f.at("restartPolicyRules").max_items(rules.len(), MOST_RULES);
    f.each("restartPolicyRules", rules, |f, rule| {
        f.at("action").one_of(&rule.action, &ACTIONS);
        let Some(codes) = rule.exit_codes.as_deref() else {
            return f.at("exitCodes").required("must be specified");
        };
        let mut f = f.at("exitCodes");
        f.at("operator").one_of(&codes.operator, &OPERATORS);
        f.at("values").max_items(codes.values.len(), MOST_CODES);
    });
}
