//! HorizontalPodAutoscalers (of v2, the hub).

use keelson_api::autoscaling::v2::{
    CrossVersionObjectReference, HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec, MetricIdentifier, MetricSpec, MetricTarget, ObjectMetricSource,
};
use keelson_machinery::field::ErrorList;
use keelson_machinery::validation::names;
use keelson_registry::{Context, KindCode, Strategy};

use crate::cells;
use crate::core::resource_check;
use crate::faults::{self, Faults, given};
use crate::metadata;

const METRIC_TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
const SELECT_POLICIES: [&str; 3] = ["Disabled", "Max", "Min"];
const TARGET_TYPES: [&str; 3] = ["Utilization", "Value", "AverageValue"];
const POLICY_TYPES: [&str; 2] = ["Percent", "Pods"];
/// Seconds that a policy may look back, and that a stabilization window may last.
const PERIOD_MAX: i64 = 1800;
const WINDOW_MAX: i64 = 3600;

/// Registers the rules of autoscalers.
pub fn register(code: &mut KindCode) {
    code.kind::<HorizontalPodAutoscaler>()
        .strategy(AutoscalerStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::autoscaling::HORIZONTAL_POD_AUTOSCALER);
}

/// The rules of autoscalers.
struct AutoscalerStrategy;

impl Strategy for AutoscalerStrategy {
    type Object = HorizontalPodAutoscaler;

    fn validate(
        &self,
        _context: &Context,
        new: &HorizontalPodAutoscaler,
        old: Option<&HorizontalPodAutoscaler>,
    ) -> ErrorList {
        faults::of_spec(|f| check(f, &new.spec, old.map(|old| &old.spec)))
    }

    fn validate_status_update(
        &self,
        _context: &Context,
        new: &HorizontalPodAutoscaler,
        _old: &HorizontalPodAutoscaler,
    ) -> ErrorList {
        faults::of_status(|f| f.counts(&new.status, &["currentReplicas", "desiredReplicas"]))
    }
}

/// Defaults in code of v2: a behavior that is given, be it empty, is filled up with what holds without one.
fn defaults(o: &mut HorizontalPodAutoscaler) {
    let Some(behavior) = &mut o.spec.behavior else { return };
    let policy = |ty: &str, value| HPAScalingPolicy {
        r#type: ty.to_owned(),
        value,
        period_seconds: 15,
    };
    let up = behavior.scale_up.get_or_insert_default();
    up.stabilization_window_seconds.get_or_insert(0);
    fill(up, || vec![policy("Pods", 4), policy("Percent", 100)]);
    fill(behavior.scale_down.get_or_insert_default(), || {
        vec![policy("Percent", 100)]
    });
}

fn fill(rules: &mut HPAScalingRules, policies: impl FnOnce() -> Vec<HPAScalingPolicy>) {
    rules.select_policy.get_or_insert_with(|| "Max".to_owned());
    rules.policies.get_or_insert_with(policies);
}

fn check(f: &mut Faults<'_>, spec: &HorizontalPodAutoscalerSpec, old: Option<&HorizontalPodAutoscalerSpec>) {
    let (min, max) = (spec.min_replicas, i64::from(spec.max_replicas));
    // None at all is a feature that is switched off, but stays where it is.
    let least = i64::from(old.is_none_or(|old| old.min_replicas != Some(0)));
    let text = format!("must be greater than or equal to {least}");
    f.at("minReplicas").number(min, |min| min >= least, text);
    f.at("maxReplicas")
        .required_if(max == 0, "must be set and greater than 0");
    f.at("maxReplicas")
        .invalid_if(max < 0, max, "must be greater than or equal to 1");
    let is_less = min.is_some_and(|min| max < min.into());
    f.at("maxReplicas")
        .invalid_if(is_less, max, "must be greater than or equal to `minReplicas`");
    let target = &spec.scale_target_ref;
    let same = old.is_some_and(|old| {
        let was = &old.scale_target_ref;
        (&was.api_version, &was.kind) == (&target.api_version, &target.kind)
    });
    let version = match target.kind.as_str() {
        _ if same => Version::Any,
        // The one kind without a group that can be scaled.
        "ReplicationController" => Version::WithoutGroup,
        _ => Version::WithGroup,
    };
    reference(&mut f.at("scaleTargetRef"), target, version);
    metrics(f, spec, old);
    f.some("behavior", spec.behavior.as_deref(), |f, behavior| {
        f.some("scaleUp", behavior.scale_up.as_deref(), rules);
        f.some("scaleDown", behavior.scale_down.as_deref(), rules);
    });
}

/// What the version of a referenced object may be.
#[derive(Clone, Copy, PartialEq)]
enum Version {
    WithGroup,
    WithoutGroup,
    Any,
}

fn reference(f: &mut Faults<'_>, reference: &CrossVersionObjectReference, version: Version) {
    for (field, value) in [("kind", &reference.kind), ("name", &reference.name)] {
        let mut f = f.at(field);
        f.filled(value);
        f.texts(value, names::path_segment(value));
    }
    if let Some(why) = version_fault(&reference.api_version, version) {
        f.at("apiVersion").invalid(&reference.api_version, why);
    }
}

fn version_fault(text: &str, version: Version) -> Option<String> {
    let group = match text.split_once('/') {
        _ if version == Version::Any => return None,
        Some((_, rest)) if rest.contains('/') => return Some(format!("unexpected GroupVersion string: {text}")),
        Some((group, _)) => group,
        None => "",
    };
    let is_missing = group.is_empty() && version == Version::WithGroup;
    is_missing.then(|| "apiVersion must specify API group".to_owned())
}

fn metrics(f: &mut Faults<'_>, spec: &HorizontalPodAutoscalerSpec, old: Option<&HorizontalPodAutoscalerSpec>) {
    let objects = old.iter().flat_map(|old| &old.metrics).filter(|m| m.r#type == "Object");
    let mut objects = objects.filter_map(|metric| metric.object.as_deref());
    let is_bad = |source: &ObjectMetricSource| {
        version_fault(&source.described_object.api_version, Version::WithoutGroup).is_some()
    };
    let version = match objects.any(is_bad) {
        true => Version::Any,
        false => Version::WithoutGroup,
    };
    f.each("metrics", &spec.metrics, |f, spec| metric(f, spec, version));
    let wakes = |metric: &MetricSpec| matches!(metric.r#type.as_str(), "Object" | "External");
    let text = "must specify at least one Object or External metric to support scaling to zero replicas";
    f.at("metrics")
        .forbidden_if(spec.min_replicas == Some(0) && !spec.metrics.iter().any(wakes), text);
}

/// A metric is of a known type and says what that type needs.
fn metric(f: &mut Faults<'_>, metric: &MetricSpec, version: Version) {
    let name = metric.r#type.as_str();
    f.at("type")
        .required_if(name.is_empty(), "must specify a metric source type");
    f.at("type").one_of(name, &METRIC_TYPES);
    sources(f, metric, version);
    let given = [
        (
            "containerResource",
            "ContainerResource",
            metric.container_resource.is_some(),
        ),
        ("external", "External", metric.external.is_some()),
        ("object", "Object", metric.object.is_some()),
        ("pods", "Pods", metric.pods.is_some()),
        ("resource", "Resource", metric.resource.is_some()),
    ];
    match given.iter().find(|(_, ty, _)| *ty == name) {
        Some((field, _, false)) => f
            .at(field)
            .required("must populate information for the given metric source"),
        Some(_) => {}
        None => f.at("type").not_supported(name, &METRIC_TYPES),
    }
    let count = given.iter().filter(|(_, _, is_given)| *is_given).count();
    for (field, ..) in given.iter().filter(|(_, ty, is_given)| *is_given && *ty != name) {
        f.at(field)
            .forbidden_if(count > 1, "must populate the given metric source only");
    }
}

/// Checks the first of the sources that are given.
fn sources(f: &mut Faults<'_>, metric: &MetricSpec, version: Version) {
    if let Some(source) = metric.object.as_deref() {
        let mut f = f.at("object");
        reference(&mut f.at("describedObject"), &source.described_object, version);
        of_metric(&mut f, &source.metric, &source.target);
        either(&mut f, &source.target, "must set either a target value or averageValue");
    } else if let Some(source) = metric.external.as_deref() {
        let (mut f, target) = (f.at("external"), &source.target);
        of_metric(&mut f, &source.metric, target);
        either(
            &mut f,
            target,
            "must set either a target value for metric or a per-pod target",
        );
        let text = "may not set both a target value for metric and a per-pod target";
        f.at("target")
            .at("value")
            .forbidden_if(target.value.is_some() && target.average_value.is_some(), text);
    } else if let Some(source) = metric.pods.as_deref() {
        let (mut f, target) = (f.at("pods"), &source.target);
        of_metric(&mut f, &source.metric, target);
        f.at("target").at("averageValue").required_if(
            target.average_value.is_none(),
            "must specify a positive target averageValue",
        );
    } else if let Some(source) = metric.resource.as_deref() {
        let mut f = f.at("resource");
        resource_name(&mut f, &source.name);
        resource_target(&mut f, &source.target);
    } else if let Some(source) = metric.container_resource.as_deref() {
        let mut f = f.at("containerResource");
        resource_name(&mut f, &source.name);
        if !source.name.is_empty() {
            resource_check::of_container(&mut f.at("name"), &source.name);
        }
        f.at("container")
            .required_if(source.container.is_empty(), "must specify a container");
        f.at("container").label(given(&source.container));
        resource_target(&mut f, &source.target);
    }
}

/// What is measured, and what it should be.
fn of_metric(f: &mut Faults<'_>, metric: &MetricIdentifier, of: &MetricTarget) {
    let (mut at, name) = (f.at("metric"), metric.name.as_str());
    at.at("name").required_if(name.is_empty(), "must specify a metric name");
    if !name.is_empty() {
        at.at("name").texts(name, names::path_segment(name));
    }
    target(&mut f.at("target"), of);
}

fn either(f: &mut Faults<'_>, target: &MetricTarget, text: &str) {
    if target.value.is_none() && target.average_value.is_none() {
        f.at("target").at("averageValue").required(text);
    }
}

fn resource_name(f: &mut Faults<'_>, name: &str) {
    f.at("name")
        .required_if(name.is_empty(), "must specify a resource name");
}

fn resource_target(f: &mut Faults<'_>, of: &MetricTarget) {
    let mut f = f.at("target");
    target(&mut f, of);
    match (of.average_utilization, &of.average_value) {
        (None, None) => f
            .at("averageUtilization")
            .required("must set either a target raw value or a target utilization"),
        (Some(_), Some(_)) => f
            .at("averageValue")
            .forbidden("may not set both a target raw value and a target utilization"),
        _ => {}
    }
}

fn target(f: &mut Faults<'_>, target: &MetricTarget) {
    f.at("type")
        .required_if(target.r#type.is_empty(), "must specify a metric target type");
    if !TARGET_TYPES.contains(&target.r#type.as_str()) {
        f.at("type")
            .invalid(&target.r#type, "must be either Utilization, Value, or AverageValue");
    }
    for (field, amount) in [("value", &target.value), ("averageValue", &target.average_value)] {
        let wrong = amount
            .as_ref()
            .filter(|amount| amount.is_negative() || amount.is_zero());
        f.some(field, wrong, |f, amount| f.invalid(amount.as_str(), "must be positive"));
    }
    f.at("averageUtilization")
        .number(target.average_utilization, |share| share >= 1, "must be greater than 0");
}

fn rules(f: &mut Faults<'_>, rules: &HPAScalingRules) {
    if let Some(seconds) = rules.stabilization_window_seconds {
        let mut f = f.at("stabilizationWindowSeconds");
        f.invalid_if(seconds < 0, seconds, "must be greater than or equal to zero");
        f.at_most(seconds, WINDOW_MAX);
    }
    f.at("selectPolicy")
        .one_of(rules.select_policy.as_deref(), &SELECT_POLICIES);
    let policies = rules.policies.as_deref().unwrap_or_default();
    f.at("policies")
        .required_if(policies.is_empty(), "must specify at least one Policy");
    f.each("policies", policies, |f, policy| {
        f.at("type").one_of(&policy.r#type, &POLICY_TYPES);
        f.at("value").positive(policy.value);
        let mut f = f.at("periodSeconds");
        f.positive(policy.period_seconds);
        f.at_most(policy.period_seconds, PERIOD_MAX);
    });
    if let Some(tolerance) = &rules.tolerance {
        f.at("tolerance").amount(tolerance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read, text};

    #[test]
    fn a_behavior_given_in_part_is_filled_up() {
        let mut o: HorizontalPodAutoscaler =
            read(r#"{"spec":{"behavior":{"scaleDown":{"stabilizationWindowSeconds":60,"selectPolicy":"Min"}}}}"#);
        defaults(&mut o);
        assert_eq!(
            text(o.spec.behavior.as_deref().unwrap()),
            concat!(
                r#"{"scaleUp":{"stabilizationWindowSeconds":0,"selectPolicy":"Max","policies":["#,
                r#"{"type":"Pods","value":4,"periodSeconds":15},{"type":"Percent","value":100,"periodSeconds":15}]},"#,
                r#""scaleDown":{"stabilizationWindowSeconds":60,"selectPolicy":"Min","policies":["#,
                r#"{"type":"Percent","value":100,"periodSeconds":15}]}}"#
            )
        );
        let mut o: HorizontalPodAutoscaler = read(r#"{"spec":{"behavior":{}}}"#);
        defaults(&mut o);
        let behavior = o.spec.behavior.unwrap();
        assert!(behavior.scale_up.is_some() && behavior.scale_down.is_some());
    }

    #[test]
    fn policies_that_are_said_to_be_none_are_missed() {
        let told = |policies: &str| {
            let mut o: HorizontalPodAutoscaler = read(&format!(
                r#"{{"spec":{{"scaleTargetRef":{{"kind":"Deployment","name":"a","apiVersion":"apps/v1"}},"maxReplicas":3,
                "behavior":{{"scaleUp":{{{policies}}}}}}}}}"#
            ));
            defaults(&mut o);
            lines(&AutoscalerStrategy.validate(&context(), &o, None))
        };
        assert_eq!(told(""), "");
        assert_eq!(
            told(r#""policies":[]"#),
            "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy"
        );
    }

    #[test]
    fn bounds_fit_together() {
        let fine = r#""scaleTargetRef":{"kind":"Deployment","name":"a","apiVersion":"apps/v1"},"maxReplicas":3"#;
        for (spec, expected) in [
            (fine.to_owned(), ""),
            (
                format!(r#"{fine},"minReplicas":4"#),
                "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`",
            ),
            (
                r#""minReplicas":0"#.to_owned(),
                "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1\n\
                 spec.maxReplicas: Required value: must be set and greater than 0\n\
                 spec.scaleTargetRef.kind: Required value\nspec.scaleTargetRef.name: Required value\n\
                 spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group\n\
                 spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero \
                 replicas",
            ),
            (
                format!(r#"{fine},"metrics":[{{"type":"Resource","pods":{{}}}}]"#),
                "spec.metrics[0].pods.metric.name: Required value: must specify a metric name\n\
                 spec.metrics[0].pods.target.type: Required value: must specify a metric target type\n\
                 spec.metrics[0].pods.target.type: Invalid value: \"\": must be either Utilization, Value, or AverageValue\n\
                 spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue\n\
                 spec.metrics[0].resource: Required value: must populate information for the given metric source",
            ),
            (
                format!(
                    r#"{fine},"behavior":{{"scaleUp":{{"selectPolicy":"x","policies":[{{"type":"Pods","value":0,"periodSeconds":1801}}]}}}}"#
                ),
                "spec.behavior.scaleUp.selectPolicy: Unsupported value: \"x\": supported values: \"Disabled\", \"Max\", \
                 \"Min\"\n\
                 spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero\n\
                 spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
            ),
        ] {
            let o: HorizontalPodAutoscaler = read(&format!(r#"{{"spec":{{{spec}}}}}"#));
            assert_eq!(
                lines(&AutoscalerStrategy.validate(&context(), &o, None)),
                expected,
                "{spec}"
            );
        }
    }
}
