//! ImagePolicyWebhook: another server says which images may run.

mod configuration;

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use keelson_api::core::v1::{Pod, PodSpec};
use keelson_machinery::status::StatusError;
use keelson_net::client::{Backoff, Dialer, DocumentError, Webhook, WebhookError, document};
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, ConfigureError, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::recent::Recent;
use configuration::Configuration;

const GROUP: &str = "imagepolicy.k8s.io";
const VERSION: &str = "v1alpha1";
const KIND: &str = "ImageReview";
/// In the keys of annotations that are shown to the other server.
const SHOWN: &str = ".image-policy.k8s.io/";
const FAILED_OPEN: &str = "imagepolicywebhook.image-policy.k8s.io/failed-open";
const PREFIX: &str = "imagepolicywebhook.image-policy.k8s.io/";
const EPHEMERAL: &str = "ephemeralcontainers";
/// For one call.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Answers that are remembered.
const ANSWERS: usize = 1024;

#[derive(Default)]
pub struct ImagePolicyWebhook {
    asked: OnceLock<Asked>,
}

struct Asked {
    webhook: Webhook,
    configuration: Configuration,
    /// By what was asked: until when an answer counts.
    answers: Mutex<Recent<String, (Instant, Answer)>>,
}

/// What the other server said.
#[derive(Clone)]
struct Answer {
    is_allowed: bool,
    reason: String,
    annotations: Vec<(String, String)>,
}

impl Plugin for ImagePolicyWebhook {
    fn name(&self) -> &'static str {
        "ImagePolicyWebhook"
    }

    fn enabled_by_default(&self) -> bool {
        false
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let writes = matches!(scope.operation, Operation::Create | Operation::Update);
        let is_pods = (scope.group, scope.plural) == ("", "pods") && matches!(scope.subresource, "" | EPHEMERAL);
        Handles::VALIDATES.when(writes && is_pods)
    }

    fn configure(&self, configuration: Option<&str>) -> Result<(), ConfigureError> {
        let configuration = Configuration::read(configuration)?;
        let backoff = Backoff {
            initial: configuration.backoff,
            ..Backoff::WEBHOOK
        };
        let file = &configuration.file;
        let webhook = Webhook::from_kubeconfig(file, &Dialer::default(), TIMEOUT, backoff);
        let asked = Asked {
            webhook: webhook?,
            configuration,
            answers: Mutex::new(Recent::new(ANSWERS)),
        };
        self.asked.get_or_init(|| asked);
        Ok(())
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        match (self.asked.get(), attributes.typed::<Pod>()) {
            (Some(asked), Some(pod)) => later(asked.check(attributes, pod)),
            _ => now(Ok(())),
        }
    }
}

/// Why nobody said whether images are allowed.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Call(#[from] WebhookError),
    #[error(transparent)]
    Document(#[from] DocumentError),
}

impl Asked {
    async fn check(&self, attributes: &Attributes<'_>, pod: &Pod) -> Result<(), StatusError> {
        let question = question(attributes, pod);
        let answer = match self.remembered(&question) {
            Some(answer) => answer,
            None => match self.ask(&question).await {
                Ok(answer) => answer,
                Err(_) if self.configuration.default_allow => {
                    attributes.annotate(FAILED_OPEN, || "true".to_owned());
                    return Ok(());
                }
                Err(error) => return Err(attributes.forbidden(error.to_string())),
            },
        };
        for (name, text) in &answer.annotations {
            attributes.annotate(format!("{PREFIX}{name}"), || text.clone());
        }
        match (answer.is_allowed, answer.reason.as_str()) {
            (true, _) => Ok(()),
            (false, "") => Err(attributes.forbidden("one or more images rejected by webhook backend")),
            (false, why) => {
                Err(attributes.forbidden(format!("image policy webhook backend denied one or more images: {why}")))
            }
        }
    }

    fn remembered(&self, question: &str) -> Option<Answer> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, answer) = answers.get(&question.to_owned())?;
        (*until > Instant::now()).then(|| answer.clone())
    }

    async fn ask(&self, question: &str) -> Result<Answer, AskError> {
        let review = format!(
            "{{\"kind\":\"{KIND}\",\"apiVersion\":\"{GROUP}/{VERSION}\",\"metadata\":{{}},\"spec\":{question},\
             \"status\":{{\"allowed\":false}}}}"
        );
        let got = self.webhook.ask(review).await?;
        let answer = Answer::of(&document(&got, GROUP, VERSION, KIND)?);
        let time = match answer.is_allowed {
            true => self.configuration.allow_ttl,
            false => self.configuration.deny_ttl,
        };
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.put(question.to_owned(), (Instant::now() + time, answer.clone()));
        Ok(answer)
    }
}

impl Answer {
    fn of(review: &Map<String, Value>) -> Answer {
        let status = review.get("status");
        let get = |name: &str| status.and_then(|status| status.get(name));
        let annotations = get("auditAnnotations").and_then(Value::as_object);
        let annotations = annotations.into_iter().flatten();
        let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        Answer {
            is_allowed: get("allowed").and_then(Value::as_bool).unwrap_or(false),
            reason: get("reason").and_then(Value::as_str).unwrap_or_default().to_owned(),
            annotations: annotations.filter_map(text).collect(),
        }
    }
}

/// The specification of a review.
fn question(attributes: &Attributes<'_>, pod: &Pod) -> String {
    let images = images(&pod.spec, attributes.subresource == EPHEMERAL);
    let mut spec = Map::new();
    let containers: Vec<Value> = images.iter().map(|image| json!({ "image": image })).collect();
    if !containers.is_empty() {
        spec.insert("containers".to_owned(), containers.into());
    }
    let shown = pod.metadata.annotations.iter().filter(|(key, _)| key.contains(SHOWN));
    let shown: Map<String, Value> = shown.map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    if !shown.is_empty() {
        spec.insert("annotations".to_owned(), shown.into());
    }
    if !attributes.namespace().is_empty() {
        spec.insert("namespace".to_owned(), attributes.namespace().into());
    }
    Value::Object(spec).to_string()
}

fn images(spec: &PodSpec, added: bool) -> Vec<&str> {
    let all = spec
        .containers
        .iter()
        .chain(&spec.init_containers)
        .map(|c| c.image.as_str());
    let later = spec
        .ephemeral_containers
        .iter()
        .map(|c| c.ephemeral_container_common.image.as_str());
    match added {
        true => later.collect(),
        false => all.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn images_are_those_of_what_changes() {
        let spec = read(
            r#"{"containers":[{"name":"a","image":"1"}],"initContainers":[{"name":"b","image":"2"}],
                "ephemeralContainers":[{"name":"c","image":"3"}]}"#,
        );
        assert_eq!((images(&spec, false), images(&spec, true)), (vec!["1", "2"], vec!["3"]));
    }

    #[test]
    fn an_answer_that_says_nothing_allows_nothing() {
        let answer = |text: &str| match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(map)) => Answer::of(&map),
            _ => panic!("{text}"),
        };
        assert!(!answer("{}").is_allowed && !answer(r#"{"status":{"allowed":"true"}}"#).is_allowed);
        let given = answer(r#"{"status":{"allowed":true,"reason":"r","auditAnnotations":{"a":"b","c":1}}}"#);
        assert!(given.is_allowed);
        assert_eq!((given.reason.as_str(), given.annotations.len()), ("r", 1));
    }
}
