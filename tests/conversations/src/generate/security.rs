//! Pods against the Pod Security Standards: levels, modes and versions of their namespace.

use serde_json::{Value, json};

use super::draft::Draft;
use super::random::Random;

const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];
const MODES: [&str; 3] = ["enforce", "warn", "audit"];
const VERSIONS: [&str; 12] = [
    "latest", "v1.0", "v1.8", "v1.18", "v1.19", "v1.21", "v1.22", "v1.24", "v1.27", "v1.31", "v1.34", "v1.36",
];
const CAPABILITIES: [&str; 8] = [
    "NET_RAW",
    "NET_BIND_SERVICE",
    "SYS_ADMIN",
    "CHOWN",
    "ALL",
    "all",
    "SYS_TIME",
    "KILL",
];
const SYSCTLS: [&str; 8] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net/ipv4/tcp_wmem",
    "kernel.msgmax",
    "net.core.somaxconn",
];
const VOLUMES: [&str; 13] = [
    "emptyDir",
    "configMap",
    "secret",
    "hostPath",
    "nfs",
    "csi",
    "projected",
    "downwardAPI",
    "iscsi",
    "image",
    "ephemeral",
    "gitRepo",
    "persistentVolumeClaim",
];

/// A case of requests in one namespace.
pub fn case(random: &mut Random, name: String, requests: usize) -> Value {
    let mut draft = Draft::new(name, "pods against a level of the Pod Security Standards");
    draft.labels(labels(random));
    for number in 0..requests {
        let name = format!("p{number}");
        match random.below(8) {
            0 => workload(&mut draft, random, &name),
            1 => changed(&mut draft, random, &name),
            _ => draft.ask(
                "POST",
                "/api/v1/namespaces/{ns}/pods?dryRun=All",
                pod(random, &name),
                &["metadata.name"],
            ),
        }
    }
    let metadata = json!({"labels": labels(random)});
    draft.ask(
        "PATCH",
        "/api/v1/namespaces/{ns}?dryRun=All",
        json!({"metadata": metadata}),
        &["metadata.labels"],
    );
    draft.value()
}

fn labels(random: &mut Random) -> Value {
    let mut labels = json!({});
    for mode in random.some(&MODES, 3) {
        labels[format!("pod-security.kubernetes.io/{mode}")] = random.pick(&LEVELS).into();
        if !random.once_in(3) {
            labels[format!("pod-security.kubernetes.io/{mode}-version")] = random.pick(&VERSIONS).into();
        }
    }
    labels
}

/// What has a template of pods.
fn workload(draft: &mut Draft, random: &mut Random, name: &str) {
    let made = pod(random, "none");
    let mut template = json!({"metadata": {"labels": {"a": "b"}}, "spec": made["spec"]});
    if let Some(annotations) = made["metadata"].get("annotations") {
        template["metadata"]["annotations"] = annotations.clone();
    }
    let selector = json!({"matchLabels": {"a": "b"}});
    let (path, kind, mut spec) = match random.below(4) {
        0 => ("batch/v1", "Job", json!({})),
        1 => ("apps/v1", "DaemonSet", json!({"selector": selector})),
        2 => (
            "apps/v1",
            "StatefulSet",
            json!({"selector": selector, "serviceName": "s"}),
        ),
        _ => ("apps/v1", "Deployment", json!({"selector": selector})),
    };
    if kind == "Job" {
        template["spec"]["restartPolicy"] = "Never".into();
    }
    spec["template"] = template;
    let object = json!({"apiVersion": path, "kind": kind, "metadata": {"name": name}, "spec": spec});
    let plural = format!("{}s", kind.to_lowercase());
    draft.ask(
        "POST",
        format!("/apis/{path}/namespaces/{{ns}}/{plural}?dryRun=All"),
        object,
        &["metadata.name"],
    );
}

/// A pod that is made, and then changed: its labels, its image, its ephemeral containers.
fn changed(draft: &mut Draft, random: &mut Random, name: &str) {
    draft.ask(
        "POST",
        "/api/v1/namespaces/{ns}/pods",
        pod(random, name),
        &["metadata.name"],
    );
    let path = format!("/api/v1/namespaces/{{ns}}/pods/{name}");
    match random.below(3) {
        0 => draft.ask(
            "PATCH",
            path,
            json!({"metadata": {"labels": {"x": "y"}}}),
            &["metadata.labels"],
        ),
        1 => draft.ask(
            "PATCH",
            path,
            json!({"spec": {"activeDeadlineSeconds": 5}}),
            &["metadata.name"],
        ),
        _ => {
            let container = container(random, "debug", false);
            let body = json!({"spec": {"ephemeralContainers": [container]}});
            draft.ask("PATCH", path + "/ephemeralcontainers", body, &["metadata.name"]);
        }
    }
}

/// A pod that breaks few rules, or many.
pub fn pod(random: &mut Random, name: &str) -> Value {
    let mut spec = json!({"containers": [container(random, "a", true)]});
    if random.once_in(3) {
        spec["containers"]
            .as_array_mut()
            .unwrap()
            .push(container(random, "b", true));
    }
    if random.once_in(3) {
        let mut first = container(random, "i", true);
        if random.once_in(2) {
            first["restartPolicy"] = "Always".into();
        }
        spec["initContainers"] = json!([first]);
    }
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
    if random.once_in(2) {
        pod["spec"]["securityContext"] = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    }
    for _ in 0..random.below(4) {
        of_pod(random, &mut pod);
    }
    pod
}

fn of_pod(random: &mut Random, pod: &mut Value) {
    let spec = &mut pod["spec"];
    match random.below(14) {
        0 => spec["hostNetwork"] = random.once_in(2).into(),
        1 => spec["hostPID"] = random.once_in(2).into(),
        2 => spec["hostIPC"] = true.into(),
        3 => spec["hostUsers"] = random.once_in(2).into(),
        4 => {
            let named = random.some(&SYSCTLS, 3).into_iter();
            spec["securityContext"]["sysctls"] = named.map(|name| json!({"name": name, "value": "1"})).collect();
        }
        5 | 6 => {
            let kinds = random.some(&VOLUMES, 4).into_iter().enumerate();
            spec["volumes"] = kinds.map(|(number, kind)| volume(kind, number)).collect();
        }
        7 => spec["securityContext"]["seLinuxOptions"] = se_linux(random),
        8 => spec["securityContext"]["seccompProfile"] = profile(random),
        9 => spec["securityContext"]["appArmorProfile"] = profile(random),
        10 => spec["securityContext"]["runAsUser"] = random.pick(&[0, 1000]).into(),
        11 => spec["securityContext"]["runAsNonRoot"] = random.once_in(2).into(),
        12 => spec["os"] = json!({"name": random.pick(&["linux", "windows"])}),
        _ => {
            let profile = random.pick(&["runtime/default", "unconfined", "localhost/x"]);
            let container = random.pick(&["a", "i"]);
            let key = format!("container.apparmor.security.beta.kubernetes.io/{container}");
            pod["metadata"]["annotations"] = json!({key: profile});
        }
    }
}

fn volume(kind: &str, number: usize) -> Value {
    let source = match kind {
        "configMap" => json!({"name": "c"}),
        "secret" => json!({"secretName": "s"}),
        "hostPath" => json!({"path": "/x"}),
        "nfs" => json!({"server": "s", "path": "/"}),
        "csi" => json!({"driver": "d.example.com"}),
        "projected" => json!({"sources": [{"configMap": {"name": "c"}}]}),
        "iscsi" => json!({"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:x", "lun": 0}),
        "image" => json!({"reference": "r"}),
        "ephemeral" => json!({"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}}),
        "gitRepo" => json!({"repository": "r"}),
        "persistentVolumeClaim" => json!({"claimName": "c"}),
        _ => json!({}),
    };
    json!({"name": format!("v{number}"), kind: source})
}

fn se_linux(random: &mut Random) -> Value {
    let mut options = json!({"type": random.pick(&["container_t", "container_kvm_t", "x_t", ""])});
    if random.once_in(3) {
        options["user"] = random.pick(&["u", ""]).into();
    }
    if random.once_in(3) {
        options["role"] = random.pick(&["r", ""]).into();
    }
    options
}

/// Of seccomp or AppArmor.
fn profile(random: &mut Random) -> Value {
    match random.below(3) {
        0 => json!({"type": "Unconfined"}),
        1 => json!({"type": "Localhost", "localhostProfile": "x"}),
        _ => json!({"type": "RuntimeDefault"}),
    }
}

fn container(random: &mut Random, name: &str, ports: bool) -> Value {
    let mut container = json!({"name": name, "image": "i"});
    if random.once_in(2) {
        container["securityContext"] = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    }
    for _ in 0..random.below(3) {
        of_container(random, &mut container, ports);
    }
    container
}

fn of_container(random: &mut Random, container: &mut Value, ports: bool) {
    let context = &mut container["securityContext"];
    match random.below(14) {
        0 => context["privileged"] = random.once_in(2).into(),
        1 | 2 => {
            let which = random.pick(&["add", "drop"]);
            context["capabilities"][which] = json!(random.some(&CAPABILITIES, 3));
        }
        3 => context["runAsNonRoot"] = random.once_in(2).into(),
        4 => context["runAsUser"] = random.pick(&[0, 1000]).into(),
        5 => context["seccompProfile"] = profile(random),
        6 => context["appArmorProfile"] = profile(random),
        7 => context["seLinuxOptions"] = se_linux(random),
        8 => context["procMount"] = random.pick(&["Default", "Unmasked"]).into(),
        9 => context["allowPrivilegeEscalation"] = random.once_in(2).into(),
        10 => context["windowsOptions"] = json!({"hostProcess": random.once_in(2)}),
        11 if ports => {
            let port = random.pick(&[0, 80, 8080]);
            container["ports"] = json!([{"containerPort": 80, "hostPort": port}]);
        }
        12 if ports => {
            let host = random.pick(&["", "1.2.3.4", "127.0.0.1"]);
            let which = random.pick(&["livenessProbe", "readinessProbe"]);
            container[which] = json!({"httpGet": {"port": 80, "host": host}});
        }
        13 if ports => {
            let action = random.pick(&["httpGet", "tcpSocket"]);
            container["lifecycle"] = json!({"preStop": {action: {"port": 80, "host": "example.com"}}});
        }
        _ => {}
    }
}
