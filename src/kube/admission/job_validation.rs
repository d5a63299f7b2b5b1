//! JobValidation: a job whose pods are scheduled all or none does not change their number.

use std::sync::Arc;

use keelson_access::lister::Listers;
use keelson_api::batch::v1::Job;
use keelson_api::scheduling_k8s_io::v1alpha2::PodGroup;
use keelson_machinery::field::text::quote;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;
use keelson_registry::{Followed, Outcome, Verbs};

/// What of a group of pods counts here.
struct Gang {
    name: String,
    /// The uid of its controller.
    controller: Option<String>,
}

pub struct JobValidation {
    /// Groups whose pods are scheduled all or none.
    gangs: Followed<Gang>,
}

impl Default for JobValidation {
    fn default() -> Self {
        JobValidation {
            gangs: Followed::new(|object| {
                let group = object.downcast_ref::<PodGroup>()?;
                group.spec.scheduling_policy.gang.as_ref()?;
                let mut owners = group.metadata.owner_references.iter();
                Some(Gang {
                    name: group.metadata.name.clone(),
                    controller: owners
                        .find(|owner| owner.controller == Some(true))
                        .map(|owner| owner.uid.clone()),
                })
            }),
        }
    }
}

impl Plugin for JobValidation {
    fn name(&self) -> &'static str {
        "JobValidation"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        Handles::VALIDATES.when(scope.operation == Operation::Update && scope.is("batch", "jobs"))
    }

    fn attach(&self, listers: &dyn Listers, _verbs: &Arc<Verbs>) {
        self.gangs.attach(listers, "scheduling.k8s.io", "podgroups");
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        let (Some(new), Some(old)) = (attributes.typed::<Job>(), attributes.old_typed::<Job>()) else {
            return now(Ok(()));
        };
        if new.spec.parallelism == old.spec.parallelism {
            return now(Ok(()));
        }
        now(match self.gang_of(old) {
            Some(name) => Err(attributes.forbidden(format!(
                "cannot change parallelism for a Job referencing gang-scheduled PodGroup {}",
                quote(&name)
            ))),
            None => Ok(()),
        })
    }
}

impl JobValidation {
    fn gang_of(&self, job: &Job) -> Option<String> {
        let namespace = &job.metadata.namespace;
        let named = job.spec.template.spec.scheduling_group.as_deref();
        if let Some(name) = named.and_then(|group| group.pod_group_name.as_ref()) {
            return self.gangs.get(namespace, name).map(|gang| gang.name.clone());
        }
        let gangs = self.gangs.of_namespace(namespace);
        let mut own = gangs
            .iter()
            .filter(|gang| gang.controller.as_ref() == Some(&job.metadata.uid));
        own.next().map(|gang| gang.name.clone())
    }
}
