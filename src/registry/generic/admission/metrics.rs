//! Metrics of admission, under kube-apiserver's names: how long each plug-in and each step took.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keelson_base::metrics::Numbered;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Operation;

/// Upper bounds, in seconds.
const BUCKETS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
/// Operations, each with two steps that pass or refuse.
const OUTCOMES: usize = Operation::ALL.len() * 4;

/// What a chain is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// To change the object.
    Admit,
    /// To check it.
    Validate,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    operation: &'static str,
    rejected: &'static str,
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PluginLabels {
    name: &'static str,
    #[prometheus(flatten)]
    step: StepLabels,
}

/// What was done, and how it ended.
#[derive(Clone, Copy)]
pub(super) struct Done {
    pub operation: Operation,
    pub step: Step,
    pub refused: bool,
}

impl Done {
    fn number(self) -> usize {
        (self.operation as usize * 2 + self.step as usize) * 2 + usize::from(self.refused)
    }

    fn labels(self) -> StepLabels {
        StepLabels {
            operation: self.operation.word(),
            rejected: if self.refused { "true" } else { "false" },
            r#type: match self.step {
                Step::Admit => "admit",
                Step::Validate => "validate",
            },
        }
    }
}

/// The series of one plug-in, found by their numbers.
pub(super) struct PluginSeries {
    name: &'static str,
    family: Family<PluginLabels, Histogram>,
    found: Numbered<Histogram, OUTCOMES>,
}

impl PluginSeries {
    pub fn observe(&self, done: Done, took: Duration) {
        let find = || {
            let (name, step) = (self.name, done.labels());
            self.family.get_or_create_owned(&PluginLabels { name, step })
        };
        if let Some(series) = self.found.get(done.number(), find) {
            series.observe(took.as_secs_f64());
        }
    }
}

/// The metrics of one server.
pub(super) struct AdmissionMetrics {
    steps: Family<StepLabels, Histogram>,
    step_series: Numbered<Histogram, OUTCOMES>,
    plugins: Family<PluginLabels, Histogram>,
    by_plugin: Mutex<HashMap<&'static str, Arc<PluginSeries>>>,
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl Default for AdmissionMetrics {
    fn default() -> Self {
        AdmissionMetrics {
            steps: Family::new_with_constructor(histogram),
            step_series: Numbered::default(),
            plugins: Family::new_with_constructor(histogram),
            by_plugin: Mutex::default(),
        }
    }
}

impl AdmissionMetrics {
    /// Shows them.
    pub fn register(&self, registry: &mut Registry) {
        let text = "Seconds that the plug-ins of a step took together";
        let name = "apiserver_admission_step_admission_duration_seconds";
        registry.register(name, text, self.steps.clone());
        let text = "Seconds that a plug-in took";
        let name = "apiserver_admission_controller_admission_duration_seconds";
        registry.register(name, text, self.plugins.clone());
    }

    /// Those of the plug-in of a name.
    pub fn of(&self, name: &'static str) -> Arc<PluginSeries> {
        let mut all = self.by_plugin.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || PluginSeries {
            name,
            family: self.plugins.clone(),
            found: Numbered::default(),
        };
        all.entry(name).or_insert_with(|| Arc::new(make())).clone()
    }

    /// Observes a step.
    pub fn observe(&self, done: Done, took: Duration) {
        let find = || self.steps.get_or_create_owned(&done.labels());
        if let Some(series) = self.step_series.get(done.number(), find) {
            series.observe(took.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_series_of_its_own() {
        let metrics = AdmissionMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut numbers = Vec::new();
        for operation in Operation::ALL {
            for step in [Step::Admit, Step::Validate] {
                for refused in [false, true] {
                    let done = Done {
                        operation,
                        step,
                        refused,
                    };
                    numbers.push(done.number());
                    metrics.of("A").observe(done, Duration::from_millis(30));
                    metrics.observe(done, Duration::from_millis(30));
                }
            }
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (0..OUTCOMES).collect::<Vec<_>>());
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let plugin = "apiserver_admission_controller_admission_duration_seconds_bucket{le=\"0.1\",name=\"A\",\
                      operation=\"DELETE\",rejected=\"true\",type=\"validate\"} 1";
        let step = "apiserver_admission_step_admission_duration_seconds_count{operation=\"CONNECT\",rejected=\"false\",\
                    type=\"admit\"} 1";
        assert!(text.contains(plugin) && text.contains(step), "{text}");
    }
}
