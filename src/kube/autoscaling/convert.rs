//! HorizontalPodAutoscaler between v1 and the hub, v2.
//!
//! v1 knows one metric, the utilization of CPU. kube-apiserver keeps everything else of a v2 object in annotations of
//! its v1 form, and takes it from there on the way back.

use crate::api::autoscaling::{v1, v2};

/// Utilization of CPU, in percent of the request, that an autoscaler without metrics aims at.
const DEFAULT_CPU_UTILIZATION: i32 = 80;

/// Carries over nothing: the parts have their own functions.
pub fn to_hub_horizontal_pod_autoscaler(
    _: &v1::HorizontalPodAutoscaler,
    _: &mut v2::HorizontalPodAutoscaler,
) -> Result<(), String> {
    Ok(())
}

/// Carries over nothing: the parts have their own functions.
pub fn from_hub_horizontal_pod_autoscaler(
    _: &v2::HorizontalPodAutoscaler,
    _: &mut v1::HorizontalPodAutoscaler,
) -> Result<(), String> {
    Ok(())
}

pub fn to_hub_horizontal_pod_autoscaler_spec(
    from: &v1::HorizontalPodAutoscalerSpec,
    to: &mut v2::HorizontalPodAutoscalerSpec,
) -> Result<(), String> {
    to.metrics = vec![cpu_metric(
        from.target_cpu_utilization_percentage
            .unwrap_or(DEFAULT_CPU_UTILIZATION),
    )];
    Ok(())
}

pub fn from_hub_horizontal_pod_autoscaler_spec(
    from: &v2::HorizontalPodAutoscalerSpec,
    to: &mut v1::HorizontalPodAutoscalerSpec,
) -> Result<(), String> {
    to.target_cpu_utilization_percentage = from.metrics.iter().find_map(|m| cpu_utilization(m));
    Ok(())
}

pub fn to_hub_horizontal_pod_autoscaler_status(
    _: &v1::HorizontalPodAutoscalerStatus,
    _: &mut v2::HorizontalPodAutoscalerStatus,
) -> Result<(), String> {
    Ok(())
}

pub fn from_hub_horizontal_pod_autoscaler_status(
    _: &v2::HorizontalPodAutoscalerStatus,
    _: &mut v1::HorizontalPodAutoscalerStatus,
) -> Result<(), String> {
    Ok(())
}

fn cpu_metric(percent: i32) -> v2::MetricSpec {
    let target = v2::MetricTarget {
        r#type: "Utilization".to_owned(),
        average_utilization: Some(percent),
        ..Default::default()
    };
    let resource = v2::ResourceMetricSource {
        name: "cpu".to_owned(),
        target,
    };
    v2::MetricSpec {
        r#type: "Resource".to_owned(),
        resource: Some(Box::new(resource)),
        ..Default::default()
    }
}

fn cpu_utilization(metric: &v2::MetricSpec) -> Option<i32> {
    let resource = metric.resource.as_deref().filter(|r| r.name == "cpu")?;
    resource.target.average_utilization
}
