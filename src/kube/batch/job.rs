//! Jobs: how often a job runs its pods, and how it knows them.

mod indexes;
mod keep;
mod spec;
mod status;

pub use spec::of_template;

use keelson_api::batch::v1::{Job, JobSpec};
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_machinery::object::Object;
use keelson_registry::{Context, KindCode, Strategy};

use crate::cells;
use crate::core::pod_spec;
use crate::faults;
use crate::metadata;
use crate::typed::is_new_generation;

/// Labels of a job's pods: the name that selectors use, and the older one that is kept for clients that look for it.
const UID_LABELS: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];
const NAME_LABELS: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];

/// How often pods are tried again; without an end where each index has a limit of its own.
const BACKOFF_LIMIT: i32 = 6;

/// What becomes of the pods is easily overlooked.
const ORPHANS: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
    remove them or set propagationPolicy=Orphan to suppress this warning";

/// Above both the indexes that are done may be too many to tell.
const MANY_COMPLETIONS: i32 = 100_000;
const MANY_PODS: i32 = 10_000;

/// Registers the rules of jobs.
pub fn register(code: &mut KindCode) {
    code.kind::<Job>()
        .strategy(JobStrategy)
        .metadata_checks(metadata::WHOLE_FIRST)
        .defaults(defaults)
        .cells(cells::batch::JOB);
}

/// The rules of jobs.
struct JobStrategy;

impl Strategy for JobStrategy {
    type Object = Job;

    fn warnings(&self, new: &Job, old: Option<&Job>) -> Vec<String> {
        if !is_new_generation(new, old) {
            return Vec::new();
        }
        let mut found = pod_spec::warnings::of_owner(&new.metadata, old.is_none());
        found.extend(of_size(&new.spec));
        found.extend(pod_spec::warnings::of_template(
            &new.spec.template,
            &Path::new("spec").child("template"),
        ));
        found
    }

    fn prepare_for_create(&self, _context: &Context, job: &mut Job) {
        pod_spec::disabled::drop_from_template(&mut job.spec.template, None);
        if job.spec.manual_selector != Some(true) {
            select_own_pods(job);
        }
        label_like_pods(job);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut Job, old: &Job) {
        pod_spec::disabled::drop_from_template(&mut new.spec.template, Some(&old.spec.template));
    }

    /// What is wrong with the specification of one that changed is told twice.
    fn validate(&self, _context: &Context, new: &Job, old: Option<&Job>) -> ErrorList {
        faults::of_object(|f| {
            spec::of_job(f, new, old);
            if let Some(old) = old {
                spec::selected(&mut f.at("spec"), &new.spec, Some(&old.spec));
            }
        })
    }

    fn validate_change(&self, _context: &Context, new: &Job, old: &Job) -> ErrorList {
        faults::of_spec(|f| keep::check(f, new, old))
    }

    fn validate_status_update(&self, _context: &Context, new: &Job, old: &Job) -> ErrorList {
        faults::of_status(|f| status::check(f, new, old))
    }

    fn orphans_by_default(&self) -> bool {
        true
    }

    fn as_written(&self, object: &Job) -> Option<Box<dyn Object>> {
        let mut job = object.clone();
        label_like_pods(&mut job);
        Some(Box::new(job))
    }

    fn deletion_warning(&self, options: &DeleteOptions) -> Option<&'static str> {
        let silent = options.propagation_policy.is_none() && options.orphan_dependents.is_none();
        silent.then_some(ORPHANS)
    }
}

/// Indexes are told in a text, which has its limits.
fn of_size(spec: &JobSpec) -> Option<String> {
    let indexed = spec.completion_mode.as_deref() == Some("Indexed");
    let large =
        spec.completions.is_some_and(|n| n > MANY_COMPLETIONS) && spec.parallelism.is_some_and(|n| n > MANY_PODS);
    (indexed && large).then(|| {
        "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
         Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
            .to_owned()
    })
}

/// Gives the pods labels that no other job's have, and selects by them.
fn select_own_pods(job: &mut Job) {
    let labels = &mut job.spec.template.metadata.labels;
    for (names, value) in [(UID_LABELS, &job.metadata.uid), (NAME_LABELS, &job.metadata.name)] {
        for name in names {
            labels.entry(name.to_owned()).or_insert_with(|| value.clone());
        }
    }
    let [uid_label, _] = UID_LABELS;
    let selector = job.spec.selector.get_or_insert_default();
    selector
        .match_labels
        .entry(uid_label.to_owned())
        .or_insert_with(|| job.metadata.uid.clone());
}

/// A job without labels has those of its pods.
fn label_like_pods(job: &mut Job) {
    if job.metadata.labels.is_empty() {
        job.metadata.labels.clone_from(&job.spec.template.metadata.labels);
    }
}

/// Defaults of jobs. Those of its labels wait, in a new job, for the labels that its pods will get.
fn defaults(job: &mut Job) {
    of_spec(&mut job.spec);
    if job.spec.manual_selector == Some(true) || job.spec.selector.is_some() {
        label_like_pods(job);
    }
}

/// These are not of a cron job's template, which stays as it was written.
fn of_spec(spec: &mut JobSpec) {
    if spec.completions.is_none() && spec.parallelism.is_none() {
        spec.completions = Some(1);
    }
    spec.parallelism.get_or_insert(1);
    spec.backoff_limit.get_or_insert(match spec.backoff_limit_per_index {
        Some(_) => i32::MAX,
        None => BACKOFF_LIMIT,
    });
    spec.completion_mode.get_or_insert_with(|| "NonIndexed".to_owned());
    spec.suspend.get_or_insert(false);
    spec.manual_selector.get_or_insert(false);
    let replacement = match spec.pod_failure_policy {
        Some(_) => "Failed",
        None => "TerminatingOrFailed",
    };
    spec.pod_replacement_policy
        .get_or_insert_with(|| replacement.to_owned());
    pod_spec::of_template(&mut spec.template);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read, read_defaulted};

    fn job(spec: &str) -> Job {
        let mut job: Job = read_defaulted(&format!(r#"{{"metadata":{{"name":"n","uid":"u"}},"spec":{spec}}}"#));
        defaults(&mut job);
        job
    }

    #[test]
    fn a_job_runs_once_unless_it_is_said_otherwise() {
        for (spec, completions, parallelism, limit) in [
            ("{}", Some(1), 1, 6),
            (r#"{"parallelism":3}"#, None, 3, 6),
            (r#"{"parallelism":0}"#, None, 0, 6),
            (r#"{"completions":3}"#, Some(3), 1, 6),
            (r#"{"completions":3,"backoffLimitPerIndex":1}"#, Some(3), 1, i32::MAX),
        ] {
            let spec = job(spec).spec;
            assert_eq!(
                (spec.completions, spec.parallelism, spec.backoff_limit),
                (completions, Some(parallelism), Some(limit))
            );
        }
        let policy = |spec: &str| job(spec).spec.pod_replacement_policy.unwrap();
        assert_eq!(policy("{}"), "TerminatingOrFailed");
        assert_eq!(policy(r#"{"podFailurePolicy":{"rules":[]}}"#), "Failed");
    }

    #[test]
    fn a_job_knows_its_pods_by_its_uid() {
        let mut job = job(r#"{"template":{"metadata":{"labels":{"a":"b"}}}}"#);
        assert!(job.metadata.labels.is_empty());
        JobStrategy.prepare_for_create(&context(), &mut job);
        let labels = &job.spec.template.metadata.labels;
        assert_eq!(labels.len(), 5);
        assert_eq!(
            (&*labels["job-name"], &*labels["batch.kubernetes.io/controller-uid"]),
            ("n", "u")
        );
        assert_eq!(job.metadata.labels, *labels);
        let selector = &job.spec.selector.as_ref().unwrap().match_labels;
        assert_eq!(selector.len(), 1);
        assert_eq!(selector["batch.kubernetes.io/controller-uid"], "u");
    }

    #[test]
    fn counters_grow_and_the_start_stays() {
        let old: Job = read(r#"{"status":{"failed":2,"startTime":"2026-01-02T03:04:05Z"}}"#);
        let of = |status: &str, suspend: bool| {
            let new: Job = read(&format!(r#"{{"spec":{{"suspend":{suspend}}},"status":{status}}}"#));
            lines(&JobStrategy.validate_status_update(&context(), &new, &old))
        };
        assert_eq!(of(r#"{"failed":3}"#, true), "");
        assert_eq!(
            of(r#"{"failed":1,"active":-1}"#, false),
            "status.active: Invalid value: -1: must be greater than or equal to 0\n\
             status.failed: Invalid value: 1: cannot decrease the failed counter\n\
             status.startTime: Invalid value: null: field is immutable for unsuspended job once set"
        );
        assert_eq!(
            of(r#"{"failed":2,"ready":1}"#, true),
            "status.ready: Invalid value: 1: cannot set more ready pods than active"
        );
    }

    #[test]
    fn a_selector_of_ones_own_stays() {
        let mut job = job(
            r#"{"manualSelector":true,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}}}}"#,
        );
        JobStrategy.prepare_for_create(&context(), &mut job);
        assert_eq!(job.spec.template.metadata.labels.len(), 1);
        assert_eq!(job.metadata.labels.len(), 1);
    }
}
