//! Constraints of limit ranges: least, most, and the ratio of limit to request.

use keelson_api::core::v1::{Container, LimitRange, LimitRangeItem, PersistentVolumeClaim, PodSpec};
use keelson_machinery::quantity::Quantity;

use crate::core::pod_resources::{Amounts, LIMITS, REQUESTS, Side, of_containers, put_whole};

/// Whole numbers up to here are compared in thousandths.
const MAX_MILLI_VALUE: i64 = i64::MAX / 1000;
/// Faults from which on no more containers are looked at: each has as many as there are bounds, and so many are not
/// shown.
const MAX_FAULTS: usize = 1_000;

/// What of a pod is outside of a limit range.
pub fn of_pod(spec: &PodSpec, range: &LimitRange) -> Vec<String> {
    let mut faults = Vec::new();
    for item in &range.spec.limits {
        match item.r#type.as_str() {
            "Container" => {
                for container in spec.containers.iter().chain(&spec.init_containers) {
                    if faults.len() > MAX_FAULTS {
                        break;
                    }
                    faults.extend(of_container(container, item));
                }
            }
            "Pod" => faults.extend(all(item, &sum(spec, REQUESTS), &sum(spec, LIMITS))),
            _ => {}
        }
    }
    faults
}

/// What of a claim is.
pub fn of_claim(claim: &PersistentVolumeClaim, range: &LimitRange) -> Vec<String> {
    let (requests, none) = (&claim.spec.resources.requests, Amounts::new());
    let mut faults = Vec::new();
    for item in range
        .spec
        .limits
        .iter()
        .filter(|item| item.r#type == "PersistentVolumeClaim")
    {
        let of = Bound { of: &item.r#type };
        let least = item
            .min
            .iter()
            .filter_map(|(name, bound)| of.least(name, bound, requests, &none));
        faults.extend(least);
        let most = item
            .max
            .iter()
            .filter_map(|(name, bound)| of.most_requested(name, bound, requests));
        faults.extend(most);
    }
    faults
}

fn of_container(container: &Container, item: &LimitRangeItem) -> Vec<String> {
    all(item, &container.resources.requests, &container.resources.limits)
}

/// Of limit ranges processors and memory of the whole pod count, its overhead does not.
fn sum(spec: &PodSpec, side: Side) -> Amounts {
    let mut sum = of_containers(spec, |container| std::borrow::Cow::Borrowed(side(&container.resources)));
    put_whole(&mut sum, spec, side, |name| matches!(name, "cpu" | "memory"));
    sum
}

fn all(item: &LimitRangeItem, requests: &Amounts, limits: &Amounts) -> Vec<String> {
    let of = Bound { of: &item.r#type };
    let least = item
        .min
        .iter()
        .filter_map(|(name, bound)| of.least(name, bound, requests, limits));
    let most = item
        .max
        .iter()
        .filter_map(|(name, bound)| of.most(name, bound, requests, limits));
    let ratios = item.max_limit_request_ratio.iter();
    let ratios = ratios.filter_map(|(name, bound)| of.ratio(name, bound, requests, limits));
    least.chain(most).chain(ratios).collect()
}

/// A bound of what a limit range speaks of: `Container`, `Pod` …
struct Bound<'a> {
    of: &'a str,
}

impl Bound<'_> {
    fn least(&self, name: &str, bound: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
        let least = format!("minimum {name} usage per {} is {bound}", self.of);
        let Some(request) = requests.get(name) else {
            return Some(format!("{least}.  No request is specified"));
        };
        let limit = limits.get(name);
        let [asked, allowed, least_value] = values([Some(request), limit, Some(bound)]);
        if asked < least_value {
            return Some(format!("{least}, but request is {request}"));
        }
        let limit = limit.filter(|_| allowed < least_value)?;
        Some(format!("{least}, but limit is {limit}"))
    }

    fn most(&self, name: &str, bound: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
        let most = format!("maximum {name} usage per {} is {bound}", self.of);
        let Some(limit) = limits.get(name) else {
            return Some(format!("{most}.  No limit is specified"));
        };
        let request = requests.get(name);
        let [asked, allowed, most_value] = values([request, Some(limit), Some(bound)]);
        if allowed > most_value {
            return Some(format!("{most}, but limit is {limit}"));
        }
        let request = request.filter(|_| asked > most_value)?;
        Some(format!("{most}, but request is {request}"))
    }

    fn most_requested(&self, name: &str, bound: &Quantity, requests: &Amounts) -> Option<String> {
        let most = format!("maximum {name} usage per {} is {bound}", self.of);
        let Some(request) = requests.get(name) else {
            return Some(format!("{most}.  No request is specified"));
        };
        let [asked, _, most_value] = values([Some(request), None, Some(bound)]);
        (asked > most_value).then(|| format!("{most}, but request is {request}"))
    }

    fn ratio(&self, name: &str, bound: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
        let most = format!("{name} max limit to request ratio per {} is {bound}", self.of);
        let [asked, allowed, _] = values([requests.get(name), limits.get(name), Some(bound)]);
        if asked == 0 {
            return Some(format!("{most}, but no request is specified or request is 0"));
        }
        if allowed == 0 {
            return Some(format!("{most}, but no limit is specified or limit is 0"));
        }
        let ratio = allowed as f64 / asked as f64;
        let (compared, most_ratio) = match bound.value() <= MAX_MILLI_VALUE {
            true => (ratio * 1000.0, bound.milli_value() as f64),
            false => (ratio, bound.value() as f64),
        };
        (compared > most_ratio).then(|| format!("{most}, but provided ratio is {ratio:.6}"))
    }
}

/// In thousandths where all of them can be said so; what is absent is 0.
fn values(quantities: [Option<&Quantity>; 3]) -> [i64; 3] {
    let whole = quantities.map(|one| one.map_or(0, Quantity::value));
    match whole.iter().all(|value| *value <= MAX_MILLI_VALUE) {
        true => quantities.map(|one| one.map_or(0, Quantity::milli_value)),
        false => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    fn faults(item: &str, spec: &str) -> Vec<String> {
        let range = read(&format!(r#"{{"spec":{{"limits":[{item}]}}}}"#));
        of_pod(&read(spec), &range)
    }

    #[test]
    fn containers_stay_within_bounds() {
        let spec = |resources: &str| format!(r#"{{"containers":[{{"name":"c","resources":{resources}}}]}}"#);
        let min = r#"{"type":"Container","min":{"cpu":"500m"}}"#;
        let max = r#"{"type":"Container","max":{"memory":"1Gi"}}"#;
        let ratio = r#"{"type":"Container","maxLimitRequestRatio":{"cpu":"1500m"}}"#;
        for (item, resources, expected) in [
            (min, r#"{"requests":{"cpu":"0.5"}}"#, ""),
            (
                min,
                "{}",
                "minimum cpu usage per Container is 500m.  No request is specified",
            ),
            (
                min,
                r#"{"requests":{"cpu":"499m"}}"#,
                "minimum cpu usage per Container is 500m, but request is 499m",
            ),
            (
                min,
                r#"{"requests":{"cpu":"1"},"limits":{"cpu":"100m"}}"#,
                "minimum cpu usage per Container is 500m, but limit is 100m",
            ),
            (max, r#"{"limits":{"memory":"1Gi"}}"#, ""),
            (
                max,
                r#"{"requests":{"memory":"1"}}"#,
                "maximum memory usage per Container is 1Gi.  No limit is specified",
            ),
            (
                max,
                r#"{"limits":{"memory":"2Gi"}}"#,
                "maximum memory usage per Container is 1Gi, but limit is 2Gi",
            ),
            (
                max,
                r#"{"limits":{"memory":"1"},"requests":{"memory":"2Gi"}}"#,
                "maximum memory usage per Container is 1Gi, but request is 2Gi",
            ),
            (ratio, r#"{"limits":{"cpu":"1500m"},"requests":{"cpu":"1"}}"#, ""),
            (
                ratio,
                r#"{"limits":{"cpu":"2"},"requests":{"cpu":"1"}}"#,
                "cpu max limit to request ratio per Container is 1500m, but provided ratio is 2.000000",
            ),
            (
                ratio,
                r#"{"limits":{"cpu":"2"},"requests":{"cpu":"0"}}"#,
                "cpu max limit to request ratio per Container is 1500m, but no request is specified or request is 0",
            ),
            (
                ratio,
                r#"{"requests":{"cpu":"1"}}"#,
                "cpu max limit to request ratio per Container is 1500m, but no limit is specified or limit is 0",
            ),
        ] {
            assert_eq!(
                faults(item, &spec(resources)).join("; "),
                expected,
                "{item} {resources}"
            );
        }
    }

    #[test]
    fn of_very_many_containers_not_all_faults_are_told() {
        let containers = vec![r#"{"name":"c"}"#; 2 * MAX_FAULTS].join(",");
        let bounds = r#"{"type":"Container","max":{"cpu":"1","memory":"1"}}"#;
        let found = faults(bounds, &format!(r#"{{"containers":[{containers}]}}"#)).len();
        assert!(found > MAX_FAULTS && found < MAX_FAULTS + 3, "{found}");
    }

    #[test]
    fn a_pod_is_the_sum_of_its_containers() {
        let one = r#"{"name":"c","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"1"}}}"#;
        let spec = format!(r#"{{"containers":[{one},{one}],"initContainers":[{one}]}}"#);
        assert!(faults(r#"{"type":"Pod","max":{"cpu":"2"}}"#, &spec).is_empty());
        assert_eq!(
            faults(r#"{"type":"Pod","max":{"cpu":"1"}}"#, &spec),
            ["maximum cpu usage per Pod is 1, but limit is 2"]
        );
        let stated = r#"{"containers":[{"name":"c"}],"resources":{"limits":{"cpu":"3","hugepages-2Mi":"1"}}}"#;
        assert_eq!(
            faults(
                r#"{"type":"Pod","max":{"cpu":"2"},"min":{"hugepages-2Mi":"1"}}"#,
                stated
            ),
            [
                "minimum hugepages-2Mi usage per Pod is 1.  No request is specified",
                "maximum cpu usage per Pod is 2, but limit is 3"
            ]
        );
    }

    #[test]
    fn claims_are_bound_by_what_they_ask_for() {
        let range: LimitRange = read(
            r#"{"spec":{"limits":[{"type":"PersistentVolumeClaim","min":{"storage":"1Gi"},"max":{"storage":"2Gi"}}]}}"#,
        );
        for (size, expected) in [
            ("1Gi", ""),
            (
                "1Mi",
                "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi",
            ),
            (
                "3Gi",
                "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi",
            ),
        ] {
            let claim = read(&format!(
                r#"{{"spec":{{"resources":{{"requests":{{"storage":"{size}"}}}}}}}}"#
            ));
            assert_eq!(of_claim(&claim, &range).join("; "), expected, "{size}");
        }
    }
}
