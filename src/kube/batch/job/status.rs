//! Statuses of jobs: their conditions, counters, times and indexes fit together. What was stored is looked at only
//! where something changes.

use keelson_api::batch::v1::{Job, JobSpec, JobStatus};
use keelson_machinery::equality;
use keelson_machinery::field::BadValue;
use keelson_machinery::time::Time;

use super::indexes;
use crate::faults::{Faults, Unique};
use crate::typed::{IMMUTABLE, same, shown_option};

const INDEXED: &str = "Indexed";
const INCOMPLETE: &str = "cannot set completionTime when there is no Complete=True condition";
const UNMET: &str = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";

/// Whether a condition is said to have a value.
fn says(status: &JobStatus, condition: &str, value: &str) -> bool {
    status
        .conditions
        .iter()
        .any(|c| c.r#type == condition && c.status == value)
}

/// A condition of an end: its name, and whether it is and was true.
#[derive(Clone, Copy)]
struct End {
    name: &'static str,
    is: bool,
    was: bool,
}

impl End {
    fn changes(self) -> bool {
        self.is != self.was
    }
}

/// The conditions of an end.
struct Ends {
    complete: End,
    failed: End,
    failure_target: End,
    success_criteria: End,
}

impl Ends {
    fn of(new: &JobStatus, old: &JobStatus) -> Ends {
        let end = |name: &'static str| End {
            name,
            is: says(new, name, "True"),
            was: says(old, name, "True"),
        };
        Ends {
            complete: end("Complete"),
            failed: end("Failed"),
            failure_target: end("FailureTarget"),
            success_criteria: end("SuccessCriteriaMet"),
        }
    }

    fn is_finished(&self) -> bool {
        self.complete.is || self.failed.is
    }

    fn was_finished(&self) -> bool {
        self.complete.was || self.failed.was
    }
}

/// Checks a status that a client writes.
pub fn check(f: &mut Faults<'_>, job: &Job, old_job: &Job) {
    let (new, old, spec) = (&job.status, &old_job.status, &job.spec);
    let ends = Ends::of(new, old);
    counts(f, new);
    conditions_and_times(f, new, old, &ends);
    if ends.is_finished() {
        finished(f, job, old, !ends.was_finished());
    }
    all_indexes(f, new, old, spec);
    if ends.is_finished() && (!ends.was_finished() || new.terminating != old.terminating) {
        let text = "terminating>0 is invalid for finished job";
        f.at("terminating").number(new.terminating, |number| number <= 0, text);
    }
    if new.active != old.active || new.ready != old.ready {
        let (active, text) = (i64::from(new.active), "cannot set more ready pods than active");
        f.at("ready").number(new.ready, |ready| ready <= active, text);
    }
    exclude(f, ends.success_criteria, ends.failed);
    exclude(f, ends.success_criteria, ends.failure_target);
    let is_unmet = spec.success_policy.is_some() && !ends.success_criteria.is && ends.complete.is;
    f.at("conditions").invalid_if(is_unmet, BadValue::Omitted, UNMET);
    against_old(f, job, old, &ends);
}

fn counts(f: &mut Faults<'_>, status: &JobStatus) {
    f.counts(status, &["active", "succeeded", "failed", "ready", "terminating"]);
    let Some(uncounted) = status.uncounted_terminated_pods.as_deref() else {
        return;
    };
    let mut seen = Unique::default();
    let mut f = f.at("uncountedTerminatedPods");
    for (name, pods) in [("succeeded", &uncounted.succeeded), ("failed", &uncounted.failed)] {
        f.each(name, pods, |f, uid| {
            f.invalid_if(uid.is_empty(), "", "must not be empty");
            if !uid.is_empty() {
                seen.check(f, uid);
            }
        });
    }
}

/// Not both may be true.
fn exclude(f: &mut Faults<'_>, one: End, other: End) {
    if one.is && other.is {
        let text = format!("cannot set {}=True and {}=true conditions", one.name, other.name);
        f.at("conditions").invalid(BadValue::Omitted, text);
    }
}

/// One is true with another alone.
fn need(f: &mut Faults<'_>, one: End, other: End) {
    if one.is && !other.is {
        let text = format!(
            "cannot set {}=True condition without the {}=true condition",
            one.name, other.name
        );
        f.at("conditions").invalid(BadValue::Omitted, text);
    }
}

fn shown(time: Option<Time>) -> BadValue {
    time.map(|time| time.to_string()).into()
}

fn conditions_and_times(f: &mut Faults<'_>, new: &JobStatus, old: &JobStatus, ends: &Ends) {
    let (complete, failed) = (ends.complete, ends.failed);
    let (start, end) = (new.start_time, new.completion_time);
    let ends_anew = end != old.completion_time;
    if complete.changes() || failed.changes() {
        exclude(f, complete, failed);
    }
    if complete.changes() || ends.failure_target.changes() {
        exclude(f, complete, ends.failure_target);
    }
    if (complete.changes() || ends_anew) && end.is_some() != complete.is {
        match end {
            Some(_) => f.at("completionTime").invalid(shown(end), INCOMPLETE),
            None => f
                .at("completionTime")
                .required("completionTime is required for Complete jobs"),
        }
    }
    if let (Some(start), Some(end)) = (start, end)
        && (new.start_time != old.start_time || ends_anew)
        && end < start
    {
        f.at("completionTime")
            .invalid(shown(Some(end)), "must be equal to or after `startTime`");
    }
    if failed.changes() || new.failed_indexes != old.failed_indexes {
        need(f, failed, ends.failure_target);
    }
    if complete.changes() || ends.success_criteria.changes() {
        need(f, complete, ends.success_criteria);
    }
}

/// Checks what is left of a job that has ended, `newly` or before.
fn finished(f: &mut Faults<'_>, job: &Job, old: &JobStatus, newly: bool) {
    let (new, spec) = (&job.status, &job.spec);
    if newly || new.active != old.active {
        let text = "active>0 is invalid for finished job";
        f.at("active").number(new.active, |active| active <= 0, text);
    }
    let never_began = spec.suspend == Some(true) && spec.completions == Some(0);
    let is_told = newly || new.start_time != old.start_time;
    f.at("startTime").required_if(
        is_told && !never_began && new.start_time.is_none(),
        "startTime is required for finished job",
    );
    let uncounted = new.uncounted_terminated_pods.as_deref();
    let is_changed = !same(uncounted, old.uncounted_terminated_pods.as_deref());
    if (newly || is_changed) && uncounted.is_some_and(|u| !equality::is_zero(u)) {
        f.at("uncountedTerminatedPods")
            .invalid(shown_option(uncounted), "must be empty for finished job");
    }
}

fn all_indexes(f: &mut Faults<'_>, new: &JobStatus, old: &JobStatus, spec: &JobSpec) {
    let changes_completed = new.completed_indexes != old.completed_indexes;
    let changes_failed = new.failed_indexes != old.failed_indexes;
    let (completed, failed) = (new.completed_indexes.as_str(), new.failed_indexes.as_deref());
    let per_index = spec.backoff_limit_per_index.is_some();
    if let Some(completions) = spec.completions {
        if changes_completed && let Err(error) = indexes::count(completed, completions) {
            f.at("completedIndexes")
                .invalid(completed, format!("error parsing completedIndexes: {error}"));
        }
        if let Some(failed) = failed.filter(|_| changes_failed && per_index)
            && let Err(error) = indexes::count(failed, completions)
        {
            f.at("failedIndexes")
                .invalid(failed, format!("error parsing failedIndexes: {error}"));
        }
    }
    let indexed = spec.completion_mode.as_deref() == Some(INDEXED);
    if changes_completed && !completed.is_empty() && !indexed {
        let text = "cannot set non-empty completedIndexes when non-indexed completion mode";
        f.at("completedIndexes").invalid(completed, text);
    }
    let Some(failed) = failed else { return };
    let text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
    f.at("failedIndexes")
        .invalid_if(changes_failed && !per_index, failed, text);
    if (changes_failed || changes_completed)
        && let Some(completions) = spec.completions
        && let Some(index) = indexes::overlap(completed, failed, completions)
    {
        let text = format!("failedIndexes and completedIndexes overlap at index: {index}");
        f.at("failedIndexes").invalid(failed, text);
    }
}

/// Ends stay, counters grow, and what has begun has begun when it began.
fn against_old(f: &mut Faults<'_>, job: &Job, old: &JobStatus, ends: &Ends) {
    let (new, spec) = (&job.status, &job.spec);
    for end in [ends.failed, ends.complete, ends.failure_target] {
        if end.was && !end.is {
            let text = format!("cannot disable the terminal {}=True condition", end.name);
            f.at("conditions").invalid(BadValue::Omitted, text);
        }
    }
    let may_shrink = spec.completion_mode.as_deref() == Some(INDEXED) && spec.completions == spec.parallelism;
    let is_less = new.succeeded < old.succeeded && !may_shrink;
    f.at("failed").invalid_if(
        new.failed < old.failed,
        new.failed,
        "cannot decrease the failed counter",
    );
    f.at("succeeded")
        .invalid_if(is_less, new.succeeded, "cannot decrease the succeeded counter");
    let (end, ended) = (new.completion_time, old.completion_time);
    if end.is_some() && ended.is_some() && end != ended {
        f.at("completionTime").invalid(shown(end), IMMUTABLE);
    }
    let resumes = says(old, "Suspended", "True") && says(new, "Suspended", "False");
    let is_moved = old.start_time.is_some() && new.start_time != old.start_time;
    if is_moved && !resumes && spec.suspend != Some(true) {
        let text = "field is immutable for unsuspended job once set";
        f.at("startTime").invalid(shown(new.start_time), text);
    }
    let met = ends.success_criteria;
    let text = "cannot disable the SuccessCriteriaMet=True condition";
    f.at("conditions")
        .invalid_if(met.was && !met.is, BadValue::Omitted, text);
    let text = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
    let is_late = ends.complete.was && !met.was && met.is;
    f.at("conditions").invalid_if(is_late, BadValue::Omitted, text);
}
