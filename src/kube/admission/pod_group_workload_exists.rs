//! PodGroupWorkloadExists: a group of pods that names a template of a workload is made of one that is there.

use keelson_api::scheduling_k8s_io::v1alpha2::{PodGroup, Workload, WorkloadPodGroupTemplateReference};
use keelson_machinery::field::text::quote;
use keelson_machinery::status::StatusError;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};

use super::lookup;

const GROUP: &str = "scheduling.k8s.io";
const WORKLOADS: (&str, &str) = (GROUP, "workloads");

pub struct PodGroupWorkloadExists;

impl Plugin for PodGroupWorkloadExists {
    fn name(&self) -> &'static str {
        "PodGroupWorkloadExists"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        Handles::VALIDATES.when(scope.operation == Operation::Create && scope.is(GROUP, "podgroups"))
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        let group = attributes.typed::<PodGroup>();
        let template = group.and_then(|group| group.spec.pod_group_template_ref.as_deref());
        match template.and_then(|template| template.workload.as_deref()) {
            Some(reference) => later(check(attributes, reference)),
            None => now(Ok(())),
        }
    }
}

async fn check(attributes: &Attributes<'_>, reference: &WorkloadPodGroupTemplateReference) -> Result<(), StatusError> {
    let name = &reference.workload_name;
    let found = lookup::find::<Workload>(attributes, WORKLOADS, attributes.namespace(), name).await;
    let found = found.map_err(|error| StatusError::internal_error(error.message))?;
    let (workload, template) = (quote(name), &reference.pod_group_template_name);
    let why = match found {
        None => format!("PodGroup rejected: Workload {workload} not found"),
        Some(found) if found.metadata.deletion_timestamp.is_some() => {
            format!("PodGroup rejected: Workload {workload} is being deleted")
        }
        Some(found)
            if found
                .spec
                .pod_group_templates
                .iter()
                .any(|known| known.name == *template) =>
        {
            return Ok(());
        }
        Some(_) => {
            let template = quote(template);
            format!("PodGroup rejected: PodGroupTemplate {template} not found in Workload {workload}")
        }
    };
    Err(attributes.forbidden(why))
}
