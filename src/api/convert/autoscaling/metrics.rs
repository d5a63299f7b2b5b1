//! Metrics between v1, which has them in annotations only, and v2.

use keelson_machinery::meta::v1::LabelSelector;
use keelson_machinery::quantity::Quantity;

use crate::autoscaling::{v1, v2};

const VALUE: &str = "Value";
const AVERAGE_VALUE: &str = "AverageValue";
const UTILIZATION: &str = "Utilization";

/// The metric in the form of v2.
pub(super) fn spec_to_hub(from: &v1::MetricSpec) -> v2::MetricSpec {
    v2::MetricSpec {
        r#type: from.r#type.clone(),
        object: from.object.as_ref().map(|m| {
            Box::new(v2::ObjectMetricSource {
                described_object: to_hub_reference(&m.target),
                target: target(VALUE, object_value(m), m.average_value.clone(), None),
                metric: metric(&m.metric_name, &m.selector),
            })
        }),
        pods: from.pods.as_ref().map(|m| {
            Box::new(v2::PodsMetricSource {
                metric: metric(&m.metric_name, &m.selector),
                target: target(AVERAGE_VALUE, None, Some(m.target_average_value.clone()), None),
            })
        }),
        resource: from.resource.as_ref().map(|m| {
            Box::new(v2::ResourceMetricSource {
                name: m.name.clone(),
                target: target(
                    AVERAGE_VALUE,
                    None,
                    m.target_average_value.clone(),
                    m.target_average_utilization,
                ),
            })
        }),
        container_resource: from.container_resource.as_ref().map(|m| {
            Box::new(v2::ContainerResourceMetricSource {
                name: m.name.clone(),
                target: target(
                    AVERAGE_VALUE,
                    None,
                    m.target_average_value.clone(),
                    m.target_average_utilization,
                ),
                container: m.container.clone(),
            })
        }),
        external: from.external.as_ref().map(|m| {
            Box::new(v2::ExternalMetricSource {
                metric: metric(&m.metric_name, &m.metric_selector),
                target: target(VALUE, m.target_value.clone(), m.target_average_value.clone(), None),
            })
        }),
    }
}

/// v1 writes a value of 0 where v2 has an average and no value.
fn object_value(from: &v1::ObjectMetricSource) -> Option<Quantity> {
    Some(from.target_value.clone()).filter(|value| from.average_value.is_none() || !value.is_zero())
}

pub(super) fn spec_from_hub(from: &v2::MetricSpec) -> v1::MetricSpec {
    v1::MetricSpec {
        r#type: from.r#type.clone(),
        object: from.object.as_ref().map(|m| {
            Box::new(v1::ObjectMetricSource {
                target: from_hub_reference(&m.described_object),
                metric_name: m.metric.name.clone(),
                target_value: m.target.value.clone().unwrap_or_default(),
                selector: m.metric.selector.clone(),
                average_value: m.target.average_value.clone(),
            })
        }),
        pods: from.pods.as_ref().map(|m| {
            Box::new(v1::PodsMetricSource {
                metric_name: m.metric.name.clone(),
                target_average_value: m.target.average_value.clone().unwrap_or_default(),
                selector: m.metric.selector.clone(),
            })
        }),
        resource: from.resource.as_ref().map(|m| {
            Box::new(v1::ResourceMetricSource {
                name: m.name.clone(),
                target_average_utilization: m.target.average_utilization,
                target_average_value: m.target.average_value.clone(),
            })
        }),
        container_resource: from.container_resource.as_ref().map(|m| {
            Box::new(v1::ContainerResourceMetricSource {
                name: m.name.clone(),
                target_average_utilization: m.target.average_utilization,
                target_average_value: m.target.average_value.clone(),
                container: m.container.clone(),
            })
        }),
        external: from.external.as_ref().map(|m| {
            Box::new(v1::ExternalMetricSource {
                metric_name: m.metric.name.clone(),
                metric_selector: m.metric.selector.clone(),
                target_value: m.target.value.clone(),
                target_average_value: m.target.average_value.clone(),
            })
        }),
    }
}

pub(super) fn status_to_hub(from: &v1::MetricStatus) -> v2::MetricStatus {
    v2::MetricStatus {
        r#type: from.r#type.clone(),
        object: from.object.as_ref().map(|m| {
            Box::new(v2::ObjectMetricStatus {
                metric: metric(&m.metric_name, &m.selector),
                current: current(Some(m.current_value.clone()), m.average_value.clone(), None),
                described_object: to_hub_reference(&m.target),
            })
        }),
        pods: from.pods.as_ref().map(|m| {
            Box::new(v2::PodsMetricStatus {
                metric: metric(&m.metric_name, &m.selector),
                current: current(None, Some(m.current_average_value.clone()), None),
            })
        }),
        resource: from.resource.as_ref().map(|m| {
            Box::new(v2::ResourceMetricStatus {
                name: m.name.clone(),
                current: current(
                    None,
                    Some(m.current_average_value.clone()),
                    m.current_average_utilization,
                ),
            })
        }),
        container_resource: from.container_resource.as_ref().map(|m| {
            Box::new(v2::ContainerResourceMetricStatus {
                name: m.name.clone(),
                current: current(
                    None,
                    Some(m.current_average_value.clone()),
                    m.current_average_utilization,
                ),
                container: m.container.clone(),
            })
        }),
        external: from.external.as_ref().map(|m| {
            Box::new(v2::ExternalMetricStatus {
                metric: metric(&m.metric_name, &m.metric_selector),
                current: current(Some(m.current_value.clone()), m.current_average_value.clone(), None),
            })
        }),
    }
}

pub(super) fn status_from_hub(from: &v2::MetricStatus) -> v1::MetricStatus {
    v1::MetricStatus {
        r#type: from.r#type.clone(),
        object: from.object.as_ref().map(|m| {
            Box::new(v1::ObjectMetricStatus {
                target: from_hub_reference(&m.described_object),
                metric_name: m.metric.name.clone(),
                current_value: m.current.value.clone().unwrap_or_default(),
                selector: m.metric.selector.clone(),
                average_value: m.current.average_value.clone(),
            })
        }),
        pods: from.pods.as_ref().map(|m| {
            Box::new(v1::PodsMetricStatus {
                metric_name: m.metric.name.clone(),
                current_average_value: m.current.average_value.clone().unwrap_or_default(),
                selector: m.metric.selector.clone(),
            })
        }),
        resource: from.resource.as_ref().map(|m| {
            Box::new(v1::ResourceMetricStatus {
                name: m.name.clone(),
                current_average_utilization: m.current.average_utilization,
                current_average_value: m.current.average_value.clone().unwrap_or_default(),
            })
        }),
        container_resource: from.container_resource.as_ref().map(|m| {
            Box::new(v1::ContainerResourceMetricStatus {
                name: m.name.clone(),
                current_average_utilization: m.current.average_utilization,
                current_average_value: m.current.average_value.clone().unwrap_or_default(),
                container: m.container.clone(),
            })
        }),
        external: from.external.as_ref().map(|m| {
            Box::new(v1::ExternalMetricStatus {
                metric_name: m.metric.name.clone(),
                metric_selector: m.metric.selector.clone(),
                current_value: m.current.value.clone().unwrap_or_default(),
                current_average_value: m.current.average_value.clone(),
            })
        }),
    }
}

/// v1 has no type of target: what is there tells. `otherwise` is the type where neither an average nor a utilization
/// is.
fn target(
    otherwise: &str,
    value: Option<Quantity>,
    average_value: Option<Quantity>,
    average_utilization: Option<i32>,
) -> v2::MetricTarget {
    let r#type = match (&average_value, average_utilization) {
        (_, Some(_)) => UTILIZATION,
        (Some(_), _) if otherwise == VALUE && value.is_some() && value != Some(Quantity::default()) => VALUE,
        (Some(_), _) => AVERAGE_VALUE,
        _ => otherwise,
    };
    v2::MetricTarget {
        r#type: r#type.to_owned(),
        value,
        average_value,
        average_utilization,
    }
}

fn current(
    value: Option<Quantity>,
    average_value: Option<Quantity>,
    average_utilization: Option<i32>,
) -> v2::MetricValueStatus {
    v2::MetricValueStatus {
        value,
        average_value,
        average_utilization,
    }
}

fn metric(name: &str, selector: &Option<Box<LabelSelector>>) -> v2::MetricIdentifier {
    v2::MetricIdentifier {
        name: name.to_owned(),
        selector: selector.clone(),
    }
}

fn to_hub_reference(from: &v1::CrossVersionObjectReference) -> v2::CrossVersionObjectReference {
    v2::CrossVersionObjectReference {
        kind: from.kind.clone(),
        name: from.name.clone(),
        api_version: from.api_version.clone(),
    }
}

fn from_hub_reference(from: &v2::CrossVersionObjectReference) -> v1::CrossVersionObjectReference {
    v1::CrossVersionObjectReference {
        kind: from.kind.clone(),
        name: from.name.clone(),
        api_version: from.api_version.clone(),
    }
}
