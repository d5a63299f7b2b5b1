use serde_json::{Value, json};

use super::convert::converted;
use super::reply::{Content, written};
use crate::case::Answers;

fn whole(answers: Value, method: &str, asked: Value) -> (u16, Value) {
    let answers: Answers = serde_json::from_value(answers).unwrap();
    let written = written(Some(answers), method, &asked);
    let Content::Whole(text) = written.content else {
        panic!("lines");
    };
    (written.status, serde_json::from_str(&text).unwrap())
}

#[test]
fn a_review_is_answered_with_its_uid_and_a_patch_in_base64() {
    let answer = json!({"body": {"response": {"allowed": true, "patch": [{"op": "remove"}]}}});
    let (status, body) = whole(answer, "POST", json!({"request": {"uid": "u1"}}));
    assert_eq!(status, 200);
    assert_eq!(
        body["response"],
        json!({"allowed": true, "patch": "W3sib3AiOiJyZW1vdmUifV0=", "uid": "u1", "patchType": "JSONPatch"})
    );
}

#[test]
fn the_first_answer_that_fits_is_sent_and_nothing_where_none_does() {
    let answers = json!([
        {"when": {"spec.user": "^a"}, "status": 403, "body": 1}, {"when": {"spec.user": "^b"}, "body": 2}
    ]);
    assert_eq!(
        whole(answers.clone(), "POST", json!({"spec": {"user": "alice"}})),
        (403, json!(1))
    );
    assert_eq!(
        whole(answers.clone(), "POST", json!({"spec": {"user": "bob"}})),
        (200, json!(2))
    );
    assert_eq!(whole(answers, "POST", json!({"spec": {"user": "carol"}})).0, 404);
}

#[test]
fn a_method_has_answers_of_its_own() {
    let answer = json!({"status": 201, "body": 1, "methods": {"DELETE": {"body": 2}}});
    assert_eq!(whole(answer.clone(), "GET", Value::Null), (201, json!(1)));
    assert_eq!(whole(answer, "DELETE", Value::Null), (201, json!(2)));
}

#[test]
fn objects_are_converted_to_the_version_that_is_wanted() {
    let spec = json!({
        "move": {"v2": [["spec.a", "spec.b.c"], ["spec.gone", "spec.x"]]}, "set": {"metadata.labels.l": "1"},
        "keep": 1, "response": {"uid": null, "extra": 1}
    });
    let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "request": {
        "uid": "u", "desiredAPIVersion": "g/v2", "objects": [{"apiVersion": "g/v1", "spec": {"a": 7}}, {}]
    }});
    assert_eq!(
        converted(&serde_json::from_value(spec).unwrap(), &review),
        json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": {
            "result": {"status": "Success"}, "extra": 1,
            "convertedObjects": [{
                "apiVersion": "g/v2", "spec": {"b": {"c": 7}}, "metadata": {"labels": {"l": "1"}}
            }]
        }})
    );
}
