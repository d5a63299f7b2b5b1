//! HorizontalPodAutoscalers (of v2, the hub).

use keelson_api::autoscaling::v2::{
    CrossVersionObjectReference, HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscaler,
    HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerSpec, MetricSpec,
};
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::validation::names;
use keelson_registry::{Context, KindCode, Strategy};

use crate::cells;
use crate::metadata;
use crate::typed::non_negative;

const METRIC_TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
const SELECT_POLICIES: [&str; 3] = ["Disabled", "Max", "Min"];
const POLICY_TYPES: [&str; 2] = ["Percent", "Pods"];
/// Seconds that a policy may look back, and that a stabilization window may last.
const PERIOD_MAX: i32 = 1800;
const WINDOW_MAX: i32 = 3600;

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

    fn validate(&self, _context: &Context, object: &HorizontalPodAutoscaler) -> ErrorList {
        validate(&object.spec)
    }

    fn validate_update(
        &self,
        _context: &Context,
        new: &HorizontalPodAutoscaler,
        _old: &HorizontalPodAutoscaler,
    ) -> ErrorList {
        validate(&new.spec)
    }

    fn validate_status_update(
        &self,
        _context: &Context,
        new: &HorizontalPodAutoscaler,
        _old: &HorizontalPodAutoscaler,
    ) -> ErrorList {
        let path = Path::new("status");
        let mut errors = non_negative(new.status.current_replicas.into(), &path.child("currentReplicas"));
        errors.extend(non_negative(
            new.status.desired_replicas.into(),
            &path.child("desiredReplicas"),
        ));
        errors
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
    if rules.policies.is_empty() {
        rules.policies = policies();
    }
}

fn validate(spec: &HorizontalPodAutoscalerSpec) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = ErrorList::default();
    if let Some(min) = spec.min_replicas.filter(|min| *min < 1) {
        errors.push(FieldError::invalid(
            &path.child("minReplicas"),
            min,
            "must be greater than or equal to 1",
        ));
    }
    let (max, max_at) = (spec.max_replicas, path.child("maxReplicas"));
    match max {
        0 => errors.push(FieldError::required(&max_at, "must be set and greater than 0")),
        ..0 => errors.push(FieldError::invalid(&max_at, max, "must be greater than or equal to 1")),
        _ => {}
    }
    if spec.min_replicas.is_some_and(|min| max < min) {
        errors.push(FieldError::invalid(
            &max_at,
            max,
            "must be greater than or equal to `minReplicas`",
        ));
    }
    errors.extend(validate_reference(
        &spec.scale_target_ref,
        &path.child("scaleTargetRef"),
    ));
    for (place, metric) in spec.metrics.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        errors.extend(validate_metric(metric, &path.child("metrics").index(place)));
    }
    if let Some(behavior) = &spec.behavior {
        errors.extend(validate_behavior(behavior, &path.child("behavior")));
    }
    errors
}

fn validate_reference(reference: &CrossVersionObjectReference, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    for (field, value) in [("kind", &reference.kind), ("name", &reference.name)] {
        let path = path.child(field);
        if value.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        errors.extend(
            names::path_segment(value)
                .into_iter()
                .map(|t| FieldError::invalid(&path, value, t)),
        );
    }
    if let Some(why) = version_fault(reference) {
        errors.push(FieldError::invalid(
            &path.child("apiVersion"),
            &reference.api_version,
            why,
        ));
    }
    errors
}

/// The version must have a group, but for the one old kind that has none and can be scaled.
fn version_fault(reference: &CrossVersionObjectReference) -> Option<String> {
    let version = &reference.api_version;
    match version.split_once('/') {
        Some((_, rest)) if rest.contains('/') => Some(format!("unexpected GroupVersion string: {version}")),
        Some((group, _)) if !group.is_empty() => None,
        _ if reference.kind == "ReplicationController" => None,
        _ => Some("apiVersion must specify API group".to_owned()),
    }
}

/// A metric is of a known type and says what that type needs.
fn validate_metric(metric: &MetricSpec, path: &Path) -> ErrorList {
    let ty = path.child("type");
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
    let mut errors = ErrorList::default();
    if metric.r#type.is_empty() {
        errors.push(FieldError::required(&ty, "must specify a metric source type"));
    } else if !METRIC_TYPES.contains(&metric.r#type.as_str()) {
        errors.push(FieldError::not_supported(&ty, &metric.r#type, &METRIC_TYPES));
    }
    for (field, source, given) in given {
        let named = metric.r#type == source;
        if named && !given {
            let text = "must populate information for the given metric source";
            errors.push(FieldError::required(&path.child(field), text));
        } else if given && !named {
            let text = "must populate the given metric source only";
            errors.push(FieldError::forbidden(&path.child(field), text));
        }
    }
    errors
}

fn validate_behavior(behavior: &HorizontalPodAutoscalerBehavior, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    for (field, rules) in [("scaleUp", &behavior.scale_up), ("scaleDown", &behavior.scale_down)] {
        if let Some(rules) = rules {
            errors.extend(validate_rules(rules, &path.child(field)));
        }
    }
    errors
}

fn validate_rules(rules: &HPAScalingRules, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    if let Some(seconds) = rules.stabilization_window_seconds {
        let path = path.child("stabilizationWindowSeconds");
        errors.extend(non_negative(seconds.into(), &path));
        if seconds > WINDOW_MAX {
            let text = format!("must be less than or equal to {WINDOW_MAX}");
            errors.push(FieldError::invalid(&path, seconds, text));
        }
    }
    if let Some(policy) = rules.select_policy.as_deref().filter(|p| !SELECT_POLICIES.contains(p)) {
        errors.push(FieldError::not_supported(
            &path.child("selectPolicy"),
            policy,
            &SELECT_POLICIES,
        ));
    }
    if rules.policies.is_empty() {
        errors.push(FieldError::required(
            &path.child("policies"),
            "must specify at least one Policy",
        ));
    }
    for (place, policy) in rules.policies.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        errors.extend(validate_policy(policy, &path.child("policies").index(place)));
    }
    if let Some(tolerance) = rules.tolerance.as_ref().filter(|t| t.is_negative()) {
        let text = "must be greater or equal to zero";
        errors.push(FieldError::invalid(&path.child("tolerance"), tolerance.as_str(), text));
    }
    errors
}

fn validate_policy(policy: &HPAScalingPolicy, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    if !POLICY_TYPES.contains(&policy.r#type.as_str()) {
        errors.push(FieldError::not_supported(
            &path.child("type"),
            &policy.r#type,
            &POLICY_TYPES,
        ));
    }
    if policy.value <= 0 {
        errors.push(FieldError::invalid(
            &path.child("value"),
            policy.value,
            "must be greater than zero",
        ));
    }
    let (seconds, path) = (policy.period_seconds, path.child("periodSeconds"));
    if seconds <= 0 {
        errors.push(FieldError::invalid(&path, seconds, "must be greater than zero"));
    }
    if seconds > PERIOD_MAX {
        errors.push(FieldError::invalid(
            &path,
            seconds,
            format!("must be less than or equal to {PERIOD_MAX}"),
        ));
    }
    errors
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
                 spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group",
            ),
            (
                format!(r#"{fine},"metrics":[{{"type":"Resource","pods":{{}}}}]"#),
                "spec.metrics[0].pods: Forbidden: must populate the given metric source only\n\
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
            assert_eq!(lines(&AutoscalerStrategy.validate(&context(), &o)), expected, "{spec}");
        }
    }
}
