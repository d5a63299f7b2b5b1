//! LimitRanges with pods and claims, and ResourceQuotas with all that they count.

use serde_json::{Value, json};

use super::draft::Draft;
use super::random::Random;

const CORE: &str = "/api/v1/namespaces/{ns}";
/// Seconds after which kube-apiserver has seen what was written.
const SEEN: f64 = 0.3;
const CPU: [&str; 6] = ["50m", "100m", "250m", "500m", "1", "2"];
const MEMORY: [&str; 6] = ["32Mi", "64Mi", "128Mi", "256Mi", "1Gi", "100M"];
const STORAGE: [&str; 5] = ["1Gi", "2Gi", "5Gi", "10Gi", "1G"];
const COUNTED: [&str; 26] = [
    "pods",
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
    "requests.ephemeral-storage",
    "limits.ephemeral-storage",
    "services",
    "services.nodeports",
    "services.loadbalancers",
    "configmaps",
    "secrets",
    "persistentvolumeclaims",
    "requests.storage",
    "gold.storageclass.storage.k8s.io/requests.storage",
    "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
    "count/pods",
    "count/configmaps",
    "count/secrets",
    "count/services",
    "count/deployments.apps",
    "count/jobs.batch",
    "requests.example.com/gpu",
    "replicationcontrollers",
];
const SCOPES: [&str; 6] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
];

/// A case of a LimitRange, or two.
pub fn ranges(random: &mut Random, name: String, requests: usize) -> Value {
    let mut draft = Draft::new(name, "pods and claims within limit ranges");
    for number in 0..1 + random.below(2) {
        let kinds = random.some(&["Container", "Pod", "PersistentVolumeClaim"], 2);
        let limits: Vec<Value> = kinds.into_iter().map(|kind| limit(random, kind)).collect();
        let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": format!("l{number}")},
            "spec": {"limits": limits}});
        draft.ask("POST", format!("{CORE}/limitranges"), range, &["spec"]);
    }
    draft.step(json!({"sleep": SEEN}));
    for number in 0..requests {
        let name = format!("o{number}");
        if random.once_in(4) {
            let claim = claim(random, &name);
            draft.ask(
                "POST",
                format!("{CORE}/persistentvolumeclaims?dryRun=All"),
                claim,
                &["spec.resources"],
            );
        } else {
            let shown = [
                "spec.containers.*.resources",
                "spec.initContainers.*.resources",
                "metadata.annotations",
            ];
            let pod = pod(random, &name);
            let shown: &[&str] = if pod["spec"].get("initContainers").is_some() {
                &shown
            } else {
                &[shown[0], shown[2]]
            };
            draft.ask("POST", format!("{CORE}/pods?dryRun=All"), pod, shown);
        }
    }
    draft.value()
}

fn limit(random: &mut Random, kind: &str) -> Value {
    let mut limit = json!({"type": kind});
    let (resource, values): (&str, &[&str]) = match kind {
        "PersistentVolumeClaim" => ("storage", &STORAGE),
        _ => random.pick(&[("cpu", &CPU[..]), ("memory", &MEMORY[..])]),
    };
    let bounds: &[&str] = match kind {
        "Container" => &["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"],
        "Pod" => &["min", "max", "maxLimitRequestRatio"],
        _ => &["min", "max"],
    };
    for bound in random.some(bounds, 4) {
        let place = match bound {
            "min" => random.below(2),
            "defaultRequest" => 1 + random.below(2),
            "default" => 2 + random.below(2),
            "max" => values.len() - 1 - random.below(2),
            _ => 0,
        };
        let value = if bound == "maxLimitRequestRatio" {
            random.pick(&["1", "2", "5"])
        } else {
            values[place]
        };
        limit[bound] = json!({resource: value});
    }
    limit
}

fn claim(random: &mut Random, name: &str) -> Value {
    let mut spec =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": random.pick(&STORAGE)}}});
    if random.once_in(2) {
        spec["storageClassName"] = random.pick(&["gold", "silver", ""]).into();
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec})
}

fn resources(random: &mut Random) -> Value {
    let mut resources = json!({});
    for which in random.some(&["requests", "limits"], 2) {
        for _ in 0..random.below(3) {
            let (name, value) = match random.below(8) {
                0 => ("ephemeral-storage", random.pick(&MEMORY)),
                1 => ("example.com/gpu", "1"),
                2..=4 => ("memory", random.pick(&MEMORY)),
                _ => ("cpu", random.pick(&CPU)),
            };
            resources[which][name] = value.into();
        }
    }
    resources
}

fn pod(random: &mut Random, name: &str) -> Value {
    let container =
        |random: &mut Random, name: &str| json!({"name": name, "image": "i", "resources": resources(random)});
    let mut spec = json!({"containers": [container(random, "a")]});
    if random.once_in(2) {
        spec["containers"].as_array_mut().unwrap().push(container(random, "b"));
    }
    if random.once_in(3) {
        let mut first = container(random, "i");
        if random.once_in(2) {
            first["restartPolicy"] = "Always".into();
        }
        spec["initContainers"] = json!([first]);
    }
    if random.once_in(4) {
        spec["resources"] = json!({"requests": {"cpu": random.pick(&CPU)}, "limits": {"cpu": "2"}});
    }
    if random.once_in(3) {
        spec["activeDeadlineSeconds"] = 5.into();
    }
    if random.once_in(5) {
        spec["priorityClassName"] = "system-node-critical".into();
    }
    if random.once_in(6) {
        let term = json!({"topologyKey": "k", "labelSelector": {"matchLabels": {"a": "b"}}, "namespaces": ["x"]});
        spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

/// A case of quotas, which are looked at again at its end.
pub fn quotas(random: &mut Random, name: String, requests: usize) -> Value {
    let mut draft = Draft::new(name, "objects that quotas count");
    let quotas = 1 + random.below(2);
    for number in 0..quotas {
        quota(&mut draft, random, number);
    }
    draft.step(json!({"sleep": SEEN}));
    let mut made = Vec::new();
    for number in 0..requests {
        let name = format!("o{number}");
        match random.below(6) {
            0 if !made.is_empty() => {
                let path: String = made.swap_remove(random.below(made.len()));
                draft.ask(
                    "DELETE",
                    format!("{path}?gracePeriodSeconds=0"),
                    Value::Null,
                    &["metadata.name"],
                );
            }
            1 if !made.is_empty() => {
                let path = &made[random.below(made.len())];
                let body = json!({"metadata": {"labels": {"x": "y"}}});
                draft.ask("PATCH", path.clone(), body, &["metadata.labels"]);
            }
            _ => {
                let (collection, object) = counted(random, &name);
                let dry = if random.once_in(8) { "?dryRun=All" } else { "" };
                draft.ask("POST", format!("{collection}{dry}"), object, &["metadata.name"]);
                made.push(format!("{collection}/{name}"));
            }
        }
    }
    for number in 0..quotas {
        draft.ask(
            "GET",
            format!("{CORE}/resourcequotas/q{number}"),
            Value::Null,
            &["spec", "status"],
        );
    }
    draft.value()
}

/// A quota whose status says what it allows, as its controller would write it.
fn quota(draft: &mut Draft, random: &mut Random, number: usize) {
    let of_pods = random.once_in(2);
    let counted = if of_pods {
        random.some(&COUNTED[..9], 4)
    } else {
        random.some(&COUNTED, 4)
    };
    let mut hard = json!({});
    let mut used = json!({});
    for name in counted {
        hard[name] = match name {
            _ if name.contains("cpu") => random.pick(&["1", "2500m", "4"]),
            _ if name.contains("storage.k8s.io/persistent") => "2",
            _ if name.contains("memory") || name.contains("storage") => random.pick(&["512Mi", "2Gi", "10Gi"]),
            _ => random.pick(&["0", "1", "2", "4"]),
        }
        .into();
        used[name] = "0".into();
    }
    let mut spec = json!({"hard": hard});
    if of_pods && random.once_in(2) {
        let scope = random.pick(&SCOPES);
        if scope == "PriorityClass" || random.once_in(2) {
            let mut expression = json!({"scopeName": scope, "operator": "Exists"});
            if scope == "PriorityClass" && random.once_in(2) {
                expression["operator"] = random.pick(&["In", "NotIn"]).into();
                expression["values"] = json!(["system-node-critical"]);
            }
            spec["scopeSelector"] = json!({"matchExpressions": [expression]});
        } else {
            spec["scopes"] = json!([scope]);
        }
    }
    let name = format!("q{number}");
    let object = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec});
    draft.ask("POST", format!("{CORE}/resourcequotas"), object, &["spec"]);
    let status = json!({"status": {"hard": hard, "used": used}});
    draft.ask(
        "PATCH",
        format!("{CORE}/resourcequotas/{name}/status"),
        status,
        &["status"],
    );
}

/// Something that quotas count, and the collection that it is made in.
fn counted(random: &mut Random, name: &str) -> (String, Value) {
    let object = |kind: &str, rest: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        for (key, value) in rest.as_object().into_iter().flatten() {
            object[key] = value.clone();
        }
        object
    };
    let core = |plural: &str| format!("{CORE}/{plural}");
    match random.below(12) {
        0 => (core("configmaps"), object("ConfigMap", json!({}))),
        1 => (core("secrets"), object("Secret", json!({}))),
        2 | 3 => {
            let mut spec = json!({"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}],
                "type": random.pick(&["ClusterIP", "NodePort", "LoadBalancer"])});
            if spec["type"] == "LoadBalancer" && random.once_in(2) {
                spec["allocateLoadBalancerNodePorts"] = false.into();
            }
            (core("services"), object("Service", json!({"spec": spec})))
        }
        4 | 5 => (core("persistentvolumeclaims"), claim(random, name)),
        6 => {
            let template =
                json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i"}]}});
            let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
            let mut deployment = object("Deployment", json!({"spec": spec}));
            deployment["apiVersion"] = "apps/v1".into();
            ("/apis/apps/v1/namespaces/{ns}/deployments".to_owned(), deployment)
        }
        _ => (core("pods"), pod(random, name)),
    }
}
