//! Cells of jobs and cron jobs.

use keelson_api::batch::v1::{CronJob, Job};
use keelson_machinery::meta::v1;
use keelson_machinery::selector::label::LabelSelector;
use keelson_machinery::table::Cell;

use super::workload::{containers, images};
use super::{NONE, UNSET, count};

cells! { pub const JOB: Job =
    "containers" => |o| containers(&o.spec.template),
    "images" => |o| images(&o.spec.template),
    "job_completions" => job_completions,
    "job_duration" => job_duration,
    "job_selector" => |o| label_selector(o.spec.selector.as_deref()),
    "job_status" => job_status,
}
cells! { pub const CRON_JOB: CronJob =
    "containers" => |o| containers(&o.spec.job_template.spec.template),
    "images" => |o| images(&o.spec.job_template.spec.template),
    "cron_job_active" => |o| count(o.status.active.len()),
    "cron_job_last_schedule" => |o| o.status.last_schedule_time.map_or_else(|| NONE.into(), Cell::age),
    "cron_job_schedule" => |o| o.spec.schedule.clone(),
    "cron_job_selector" => |o| label_selector(o.spec.job_template.spec.selector.as_deref()),
    "cron_job_suspend" => cron_job_suspend,
    "cron_job_timezone" => |o| o.spec.time_zone.clone().unwrap_or_else(|| NONE.to_owned()),
}

/// What became of the job. An end that was reached counts for more than a deletion, and that for more than a pause.
fn job_status(o: &Job) -> String {
    let has = |ty: &str| o.status.conditions.iter().any(|c| c.r#type == ty && c.status == "True");
    let deleted = o.metadata.deletion_timestamp.is_some();
    let word = match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if deleted => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    word.to_owned()
}

/// `1/3`; `0/1 of 3` where any pod's success completes the job.
fn job_completions(o: &Job) -> String {
    let done = o.status.succeeded;
    match (o.spec.completions, o.spec.parallelism) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, Some(parallel)) if parallel > 1 => format!("{done}/1 of {parallel}"),
        (None, _) => format!("{done}/1"),
    }
}

/// From the start to the completion, or until now.
fn job_duration(o: &Job) -> Cell {
    let Some(start) = o.status.start_time else {
        return "".into();
    };
    let duration = Cell::elapsed(start);
    match o.status.completion_time {
        Some(end) => duration.at(end),
        None => duration,
    }
}

fn cron_job_suspend(o: &CronJob) -> String {
    match o.spec.suspend {
        None => UNSET,
        Some(true) => "True",
        Some(false) => "False",
    }
    .to_owned()
}

/// The selector in text form; none and one of everything look the same.
pub fn label_selector(message: Option<&v1::LabelSelector>) -> String {
    match message.map(|m| LabelSelector::from_message(Some(m)).map(|s| s.to_string())) {
        None => NONE.to_owned(),
        Some(Err(_)) => "<error>".to_owned(),
        Some(Ok(text)) if text.is_empty() => NONE.to_owned(),
        Some(Ok(text)) => text,
    }
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;
    use keelson_machinery::time::Time;

    use super::*;

    fn job(text: &str) -> Job {
        let mut job = Job::default();
        json::read(text.as_bytes(), &mut job).unwrap();
        job
    }

    #[test]
    fn the_status_is_one_word() {
        for (deleted, conditions, expected) in [
            (false, "", "Running"),
            (false, "FailureTarget", "FailureTarget"),
            (false, "FailureTarget Failed", "Failed"),
            (false, "FailureTarget Suspended", "Suspended"),
            (true, "FailureTarget", "Terminating"),
            (true, "SuccessCriteriaMet Complete", "Complete"),
        ] {
            let conditions: Vec<String> = conditions
                .split_whitespace()
                .map(|ty| format!(r#"{{"type":"{ty}","status":"True"}}"#))
                .collect();
            let mut job = job(&format!(r#"{{"status":{{"conditions":[{}]}}}}"#, conditions.join(",")));
            job.metadata.deletion_timestamp = deleted.then(Time::default);
            assert_eq!(job_status(&job), expected);
        }
    }

    #[test]
    fn durations_end_with_the_completion_or_now() {
        let now = Time::parse("2020-01-01T02:00:00Z").unwrap();
        for (status, expected) in [
            ("{}", ""),
            (r#"{"startTime":"2020-01-01T00:00:00Z"}"#, "120m"),
            (
                r#"{"startTime":"2020-01-01T00:00:00Z","completionTime":"2020-01-01T00:01:05Z"}"#,
                "65s",
            ),
        ] {
            let job = job(&format!(r#"{{"status":{status}}}"#));
            assert_eq!(job_duration(&job).at(now), expected.into());
        }
    }

    #[test]
    fn completions_tell_what_is_waited_for() {
        for (spec, expected) in [
            ("{}", "0/1"),
            (r#"{"completions":0}"#, "0/0"),
            (r#"{"completions":5,"parallelism":2}"#, "0/5"),
            (r#"{"parallelism":3}"#, "0/1 of 3"),
        ] {
            let job = job(&format!(r#"{{"spec":{spec}}}"#));
            assert_eq!(job_completions(&job), expected);
        }
    }
}
