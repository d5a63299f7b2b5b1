//! HorizontalPodAutoscaler between v1 and the hub, v2.
//!
//! v1 knows one metric, the utilization of CPU. What else a v2 object has stands in annotations of its v1 form, as
//! kube-apiserver writes them, and is taken from there on the way back.

mod annotations;
mod metrics;

use self::annotations::{self as keys, read_list, write_list};
use self::metrics::{spec_from_hub, spec_to_hub, status_from_hub, status_to_hub};
use crate::autoscaling::{v1, v2};

/// Utilization of CPU, in percent of the request, that an autoscaler without metrics aims at.
const DEFAULT_CPU_UTILIZATION: i32 = 80;
pub(super) const RESOURCE: &str = "Resource";
const CPU: &str = "cpu";

/// Takes what the annotations hold, and gives an object without metrics the default one.
pub fn to_hub_horizontal_pod_autoscaler(
    from: &v1::HorizontalPodAutoscaler,
    to: &mut v2::HorizontalPodAutoscaler,
) -> Result<(), String> {
    let found = &from.metadata.annotations;
    let mut metrics: Vec<_> = read_list(found, keys::METRICS).iter().map(spec_to_hub).collect();
    metrics.append(&mut to.spec.metrics);
    if metrics.is_empty() {
        metrics.push(cpu_metric(DEFAULT_CPU_UTILIZATION));
    }
    to.spec.metrics = metrics;
    to.spec.behavior = keys::read_behavior(found).map(Box::new);
    let statuses: Vec<v1::MetricStatus> = read_list(found, keys::CURRENT_METRICS);
    if !statuses.is_empty() {
        to.status.current_metrics = statuses.iter().map(status_to_hub).collect();
    }
    to.status.conditions = read_list(found, keys::CONDITIONS)
        .into_iter()
        .map(
            |c: v1::HorizontalPodAutoscalerCondition| v2::HorizontalPodAutoscalerCondition {
                r#type: c.r#type,
                status: c.status,
                last_transition_time: c.last_transition_time,
                reason: c.reason,
                message: c.message,
            },
        )
        .collect();
    keys::remove(&mut to.metadata.annotations);
    Ok(())
}

/// Writes into annotations what v1 has no field for.
pub fn from_hub_horizontal_pod_autoscaler(
    from: &v2::HorizontalPodAutoscaler,
    to: &mut v1::HorizontalPodAutoscaler,
) -> Result<(), String> {
    let out = &mut to.metadata.annotations;
    keys::remove(out);
    let others = from.spec.metrics.iter().filter(|m| cpu_utilization(m).is_none());
    write_list(out, keys::METRICS, &others.map(spec_from_hub).collect::<Vec<_>>());
    let statuses = from.status.current_metrics.iter().map(status_from_hub);
    write_list(out, keys::CURRENT_METRICS, &statuses.collect::<Vec<_>>());
    if let Some(behavior) = &from.spec.behavior {
        keys::write_behavior(out, behavior);
    }
    let conditions = from
        .status
        .conditions
        .iter()
        .map(|c| v1::HorizontalPodAutoscalerCondition {
            r#type: c.r#type.clone(),
            status: c.status.clone(),
            last_transition_time: c.last_transition_time,
            reason: c.reason.clone(),
            message: c.message.clone(),
        });
    write_list(out, keys::CONDITIONS, &conditions.collect::<Vec<_>>());
    Ok(())
}

/// The utilization of CPU becomes a metric.
pub fn to_hub_horizontal_pod_autoscaler_spec(
    from: &v1::HorizontalPodAutoscalerSpec,
    to: &mut v2::HorizontalPodAutoscalerSpec,
) -> Result<(), String> {
    to.metrics = from
        .target_cpu_utilization_percentage
        .map(cpu_metric)
        .into_iter()
        .collect();
    Ok(())
}

/// The first metric of CPU shows, if it is a utilization.
pub fn from_hub_horizontal_pod_autoscaler_spec(
    from: &v2::HorizontalPodAutoscalerSpec,
    to: &mut v1::HorizontalPodAutoscalerSpec,
) -> Result<(), String> {
    let first = from
        .metrics
        .iter()
        .find(|m| is_cpu(&m.r#type, m.resource.as_ref().map(|r| r.name.as_str())));
    to.target_cpu_utilization_percentage = first.and_then(cpu_utilization);
    Ok(())
}

/// The utilization of CPU becomes a metric.
pub fn to_hub_horizontal_pod_autoscaler_status(
    from: &v1::HorizontalPodAutoscalerStatus,
    to: &mut v2::HorizontalPodAutoscalerStatus,
) -> Result<(), String> {
    let metric = from.current_cpu_utilization_percentage.map(|percent| v2::MetricStatus {
        r#type: RESOURCE.to_owned(),
        resource: Some(Box::new(v2::ResourceMetricStatus {
            name: CPU.to_owned(),
            current: v2::MetricValueStatus {
                average_utilization: Some(percent),
                ..Default::default()
            },
        })),
        ..Default::default()
    });
    to.current_metrics = metric.into_iter().collect();
    Ok(())
}

/// The last metric of CPU that has a utilization shows.
pub fn from_hub_horizontal_pod_autoscaler_status(
    from: &v2::HorizontalPodAutoscalerStatus,
    to: &mut v1::HorizontalPodAutoscalerStatus,
) -> Result<(), String> {
    let cpu = from
        .current_metrics
        .iter()
        .filter(|m| is_cpu(&m.r#type, m.resource.as_ref().map(|r| r.name.as_str())));
    let mut percents = cpu.filter_map(|m| m.resource.as_ref()?.current.average_utilization);
    to.current_cpu_utilization_percentage = percents.next_back();
    Ok(())
}

fn is_cpu(metric_type: &str, resource: Option<&str>) -> bool {
    metric_type == RESOURCE && resource == Some(CPU)
}

fn cpu_metric(percent: i32) -> v2::MetricSpec {
    let target = v2::MetricTarget {
        r#type: "Utilization".to_owned(),
        average_utilization: Some(percent),
        ..Default::default()
    };
    v2::MetricSpec {
        r#type: RESOURCE.to_owned(),
        resource: Some(Box::new(v2::ResourceMetricSource {
            name: CPU.to_owned(),
            target,
        })),
        ..Default::default()
    }
}

fn cpu_utilization(metric: &v2::MetricSpec) -> Option<i32> {
    let resource = metric
        .resource
        .as_ref()
        .filter(|r| is_cpu(&metric.r#type, Some(&r.name)))?;
    resource.target.average_utilization
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;
    use keelson_machinery::object::{Kind, Object};
    use keelson_machinery::scheme::KindDesc;
    use serde_json::{Value, json};

    fn kind(version: &str) -> &'static KindDesc {
        let versions = crate::SCHEME
            .groups
            .iter()
            .filter(|g| g.name == "autoscaling")
            .flat_map(|g| g.versions);
        let mut kinds = versions.filter(|v| v.version == version).flat_map(|v| v.kinds);
        kinds.find(|k| k.kind == "HorizontalPodAutoscaler").unwrap()
    }

    fn object(version: &str, value: &Value) -> Box<dyn Object> {
        let mut object = kind(version).new_object();
        json::read(value.to_string().as_bytes(), object.as_reflect_mut()).unwrap();
        object
    }

    fn written(object: &dyn Kind) -> Value {
        serde_json::from_slice(&json::to_vec(object)).unwrap()
    }

    fn to_hub(value: &Value) -> Value {
        written(&*kind("v1").to_hub(object("v1", value)).unwrap())
    }

    fn to_v1(value: &Value) -> Value {
        written(&*kind("v1").from_hub(object("v2", value)).unwrap())
    }

    fn metric(percent: i32) -> Value {
        json!({
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}},
        })
    }

    #[test]
    fn cpu_utilization_is_a_metric() {
        let target = json!({"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"});
        for (percent, want) in [(Some(30), 30), (None, 80)] {
            let spec = json!({"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": percent});
            let hub = to_hub(&json!({"metadata": {"name": "h"}, "spec": spec}));
            assert_eq!(hub["spec"]["metrics"], json!([metric(want)]));
            assert_eq!(to_v1(&hub)["spec"]["targetCPUUtilizationPercentage"], want);
            assert_eq!(to_v1(&hub)["metadata"]["annotations"], Value::Null);
        }
    }

    #[test]
    fn what_v1_has_no_field_for_survives_in_annotations() {
        let selector = json!({"matchLabels": {"a": "b"}});
        let described = json!({"kind": "Service", "name": "s"});
        let rules = json!({
            "stabilizationWindowSeconds": 0, "selectPolicy": "Max",
            "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}], "tolerance": "50m",
        });
        let status = |name: &str| json!({"name": name, "current": {"averageValue": "1", "averageUtilization": 9}});
        let hub = json!({
            "kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2",
            "metadata": {"name": "h", "annotations": {"mine": "stays"}},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "minReplicas": 1, "maxReplicas": 3,
                "metrics": [
                    {"type": "Object", "object": {"describedObject": described, "target": {"type": "Value", "value": "5"}, "metric": {"name": "m", "selector": selector}}},
                    {"type": "Object", "object": {"describedObject": described, "target": {"type": "AverageValue", "averageValue": "5"}, "metric": {"name": "m"}}},
                    {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "2"}}},
                    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}}},
                    {"type": "ContainerResource", "containerResource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "100m"}, "container": "c"}},
                    {"type": "External", "external": {"metric": {"name": "m", "selector": selector}, "target": {"type": "AverageValue", "averageValue": "7"}}},
                    metric(60),
                ],
                "behavior": {"scaleUp": rules, "scaleDown": {"selectPolicy": "Disabled"}},
            },
            "status": {
                "desiredReplicas": 2,
                "currentMetrics": [
                    {"type": "Resource", "resource": status("cpu")},
                    {"type": "Pods", "pods": {"metric": {"name": "m"}, "current": {"averageValue": "3"}}},
                ],
                "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z", "reason": "r"}],
            },
        });
        let v1 = to_v1(&hub);
        let annotations = &v1["metadata"]["annotations"];
        assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 60);
        assert_eq!(v1["status"]["currentCPUUtilizationPercentage"], 9);
        assert_eq!(annotations.as_object().unwrap().len(), 6, "{annotations}");
        assert_eq!(
            annotations["autoscaling.alpha.kubernetes.io/behavior"],
            "{\"ScaleUp\":{\"StabilizationWindowSeconds\":0,\"SelectPolicy\":\"Max\",\"Policies\":[{\"Type\":\"Pods\",\"Value\":4,\
             \"PeriodSeconds\":15}],\"Tolerance\":\"50m\"},\"ScaleDown\":{\"StabilizationWindowSeconds\":null,\
             \"SelectPolicy\":\"Disabled\",\"Policies\":null,\"Tolerance\":null}}"
        );
        assert_eq!(to_hub(&v1), hub);
    }

    #[test]
    fn damaged_annotations_are_dropped() {
        let annotations = json!({"autoscaling.alpha.kubernetes.io/metrics": "[{\"type\":3}]", "mine": "stays"});
        let v1 = json!({"metadata": {"name": "h", "annotations": annotations}, "spec": {"maxReplicas": 1}});
        let hub = to_hub(&v1);
        assert_eq!(hub["metadata"]["annotations"], json!({"mine": "stays"}));
        assert_eq!(hub["spec"]["metrics"], json!([metric(80)]));
    }
}
