//! ExtendedResourceToleration: a pod that asks for extended resources tolerates the taints of the nodes that have them.

use std::collections::{BTreeSet, HashMap};

use keelson_api::core::v1::{Pod, Toleration};
use keelson_machinery::equality;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;

use crate::core::resource_name::is_extended;

const EXISTS: &str = "Exists";
const NO_SCHEDULE: &str = "NoSchedule";

pub struct ExtendedResourceToleration;

impl Plugin for ExtendedResourceToleration {
    fn name(&self) -> &'static str {
        "ExtendedResourceToleration"
    }

    fn enabled_by_default(&self) -> bool {
        false
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let writes = matches!(scope.operation, Operation::Create | Operation::Update);
        Handles::MUTATES.when(writes && scope.is("", "pods"))
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        if let Some(pod) = attributes.typed_mut() {
            tolerate(pod);
        }
        now(Ok(()))
    }
}

fn tolerate(pod: &mut Pod) {
    let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let asked = containers.flat_map(|container| container.resources.requests.keys());
    let extended: BTreeSet<String> = asked.filter(|name| is_extended(name)).cloned().collect();
    let mut known: HashMap<String, Vec<usize>> = HashMap::new();
    for (place, one) in pod.spec.tolerations.iter().enumerate() {
        if (one.operator.as_str(), one.value.as_str(), one.effect.as_str()) == (EXISTS, "", NO_SCHEDULE) {
            known.entry(one.key.clone()).or_default().push(place);
        }
    }
    for key in extended {
        let places = known.remove(&key).unwrap_or_default();
        let toleration = Toleration {
            key,
            operator: EXISTS.to_owned(),
            effect: NO_SCHEDULE.to_owned(),
            ..Toleration::default()
        };
        put(&mut pod.spec.tolerations, &places, toleration);
    }
}

/// Takes the place of each that has the same key, operator, value and effect, in the order of their `places`, up to one
/// that is equal; or comes last.
fn put(tolerations: &mut Vec<Toleration>, places: &[usize], new: Toleration) {
    for place in places {
        match tolerations.get_mut(*place) {
            Some(one) if equality::equal(one, &new) => return,
            Some(one) => one.clone_from(&new),
            None => {}
        }
    }
    if places.is_empty() {
        tolerations.push(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read, text};

    #[test]
    fn each_extended_resource_is_tolerated_once() {
        let mut pod: Pod = read(
            r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"example.com/b":"1","cpu":"1"}}}],
                "initContainers":[{"name":"b","resources":{"requests":{"example.com/a":"1","kubernetes.io/x":"1"}}}],
                "tolerations":[{"key":"example.com/b","operator":"Exists","effect":"NoSchedule"}]}}"#,
        );
        for _ in 0..2 {
            tolerate(&mut pod);
            let found: Vec<String> = pod.spec.tolerations.iter().map(|t| text(t)).collect();
            assert_eq!(
                found,
                [
                    r#"{"key":"example.com/b","operator":"Exists","effect":"NoSchedule"}"#,
                    r#"{"key":"example.com/a","operator":"Exists","effect":"NoSchedule"}"#
                ]
            );
        }
    }
}
