//! Policies that mutate: apply configurations and JSON patches.

use serde_json::{Value, json};

use super::draft::{Draft, configmap, marker_policy, own_namespace, policy, selected};
use super::expressions::expression;
use super::random::Random;

/// Policies of one case.
const POLICIES: usize = 8;
/// `$` and a letter: an expression of that type.
const APPLIED: [&str; 20] = [
    "Object{metadata: Object.metadata{labels: {'x': $s}}}",
    "Object{metadata: Object.metadata{annotations: {$s: $s}}}",
    "Object{metadata: Object.metadata{labels: object.metadata.labels.transformMap(k, v, v + 'x')}}",
    "Object{metadata: Object.metadata{finalizers: ['example.com/a', 'example.com/' + $s]}}",
    "Object{data: {'k': $s, 'a': '2'}}",
    "Object{data: {$s: $s}}",
    "Object{immutable: $b}",
    "Object{binaryData: {'b': $y}}",
    "Object{}",
    "$b ? Object{data: {'c': 'd'}} : Object{}",
    "Object{?data: $b ? optional.of({'o': '1'}) : optional.none()}",
    "Object{data: variables.v0}",
    "Object{none: 1}",
    "Object{immutable: 'x'}",
    "Object{metadata: Object.metadata{name: 'other'}}",
    "Object{spec: Object.spec{hostNetwork: $b}}",
    "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, \
     imagePullPolicy: 'Always'})}}",
    "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'side', image: $s}]}}",
    "Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'k', operator: 'Exists'}]}}",
    "Object{spec: Object.spec{nodeSelector: {'n': $s}, ?priority: optional.of(1)}}",
];
const PATCHED: [&str; 18] = [
    "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey($s), value: $s}]",
    "[JSONPatch{op: 'test', path: '/data/a', value: '1'}, JSONPatch{op: 'replace', path: '/data/a', value: $s}]",
    "[JSONPatch{op: 'test', path: '/data/a', value: $s}, JSONPatch{op: 'remove', path: '/data/a'}]",
    "[JSONPatch{op: 'remove', path: '/data/none'}]",
    "[JSONPatch{op: 'move', from: '/data/a', path: '/data/z'}]",
    "[JSONPatch{op: 'copy', from: '/metadata/name', path: '/data/n'}]",
    "[JSONPatch{op: 'add', path: '/data', value: {'m': $s}}]",
    "[JSONPatch{op: 'add', path: '/data/i', value: $i}]",
    "[JSONPatch{op: 'add', path: '/immutable', value: $b}]",
    "[JSONPatch{op: 'what', path: '/data/i', value: 'x'}]",
    "[JSONPatch{op: 'add', path: 'data', value: 'x'}]",
    "[]",
    "$b ? [JSONPatch{op: 'add', path: '/metadata/annotations', value: {'a': 'b'}}] : []",
    "[JSONPatch{op: 'add', path: '/metadata/finalizers', value: ['example.com/f']}]",
    "[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'side', image: $s}}]",
    "[JSONPatch{op: 'add', path: '/spec/containers/0/env', value: [Object.spec.containers.env{name: 'E', value: $s}]}]",
    "[JSONPatch{op: 'replace', path: '/spec/containers/0/image', value: $s}, JSONPatch{op: 'remove', \
     path: '/spec/containers/5'}]",
    "[JSONPatch{op: 'add', path: '/metadata/labels/n', value: null}]",
];

/// A case of policies, each with objects of its own.
pub fn case(random: &mut Random, name: String) -> Value {
    let mut draft = Draft::new(name, "policies that change objects");
    for number in 0..POLICIES {
        let label = format!("l{number}");
        let rules = json!([{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps", "pods"]}]);
        let mut spec = json!({
            "failurePolicy": random.pick(&["Fail", "Fail", "Fail", "Ignore"]),
            "reinvocationPolicy": random.pick(&["Never", "IfNeeded"]),
            "mutations": (0..1 + random.below(2)).map(|_| mutation(random)).collect::<Vec<_>>(),
            "variables": [{"name": "v0", "expression": "{'a': 'var', 'w': object.metadata.name}"}],
            "matchConstraints": {"resourceRules": rules, "namespaceSelector": own_namespace(),
                "objectSelector": selected(Some(("t", &label)))},
        });
        if random.once_in(3) {
            spec["matchConditions"] = json!([{"name": "c", "expression": "object.kind == 'Pod'"}]);
        }
        policy(&mut draft, "mutating", &format!("{{uniq}}-{number}"), spec, Value::Null);
    }
    marker_mutation(&mut draft);
    marker_policy(&mut draft);
    draft.step(json!({"sleep": 1.2}));
    for number in 0..POLICIES {
        objects(&mut draft, number);
    }
    draft.value()
}

/// A policy that mutates probes so that they can't be stored: when they are refused, those before it are in force.
fn marker_mutation(draft: &mut Draft) {
    let rules = super::draft::configmaps();
    let spec = json!({
        "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression":
            "[JSONPatch{op: 'add', path: '/metadata/labels/probe', value: 'not a label'}]"}}],
        "matchConstraints": {"resourceRules": rules, "namespaceSelector": own_namespace(),
            "objectSelector": selected(Some(("probe", "1")))},
    });
    policy(draft, "mutating", "z-{uniq}-marker", spec, Value::Null);
    draft.wait(422);
}

fn objects(draft: &mut Draft, number: usize) {
    let labels = json!({"t": format!("l{number}")});
    let config = configmap(&format!("c{number}"), labels.clone());
    let shown = [
        "metadata.labels",
        "metadata.annotations",
        "metadata.finalizers",
        "data",
        "binaryData",
        "immutable",
    ];
    draft.ask("POST", "/api/v1/namespaces/{ns}/configmaps?dryRun=All", config, &shown);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{number}"), "labels": labels},
        "spec": {"containers": [{"name": "a", "image": "i"}]}});
    let shown = ["metadata.labels", "metadata.annotations", "metadata.finalizers", "spec"];
    draft.step(
        json!({"method": "POST", "path": "/api/v1/namespaces/{ns}/pods?dryRun=All", "body": pod,
        "only": super::draft::REFUSAL.iter().chain(&shown).collect::<Vec<_>>(),
        "ignoreKeys": ["volumes", "volumeMounts"]}),
    );
}

fn mutation(random: &mut Random) -> Value {
    let apply = random.once_in(2);
    let template = if apply {
        random.pick(&APPLIED)
    } else {
        random.pick(&PATCHED)
    };
    let mut made = String::new();
    let mut rest = template.chars();
    while let Some(character) = rest.next() {
        match (character, character == '$') {
            (_, true) => made += &expression(random, rest.next().unwrap_or('b'), 1),
            (other, false) => made.push(other),
        }
    }
    match apply {
        true => json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": made}}),
        false => json!({"patchType": "JSONPatch", "jsonPatch": {"expression": made}}),
    }
}
