//! Cron jobs.

use keelson_api::batch::v1::{CronJob, CronJobSpec};
use keelson_machinery::field::{ErrorList, Path};
use keelson_registry::{Context, KindCode, MetadataChecks, RepeatedChecks, Strategy};

use super::{job, schedule};
use crate::cells;
use crate::core::pod_spec;
use crate::faults::{self, Faults};
use crate::metadata;
use crate::typed::is_new_generation;

/// Longest name, in bytes: what those of jobs leave.
const NAME_MAX: usize = 52;

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

    fn prepare_for_create(&self, _context: &Context, object: &mut CronJob) {
        pod_spec::disabled::drop_from_template(&mut object.spec.job_template.spec.template, None);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut CronJob, old: &CronJob) {
        pod_spec::disabled::drop_from_template(
            &mut new.spec.job_template.spec.template,
            Some(&old.spec.job_template.spec.template),
        );
    }

    fn validate(&self, _context: &Context, new: &CronJob, old: Option<&CronJob>) -> ErrorList {
        faults::of_object(|f| {
            check(&mut f.at("spec"), &new.spec, old.map(|old| &old.spec));
            let name = &new.metadata.name;
            // The names of its jobs end in a dash and a time.
            if old.is_none() && name.len() > NAME_MAX {
                let text = format!("must be no more than {NAME_MAX} characters");
                f.at("metadata").at("name").invalid(name, text);
            }
        })
    }
}

fn check(f: &mut Faults<'_>, spec: &CronJobSpec, old: Option<&CronJobSpec>) {
    when(f, spec, old);
    f.at("startingDeadlineSeconds")
        .non_negative(spec.starting_deadline_seconds);
    let zone = spec.time_zone.as_deref();
    if let Some(zone) = zone.filter(|_| old.is_none_or(|old| old.time_zone != spec.time_zone))
        && let Some(text) = schedule::zone_fault(zone)
    {
        f.at("timeZone").invalid(zone, text);
    }
    let old = old.map(|old| &old.job_template.spec);
    job::of_template(&mut f.at("jobTemplate").at("spec"), &spec.job_template.spec, old);
    for (name, limit) in [
        ("successfulJobsHistoryLimit", spec.successful_jobs_history_limit),
        ("failedJobsHistoryLimit", spec.failed_jobs_history_limit),
    ] {
        f.at(name).non_negative(limit);
    }
}

/// A time zone has a field of its own; schedules that named one before keep it.
fn when(f: &mut Faults<'_>, spec: &CronJobSpec, old: Option<&CronJobSpec>) {
    let mut f = f.at("schedule");
    let text = spec.schedule.as_str();
    if !f.filled(text) {
        return;
    }
    if let Some(fault) = schedule::fault(text) {
        f.invalid(text, fault);
    }
    let names_zone = |spec: &CronJobSpec| spec.schedule.contains("TZ");
    if !names_zone(spec) {
        return;
    }
    if !old.is_some_and(names_zone) {
        f.invalid(text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    } else if spec.time_zone.is_some() {
        f.invalid(text, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
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
