//! The check of a namespace whose labels demand something else: pods that are there and don't meet it are warned of.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use keelson_api::core::v1::{Namespace, Pod};
use keelson_machinery::field::text::quote;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::{Attributes, Operation};
use keelson_registry::outcome::{later, now};
use keelson_registry::{Lister, Outcome};

use super::checks::{Subject, findings, reasons};
use super::policy::{Demand, Level, Policy};
use super::{Labels, PodSecurity};

/// Pods that are looked at.
const MOST_PODS: usize = 3000;
/// For so long they are.
const PATIENCE: Duration = Duration::from_secs(1);

impl PodSecurity {
    /// Labels have to be readable; what is there already is warned of.
    pub(super) fn validate_namespace<'a>(
        &'a self,
        attributes: &'a Attributes<'_>,
        namespace: &'a Namespace,
    ) -> Outcome<'a, ()> {
        let defaults = &self.configuration().defaults;
        let labels = &namespace.metadata.labels;
        let (policy, faults) = Policy::of(labels, defaults);
        let invalid = || {
            let name = attributes.requested_name();
            now(Err(StatusError::invalid("", "Namespace", name, &faults)))
        };
        let Some(old) = attributes
            .old_typed::<Namespace>()
            .filter(|_| attributes.operation == Operation::Update)
        else {
            if !faults.is_empty() {
                return invalid();
            }
            if self.is_exempt(attributes) {
                self.warn_of_exemption(attributes, namespace, &policy);
            }
            return now(Ok(()));
        };
        let (before, old_faults) = Policy::of(&old.metadata.labels, defaults);
        let same_faults = || {
            faults
                .iter()
                .map(ToString::to_string)
                .eq(old_faults.iter().map(ToString::to_string))
        };
        if !faults.is_empty() && !same_faults() {
            return invalid();
        }
        let (new, before) = (policy.enforce, before.enforce);
        let is_looser = new.version == before.version && new.level <= before.level;
        if new == before || new.level == Level::Privileged || is_looser {
            return now(Ok(()));
        }
        if self.is_exempt(attributes) {
            self.warn_of_exemption(attributes, namespace, &policy);
            return now(Ok(()));
        }
        later(self.warn_of_pods(attributes, namespace, new))
    }

    fn is_exempt(&self, attributes: &Attributes<'_>) -> bool {
        let name = attributes.requested_namespace();
        !name.is_empty() && self.configuration().namespaces.iter().any(|exempt| exempt == name)
    }

    fn warn_of_exemption(&self, attributes: &Attributes<'_>, namespace: &Namespace, policy: &Policy) {
        if policy.is_privileged() || policy.is_equivalent(&self.configuration().defaults) {
            return;
        }
        let labels: &Labels = &namespace.metadata.labels;
        attributes.warn(format!(
            "namespace {} is exempt from Pod Security, and the policy ({}) will be ignored",
            quote(&namespace.metadata.name),
            policy.said_by(labels)
        ));
    }

    async fn warn_of_pods(
        &self,
        attributes: &Attributes<'_>,
        namespace: &Namespace,
        demand: Demand,
    ) -> Result<(), StatusError> {
        let name = &namespace.metadata.name;
        let Some(resource) = attributes.registry().and_then(|registry| registry.resource("", "pods")) else {
            return Ok(());
        };
        match Lister::new(resource).typed::<Pod>().list(name).await {
            Ok(pods) => {
                let exempt = &self.configuration().runtime_classes;
                let is_exempt = |pod: &Pod| pod.spec.runtime_class_name.as_ref().is_some_and(|c| exempt.contains(c));
                let pods: Vec<Pod> = pods.into_iter().filter(|pod| !is_exempt(pod)).collect();
                warnings(name, demand, &pods)
                    .into_iter()
                    .for_each(|text| attributes.warn(text));
            }
            Err(_) => attributes.warn("failed to list pods while checking new PodSecurity enforce level"),
        }
        Ok(())
    }
}

/// One pod of each controller first: the others are like it.
fn prioritized(pods: &[Pod]) -> Vec<&Pod> {
    let mut seen: HashSet<String> = HashSet::new();
    let is_first = |pod: &&Pod| {
        let mut owners = pod.metadata.owner_references.iter();
        let controller = owners.find(|owner| owner.controller == Some(true));
        controller.is_none_or(|controller| seen.insert(controller.uid.clone()))
    };
    let (mut first, others): (Vec<&Pod>, Vec<&Pod>) = pods.iter().partition(is_first);
    first.extend(others);
    first
}

fn warnings(namespace: &str, demand: Demand, pods: &[Pod]) -> Vec<String> {
    let begin = Instant::now();
    let mut violations: BTreeMap<String, (&str, usize)> = BTreeMap::new();
    let mut looked_at = 0;
    for pod in prioritized(pods).into_iter().take(MOST_PODS) {
        let subject = Subject {
            metadata: &pod.metadata,
            spec: &pod.spec,
        };
        let found = findings(demand, &subject);
        if !found.is_empty() {
            let (name, count) = violations.entry(reasons(&found)).or_insert((&pod.metadata.name, 0));
            *name = (*name).min(&pod.metadata.name);
            *count += 1;
        }
        looked_at += 1;
        if begin.elapsed() > PATIENCE {
            break;
        }
    }
    let mut all = Vec::new();
    if looked_at < pods.len() {
        let count = pods.len();
        all.push(format!(
            "new PodSecurity enforce level only checked against the first {looked_at} of {count} existing pods"
        ));
    }
    if violations.is_empty() {
        return all;
    }
    let (namespace, demand) = (quote(namespace), quote(&demand.to_string()));
    all.push(format!(
        "existing pods in namespace {namespace} violate the new PodSecurity enforce level {demand}"
    ));
    let mut texts: Vec<String> = violations
        .into_iter()
        .map(|(why, (name, count))| match count {
            1 => format!("{name}: {why}"),
            2 => format!("{name} (and 1 other pod): {why}"),
            _ => format!("{name} (and {} other pods): {why}", count - 1),
        })
        .collect();
    texts.sort();
    all.extend(texts);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::pod_security::policy::Version;
    use crate::testing::read;

    fn pod(name: &str, spec: &str, owner: &str) -> Pod {
        let owners = match owner {
            "" => String::new(),
            uid => format!(r#","ownerReferences":[{{"uid":"{uid}","controller":true}}]"#),
        };
        read(&format!(r#"{{"metadata":{{"name":"{name}"{owners}}},"spec":{spec}}}"#))
    }

    #[test]
    fn pods_that_break_the_same_rules_are_told_together() {
        let pods = [
            pod("c", r#"{"hostNetwork":true}"#, ""),
            pod("b", r#"{"hostNetwork":true}"#, "x"),
            pod("a", r#"{"hostNetwork":true}"#, "x"),
            pod("d", "{}", ""),
            pod(
                "e",
                r#"{"hostNetwork":true,"volumes":[{"name":"v","hostPath":{"path":"/"}}]}"#,
                "",
            ),
        ];
        let demand = Demand {
            level: Level::Baseline,
            version: Version::Latest,
        };
        assert_eq!(
            warnings("n", demand, &pods),
            [
                "existing pods in namespace \"n\" violate the new PodSecurity enforce level \"baseline:latest\"",
                "a (and 2 other pods): host namespaces",
                "e: host namespaces, hostPath volumes"
            ]
        );
        assert!(warnings("n", demand, &pods[3..4]).is_empty());
        let names: Vec<&str> = prioritized(&pods)
            .iter()
            .map(|pod| pod.metadata.name.as_str())
            .collect();
        assert_eq!(names, ["c", "b", "d", "e", "a"]);
    }
}
