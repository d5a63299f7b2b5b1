//! A case in the making.

use serde_json::{Map, Value, json};

/// What a refusal says.
pub const REFUSAL: [&str; 5] = ["kind", "reason", "code", "message", "details"];
const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";
/// The label of objects that only ask whether a configuration is in force.
const PROBE: &str = "probe";

/// A case.
pub struct Draft {
    name: String,
    about: String,
    labels: Value,
    serial: bool,
    stub: Map<String, Value>,
    steps: Vec<Value>,
    cleanup: Vec<Value>,
}

impl Draft {
    pub fn new(name: String, about: &str) -> Draft {
        Draft {
            name,
            about: about.to_owned(),
            labels: Value::Null,
            serial: false,
            stub: Map::new(),
            steps: Vec::new(),
            cleanup: Vec::new(),
        }
    }

    /// Labels of its namespaces.
    pub fn labels(&mut self, labels: Value) {
        self.labels = labels;
    }

    /// It is never played beside others.
    pub fn serial(&mut self) {
        self.serial = true;
    }

    pub fn stub(&mut self, path: &str, answer: Value) {
        self.stub.insert(path.to_owned(), answer);
    }

    /// A request whose answer is not compared.
    pub fn set_up(&mut self, method: &str, path: impl Into<String>, body: Value) {
        let path = path.into();
        self.steps
            .push(json!({"method": method, "path": path, "body": body, "compare": "none"}));
    }

    /// A request that is compared; `only`: these paths beside the refusal, all where there are none.
    pub fn ask(&mut self, method: &str, path: impl Into<String>, body: Value, only: &[&str]) {
        let mut step = json!({"method": method, "path": path.into()});
        if !body.is_null() {
            step["body"] = body;
        }
        if method == "PATCH" {
            step["headers"] = json!({"Content-Type": "application/merge-patch+json"});
        }
        if !only.is_empty() {
            let all: Vec<&str> = REFUSAL.iter().chain(only).copied().collect();
            step["only"] = json!(all);
        }
        self.steps.push(step);
    }

    pub fn step(&mut self, step: Value) {
        self.steps.push(step);
    }

    /// Makes an object without a namespace, to be deleted at the end. The answer is compared, but for what the server
    /// adds.
    pub fn configure(&mut self, plural: &str, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.cleanup
            .push(json!({"path": format!("{REGISTRATION}/{plural}/{name}")}));
        self.ask("POST", format!("{REGISTRATION}/{plural}"), object, &["metadata.name"]);
    }

    /// Waits until objects with the label of probes are refused with this status. How often it asks is chance, so it
    /// does as somebody else.
    pub fn wait(&mut self, status: u16) {
        let probe = configmap("probe", json!({PROBE: "1"}));
        self.steps.push(json!({
            "method": "POST", "path": "/api/v1/namespaces/{ns}/configmaps?dryRun=All", "body": probe,
            "headers": {"Impersonate-User": PROBE, "Impersonate-Group": "system:masters"},
            "compare": "none", "until": {"status": status}, "within": 20,
        }));
    }

    pub fn value(self) -> Value {
        let mut case = json!({"name": self.name, "about": self.about});
        if !self.labels.is_null() {
            case["namespaceLabels"] = self.labels;
        }
        if self.serial {
            case["serial"] = true.into();
        }
        if !self.stub.is_empty() {
            case["stub"] = self.stub.into();
        }
        case["steps"] = self.steps.into();
        if !self.cleanup.is_empty() {
            case["cleanup"] = self.cleanup.into();
        }
        case
    }
}

pub fn configmap(name: &str, labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"a": "1"}})
}

/// The namespace of the case alone.
pub fn own_namespace() -> Value {
    json!({"matchLabels": {"kubernetes.io/metadata.name": "{ns}"}})
}

/// Objects with this label, probes or none of these.
pub fn selected(label: Option<(&str, &str)>) -> Value {
    match label {
        Some((key, value)) => json!({"matchLabels": {key: value}}),
        None => json!({"matchExpressions": [{"key": PROBE, "operator": "DoesNotExist"}]}),
    }
}

/// The rule of configuration maps that are made.
pub fn configmaps() -> Value {
    json!([{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}])
}

/// A policy that refuses probes with 422, and its binding: whoever is refused knows that what was made before is in
/// force.
pub fn marker_policy(draft: &mut Draft) {
    let spec = json!({
        "validations": [{"expression": "false", "message": "marker"}],
        "matchConstraints": {"resourceRules": configmaps(), "namespaceSelector": own_namespace(),
            "objectSelector": selected(Some((PROBE, "1")))},
    });
    policy(draft, "validating", "z-{uniq}-marker", spec, json!(["Deny"]));
    draft.wait(422);
}

/// A policy and its binding.
pub fn policy(draft: &mut Draft, which: &str, name: &str, spec: Value, actions: Value) {
    let mut binding = json!({"policyName": name});
    if which == "validating" {
        binding["validationActions"] = actions;
    }
    policy_with(draft, which, name, spec, binding);
}

/// A policy and its binding, whose spec is given too.
pub fn policy_with(draft: &mut Draft, which: &str, name: &str, spec: Value, binding: Value) {
    let kind = if which == "validating" {
        "Validating"
    } else {
        "Mutating"
    };
    let object = |suffix: &str, spec: Value| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}AdmissionPolicy{suffix}"),
            "metadata": {"name": name}, "spec": spec})
    };
    draft.configure(&format!("{which}admissionpolicies"), object("", spec));
    draft.configure(&format!("{which}admissionpolicybindings"), object("Binding", binding));
}

/// An answer of a webhook.
pub fn review(response: Value) -> Value {
    json!({"body": {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}})
}

/// A webhook that the stub answers.
pub fn webhook(name: &str, path: &str, rules: Value, selector: Value) -> Value {
    json!({
        "name": format!("{name}.example.com"),
        "clientConfig": {"url": format!("{{stub}}{path}"), "caBundle": "{stubCA}"},
        "rules": rules, "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
        "namespaceSelector": own_namespace(), "objectSelector": selector,
    })
}

/// The one that refuses probes with 400, and its answer.
pub fn marker_webhook(draft: &mut Draft) -> Value {
    draft.stub(
        "/marker",
        review(json!({"allowed": false, "status": {"code": 400, "message": "marker"}})),
    );
    webhook("zz-marker", "/marker", configmaps(), selected(Some((PROBE, "1"))))
}

/// A configuration of webhooks.
pub fn webhooks(draft: &mut Draft, which: &str, name: &str, webhooks: Vec<Value>) {
    let kind = if which == "validating" {
        "Validating"
    } else {
        "Mutating"
    };
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{kind}WebhookConfiguration"), "metadata": {"name": name}, "webhooks": webhooks});
    draft.configure(&format!("{which}webhookconfigurations"), object);
}
