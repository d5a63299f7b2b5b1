//! SubjectAccessReviews: the question, its answer, and the question as match conditions see it.

use keelson_machinery::selector::label::Operator;
use keelson_net::client::{Answer, document};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Failure;
use crate::authz::Decision;
use crate::request_info::RequestInfo;
use crate::user::User;

/// The version of the reviews that a webhook understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    V1Beta1,
}

/// A review to be sent.
pub(super) struct Question {
    pub document: Vec<u8>,
    /// What it is about, which answers are remembered by.
    pub spec: Vec<u8>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    allowed: bool,
    denied: bool,
    reason: String,
}

impl Version {
    /// `v1` or `v1beta1`.
    pub fn parse(text: &str) -> Option<Version> {
        match text {
            "v1" => Some(Version::V1),
            "v1beta1" => Some(Version::V1Beta1),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Version::V1 => "v1",
            Version::V1Beta1 => "v1beta1",
        }
    }

    pub(super) fn question(self, user: &User, info: &RequestInfo) -> Question {
        let spec = Value::Object(self.spec(user, info));
        let review = json!({
            "kind": "SubjectAccessReview",
            "apiVersion": format!("authorization.k8s.io/{}", self.name()),
            "metadata": {},
            "spec": &spec,
            "status": {"allowed": false},
        });
        Question {
            document: review.to_string().into_bytes(),
            spec: spec.to_string().into_bytes(),
        }
    }

    fn spec(self, user: &User, info: &RequestInfo) -> Map<String, Value> {
        let mut spec = Map::new();
        match info.is_resource {
            true => spec.insert("resourceAttributes".to_owned(), Value::Object(resource(info))),
            false => spec.insert(
                "nonResourceAttributes".to_owned(),
                json!({"path": info.path, "verb": info.verb}),
            ),
        };
        text(&mut spec, "user", &user.name);
        let groups = match self {
            Version::V1 => "groups",
            Version::V1Beta1 => "group",
        };
        if !user.groups.is_empty() {
            spec.insert(groups.to_owned(), json!(user.groups));
        }
        if !user.extra.is_empty() {
            spec.insert("extra".to_owned(), json!(user.extra));
        }
        text(&mut spec, "uid", &user.uid);
        spec
    }

    /// What the webhook said.
    pub(super) fn decision(self, answer: &Answer) -> Result<Decision, Failure> {
        let unanswered = Failure::Unanswered;
        let review = document(answer, "authorization.k8s.io", self.name(), "SubjectAccessReview");
        let mut review = review.map_err(|error| unanswered(error.to_string()))?;
        let status = review.remove("status").unwrap_or_default();
        let status: Option<Status> =
            serde_json::from_value(status).map_err(|error| unanswered(format!("json: {error}")))?;
        match status.unwrap_or_default() {
            Status {
                allowed: true,
                denied: true,
                ..
            } => Err(Failure::Contradiction(
                "webhook subject access review returned both allow and deny response".to_owned(),
            )),
            Status {
                allowed: true, reason, ..
            } => Ok(Decision::Allow(reason)),
            Status {
                denied: true, reason, ..
            } => Ok(Decision::Deny(reason)),
            Status { reason, .. } => Ok(Decision::NoOpinion(reason)),
        }
    }
}

fn text(map: &mut Map<String, Value>, name: &str, value: &str) {
    if !value.is_empty() {
        map.insert(name.to_owned(), Value::from(value));
    }
}

fn attributes(info: &RequestInfo) -> [(&'static str, &str); 7] {
    [
        ("namespace", &info.namespace),
        ("verb", &info.verb),
        ("group", &info.group),
        ("version", &info.version),
        ("resource", &info.resource),
        ("subresource", &info.subresource),
        ("name", &info.name),
    ]
}

fn resource(info: &RequestInfo) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, value) in attributes(info) {
        text(&mut map, name, value);
    }
    selectors(&mut map, info, false);
    map
}

/// What narrows the request down, sorted by keys. `whole`: with the fields that reviews leave out.
fn selectors(map: &mut Map<String, Value>, info: &RequestInfo, whole: bool) {
    let mut put = |name: &str, mut requirements: Vec<Value>| {
        if requirements.is_empty() {
            return;
        }
        requirements.sort_by(|a, b| a["key"].as_str().cmp(&b["key"].as_str()));
        let selector = match whole {
            true => json!({"rawSelector": "", "requirements": requirements}),
            false => json!({"requirements": requirements}),
        };
        map.insert(name.to_owned(), selector);
    };
    let fields = info.fields.iter().map(|term| {
        let operator = if term.negated { "NotIn" } else { "In" };
        json!({"key": term.field, "operator": operator, "values": [term.value]})
    });
    put("fieldSelector", fields.collect());
    let labels = info.labels.iter().filter_map(|requirement| {
        let operator = match requirement.operator() {
            Operator::In | Operator::Equals | Operator::DoubleEquals => "In",
            Operator::NotIn | Operator::NotEquals => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
            // Reviews have no words for an order.
            Operator::Greater | Operator::Less => return None,
        };
        Some(match (requirement.values(), whole) {
            ([], false) => json!({"key": requirement.key(), "operator": operator}),
            (values, _) => json!({"key": requirement.key(), "operator": operator, "values": values}),
        })
    });
    put("labelSelector", labels.collect());
}

/// The review's spec as match conditions see it: texts are there even when they are empty.
pub(super) fn variable(user: &User, info: &RequestInfo) -> Value {
    let mut request = json!({
        "user": user.name,
        "groups": user.groups,
        "uid": user.uid,
        "extra": user.extra,
    });
    match info.is_resource {
        true => {
            let mut map = Map::new();
            for (name, value) in attributes(info) {
                map.insert(name.to_owned(), Value::from(value));
            }
            selectors(&mut map, info, true);
            request["resourceAttributes"] = Value::Object(map);
        }
        false => request["nonResourceAttributes"] = json!({"path": info.path, "verb": info.verb}),
    }
    request
}
