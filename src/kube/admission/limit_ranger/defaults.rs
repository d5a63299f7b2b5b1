//! Defaults of containers by limit ranges, with an annotation that says what was set.

use keelson_api::core::v1::{Container, LimitRange, Pod};
use keelson_machinery::status::StatusError;

use crate::core::pod_resources::Amounts;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// Amounts that the containers of one pod are given: no more than a request itself may say.
const MAX_AMOUNTS: usize = 1 << 16;

/// Fills in what a limit range says of containers, where they say nothing.
///
/// # Errors
/// 413: the containers are so many, or what the range says is so much, that a pod would become of it that nobody could
/// have sent.
pub fn fill(pod: &mut Pod, range: &LimitRange) -> Result<(), StatusError> {
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    for item in range.spec.limits.iter().filter(|item| item.r#type == "Container") {
        requests.extend(item.default_request.clone());
        limits.extend(item.default.clone());
    }
    let containers = pod.spec.containers.len() + pod.spec.init_containers.len();
    if containers.saturating_mul(requests.len() + limits.len()) > MAX_AMOUNTS {
        let range = &range.metadata.name;
        return Err(StatusError::entity_too_large(format!(
            "limit range {range} would set more than {MAX_AMOUNTS} amounts of the pod"
        )));
    }
    let mut told = Vec::new();
    for (what, containers) in [
        ("container", &mut pod.spec.containers),
        ("init container", &mut pod.spec.init_containers),
    ] {
        for container in containers {
            told.extend(fill_container(container, what, &requests, &limits));
        }
    }
    if !told.is_empty() {
        let text = format!("LimitRanger plugin set: {}", told.join("; "));
        pod.metadata.annotations.insert(ANNOTATION.to_owned(), text);
    }
    Ok(())
}

fn fill_container(container: &mut Container, what: &str, requests: &Amounts, limits: &Amounts) -> Vec<String> {
    let resources = &mut container.resources;
    let name = &container.name;
    let told = [
        ("request", add_missing(&mut resources.requests, requests)),
        ("limit", add_missing(&mut resources.limits, limits)),
    ];
    let told = told.into_iter().filter(|(_, set)| !set.is_empty());
    told.map(|(side, set)| format!("{} {side} for {what} {name}", set.join(", ")))
        .collect()
}

/// Returns the names of what was missing.
fn add_missing(amounts: &mut Amounts, defaults: &Amounts) -> Vec<String> {
    let missing = defaults.iter().filter(|(name, _)| !amounts.contains_key(*name));
    let missing: Amounts = missing.map(|(name, amount)| (name.clone(), amount.clone())).collect();
    let names = missing.keys().cloned().collect();
    amounts.extend(missing);
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read, text};

    #[test]
    fn what_is_missing_is_filled_in_and_told() {
        let range: LimitRange = read(
            r#"{"spec":{"limits":[
                {"type":"Container","default":{"cpu":"2","memory":"1Gi"},"defaultRequest":{"cpu":"1"}},
                {"type":"Container","default":{"cpu":"3"}},
                {"type":"Pod","default":{"cpu":"9"}}]}}"#,
        );
        let mut pod: Pod = read(
            r#"{"spec":{"initContainers":[{"name":"i","resources":{"limits":{"cpu":"1","memory":"1"},"requests":{"cpu":"1"}}}],
                "containers":[{"name":"c","resources":{"limits":{"memory":"2"}}},{"name":"d"}]}}"#,
        );
        fill(&mut pod, &range).unwrap();
        let resources: Vec<String> = pod.spec.containers.iter().map(|c| text(&c.resources)).collect();
        assert_eq!(
            resources,
            [
                r#"{"limits":{"cpu":"3","memory":"2"},"requests":{"cpu":"1"}}"#,
                r#"{"limits":{"cpu":"3","memory":"1Gi"},"requests":{"cpu":"1"}}"#
            ]
        );
        assert_eq!(
            pod.metadata.annotations[ANNOTATION],
            "LimitRanger plugin set: cpu request for container c; cpu limit for container c; cpu request for container d; \
             cpu, memory limit for container d"
        );
        let mut other = Pod::default();
        fill(&mut other, &range).unwrap();
        assert!(other.metadata.annotations.is_empty());
    }

    #[test]
    fn very_many_amounts_are_not_set() {
        let names: Vec<String> = (0..1_000).map(|n| format!(r#""example.com/r{n}":"1""#)).collect();
        let range: LimitRange = read(&format!(
            r#"{{"spec":{{"limits":[{{"type":"Container","default":{{{}}}}}]}}}}"#,
            names.join(",")
        ));
        for (count, ends) in [(65, None), (66, Some(413))] {
            let containers = vec![r#"{"name":"c"}"#; count].join(",");
            let mut pod: Pod = read(&format!(r#"{{"spec":{{"containers":[{containers}]}}}}"#));
            assert_eq!(fill(&mut pod, &range).err().map(|error| error.code), ends, "{count}");
        }
    }
}
