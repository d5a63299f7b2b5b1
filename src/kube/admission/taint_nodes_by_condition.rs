//! TaintNodesByCondition: no pods go to a new node before it has said that it is ready.

use keelson_api::core::v1::{Node, Taint};
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const NO_SCHEDULE: &str = "NoSchedule";

pub struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn name(&self) -> &'static str {
        "TaintNodesByCondition"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        Handles::MUTATES.when(scope.operation == Operation::Create && scope.is("", "nodes"))
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        if let Some(node) = attributes.typed_mut() {
            taint(node);
        }
        now(Ok(()))
    }
}

fn taint(node: &mut Node) {
    let taints = &mut node.spec.taints;
    if !taints.iter().any(|t| t.key == NOT_READY && t.effect == NO_SCHEDULE) {
        taints.push(Taint {
            key: NOT_READY.to_owned(),
            effect: NO_SCHEDULE.to_owned(),
            ..Taint::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read, text};

    #[test]
    fn a_new_node_takes_no_pods() {
        for (before, after) in [
            (
                "[]",
                r#"[{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"}]"#,
            ),
            (
                r#"[{"key":"node.kubernetes.io/not-ready","effect":"NoExecute"}]"#,
                concat!(
                    r#"[{"key":"node.kubernetes.io/not-ready","effect":"NoExecute"},"#,
                    r#"{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"}]"#
                ),
            ),
            (
                r#"[{"key":"node.kubernetes.io/not-ready","value":"x","effect":"NoSchedule"}]"#,
                r#"[{"key":"node.kubernetes.io/not-ready","value":"x","effect":"NoSchedule"}]"#,
            ),
        ] {
            let mut node: Node = read(&format!(r#"{{"spec":{{"taints":{before}}}}}"#));
            taint(&mut node);
            assert_eq!(text(&node.spec), format!(r#"{{"taints":{after}}}"#));
        }
    }
}
