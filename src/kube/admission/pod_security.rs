//! PodSecurity: pods of a namespace meet the Pod Security Standards as far as its labels demand; others are refused,
//! warned of, or recorded.

mod baseline;
mod checks;
mod configuration;
mod existing;
mod policy;
mod restricted;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use keelson_access::lister::Listers;
use keelson_api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use keelson_api::batch::v1::{CronJob, Job};
use keelson_api::core::v1::{Container, Namespace, Pod, PodTemplate, PodTemplateSpec, ReplicationController};
use keelson_machinery::field::text::quote;
use keelson_machinery::object::Kind;
use keelson_machinery::reflect::Reflect;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::{Attributes, ConfigureError, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};
use keelson_registry::{Followed, Outcome, Verbs};

use super::lookup;
use checks::{Finding, Subject, details, findings};
use configuration::Configuration;
use policy::{Demand, Level, Policy};

const ENFORCED: &str = "pod-security.kubernetes.io/enforce-policy";
const EXEMPT: &str = "pod-security.kubernetes.io/exempt";
const VIOLATIONS: &str = "pod-security.kubernetes.io/audit-violations";
const ERROR: &str = "pod-security.kubernetes.io/error";

/// Resources with templates of pods.
const TEMPLATES: [(&str, &str); 8] = [
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
];
/// Subresources of pods that change nothing of what a pod may do.
const HARMLESS: [&str; 8] = [
    "exec",
    "attach",
    "binding",
    "eviction",
    "log",
    "portforward",
    "proxy",
    "status",
];

type Labels = BTreeMap<String, String>;

pub struct PodSecurity {
    configuration: OnceLock<Configuration>,
    /// Labels of the namespaces.
    namespaces: Followed<Labels>,
}

impl Default for PodSecurity {
    fn default() -> Self {
        PodSecurity {
            configuration: OnceLock::new(),
            namespaces: Followed::new(|object| Some(object.meta().labels.clone())),
        }
    }
}

impl Plugin for PodSecurity {
    fn name(&self) -> &'static str {
        "PodSecurity"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let writes = matches!(scope.operation, Operation::Create | Operation::Update);
        let (resource, itself) = ((scope.group, scope.plural), scope.subresource.is_empty());
        let handled = match resource {
            ("", "pods") => !HARMLESS.contains(&scope.subresource),
            ("", "namespaces") => itself,
            other => itself && TEMPLATES.contains(&other),
        };
        Handles::VALIDATES.when(writes && handled)
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[("", "pods")]
    }

    fn configure(&self, configuration: Option<&str>) -> Result<(), ConfigureError> {
        let configuration = Configuration::read(configuration)?;
        self.configuration.get_or_init(|| configuration);
        Ok(())
    }

    fn attach(&self, listers: &dyn Listers, _verbs: &Arc<Verbs>) {
        self.namespaces.attach(listers, "", "namespaces");
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        if let Some(namespace) = attributes.typed::<Namespace>() {
            return self.validate_namespace(attributes, namespace);
        }
        let exemption = if self
            .configuration()
            .namespaces
            .iter()
            .any(|name| name == attributes.namespace())
        {
            "namespace"
        } else if self.configuration().usernames.contains(&attributes.user().name) {
            "user"
        } else {
            return match self.namespaces.get("", attributes.namespace()) {
                Some(labels) => now(self.validate_pod(attributes, &labels)),
                None => later(self.validate_elsewhere(attributes)),
            };
        };
        attributes.annotate(EXEMPT, || exemption.to_owned());
        now(Ok(()))
    }
}

impl PodSecurity {
    fn configuration(&self) -> &Configuration {
        self.configuration.get_or_init(Configuration::default)
    }

    /// In a namespace that memory does not know.
    async fn validate_elsewhere(&self, attributes: &Attributes<'_>) -> Result<(), StatusError> {
        let name = attributes.namespace();
        match lookup::namespace(attributes).await {
            Ok(namespace) => self.validate_pod(attributes, &namespace.metadata.labels),
            Err(error) => {
                let why = format!("failed to lookup namespace {}", quote(name));
                attributes.annotate(ERROR, || format!("{why}: {}", error.message));
                match attributes.typed::<Pod>() {
                    Some(_) => Err(StatusError::internal_error(why)),
                    None => Ok(()),
                }
            }
        }
    }

    fn validate_pod(&self, attributes: &Attributes<'_>, labels: &Labels) -> Result<(), StatusError> {
        let (policy, faults) = Policy::of(labels, &self.configuration().defaults);
        let Some(object) = attributes.object.as_deref() else {
            return Ok(());
        };
        let pod = attributes.typed::<Pod>();
        let is_silent = policy.warn.level == Level::Privileged && policy.audit.level == Level::Privileged;
        if faults.is_empty() && is_silent && (pod.is_none() || policy.is_privileged()) {
            if pod.is_some() {
                attributes.annotate(ENFORCED, || Demand::NOTHING.to_string());
            }
            return Ok(());
        }
        if let (Some(pod), Some(old)) = (pod, attributes.old_typed::<Pod>())
            && !is_significant(pod, old)
        {
            return Ok(());
        }
        let Some(subject) = subject(object) else {
            return Ok(());
        };
        let class = subject.spec.runtime_class_name.as_ref();
        if class.is_some_and(|class| self.configuration().runtime_classes.contains(class)) {
            attributes.annotate(EXEMPT, || "runtimeClass".to_owned());
            return Ok(());
        }
        if !faults.is_empty() {
            attributes.annotate(ERROR, || {
                let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
                format!("Failed to parse policy: {}", keelson_access::authz::aggregate(&texts))
            });
        }
        evaluate(attributes, &policy, &subject, pod.is_some())
    }
}

fn evaluate(
    attributes: &Attributes<'_>,
    policy: &Policy,
    subject: &Subject<'_>,
    enforces: bool,
) -> Result<(), StatusError> {
    let would = |demand: Demand, found: &[Finding]| {
        format!(
            "would violate PodSecurity {}: {}",
            quote(&demand.to_string()),
            details(found)
        )
    };
    let mut known: Vec<(Demand, Vec<Finding>)> = Vec::new();
    let mut of = |demand: Demand| -> Vec<Finding> {
        if let Some((_, found)) = known.iter().find(|(other, _)| *other == demand) {
            return found.clone();
        }
        let found = findings(demand, subject);
        known.push((demand, found.clone()));
        found
    };
    let mut refused = None;
    if enforces {
        attributes.annotate(ENFORCED, || policy.enforce.to_string());
        let found = of(policy.enforce);
        if !found.is_empty() {
            let demand = quote(&policy.enforce.to_string());
            refused = Some(format!("violates PodSecurity {demand}: {}", details(&found)));
        }
    }
    let found = of(policy.audit);
    if !found.is_empty() {
        attributes.annotate(VIOLATIONS, || would(policy.audit, &found));
    }
    if let Some(why) = refused {
        let resource = attributes.resource;
        return Err(StatusError::forbidden(
            &resource.group,
            &resource.plural,
            attributes.requested_name(),
            why,
        ));
    }
    let found = of(policy.warn);
    if !found.is_empty() {
        attributes.warn(would(policy.warn, &found));
    }
    Ok(())
}

/// The pod in an object; `None`: there is none.
fn subject(object: &dyn Kind) -> Option<Subject<'_>> {
    if let Some(pod) = cast::<Pod>(object) {
        return Some(Subject {
            metadata: &pod.metadata,
            spec: &pod.spec,
        });
    }
    let template = None
        .or_else(|| cast::<Deployment>(object).map(|o| &o.spec.template))
        .or_else(|| cast::<ReplicaSet>(object).map(|o| &o.spec.template))
        .or_else(|| cast::<StatefulSet>(object).map(|o| &o.spec.template))
        .or_else(|| cast::<DaemonSet>(object).map(|o| &o.spec.template))
        .or_else(|| cast::<Job>(object).map(|o| &o.spec.template))
        .or_else(|| cast::<CronJob>(object).map(|o| &o.spec.job_template.spec.template))
        .or_else(|| cast::<PodTemplate>(object).map(|o| &o.template))
        .or_else(|| cast::<ReplicationController>(object).and_then(|o| o.spec.template.as_deref()));
    template.map(|template: &PodTemplateSpec| Subject {
        metadata: &template.metadata,
        spec: &template.spec,
    })
}

fn cast<T: Reflect>(object: &dyn Kind) -> Option<&T> {
    object.as_any().downcast_ref()
}

/// Whether an update runs something else: other images, or other containers.
fn is_significant(new: &Pod, old: &Pod) -> bool {
    let other = |new: &[Container], old: &[Container]| {
        new.len() != old.len() || new.iter().zip(old).any(|(new, old)| new.image != old.image)
    };
    if other(&new.spec.containers, &old.spec.containers) || other(&new.spec.init_containers, &old.spec.init_containers)
    {
        return true;
    }
    let had = |name: &str| {
        let mut all = old
            .spec
            .ephemeral_containers
            .iter()
            .map(|c| &c.ephemeral_container_common);
        all.find(|container| container.name == name)
    };
    let mut added = new
        .spec
        .ephemeral_containers
        .iter()
        .map(|c| &c.ephemeral_container_common);
    added.any(|container| had(&container.name).is_none_or(|old| old.image != container.image))
}
