//! Specifications of jobs, also of those that cron jobs make.

use std::collections::HashSet;

use keelson_api::batch::v1::{
    Job, JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule, SuccessPolicyRule,
};
use keelson_machinery::field::BadValue;
use keelson_machinery::selector::label::LabelSelector;
use keelson_machinery::validation::names;

use super::{NAME_LABELS, UID_LABELS, indexes};
use crate::core::pod_spec;
use crate::core::pod_spec::replicas::not_selected;
use crate::faults::Faults;
use crate::typed;

const OPERATORS: [&str; 2] = ["In", "NotIn"];
const REPLACEMENTS: [&str; 2] = ["Failed", "TerminatingOrFailed"];
const INDEXED: &str = "Indexed";
/// Bounds of jobs that count their pods by index.
const MOST_PODS: i64 = 100_000;
const MOST_FAILED: i64 = 100_000;
/// Above so many completions the others have closer bounds.
const MANY_COMPLETIONS: i32 = 100_000;
const MOST_PODS_OF_MANY: i64 = 10_000;
const MOST_FAILED_OF_MANY: i64 = 10_000;
const MANAGER_MAX: usize = 63;
const MOST_RULES: usize = 20;
const MOST_CODES: usize = 255;
const MOST_CONDITIONS: usize = 20;
const INDEXES_MAX: usize = 64 * 1024;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// Checks a job as it is.
pub fn of_job(f: &mut Faults<'_>, job: &Job, old: Option<&Job>) {
    let had_labels = |old: &Job| {
        let labels = &old.spec.template.metadata.labels;
        labels.contains_key(UID_LABELS[0]) && labels.contains_key(NAME_LABELS[0])
    };
    own_labels(f, job, old.is_none_or(had_labels));
    selected(&mut f.at("spec"), &job.spec, old.map(|old| &old.spec));
    let indexed = job.spec.completion_mode.as_deref() == Some(INDEXED);
    if let Some(completions) = job.spec.completions.filter(|n| indexed && *n > 0) {
        let name = &job.metadata.name;
        let host = format!("{name}-{}", completions - 1);
        if !names::dns_label(&host).is_empty() {
            let text = format!("will not able to create pod with invalid DNS label: {host}");
            f.at("metadata").at("name").invalid(name, text);
        }
    }
}

/// A job that chose its selector itself has pods with labels of its own. `newer`: they have the newer labels too.
fn own_labels(f: &mut Faults<'_>, job: &Job, newer: bool) {
    let (spec, uid, name) = (&job.spec, &job.metadata.uid, &job.metadata.name);
    if spec.manual_selector == Some(true) || spec.selector.is_none() {
        return;
    }
    let [new_uid, old_uid] = UID_LABELS;
    let [new_name, old_name] = NAME_LABELS;
    let mut expected = vec![(old_uid, uid), (old_name, name)];
    if newer {
        expected.extend([(new_uid, uid), (new_name, name)]);
    }
    let labels = &spec.template.metadata.labels;
    for (key, value) in &expected {
        let text = format!("must be '{value}'");
        let mut spec = f.at("spec");
        let mut template = spec.at("template");
        let mut meta = template.at("metadata");
        match labels.get(*key) {
            None => meta.at("labels").key(key).required(text),
            Some(found) if found != *value => {
                let shown = serde_json::to_string(labels).unwrap_or_default();
                meta.at("labels").key(key).invalid(BadValue::json(shown), text);
            }
            Some(_) => {}
        }
    }
    let labels = expected
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect();
    if let Ok(selector) = LabelSelector::from_message(spec.selector.as_deref())
        && !selector.matches(&labels)
    {
        f.at("spec").at("selector").invalid(
            typed::shown_option(spec.selector.as_deref()),
            "`selector` not auto-generated",
        );
    }
}

/// Checks a specification whose selector is known.
pub fn selected(f: &mut Faults<'_>, spec: &JobSpec, old: Option<&JobSpec>) {
    check(f, spec, old);
    let selector = spec.selector.as_deref();
    f.at("selector").required_if(selector.is_none(), "");
    f.selector("selector", selector);
    if LabelSelector::from_message(selector).is_ok_and(|s| !s.matches(&spec.template.metadata.labels)) {
        not_selected(&mut f.at("template"), &spec.template);
    }
}

/// Checks the specification of jobs that are made later, and choose their selectors then.
pub fn of_template(f: &mut Faults<'_>, spec: &JobSpec, old: Option<&JobSpec>) {
    check(f, spec, old);
    if let Some(selector) = spec.selector.as_deref() {
        f.at("selector")
            .invalid(typed::shown(selector), "`selector` will be auto-generated");
    }
    if spec.manual_selector == Some(true) {
        f.at("manualSelector").not_supported(true, &["nil", "false"]);
    }
}

fn check(f: &mut Faults<'_>, spec: &JobSpec, old: Option<&JobSpec>) {
    f.counts(
        spec,
        &["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit"],
    );
    f.counts(
        spec,
        &["ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"],
    );
    let is_unlimited = spec.max_failed_indexes.is_some() && spec.backoff_limit_per_index.is_none();
    f.at("backoffLimitPerIndex")
        .required_if(is_unlimited, "when maxFailedIndexes is specified");
    f.at("managedBy").domain_path(&spec.managed_by);
    f.at("managedBy").max_bytes(&spec.managed_by, MANAGER_MAX);
    completion(f, spec);
    failure_policy(f, spec);
    success_policy(f, spec);
    let replacements = if spec.pod_failure_policy.is_some() { 1 } else { 2 };
    f.at("podReplacementPolicy")
        .one_of(&spec.pod_replacement_policy, &REPLACEMENTS[..replacements]);
    let mut f = f.at("template");
    pod_spec::check_template(&mut f, &spec.template, old.map(|old| &old.template));
    let mut f = f.at("spec");
    match spec.template.spec.restart_policy.as_str() {
        "" | "Always" => f.at("restartPolicy").required("valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.pod_failure_policy.is_some() => f.at("restartPolicy").invalid(
            "OnFailure",
            "only \"Never\" is supported when podFailurePolicy is specified",
        ),
        policy => f.at("restartPolicy").one_of(policy, &["OnFailure", "Never"]),
    }
}

/// How pods are counted: in all, or by index.
fn completion(f: &mut Faults<'_>, spec: &JobSpec) {
    let (mode, failed) = (spec.completion_mode.as_deref(), spec.max_failed_indexes);
    if mode == Some(INDEXED) {
        return indexed(f, spec);
    }
    f.at("completionMode").one_of(mode, &["NonIndexed", INDEXED]);
    if !matches!(mode, None | Some("NonIndexed")) {
        return;
    }
    let (limit, text) = (spec.backoff_limit_per_index, "requires indexed completion mode");
    f.at("backoffLimitPerIndex").number(limit, |_| false, text);
    f.at("maxFailedIndexes").number(failed, |_| false, text);
}

fn indexed(f: &mut Faults<'_>, spec: &JobSpec) {
    let (completions, pods, failed) = (spec.completions, spec.parallelism, spec.max_failed_indexes);
    f.at("completions")
        .required_if(completions.is_none(), "when completion mode is Indexed");
    let text = format!("must be less than or equal to {MOST_PODS} when completion mode is Indexed");
    f.at("parallelism").number(pods, |pods| pods <= MOST_PODS, text);
    let fits = |failed| completions.is_none_or(|n| failed <= i64::from(n));
    f.at("maxFailedIndexes")
        .number(failed, fits, "must be less than or equal to completions");
    f.at("maxFailedIndexes").at_most(failed, MOST_FAILED);
    if spec.backoff_limit_per_index.is_none() || completions.is_none_or(|n| n <= MANY_COMPLETIONS) {
        return;
    }
    let beyond = |most: i64| {
        format!(
            "must be less than or equal to {most} when completions are above {MANY_COMPLETIONS} and used with backoff \
             limit per index"
        )
    };
    let text = format!("must be specified when completions is above {MANY_COMPLETIONS}");
    f.at("maxFailedIndexes").required_if(failed.is_none(), text);
    f.at("parallelism")
        .number(pods, |pods| pods <= MOST_PODS_OF_MANY, beyond(MOST_PODS_OF_MANY));
    f.at("maxFailedIndexes").number(
        failed,
        |failed| failed <= MOST_FAILED_OF_MANY,
        beyond(MOST_FAILED_OF_MANY),
    );
}

fn failure_policy(f: &mut Faults<'_>, spec: &JobSpec) {
    let Some(policy) = spec.pod_failure_policy.as_deref() else {
        return;
    };
    let mut f = f.at("podFailurePolicy");
    f.at("rules").max_items(policy.rules.len(), MOST_RULES);
    f.each("rules", &policy.rules, |f, rule| failure_rule(f, rule, spec));
}

/// One of these; where nothing is said, they are told.
fn one_of(f: &mut Faults<'_>, value: &str, known: &[&str]) {
    match value {
        "" => {
            let known: Vec<String> = known.iter().map(|value| format!("{value:?}")).collect();
            f.required(format!("valid values: [{}]", known.join(" ")));
        }
        value => f.one_of(value, known),
    }
}

fn failure_rule(f: &mut Faults<'_>, rule: &PodFailurePolicyRule, spec: &JobSpec) {
    let is_unlimited = rule.action == "FailIndex" && spec.backoff_limit_per_index.is_none();
    f.at("action")
        .invalid_if(is_unlimited, "FailIndex", "requires the backoffLimitPerIndex to be set");
    one_of(&mut f.at("action"), &rule.action, &ACTIONS);
    f.some("onExitCodes", rule.on_exit_codes.as_deref(), |f, codes| {
        exit_codes(f, codes, spec)
    });
    let conditions = &rule.on_pod_conditions;
    f.at("onPodConditions").max_items(conditions.len(), MOST_CONDITIONS);
    f.each("onPodConditions", conditions, |f, pattern| {
        f.at("type").qualified(&pattern.r#type);
        one_of(&mut f.at("status"), &pattern.status, &STATUSES);
    });
    let text = match (rule.on_exit_codes.is_some(), !conditions.is_empty()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    f.invalid(BadValue::Omitted, text);
}

fn exit_codes(f: &mut Faults<'_>, codes: &PodFailurePolicyOnExitCodesRequirement, spec: &JobSpec) {
    one_of(&mut f.at("operator"), &codes.operator, &OPERATORS);
    if let Some(name) = codes.container_name.as_deref() {
        let pod = &spec.template.spec;
        let mut containers = pod.containers.iter().chain(&pod.init_containers);
        let is_there = containers.any(|c| c.name == name);
        let text = "must be one of the container or initContainer names in the pod template";
        f.at("containerName").invalid_if(!is_there, name, text);
    }
    let shown = || BadValue::json(serde_json::to_string(&codes.values).unwrap_or_default());
    match codes.values.len() {
        0 => f
            .at("values")
            .invalid(BadValue::null(), "at least one value is required"),
        count if count > MOST_CODES => f.at("values").too_many(count, MOST_CODES),
        _ => {}
    }
    let mut seen = HashSet::new();
    f.each("values", &codes.values, |f, code| {
        if codes.operator == "In" && *code == 0 {
            f.invalid(0, "must not be 0 for the In operator");
        }
        if !seen.insert(code) {
            f.duplicate(*code);
        }
    });
    if !codes.values.is_sorted() {
        f.at("values").invalid(shown(), "must be ordered");
    }
}

fn success_policy(f: &mut Faults<'_>, spec: &JobSpec) {
    let Some(policy) = spec.success_policy.as_deref() else {
        return;
    };
    let mut f = f.at("successPolicy");
    if spec.completion_mode.as_deref() != Some(INDEXED) {
        return f.invalid(typed::shown(policy), "requires indexed completion mode");
    }
    match policy.rules.len() {
        0 => f
            .at("rules")
            .required("at least one rules must be specified when the successPolicy is specified"),
        count if count > MOST_RULES => f.at("rules").too_many(count, MOST_RULES),
        _ => {}
    }
    let completions = spec.completions.unwrap_or(0);
    f.each("rules", &policy.rules, |f, rule| success_rule(f, rule, completions));
}

fn success_rule(f: &mut Faults<'_>, rule: &SuccessPolicyRule, completions: i32) {
    let text = rule.succeeded_indexes.as_deref();
    if text.is_none() && rule.succeeded_count.is_none() {
        f.required("at least one of succeededCount or succeededIndexes must be specified");
    }
    let mut total = 0;
    if let Some(text) = text {
        f.at("succeededIndexes").max_bytes(text, INDEXES_MAX);
        match indexes::count(text, completions) {
            Ok(count) => total = count,
            Err(error) => f
                .at("succeededIndexes")
                .invalid(text, format!("error parsing succeededIndexes: {error}")),
        }
    }
    let Some(count) = rule.succeeded_count else { return };
    let mut f = f.at("succeededCount");
    f.non_negative(count);
    if count > completions {
        let text = format!("must be less than or equal to {completions} (the number of specified completions)");
        f.invalid(count, text);
    }
    if text.is_some() && i64::from(count) > total {
        let text = format!(
            "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        );
        f.invalid(count, text);
    }
}
