//! Cron jobs.

use keelson_api::batch::v1::CronJob;
use keelson_machinery::field::Path;
use keelson_registry::{KindCode, MetadataChecks, RepeatedChecks, Strategy};

use crate::cells;
use crate::core::pod_spec;
use crate::metadata;
use crate::typed::is_new_generation;

const CHECKS: MetadataChecks = MetadataChecks {
    status: RepeatedChecks::NONE,
    ..metadata::CHANGE
};

/// Registers the rules of cron jobs.
pub fn register(code: &mut KindCode) {
    code.kind::<CronJob>()
        .strategy(CronJobStrategy)
        .defaults(defaults)
        .metadata_checks(CHECKS)
        .cells(cells::batch::CRON_JOB);
}

/// The rules of cron jobs.
struct CronJobStrategy;

impl Strategy for CronJobStrategy {
    type Object = CronJob;

    fn warnings(&self, new: &CronJob, old: Option<&CronJob>) -> Vec<String> {
        if !is_new_generation(new, old) {
            return Vec::new();
        }
        let mut found = pod_spec::warnings::of_owner(&new.metadata, old.is_none());
        let path = Path::new("spec").child("jobTemplate").child("spec").child("template");
        found.extend(pod_spec::warnings::of_template(
            &new.spec.job_template.spec.template,
            &path,
        ));
        found
    }
}

/// Defaults in code of cron jobs: of the pods alone; the jobs they stand in get theirs when they are made.
fn defaults(o: &mut CronJob) {
    pod_spec::of_template(&mut o.spec.job_template.spec.template);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read_defaulted, text};

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
