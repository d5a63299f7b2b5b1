//! Pods: what they hold, where they are on the way to their end, and what of both follows from the number of a version.

use keelson_history::{COLORS, Id, Key, State};
use serde_json::{Value, json};

use super::object::{Kind, color};

/// Seconds that a pod may live on after its deletion: longer than any run looks at it.
pub const GRACE: u64 = 600;
/// What holds a pod.
const FINALIZER: &str = "history.example.org/held";
/// So often a pod can be touched; the numbers of its versions have room for no more.
pub const TOUCHES: u32 = 15;

/// A pod on a node, so that its grace runs.
pub fn pod(key: Key, held: bool) -> Value {
    let finalizers = if held { vec![FINALIZER] } else { Vec::new() };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": Kind::Pod.name(key), "labels": {"color": color(key)}, "finalizers": finalizers},
        "spec": {
            "nodeName": "node",
            "terminationGracePeriodSeconds": GRACE,
            "containers": [{"name": "main", "image": "none"}],
        },
    })
}

/// A merge patch that has nothing to do with the end of a pod.
pub fn touch(touch: u32) -> Value {
    json!({"metadata": {"annotations": {"touch": touch.to_string()}}})
}

/// A merge patch that lets go of a pod.
pub fn release() -> Value {
    json!({"metadata": {"finalizers": null}})
}

/// Where a pod is on the way to its end.
pub fn state(pod: &Value) -> State {
    let meta = &pod["metadata"];
    let marked = !meta["deletionTimestamp"].is_null();
    State {
        terminating: marked.then(|| meta["deletionGracePeriodSeconds"].as_u64().unwrap_or(0)),
        held: meta["finalizers"].as_array().is_some_and(|held| !held.is_empty()),
    }
}

/// The number of a version: no two versions of a pod have the same, since touches have numbers, and all else goes one
/// way.
pub fn id(key: Key, pod: &Value) -> Option<Id> {
    let touch: u32 = match &pod["metadata"]["annotations"]["touch"] {
        Value::String(touch) => touch.parse().ok()?,
        _ => 0,
    };
    let State { terminating, held } = state(pod);
    let step = match terminating {
        None => 0,
        Some(0) => 2,
        Some(_) => 1,
    };
    let version = (key * (TOUCHES + 1) + touch) * 8 + step * 2 + u32::from(held);
    Some(version * COLORS + key % COLORS)
}
