//! Cron jobs.

use keelson_machinery::field::Path;
use keelson_machinery::object::Object;
use keelson_server::registry::Strategy;

use crate::api::batch::v1::CronJob;
use crate::kube::core::pod_spec;
use crate::kube::typed::{is_new_generation, typed, typed_mut};

/// The rules of cron jobs.
pub struct CronJobStrategy;

impl Strategy for CronJobStrategy {
    fn warnings(&self, new: &dyn Object, old: Option<&dyn Object>) -> Vec<String> {
        let Some(o) = typed::<CronJob>(new).filter(|_| is_new_generation(new, old)) else {
            return Vec::new();
        };
        let mut found = pod_spec::warnings::of_owner(&o.metadata, old.is_none());
        let path = Path::new("spec").child("jobTemplate").child("spec").child("template");
        found.extend(pod_spec::warnings::of_template(
            &o.spec.job_template.spec.template,
            &path,
        ));
        found
    }
}

/// Defaults in code of cron jobs: of the pods alone; the jobs they stand in get theirs when they are made.
pub fn defaults(object: &mut dyn Object) {
    if let Some(o) = typed_mut::<CronJob>(object) {
        pod_spec::of_template(&mut o.spec.job_template.spec.template);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube::testing::{read_defaulted, text};

    #[test]
    fn the_job_of_a_cron_job_has_no_defaults_but_its_pods() {
        let mut o: CronJob = read_defaulted(
            r#"{"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}}}"#,
        );
        defaults(&mut o);
        assert_eq!(o.spec.concurrency_policy, "Allow");
        assert_eq!(
            (
                o.spec.suspend,
                o.spec.successful_jobs_history_limit,
                o.spec.failed_jobs_history_limit
            ),
            (Some(false), Some(3), Some(1))
        );
        let job = &o.spec.job_template.spec;
        assert_eq!(job.template.spec.containers[0].image_pull_policy, "Always");
        assert!(!text(job).contains("completions"), "{}", text(job));
    }
}
