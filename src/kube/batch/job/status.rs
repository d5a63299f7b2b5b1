//! Statuses of jobs: their conditions, counters, times and indexes fit together. What was stored is looked at only
//! where something changes.

use std::collections::HashSet;

use keelson_api::batch::v1::{Job, JobSpec, JobStatus};
use keelson_machinery::equality;
use keelson_machinery::field::BadValue;
use keelson_machinery::time::Time;

use super::indexes;
use crate::faults::Faults;
use crate::typed::{IMMUTABLE, same, shown_option};

const INDEXED: &str = "Indexed";

/// Whether a condition is said to have a value.
fn says(status: &JobStatus, condition: &str, value: &str) -> bool {
    status
        .conditions
        .iter()
        .any(|c| c.r#type == condition && c.status == value)
}

/// Which conditions of an end are true.
#[derive(Clone, Copy, PartialEq)]
struct Ends {
    complete: bool,
    failed: bool,
    failure_target: bool,
    success_criteria: bool,
}

impl Ends {
    fn of(status: &JobStatus) -> Ends {
        Ends {
            complete: says(status, "Complete", "True"),
            failed: says(status, "Failed", "True"),
            failure_target: says(status, "FailureTarget", "True"),
            success_criteria: says(status, "SuccessCriteriaMet", "True"),
        }
    }

    fn is_finished(&self) -> bool {
        self.complete || self.failed
    }
}

/// What of a status is new.
struct Changes {
    ends: bool,
    active: bool,
    start: bool,
    completion: bool,
    completed_indexes: bool,
    failed_indexes: bool,
}

/// Checks a status that a client writes.
pub fn check(f: &mut Faults<'_>, job: &Job, old_job: &Job) {
    let (new, old, spec) = (&job.status, &old_job.status, &job.spec);
    let (ends, ended) = (Ends::of(new), Ends::of(old));
    let changes = Changes {
        ends: ends.is_finished() != ended.is_finished(),
        active: new.active != old.active,
        start: new.start_time != old.start_time,
        completion: new.completion_time != old.completion_time,
        completed_indexes: new.completed_indexes != old.completed_indexes,
        failed_indexes: new.failed_indexes != old.failed_indexes,
    };
    counts(f, new);
    conditions_and_times(f, new, (ends, ended), &changes);
    finished(f, job, old, (ends, ended), &changes);
    all_indexes(f, new, spec, &changes);
    if ends.is_finished()
        && (changes.ends || new.terminating != old.terminating)
        && let Some(number) = new.terminating.filter(|number| *number > 0)
    {
        f.at("terminating")
            .invalid(number, "terminating>0 is invalid for finished job");
    }
    if (changes.active || new.ready != old.ready)
        && let Some(ready) = new.ready.filter(|ready| *ready > new.active)
    {
        f.at("ready").invalid(ready, "cannot set more ready pods than active");
    }
    exclusive(f, ends, spec);
    against_old(f, job, old, (ends, ended));
}

fn counts(f: &mut Faults<'_>, status: &JobStatus) {
    for (name, count) in [
        ("active", status.active),
        ("succeeded", status.succeeded),
        ("failed", status.failed),
        ("ready", status.ready.unwrap_or(0)),
        ("terminating", status.terminating.unwrap_or(0)),
    ] {
        f.at(name).non_negative(count);
    }
    let Some(uncounted) = status.uncounted_terminated_pods.as_deref() else {
        return;
    };
    let mut seen = HashSet::new();
    let mut f = f.at("uncountedTerminatedPods");
    for (name, pods) in [("succeeded", &uncounted.succeeded), ("failed", &uncounted.failed)] {
        f.each(name, pods, |f, uid| {
            if uid.is_empty() {
                f.invalid("", "must not be empty");
            } else if !seen.insert(uid) {
                f.duplicate(uid);
            }
        });
    }
}

fn wrong(f: &mut Faults<'_>, text: &str) {
    f.at("conditions").invalid(BadValue::Omitted, text);
}

fn shown(time: Option<Time>) -> BadValue {
    time.map_or_else(BadValue::null, |time| time.to_string().into())
}

fn conditions_and_times(f: &mut Faults<'_>, new: &JobStatus, (ends, ended): (Ends, Ends), changes: &Changes) {
    let completes = ends.complete != ended.complete;
    if (completes || ends.failed != ended.failed) && ends.complete && ends.failed {
        wrong(f, "cannot set Complete=True and Failed=true conditions");
    }
    if (completes || ends.failure_target != ended.failure_target) && ends.complete && ends.failure_target {
        wrong(f, "cannot set Complete=True and FailureTarget=true conditions");
    }
    if completes || changes.completion {
        if new.completion_time.is_some() && !ends.complete {
            let text = "cannot set completionTime when there is no Complete=True condition";
            f.at("completionTime").invalid(shown(new.completion_time), text);
        }
        if new.completion_time.is_none() && ends.complete {
            f.at("completionTime")
                .required("completionTime is required for Complete jobs");
        }
    }
    if let (Some(start), Some(end)) = (new.start_time, new.completion_time)
        && (changes.start || changes.completion)
        && end < start
    {
        f.at("completionTime")
            .invalid(shown(Some(end)), "must be equal to or after `startTime`");
    }
    if (ends.failed != ended.failed || changes.failed_indexes) && ends.failed && !ends.failure_target {
        wrong(
            f,
            "cannot set Failed=True condition without the FailureTarget=true condition",
        );
    }
    let met = ends.success_criteria != ended.success_criteria;
    if (completes || met) && ends.complete && !ends.success_criteria {
        wrong(
            f,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        );
    }
}

fn finished(f: &mut Faults<'_>, job: &Job, old: &JobStatus, (ends, _): (Ends, Ends), changes: &Changes) {
    let (new, spec) = (&job.status, &job.spec);
    if !ends.is_finished() {
        return;
    }
    if (changes.ends || changes.active) && new.active > 0 {
        f.at("active")
            .invalid(new.active, "active>0 is invalid for finished job");
    }
    let never_began = spec.suspend == Some(true) && spec.completions == Some(0);
    if (changes.ends || changes.start) && !never_began && new.start_time.is_none() {
        f.at("startTime").required("startTime is required for finished job");
    }
    let uncounted = new.uncounted_terminated_pods.as_deref();
    let is_changed = !same(uncounted, old.uncounted_terminated_pods.as_deref());
    if (changes.ends || is_changed) && uncounted.is_some_and(|u| !equality::is_zero(u)) {
        f.at("uncountedTerminatedPods")
            .invalid(shown_option(uncounted), "must be empty for finished job");
    }
}

fn all_indexes(f: &mut Faults<'_>, new: &JobStatus, spec: &JobSpec, changes: &Changes) {
    let (completed, failed) = (new.completed_indexes.as_str(), new.failed_indexes.as_deref());
    let per_index = spec.backoff_limit_per_index.is_some();
    if let Some(completions) = spec.completions {
        if changes.completed_indexes
            && let Err(error) = indexes::count(completed, completions)
        {
            f.at("completedIndexes")
                .invalid(completed, format!("error parsing completedIndexes: {error}"));
        }
        if let Some(failed) = failed.filter(|_| changes.failed_indexes && per_index)
            && let Err(error) = indexes::count(failed, completions)
        {
            f.at("failedIndexes")
                .invalid(failed, format!("error parsing failedIndexes: {error}"));
        }
    }
    let indexed = spec.completion_mode.as_deref() == Some(INDEXED);
    if changes.completed_indexes && !completed.is_empty() && !indexed {
        let text = "cannot set non-empty completedIndexes when non-indexed completion mode";
        f.at("completedIndexes").invalid(completed, text);
    }
    let Some(failed) = failed else { return };
    let text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
    f.at("failedIndexes")
        .invalid_if(changes.failed_indexes && !per_index, failed, text);
    if (changes.failed_indexes || changes.completed_indexes)
        && let Some(completions) = spec.completions
        && let Some(index) = indexes::overlap(completed, failed, completions)
    {
        let text = format!("failedIndexes and completedIndexes overlap at index: {index}");
        f.at("failedIndexes").invalid(failed, text);
    }
}

/// Ends that exclude each other.
fn exclusive(f: &mut Faults<'_>, ends: Ends, spec: &JobSpec) {
    if ends.success_criteria && ends.failed {
        wrong(f, "cannot set SuccessCriteriaMet=True and Failed=true conditions");
    }
    if ends.success_criteria && ends.failure_target {
        wrong(
            f,
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        );
    }
    if spec.success_policy.is_some() && !ends.success_criteria && ends.complete {
        wrong(
            f,
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        );
    }
}

/// Ends stay, counters grow, and what has begun has begun when it began.
fn against_old(f: &mut Faults<'_>, job: &Job, old: &JobStatus, (ends, ended): (Ends, Ends)) {
    let (new, spec) = (&job.status, &job.spec);
    for (name, is, was) in [
        ("Failed", ends.failed, ended.failed),
        ("Complete", ends.complete, ended.complete),
        ("FailureTarget", ends.failure_target, ended.failure_target),
    ] {
        if was && !is {
            wrong(f, &format!("cannot disable the terminal {name}=True condition"));
        }
    }
    if new.failed < old.failed {
        f.at("failed").invalid(new.failed, "cannot decrease the failed counter");
    }
    let indexed = spec.completion_mode.as_deref() == Some(INDEXED);
    let may_shrink = indexed && spec.completions == spec.parallelism;
    if new.succeeded < old.succeeded && !may_shrink {
        f.at("succeeded")
            .invalid(new.succeeded, "cannot decrease the succeeded counter");
    }
    if new.completion_time.is_some() && old.completion_time.is_some() && new.completion_time != old.completion_time {
        f.at("completionTime").invalid(shown(new.completion_time), IMMUTABLE);
    }
    let resumes = says(old, "Suspended", "True") && says(new, "Suspended", "False");
    let is_moved = old.start_time.is_some() && new.start_time != old.start_time;
    if is_moved && !resumes && spec.suspend != Some(true) {
        let text = "field is immutable for unsuspended job once set";
        f.at("startTime").invalid(shown(new.start_time), text);
    }
    if ended.success_criteria && !ends.success_criteria {
        wrong(f, "cannot disable the SuccessCriteriaMet=True condition");
    }
    if ended.complete && !ended.success_criteria && ends.success_criteria {
        wrong(
            f,
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        );
    }
}
