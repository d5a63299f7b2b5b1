//! Defaults of containers by limit ranges, with an annotation that says what was set.

use keelson_api::core::v1::{Container, LimitRange, Pod};

use crate::core::pod_resources::Amounts;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Fills in what a limit range says of containers, where they say nothing.
pub fn fill(pod: &mut Pod, range: &LimitRange) {
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    for item in range.spec.limits.iter().filter(|item| item.r#type == "Container") {
        requests.extend(item.default_request.clone());
        limits.extend(item.default.clone());
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
        fill(&mut pod, &range);
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
        fill(&mut other, &range);
        assert!(other.metadata.annotations.is_empty());
    }
}
