//! PodNodeSelector: the pods of a namespace go to the nodes that it may use.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use keelson_api::core::v1::{Namespace, Pod};
use keelson_machinery::field::text::quote;
use keelson_machinery::status::StatusError;
use keelson_machinery::validation::labels::{label_value, qualified_name};
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, ConfigureError, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::later;
use serde_json::Value;

use super::lookup;

const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";
/// In the place of a namespace's name: what holds where a namespace says nothing.
const DEFAULT: &str = "clusterDefaultNodeSelector";

type Labels = BTreeMap<String, String>;

#[derive(Default)]
pub struct PodNodeSelector {
    /// By namespace, as they are written.
    selectors: OnceLock<BTreeMap<String, String>>,
}

impl Plugin for PodNodeSelector {
    fn name(&self) -> &'static str {
        "PodNodeSelector"
    }

    fn enabled_by_default(&self) -> bool {
        false
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        Handles::BOTH.when(scope.operation == Operation::Create && scope.is("", "pods"))
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[("", "namespaces")]
    }

    /// What can't be read counts as absent.
    fn configure(&self, configuration: Option<&str>) -> Result<(), ConfigureError> {
        let document: Value = configuration
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let given = document.get("podNodeSelectorPluginConfig").and_then(Value::as_object);
        let texts = given.into_iter().flatten();
        let selectors = texts.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        self.selectors.get_or_init(|| selectors.collect());
        Ok(())
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        later(self.admit_pod(attributes))
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        later(self.validate_pod(attributes))
    }
}

impl PodNodeSelector {
    async fn admit_pod(&self, attributes: &mut Attributes<'_>) -> Result<(), StatusError> {
        let wanted = self.of_namespace(attributes).await?;
        self.check(attributes, &wanted, false)?;
        if let Some(pod) = attributes.typed_mut::<Pod>() {
            let own = std::mem::replace(&mut pod.spec.node_selector, wanted.clone());
            pod.spec.node_selector.extend(own);
        }
        self.check(attributes, &wanted, true)
    }

    async fn validate_pod(&self, attributes: &Attributes<'_>) -> Result<(), StatusError> {
        let wanted = self.of_namespace(attributes).await?;
        self.check(attributes, &wanted, true)
    }

    async fn of_namespace(&self, attributes: &Attributes<'_>) -> Result<Labels, StatusError> {
        let namespace: Namespace = lookup::namespace(attributes).await?;
        let said = namespace.metadata.annotations.get(ANNOTATION);
        let text = said.map_or_else(|| self.configured(DEFAULT), String::as_str);
        labels(text).map_err(StatusError::unknown)
    }

    fn configured(&self, name: &str) -> &str {
        let selectors = self.selectors.get();
        selectors.and_then(|all| all.get(name)).map_or("", String::as_str)
    }

    fn check(&self, attributes: &Attributes<'_>, wanted: &Labels, whole: bool) -> Result<(), StatusError> {
        let Some(pod) = attributes.typed::<Pod>() else {
            return Ok(());
        };
        let forbidden = |why: &str| Err(StatusError::forbidden("", "pods", &pod.metadata.name, why));
        if conflict(wanted, &pod.spec.node_selector) {
            return forbidden("pod node label selector conflicts with its namespace node label selector");
        }
        if !whole {
            return Ok(());
        }
        let allowed = labels(self.configured(attributes.namespace())).map_err(StatusError::unknown)?;
        let mut asked = pod.spec.node_selector.iter();
        match allowed.is_empty() || asked.all(|(key, value)| allowed.get(key) == Some(value)) {
            true => Ok(()),
            false => forbidden("pod node label selector labels conflict with its namespace whitelist"),
        }
    }
}

fn conflict(one: &Labels, other: &Labels) -> bool {
    one.iter()
        .any(|(key, value)| other.get(key).is_some_and(|found| found != value))
}

/// The labels that `a=b,c=d` asks for; the error is the text that clients see.
fn labels(text: &str) -> Result<Labels, String> {
    let mut all = Labels::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let sides: Vec<&str> = part.split('=').collect();
        let [key, value] = sides[..] else {
            return Err(format!("invalid selector: [{}]", sides.join(" ")));
        };
        let (key, value) = (key.trim(), value.trim());
        let faults = qualified_name(key);
        if !faults.is_empty() {
            return Err(format!("<nil>: Invalid value: {}: {}", quote(key), faults.join("; ")));
        }
        let faults = label_value(value);
        if !faults.is_empty() {
            return Err(format!(
                "[{key}]: Invalid value: {}: {}",
                quote(value),
                faults.join("; ")
            ));
        }
        all.insert(key.to_owned(), value.to_owned());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_equalities_alone() {
        let short = |text: &str| labels(text).map(|all| all.into_iter().map(|(k, v)| format!("{k}:{v}")).collect());
        let expected = |all: &[&str]| Ok(all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        assert_eq!(short(""), expected(&[]));
        assert_eq!(short("b= 2 , a =1"), expected(&["a:1", "b:2"]));
        assert_eq!(short("a"), Err("invalid selector: [a]".to_owned()));
        assert_eq!(short("a==b"), Err("invalid selector: [a  b]".to_owned()));
        assert!(short("-a=b").is_err_and(|why| why.starts_with("<nil>: Invalid value: \"-a\": name part must")));
        assert!(short("a=-").is_err_and(|why| why.starts_with("[a]: Invalid value: \"-\": a valid label must")));
    }

    #[test]
    fn what_is_said_twice_has_to_be_the_same() {
        let map = |text: &str| labels(text).unwrap();
        assert!(conflict(&map("a=1"), &map("a=2,b=1")));
        assert!(!conflict(&map("a=1,c=1"), &map("a=1,b=1")));
    }
}
