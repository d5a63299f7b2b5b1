//! Cells of autoscalers.

use keelson_api::autoscaling::v2::{
    HorizontalPodAutoscaler, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus,
};
use keelson_machinery::quantity::Quantity;

use super::NONE;

cells! { pub const HORIZONTAL_POD_AUTOSCALER: HorizontalPodAutoscaler =
    "horizontal_pod_autoscaler_maxpods" => max_pods,
    "horizontal_pod_autoscaler_minpods" => min_pods,
    "horizontal_pod_autoscaler_reference" => reference,
    "horizontal_pod_autoscaler_replicas" => replicas,
    "horizontal_pod_autoscaler_targets" => targets,
}

/// How many metrics are shown; the rest is a number.
const SHOWN_METRICS: usize = 2;
const UNKNOWN: &str = "<unknown>";

/// What is scaled, `Deployment/web`.
fn reference(o: &HorizontalPodAutoscaler) -> String {
    format!("{}/{}", o.spec.scale_target_ref.kind, o.spec.scale_target_ref.name)
}

/// Current and wanted value of each metric.
fn targets(o: &HorizontalPodAutoscaler) -> String {
    let metrics = &o.spec.metrics;
    if metrics.is_empty() {
        return NONE.to_owned();
    }
    let cell = |(place, metric)| target(metric, o.status.current_metrics.get(place));
    let shown: Vec<String> = metrics.iter().enumerate().take(SHOWN_METRICS).map(cell).collect();
    match metrics.len().saturating_sub(SHOWN_METRICS) {
        0 => shown.join(", "),
        more => format!("{} + {more} more...", shown.join(", ")),
    }
}

/// The fewest replicas.
fn min_pods(o: &HorizontalPodAutoscaler) -> String {
    o.spec
        .min_replicas
        .map_or_else(|| "<unset>".to_owned(), |n| n.to_string())
}

/// The most replicas.
fn max_pods(o: &HorizontalPodAutoscaler) -> i64 {
    o.spec.max_replicas.into()
}

/// Replicas as the autoscaler saw them last.
fn replicas(o: &HorizontalPodAutoscaler) -> i64 {
    o.status.current_replicas.into()
}

fn target(metric: &MetricSpec, status: Option<&MetricStatus>) -> String {
    let status = |get: fn(&MetricStatus) -> Option<&MetricValueStatus>| status.and_then(get);
    if let Some(m) = metric.external.as_ref().filter(|_| metric.r#type == "External") {
        return of_value(&m.target, status(|s| s.external.as_ref().map(|e| &e.current)));
    }
    if let Some(m) = metric.object.as_ref().filter(|_| metric.r#type == "Object") {
        return of_value(&m.target, status(|s| s.object.as_ref().map(|o| &o.current)));
    }
    if let Some(m) = metric.pods.as_ref().filter(|_| metric.r#type == "Pods") {
        let current = status(|s| s.pods.as_ref().map(|p| &p.current));
        let current = current.map_or(UNKNOWN, |c| amount(c.average_value.as_ref()));
        return format!("{current}/{}", amount(m.target.average_value.as_ref()));
    }
    if let Some(m) = metric.resource.as_ref().filter(|_| metric.r#type == "Resource") {
        return of_resource(&m.name, &m.target, status(|s| s.resource.as_ref().map(|r| &r.current)));
    }
    if let Some(m) = metric
        .container_resource
        .as_ref()
        .filter(|_| metric.r#type == "ContainerResource")
    {
        return of_resource(
            &m.name,
            &m.target,
            status(|s| s.container_resource.as_ref().map(|r| &r.current)),
        );
    }
    "<unknown type>".to_owned()
}

/// Of metrics that have one value for all pods, or an average.
fn of_value(target: &MetricTarget, current: Option<&MetricValueStatus>) -> String {
    if let Some(wanted) = &target.average_value {
        let current = current.and_then(|c| c.average_value.as_ref());
        return format!(
            "{}/{} (avg)",
            current.map_or(UNKNOWN, Quantity::as_str),
            wanted.as_str()
        );
    }
    let current = current.map_or(UNKNOWN, |c| amount(c.value.as_ref()));
    format!("{current}/{}", amount(target.value.as_ref()))
}

fn of_resource(name: &str, target: &MetricTarget, current: Option<&MetricValueStatus>) -> String {
    if let Some(wanted) = &target.average_value {
        let current = current.map_or(UNKNOWN, |c| amount(c.average_value.as_ref()));
        return format!("{name}: {current}/{}", wanted.as_str());
    }
    let percent = |n: Option<i32>, absent: &str| n.map_or_else(|| absent.to_owned(), |n| format!("{n}%"));
    let current = percent(current.and_then(|c| c.average_utilization), UNKNOWN);
    format!("{name}: {current}/{}", percent(target.average_utilization, "<auto>"))
}

/// A quantity, or the word that clients know for one that is missing.
fn amount(quantity: Option<&Quantity>) -> &str {
    quantity.map_or("<nil>", Quantity::as_str)
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;

    use super::*;

    #[test]
    fn targets_show_current_and_wanted_values() {
        let cpu = r#"{"type":"Resource","resource":{"name":"cpu","target":{"averageUtilization":80}}}"#;
        let pods = r#"{"type":"Pods","pods":{"metric":{"name":"q"},"target":{"averageValue":"100m"}}}"#;
        let external = r#"{"type":"External","external":{"metric":{"name":"q"},"target":{"averageValue":"3"}}}"#;
        for (metrics, current, expected) in [
            (String::new(), "", "<none>"),
            (cpu.to_owned(), "", "cpu: <unknown>/80%"),
            (
                cpu.to_owned(),
                r#"{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":7}}}"#,
                "cpu: 7%/80%",
            ),
            (
                format!("{pods},{cpu},{external}"),
                "",
                "<unknown>/100m, cpu: <unknown>/80% + 1 more...",
            ),
            (
                external.to_owned(),
                r#"{"type":"External","external":{"current":{"averageValue":"2"}}}"#,
                "2/3 (avg)",
            ),
            (r#"{"type":"Else"}"#.to_owned(), "", "<unknown type>"),
        ] {
            let text = format!(r#"{{"spec":{{"metrics":[{metrics}]}},"status":{{"currentMetrics":[{current}]}}}}"#);
            let mut o = HorizontalPodAutoscaler::default();
            json::read(text.as_bytes(), &mut o).unwrap();
            assert_eq!(targets(&o), expected);
        }
    }
}
