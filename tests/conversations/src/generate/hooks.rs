//! Webhooks that answer by script: allowed, denied with all kinds of statuses, patches good and bad, warnings, garbage.

use serde_json::{Value, json};

use super::draft::{Draft, configmap, marker_webhook, review, selected, webhook, webhooks};
use super::random::Random;

/// Webhooks of one case.
const HOOKS: usize = 10;
const MESSAGES: [&str; 4] = ["", "no", "a \"quoted\"\nline", "ümlaut"];
const REASONS: [&str; 7] = [
    "",
    "Forbidden",
    "NotFound",
    "Conflict",
    "Own reason",
    "AlreadyExists",
    "Invalid",
];
const CODES: [i64; 10] = [0, 200, 400, 403, 404, 409, 418, 422, 500, 999];

/// A case of webhooks of one kind, each with objects of its own.
pub fn case(random: &mut Random, name: String) -> Value {
    let which = random.pick(&["mutating", "validating"]);
    let mut draft = Draft::new(name, &format!("what {which} webhooks answer"));
    let mut all = Vec::new();
    for number in 0..HOOKS {
        let path = format!("/w{number}");
        let rules = json!([{"operations": ["CREATE", "UPDATE", "DELETE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"]}]);
        let label = format!("l{number}");
        let mut hook = webhook(&format!("w{number}"), &path, rules, selected(Some(("t", &label))));
        hook["failurePolicy"] = random.pick(&["Fail", "Ignore"]).into();
        hook["timeoutSeconds"] = 2.into();
        if which == "mutating" {
            hook["reinvocationPolicy"] = random.pick(&["Never", "IfNeeded"]).into();
        }
        if random.once_in(4) {
            hook["admissionReviewVersions"] = json!(["v1beta1"]);
        }
        let beta = hook["admissionReviewVersions"][0] == "v1beta1";
        let answer = answer(random, which == "mutating", beta);
        draft.stub(&path, answer);
        all.push(hook);
    }
    all.push(marker_webhook(&mut draft));
    webhooks(&mut draft, which, "{uniq}", all);
    draft.wait(400);
    for number in 0..HOOKS {
        requests(&mut draft, random, number);
    }
    for number in 0..HOOKS {
        draft.step(json!({"stubRequests": format!("/w{number}"), "within": 1}));
    }
    draft.value()
}

fn requests(draft: &mut Draft, random: &mut Random, number: usize) {
    let collection = "/api/v1/namespaces/{ns}/configmaps";
    let shown = ["metadata.labels", "metadata.annotations", "data", "immutable"];
    let name = format!("c{number}");
    let object = configmap(&name, json!({"t": format!("l{number}")}));
    let dry = random.pick(&["", "", "?dryRun=All", "?fieldManager=m&fieldValidation=Strict"]);
    draft.ask("POST", format!("{collection}{dry}"), object, &shown);
    if dry != "?dryRun=All" {
        let path = format!("{collection}/{name}");
        match random.below(3) {
            0 => draft.ask("PATCH", path, json!({"data": {"b": "2"}}), &shown),
            1 => draft.ask("DELETE", path, json!({"propagationPolicy": "Background"}), &["kind"]),
            _ => draft.ask(
                "DELETE",
                format!("{collection}?fieldSelector=metadata.name%3D{name}"),
                Value::Null,
                &["kind"],
            ),
        }
    }
}

fn answer(random: &mut Random, mutates: bool, beta: bool) -> Value {
    let mut answer = match random.below(12) {
        0 => broken(random),
        1 | 2 => review(json!({"allowed": true, "warnings": warnings(random)})),
        3..=5 => review(denied(random)),
        6 if !mutates => review(json!({"allowed": true, "auditAnnotations": {"a": "b", "not a key": "c"}})),
        _ => review(patched(random)),
    };
    if beta && answer["body"]["apiVersion"] == "admission.k8s.io/v1" {
        answer["body"]["apiVersion"] = "admission.k8s.io/v1beta1".into();
    }
    answer
}

fn warnings(random: &mut Random) -> Vec<String> {
    let long = "x".repeat(random.pick(&[10, 250, 300, 3000]));
    let all = [
        "plain".to_owned(),
        "with \"quotes\"".to_owned(),
        String::new(),
        "line\nbreak".to_owned(),
        long,
        "ü".to_owned(),
    ];
    let chosen = random.some(&[0, 1, 2, 3, 4, 5], 4);
    chosen.into_iter().map(|number| all[number].clone()).collect()
}

fn denied(random: &mut Random) -> Value {
    let mut status = json!({});
    if !random.once_in(3) {
        status["message"] = random.pick(&MESSAGES).into();
    }
    if !random.once_in(2) {
        status["reason"] = random.pick(&REASONS).into();
    }
    if !random.once_in(3) {
        status["code"] = random.pick(&CODES).into();
    }
    if random.once_in(4) {
        status["details"] = json!({"name": "n", "kind": "k", "retryAfterSeconds": random.pick(&[0, 5]),
            "causes": [{"reason": "r", "message": "m", "field": "f"}]});
    }
    if random.once_in(4) {
        status["status"] = random.pick(&["Success", "Failure"]).into();
    }
    match random.below(6) {
        0 => json!({"allowed": false}),
        1 => json!({"allowed": false, "status": status, "warnings": warnings(random)}),
        _ => json!({"allowed": false, "status": status}),
    }
}

fn patched(random: &mut Random) -> Value {
    let operations = [
        json!([{"op": "add", "path": "/metadata/annotations", "value": {"x": "y"}}]),
        json!([{"op": "add", "path": "/data/b", "value": "2"}, {"op": "remove", "path": "/data/a"}]),
        json!([{"op": "replace", "path": "/data/none", "value": "2"}]),
        json!([{"op": "test", "path": "/data/a", "value": "2"}]),
        json!([{"op": "add", "path": "/data/b", "value": 5}]),
        json!([{"op": "add", "path": "/none", "value": 5}]),
        json!([{"op": "add", "path": "/immutable", "value": "x"}]),
        json!([{"op": "replace", "path": "/metadata/name", "value": "other"}]),
        json!([{"op": "remove", "path": "/metadata"}]),
        json!([{"op": "replace", "path": "", "value": {}}]),
        json!([{"op": "add", "path": "/metadata/labels/t", "value": "other"}]),
        json!([{"op": "copy", "from": "/data/a", "path": "/data/c"}, {"op": "move", "from": "/data/c", "path": "/data/d"}]),
        json!([{"op": "fly", "path": "/data/a"}]),
        json!([{"path": "/data/a"}]),
        json!([{"op": "add", "path": "/metadata/ownerReferences", "value": [{"kind": "x"}]}]),
        json!([{"op": "add", "path": "/metadata/managedFields/0/manager", "value": "w"}]),
        json!([]),
    ];
    let patch = operations[random.below(operations.len())].clone();
    let mut response = json!({"allowed": !random.once_in(8), "patch": patch});
    match random.below(12) {
        0 => response["patchType"] = "Merge".into(),
        1 => response["patchType"] = Value::Null,
        2 => response["patch"] = "bm8gcGF0Y2g=".into(),
        _ => {}
    }
    response
}

fn broken(random: &mut Random) -> Value {
    match random.below(14) {
        0 => json!({"body": ""}),
        1 => json!({"body": "garbage"}),
        2 => json!({"body": "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"response\":{"}),
        3 => json!({"body": [1, 2]}),
        4 => json!({"body": {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}}),
        5 => json!({"body": {"apiVersion": "v1", "kind": "Pod"}}),
        6 => json!({"status": 500, "body": "down"}),
        7 => json!({"status": 404, "body": {}}),
        8 => json!({"status": 302, "headers": {"location": "/w0"}, "body": ""}),
        9 => review(json!({"allowed": true, "uid": "other"})),
        10 => review(json!({"allowed": "yes"})),
        11 => json!({"contentType": "text/plain", "body": review(json!({"allowed": true}))["body"]}),
        12 => {
            let text = "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse: {allowed: true, uid: x}\n";
            json!({"contentType": "application/yaml", "body": text})
        }
        _ => {
            let mut slow = review(json!({"allowed": true}));
            slow["delay"] = 3.into();
            slow
        }
    }
}
