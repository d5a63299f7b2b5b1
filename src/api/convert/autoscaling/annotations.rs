//! The annotations of a v1 HorizontalPodAutoscaler that hold what only v2 has fields for.

use std::collections::BTreeMap;

use keelson_machinery::json;
use keelson_machinery::quantity::Quantity;
use keelson_machinery::reflect::Reflect;
use serde_json::{Map, Value};

use crate::autoscaling::v2;

/// Metrics but for the utilization of CPU, as a list of v1 MetricSpec.
pub(super) const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
/// A list of v1 MetricStatus.
pub(super) const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
/// A list of v1 HorizontalPodAutoscalerCondition.
pub(super) const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const SCALE_UP_TOLERANCE: &str = "autoscaling.alpha.kubernetes.io/scale-up-tolerance";
const SCALE_DOWN_TOLERANCE: &str = "autoscaling.alpha.kubernetes.io/scale-down-tolerance";
const ALL: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    SCALE_UP_TOLERANCE,
    SCALE_DOWN_TOLERANCE,
];

type Annotations = BTreeMap<String, String>;

/// Takes out all of these annotations.
pub(super) fn remove(annotations: &mut Annotations) {
    annotations.retain(|key, _| !ALL.contains(&key.as_str()));
}

/// The messages of a list; none if it cannot be read, as kube-apiserver has it.
pub(super) fn read_list<T: Reflect + Default>(annotations: &Annotations, key: &str) -> Vec<T> {
    let items: Vec<Value> = annotations
        .get(key)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let read = |item: Value| {
        let mut message = T::default();
        json::read(item.to_string().as_bytes(), &mut message)
            .ok()
            .map(|_| message)
    };
    items
        .into_iter()
        .map(read)
        .collect::<Option<Vec<T>>>()
        .unwrap_or_default()
}

/// Writes nothing for an empty list.
pub(super) fn write_list<T: Reflect>(annotations: &mut Annotations, key: &str, items: &[T]) {
    if items.is_empty() {
        return;
    }
    let mut out = Vec::new();
    for item in items {
        out.push(if out.is_empty() { b'[' } else { b',' });
        json::write(item, &mut out);
    }
    out.push(b']');
    annotations.insert(key.to_owned(), String::from_utf8_lossy(&out).into_owned());
}

/// The behavior, if there is one and it can be read. Its JSON has the names of Go's fields, for it is that of a type
/// without names of its own.
pub(super) fn read_behavior(annotations: &Annotations) -> Option<v2::HorizontalPodAutoscalerBehavior> {
    let behavior: Value = serde_json::from_str(annotations.get(BEHAVIOR)?).ok()?;
    let tolerance = |key: &str| annotations.get(key).and_then(|text| Quantity::parse(text).ok());
    let rules = |name: &str, tolerance: Option<Quantity>| {
        behavior
            .get(name)
            .filter(|r| r.is_object())
            .map(|r| Box::new(read_rules(r, tolerance)))
    };
    Some(v2::HorizontalPodAutoscalerBehavior {
        scale_up: rules("ScaleUp", tolerance(SCALE_UP_TOLERANCE)),
        scale_down: rules("ScaleDown", tolerance(SCALE_DOWN_TOLERANCE)),
    })
}

fn read_rules(rules: &Value, tolerance: Option<Quantity>) -> v2::HPAScalingRules {
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).map(str::to_owned);
    let number = |v: &Value, key: &str| v.get(key).and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok());
    let policy = |p: &Value| v2::HPAScalingPolicy {
        r#type: text(p, "Type").unwrap_or_default(),
        value: number(p, "Value").unwrap_or_default(),
        period_seconds: number(p, "PeriodSeconds").unwrap_or_default(),
    };
    let policies = rules.get("Policies").and_then(Value::as_array);
    v2::HPAScalingRules {
        stabilization_window_seconds: number(rules, "StabilizationWindowSeconds"),
        select_policy: text(rules, "SelectPolicy"),
        policies: policies.map(|policies| policies.iter().map(policy).collect()),
        tolerance,
    }
}

/// Writes the behavior; its tolerances have annotations of their own.
pub(super) fn write_behavior(annotations: &mut Annotations, behavior: &v2::HorizontalPodAutoscalerBehavior) {
    let mut out = Map::new();
    for (name, rules, key) in [
        ("ScaleUp", &behavior.scale_up, SCALE_UP_TOLERANCE),
        ("ScaleDown", &behavior.scale_down, SCALE_DOWN_TOLERANCE),
    ] {
        out.insert(name.to_owned(), rules.as_deref().map_or(Value::Null, rules_json));
        if let Some(tolerance) = rules.as_ref().and_then(|r| r.tolerance.as_ref()) {
            annotations.insert(key.to_owned(), tolerance.to_string());
        }
    }
    annotations.insert(BEHAVIOR.to_owned(), Value::Object(out).to_string());
}

fn rules_json(rules: &v2::HPAScalingRules) -> Value {
    let policy = |p: &v2::HPAScalingPolicy| serde_json::json!({"Type": p.r#type, "Value": p.value, "PeriodSeconds": p.period_seconds});
    let policies = rules.policies.as_ref();
    let policies = policies.map_or(Value::Null, |policies| policies.iter().map(policy).collect());
    serde_json::json!({
        "StabilizationWindowSeconds": rules.stabilization_window_seconds,
        "SelectPolicy": rules.select_policy,
        "Policies": policies,
        // Also told by an annotation of its own, which is the one that is read.
        "Tolerance": rules.tolerance.as_ref().map(ToString::to_string),
    })
}
