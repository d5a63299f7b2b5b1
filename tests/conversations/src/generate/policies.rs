//! Policies that validate: variables, parameters, conditions, messages, reasons and actions.

use serde_json::{Value, json};

use super::draft::{Draft, configmap, configmaps, marker_policy, own_namespace, policy_with, selected};
use super::expressions::expression;
use super::random::Random;

/// Policies of one case.
const POLICIES: usize = 8;
/// What has parameters says this of them.
const OF_PARAMS: [&str; 6] = [
    "params == null",
    "params.data.max == '1'",
    "int(params.data.max) < 2",
    "has(params.data.none)",
    "params.metadata.name.startsWith('p')",
    "params.data['other'] == object.data.a",
];
const OF_VARIABLES: [&str; 5] = [
    "variables.v0 == variables.v0 && false",
    "variables.v1",
    "type(variables.v0) == string",
    "[variables.v0].size() == 2",
    "variables.none",
];
const REASONS: [&str; 5] = [
    "Invalid",
    "Forbidden",
    "Unauthorized",
    "RequestEntityTooLarge",
    "Invalid",
];
const ACTIONS: [&[&str]; 4] = [&["Deny"], &["Warn"], &["Warn", "Audit"], &["Deny", "Audit"]];

/// A case of policies, each with objects of its own.
pub fn case(random: &mut Random, name: String) -> Value {
    let mut draft = Draft::new(name, "policies with variables, parameters, messages and reasons");
    params(&mut draft);
    for number in 0..POLICIES {
        let (spec, binding) = one(random, number);
        let name = binding["policyName"].as_str().unwrap_or_default().to_owned();
        policy_with(&mut draft, "validating", &name, spec, binding);
    }
    marker_policy(&mut draft);
    for number in 0..POLICIES {
        let mut object = configmap(&format!("c{number}"), json!({"t": format!("l{number}")}));
        let path = "/api/v1/namespaces/{ns}/configmaps?dryRun=All";
        draft.ask("POST", path, object.clone(), &["metadata.name"]);
        object["data"] = json!({"b": "x"});
        draft.ask("POST", path, object, &["metadata.name"]);
    }
    draft.value()
}

fn params(draft: &mut Draft) {
    for (name, max) in [("p1", "1"), ("p2", "2"), ("p3", "x")] {
        let mut object = configmap(name, json!({"params": "yes", "which": name}));
        object["data"] = json!({"max": max});
        draft.set_up("POST", "/api/v1/namespaces/{ns}/configmaps", object);
    }
}

/// The specs of a policy and of its binding.
fn one(random: &mut Random, number: usize) -> (Value, Value) {
    let label = format!("l{number}");
    let has_params = random.once_in(2);
    let validations: Vec<Value> = (0..1 + random.below(3))
        .map(|_| validation(random, has_params))
        .collect();
    let variables: Vec<Value> = ["s", "b", "i"]
        .into_iter()
        .enumerate()
        .map(|(number, letter)| {
            let letter = letter.chars().next().unwrap_or('b');
            json!({"name": format!("v{number}"), "expression": expression(random, letter, 2)})
        })
        .collect();
    let mut spec = json!({
        "failurePolicy": random.pick(&["Fail", "Fail", "Ignore"]),
        "validations": validations,
        "variables": variables,
        "matchConstraints": {"resourceRules": configmaps(), "namespaceSelector": own_namespace(),
            "objectSelector": selected(Some(("t", &label)))},
    });
    if random.once_in(3) {
        let conditions = random.some(
            &[
                "object.data.a == '1'",
                "params == null",
                "!has(object.data.b)",
                "1 / 0 == 1",
            ],
            2,
        );
        let conditions = conditions.into_iter().enumerate();
        spec["matchConditions"] = conditions
            .map(|(number, expression)| json!({"name": format!("c{number}"), "expression": expression}))
            .collect();
    }
    if random.once_in(4) {
        let value = expression(random, 's', 1);
        spec["auditAnnotations"] = json!([{"key": "k", "valueExpression": value}]);
    }
    let mut binding = json!({"policyName": format!("{{uniq}}-{number}"), "validationActions": random.pick(&ACTIONS)});
    if has_params {
        spec["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        if !random.once_in(6) {
            binding["paramRef"] = reference(random);
        }
    }
    (spec, binding)
}

fn reference(random: &mut Random) -> Value {
    let mut reference = json!({"parameterNotFoundAction": random.pick(&["Allow", "Deny"])});
    match random.below(4) {
        0 => reference["selector"] = json!({"matchLabels": {"params": "yes"}}),
        1 => reference["selector"] = json!({"matchLabels": {"which": random.pick(&["p1", "p3", "p4"])}}),
        _ => reference["name"] = random.pick(&["p1", "p2", "p3", "p4"]).into(),
    }
    if random.once_in(3) {
        reference["namespace"] = random.pick(&["{ns}", "default"]).into();
    }
    reference
}

fn validation(random: &mut Random, has_params: bool) -> Value {
    let expression = match random.below(4) {
        0 if has_params => random.pick(&OF_PARAMS).to_owned(),
        0 | 1 => random.pick(&OF_VARIABLES).to_owned(),
        2 => "false".to_owned(),
        _ => expression(random, 'b', 2),
    };
    let mut validation = json!({"expression": expression});
    if random.once_in(3) {
        validation["message"] = random.pick(&["a message", "  spaces  ", "ümlaut"]).into();
    }
    if random.once_in(2) {
        let made = match random.below(6) {
            0 => "'  '".to_owned(),
            1 => "'a\\nb'".to_owned(),
            2 => "'v: ' + string(variables.v2)".to_owned(),
            3 if has_params => "'p: ' + params.metadata.name".to_owned(),
            _ => super::expressions::expression(random, 's', 2),
        };
        validation["messageExpression"] = made.into();
    }
    if random.once_in(3) {
        validation["reason"] = random.pick(&REASONS).into();
    }
    validation
}
