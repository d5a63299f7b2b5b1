use serde_json::{Value, json};

use super::{Action, Body, Case, Step};

fn step(step: Value) -> Result<Step, String> {
    let case = json!({"name": "n", "about": "a", "steps": [step]});
    let case: Result<Case, _> = serde_json::from_value(case);
    let mut case = case.map_err(|error| error.to_string())?;
    Ok(case.steps.remove(0))
}

#[test]
fn a_key_that_nobody_knows_is_refused() {
    assert!(
        step(json!({"path": "/api", "onyl": ["kind"]}))
            .unwrap_err()
            .contains("onyl")
    );
    assert!(
        step(json!({"path": "/api", "watch": {"event": 1}}))
            .unwrap_err()
            .contains("event")
    );
    assert!(
        step(json!({"path": "/api", "compare": "nothing"}))
            .unwrap_err()
            .contains("nothing")
    );
}

#[test]
fn a_step_does_one_thing() {
    let action = |keys: Value| {
        step(keys)
            .unwrap()
            .action()
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    assert_eq!(action(json!({"path": "/api"})), Ok(()));
    assert_eq!(action(json!({"sleep": 1})), Ok(()));
    assert!(action(json!({})).is_err());
    assert!(action(json!({"sleep": 1, "path": "/api"})).is_err());
    assert!(action(json!({"sleep": 1, "etcd": "/registry"})).is_err());
}

#[test]
fn what_a_case_leaves_out_is_usual() {
    let step = step(json!({"path": "/api", "watch": {}})).unwrap();
    assert_eq!((step.user.as_str(), step.method.as_str()), ("admin", "GET"));
    let Ok(Action::Watch(_, watch)) = step.action() else {
        panic!("no watch");
    };
    assert_eq!((watch.events, watch.timeout), (None, 8.0));
}

#[test]
fn a_body_of_null_is_a_body() {
    let body = |keys: Value| matches!(step(keys).unwrap().body(), Some(Body::Json(Value::Null)));
    assert!(body(json!({"path": "/api", "body": null})));
    assert!(!body(json!({"path": "/api"})));
}
