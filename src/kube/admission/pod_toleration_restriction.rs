//! PodTolerationRestriction: the pods of a namespace tolerate what it says, and nothing else.

mod configuration;

use std::sync::OnceLock;

use keelson_api::core::v1::{Namespace, Pod, Toleration};
use keelson_machinery::status::StatusError;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, ConfigureError, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::later;

use super::{lookup, tolerations};
use crate::core::pod_spec;
use configuration::{Configuration, read_list};

const DEFAULTS: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
const ALLOWED: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";

#[derive(Default)]
pub struct PodTolerationRestriction {
    configuration: OnceLock<Configuration>,
}

impl Plugin for PodTolerationRestriction {
    fn name(&self) -> &'static str {
        "PodTolerationRestriction"
    }

    fn enabled_by_default(&self) -> bool {
        false
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let writes = matches!(scope.operation, Operation::Create | Operation::Update);
        Handles::BOTH.when(writes && scope.is("", "pods"))
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[("", "namespaces")]
    }

    fn configure(&self, configuration: Option<&str>) -> Result<(), ConfigureError> {
        let configuration = Configuration::read(configuration)?;
        self.configuration.get_or_init(|| configuration);
        Ok(())
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        later(self.admit_pod(attributes))
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        later(async move {
            let tolerates = attributes
                .typed::<Pod>()
                .is_some_and(|pod| !pod.spec.tolerations.is_empty());
            match tolerates {
                true => self.check(attributes, &lookup::namespace(attributes).await?),
                false => Ok(()),
            }
        })
    }
}

impl PodTolerationRestriction {
    async fn admit_pod(&self, attributes: &mut Attributes<'_>) -> Result<(), StatusError> {
        let namespace = lookup::namespace(attributes).await?;
        let mut extra = Vec::new();
        if attributes.operation == Operation::Create {
            let said = of_namespace(&namespace, DEFAULTS)?;
            extra = said.unwrap_or_else(|| self.configured(|all| &all.default).to_vec());
        }
        if let Some(pod) = attributes.typed_mut::<Pod>() {
            if pod_spec::class(&pod.spec) != "BestEffort" {
                extra.push(under_pressure());
            }
            if !extra.is_empty() {
                pod.spec.tolerations = tolerations::merge(&pod.spec.tolerations, &extra);
            }
        }
        self.check(attributes, &namespace)
    }

    fn configured(&self, which: fn(&Configuration) -> &[Toleration]) -> &[Toleration] {
        self.configuration.get().map_or(&[], which)
    }

    fn check(&self, attributes: &Attributes<'_>, namespace: &Namespace) -> Result<(), StatusError> {
        let said = of_namespace(namespace, ALLOWED)?;
        let (scope, allowed) = match &said {
            Some(allowed) => ("namespace", &**allowed),
            None => ("cluster", self.configured(|all| &all.allowed)),
        };
        let pod = attributes.typed::<Pod>();
        match pod.is_none_or(|pod| tolerations::are_within(&pod.spec.tolerations, allowed)) {
            true => Ok(()),
            false => Err(StatusError::unknown(format!(
                "pod tolerations (possibly merged with namespace default tolerations) conflict with its {scope} whitelist"
            ))),
        }
    }
}

/// A pod that has a claim on resources stays on a node that runs out of memory.
fn under_pressure() -> Toleration {
    Toleration {
        key: MEMORY_PRESSURE.to_owned(),
        operator: "Exists".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Toleration::default()
    }
}

/// What an annotation of a namespace says; `None`: it is not there.
fn of_namespace(namespace: &Namespace, annotation: &str) -> Result<Option<Vec<Toleration>>, StatusError> {
    let Some(text) = namespace.metadata.annotations.get(annotation) else {
        return Ok(None);
    };
    match text.is_empty() {
        true => Ok(Some(Vec::new())),
        false => read_list(text).map(Some).map_err(StatusError::unknown),
    }
}
