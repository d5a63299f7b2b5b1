//! RuntimeClass: a pod that names a class of runtimes gets the overhead of that, and goes to nodes that have it.

use std::collections::BTreeMap;

use keelson_api::core::v1::Pod;
use keelson_api::node_k8s_io::v1::RuntimeClass as Class;
use keelson_machinery::field::text::quote;
use keelson_machinery::quantity::Quantity;
use keelson_machinery::status::StatusError;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};

use super::{lookup, tolerations};

const CLASSES: (&str, &str) = ("node.k8s.io", "runtimeclasses");

pub struct RuntimeClass;

impl Plugin for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        Handles::BOTH.when(scope.operation == Operation::Create && scope.is("", "pods"))
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[CLASSES]
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        match class_name(attributes) {
            Some(_) => later(admit(attributes)),
            None => now(Ok(())),
        }
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        match class_name(attributes) {
            Some(name) => later(validate(attributes, name)),
            None => now(check(attributes, None)),
        }
    }
}

fn class_name<'a>(attributes: &'a Attributes<'_>) -> Option<&'a str> {
    attributes.typed::<Pod>()?.spec.runtime_class_name.as_deref()
}

async fn class(attributes: &Attributes<'_>, name: &str) -> Result<Class, StatusError> {
    lookup::askable(name)?;
    let found = lookup::find(attributes, CLASSES, "", name).await?;
    found.ok_or_else(|| attributes.forbidden(format!("pod rejected: RuntimeClass {} not found", quote(name))))
}

async fn admit(attributes: &mut Attributes<'_>) -> Result<(), StatusError> {
    let name = class_name(attributes).unwrap_or_default().to_owned();
    let class = class(attributes, &name).await?;
    let applied = attributes.typed_mut::<Pod>().map_or(Ok(()), |pod| apply(pod, &class));
    applied.map_err(|why| attributes.forbidden(why))
}

async fn validate(attributes: &Attributes<'_>, name: &str) -> Result<(), StatusError> {
    let class = class(attributes, name).await?;
    check(attributes, Some(&class))
}

fn check(attributes: &Attributes<'_>, class: Option<&Class>) -> Result<(), StatusError> {
    let fault = attributes.typed::<Pod>().and_then(|pod| fault(pod, class));
    fault.map_or(Ok(()), |why| Err(attributes.forbidden(why)))
}

const OTHER_OVERHEAD: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

fn overhead(class: &Class) -> Option<&BTreeMap<String, Quantity>> {
    class.overhead.as_deref().map(|overhead| &overhead.pod_fixed)
}

/// Sets what the class says; the error is the text of the refusal.
fn apply(pod: &mut Pod, class: &Class) -> Result<(), String> {
    if let Some(overhead) = overhead(class) {
        if !pod.spec.overhead.is_empty() && pod.spec.overhead != *overhead {
            return Err(OTHER_OVERHEAD.to_owned());
        }
        pod.spec.overhead.clone_from(overhead);
    }
    let Some(scheduling) = class.scheduling.as_deref() else {
        return Ok(());
    };
    for (key, value) in &scheduling.node_selector {
        let said = pod.spec.node_selector.get(key).filter(|said| *said != value);
        if let Some(said) = said {
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {said}"
            ));
        }
        pod.spec.node_selector.insert(key.clone(), value.clone());
    }
    pod.spec.tolerations = tolerations::merge(&pod.spec.tolerations, &scheduling.tolerations);
    Ok(())
}

/// Why a pod may not have the overhead that it has.
fn fault(pod: &Pod, class: Option<&Class>) -> Option<&'static str> {
    match class.and_then(overhead) {
        Some(overhead) => (pod.spec.overhead != *overhead).then_some(OTHER_OVERHEAD),
        None if pod.spec.overhead.is_empty() => None,
        None => Some("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read, text};

    #[test]
    fn a_class_adds_to_a_pod_or_conflicts() {
        let class: Class = read(
            r#"{"overhead":{"podFixed":{"cpu":"250m"}},"scheduling":{"nodeSelector":{"a":"1"},
                "tolerations":[{"key":"k","operator":"Exists"}]}}"#,
        );
        let all = concat!(
            r#"{"containers":null,"nodeSelector":{"a":"1"},"tolerations":[{"key":"k","operator":"Exists"}],"#,
            r#""overhead":{"cpu":"250m"}}"#
        );
        for (spec, expected) in [
            ("{}", Ok(all)),
            (r#"{"overhead":{"cpu":"0.25"},"nodeSelector":{"a":"1"}}"#, Ok(all)),
            (r#"{"overhead":{"cpu":"1"}}"#, Err(OTHER_OVERHEAD)),
            (
                r#"{"nodeSelector":{"a":"2"}}"#,
                Err("conflict: runtimeClass.scheduling.nodeSelector[a] = 1; pod.spec.nodeSelector[a] = 2"),
            ),
        ] {
            let mut pod: Pod = read(&format!(r#"{{"spec":{spec}}}"#));
            let applied = apply(&mut pod, &class).map(|()| text(&pod.spec));
            assert_eq!(applied, expected.map(str::to_owned).map_err(str::to_owned), "{spec}");
        }
    }

    #[test]
    fn overhead_is_that_of_the_class() {
        let class: Class = read(r#"{"overhead":{"podFixed":{"cpu":"250m"}}}"#);
        let none = Class::default();
        let pod: Pod = read(r#"{"spec":{"overhead":{"cpu":"250m"}}}"#);
        assert_eq!(fault(&pod, Some(&class)), None);
        assert_eq!(fault(&Pod::default(), Some(&class)), Some(OTHER_OVERHEAD));
        assert_eq!(fault(&Pod::default(), Some(&none)), None);
        assert!(fault(&pod, Some(&none)).is_some() && fault(&pod, None).is_some());
    }
}
