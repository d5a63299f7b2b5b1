//! The metrics of flow control, under kube-apiserver's names. Labels are names of configured objects, so there are as
//! many series as the configuration has schemas and levels.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::control::{FlowControl, Plan};
use super::histogram::Histogram;
use super::level::State;
use super::queues::{Phase, Refusal};
use super::stats::{Counted, SchemaStats};

/// Writes them whenever somebody asks.
pub struct FlowMetrics(pub Arc<FlowControl>);

impl fmt::Debug for FlowMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FlowMetrics")
    }
}

type Labels = Vec<(&'static str, String)>;

enum Value {
    Gauge(f64),
    Counter(u64),
    Histogram(Histogram),
}

impl Value {
    fn kind(&self) -> MetricType {
        match self {
            Value::Gauge(_) => MetricType::Gauge,
            Value::Counter(_) => MetricType::Counter,
            Value::Histogram(_) => MetricType::Histogram,
        }
    }
}

/// What the names of metrics begin with that are not of flow control alone.
const GENERAL: &str = "apiserver_";

struct Family {
    name: &'static str,
    help: &'static str,
    series: Vec<(Labels, Value)>,
}

/// One family after the other, each with its series.
#[derive(Default)]
struct Families {
    all: Vec<Family>,
}

impl Families {
    fn add(&mut self, name: &'static str, help: &'static str, mut labels: Labels, value: Value) {
        labels.sort_unstable();
        match self.all.iter_mut().find(|family| family.name == name) {
            Some(family) => family.series.push((labels, value)),
            None => self.all.push(Family {
                name,
                help,
                series: vec![(labels, value)],
            }),
        }
    }

    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for Family { name, help, series } in &self.all {
            let Some((_, first)) = series.first() else {
                continue;
            };
            let name = match name.starts_with(GENERAL) {
                true => (*name).to_owned(),
                false => format!("apiserver_flowcontrol_{name}"),
            };
            let mut family = encoder.encode_descriptor(&name, help, None, first.kind())?;
            for (labels, value) in series {
                let mut one = family.encode_family(labels)?;
                match value {
                    // As kube-apiserver writes whole numbers.
                    Value::Gauge(number) if number.fract() == 0.0 => one.encode_gauge(&(*number as i64))?,
                    Value::Gauge(number) => one.encode_gauge(number)?,
                    Value::Counter(number) => one.encode_counter::<NoLabelSet, _, f64>(number, None)?,
                    Value::Histogram(seen) => {
                        one.encode_histogram::<NoLabelSet>(seen.sum(), seen.count(), &seen.buckets(), None)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Collector for FlowMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families::default();
        let plan = self.0.plan();
        for level in &plan.levels {
            level.with(|state, now| {
                level_series(&mut families, &level.name, state);
                let name = || vec![("priority_level", level.name.clone())];
                ratio_series(&mut families, state, now, name);
            });
        }
        let text = "The part of its wanted seats that each level gets which no bound stops";
        families.add("seat_fair_frac", text, Vec::new(), Value::Gauge(self.0.fraction()));
        schema_series(&mut families, &plan);
        sort_series(&mut families, &self.0);
        families.encode(&mut encoder)
    }
}

/// The seats of a level.
fn level_series(families: &mut Families, name: &str, state: &State) {
    let (needed, bounds) = (state.needed, state.bounds);
    let gauges = [
        (
            "nominal_limit_seats",
            "Seats of a level by its shares",
            f64::from(bounds.nominal),
        ),
        ("lower_limit_seats", "Seats that a level keeps", f64::from(bounds.least)),
        (
            "upper_limit_seats",
            "Seats that a level may have at most",
            f64::from(bounds.most),
        ),
        (
            "current_limit_seats",
            "Seats that a level has now",
            f64::from(state.queues.limit()),
        ),
        (
            "demand_seats_high_watermark",
            "The most seats that a level could use in the last period",
            needed.highest,
        ),
        (
            "demand_seats_average",
            "Seats that a level could use in the last period, on average",
            needed.average,
        ),
        (
            "demand_seats_stdev",
            "Standard deviation of the seats that a level could use",
            needed.deviation,
        ),
        (
            "demand_seats_smoothed",
            "Seats that a level could use, over the periods",
            needed.smoothed,
        ),
        (
            "target_seats",
            "Seats that a level would get if there were enough",
            needed.target,
        ),
        ("current_r", "Virtual time of a level", state.queues.meter().as_f64()),
    ];
    for (metric, help, value) in gauges {
        families.add(
            metric,
            help,
            vec![("priority_level", name.to_owned())],
            Value::Gauge(value),
        );
    }
}

fn ratio_series(families: &mut Families, state: &mut State, now: std::time::Duration, name: impl Fn() -> Labels) {
    let phase = |phase: &str| {
        let mut labels = vec![("phase", phase.to_owned())];
        labels.extend(name());
        labels
    };
    let ratios = &mut state.ratios;
    let series = [
        (
            "demand_seats",
            "Seats that a level could use, as part of its nominal ones, in each nanosecond",
            name(),
            &mut ratios.demand,
        ),
        (
            "priority_level_request_utilization",
            "Requests of a level as part of how many there may be, in each nanosecond",
            phase("executing"),
            &mut ratios.executing,
        ),
        (
            "priority_level_request_utilization",
            "",
            phase("waiting"),
            &mut ratios.waiting,
        ),
        (
            "priority_level_seat_utilization",
            "Seats taken as part of those there are, in each nanosecond",
            phase("executing"),
            &mut ratios.seats,
        ),
    ];
    for (metric, help, labels, ratio) in series {
        families.add(metric, help, labels, Value::Histogram(ratio.observed(now).clone()));
    }
}

/// What a schema's requests are doing now.
#[derive(Default)]
struct Doing {
    served: u32,
    served_seats: u32,
    waiting: u32,
    waiting_seats: u32,
}

fn doing(state: &State, schema: &Arc<SchemaStats>) -> Doing {
    let mut doing = Doing::default();
    for (_, held) in state
        .queues
        .requests()
        .filter(|(_, held)| Arc::ptr_eq(&held.arrival.tag.schema, schema))
    {
        let seats = held.arrival.work.max_seats();
        match held.phase {
            Phase::Waiting => {
                doing.waiting += 1;
                doing.waiting_seats += seats;
            }
            Phase::Served(_) => {
                doing.served += 1;
                doing.served_seats += seats;
            }
            Phase::Settling => doing.served_seats += seats,
        }
    }
    doing
}

fn schema_series(families: &mut Families, plan: &Plan) {
    for planned in &plan.schemas {
        let counted = planned.stats.count(|counted| counted.clone());
        if counted.estimated_seats.is_empty() {
            continue;
        }
        let now = planned.level.with(|state, _| doing(state, &planned.stats));
        let labels = |more: Option<(&'static str, &str)>| {
            let mut labels: Labels = more.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
            labels.push(("flow_schema", planned.stats.name.clone()));
            labels.push(("priority_level", planned.level.name.clone()));
            labels
        };
        for (metric, help, number) in [
            ("current_executing_requests", "Requests that are served", now.served),
            (
                "current_executing_seats",
                "Seats of requests that are served",
                now.served_seats,
            ),
            ("current_inqueue_requests", "Requests that wait", now.waiting),
            ("current_inqueue_seats", "Seats that are waited for", now.waiting_seats),
        ] {
            families.add(metric, help, labels(None), Value::Gauge(f64::from(number)));
        }
        counted_series(families, counted, labels);
    }
}

fn counted_series(families: &mut Families, counted: Counted, labels: impl Fn(Option<(&'static str, &str)>) -> Labels) {
    families.add(
        "dispatched_requests",
        "Requests that were served",
        labels(None),
        Value::Counter(counted.dispatched),
    );
    for (refusal, count) in Refusal::ALL.iter().zip(counted.refused) {
        if count > 0 {
            let labels = labels(Some(("reason", refusal.reason())));
            families.add(
                "rejected_requests",
                "Requests that were turned away",
                labels,
                Value::Counter(count),
            );
        }
    }
    let [executed, refused] = counted.waited;
    let [regular, watch] = counted.served;
    let waited = "How long requests waited in their queues, in seconds";
    let served = "How long it took to serve requests, of watches to begin them, in seconds";
    for (metric, help, more, seen) in [
        (
            "request_wait_duration_seconds",
            waited,
            Some(("execute", "true")),
            executed,
        ),
        (
            "request_wait_duration_seconds",
            waited,
            Some(("execute", "false")),
            refused,
        ),
        ("request_execution_seconds", served, Some(("type", "regular")), regular),
        ("request_execution_seconds", served, Some(("type", "watch")), watch),
        (
            "request_queue_length_after_enqueue",
            "How long a queue was when a request had joined it",
            None,
            counted.queue_length,
        ),
        (
            "work_estimated_seats",
            "The most seats that a request was thought to need",
            None,
            counted.estimated_seats,
        ),
        (
            "watch_count_samples",
            "How many watches were told of a write",
            None,
            counted.watches,
        ),
    ] {
        if !seen.is_empty() {
            families.add(metric, help, labels(more), Value::Histogram(seen));
        }
    }
}

fn sort_series(families: &mut Families, control: &FlowControl) {
    control.count_sort(|sorts, now| {
        for (kind, is_write) in [("readOnly", false), ("mutating", true)] {
            let sort = sorts.of(is_write);
            let waiting = Value::Gauge(f64::from(sort.waiting.now()));
            let labels = vec![("request_kind", kind.to_owned())];
            let help = "Requests that wait, by whether they may change something";
            families.add("apiserver_current_inqueue_requests", help, labels, waiting);
            for (phase, gauge) in [("executing", &mut sort.executing), ("waiting", &mut sort.waiting)] {
                let labels = vec![("phase", phase.to_owned()), ("request_kind", kind.to_owned())];
                let help = "Requests as part of how many there may be, in each nanosecond";
                let value = Value::Histogram(gauge.observed(now).clone());
                families.add("read_vs_write_current_requests", help, labels, value);
            }
        }
    });
}
