//! TaintNodesByCondition: no pods go to a new node before it has said that it is ready.

use keelson_machinery::object::Object;
use keelson_server::registry::Mutation;

use crate::api::core::v1::{Node, Taint};
use crate::kube::typed::typed_mut;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const NO_SCHEDULE: &str = "NoSchedule";

pub const PLUGIN: Mutation = Mutation {
    updates: false,
    mutate: admit,
};

fn admit(object: &mut dyn Object) {
    let Some(node) = typed_mut::<Node>(object) else { return };
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
    use crate::kube::testing::{read, text};

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
            admit(&mut node);
            assert_eq!(text(&node.spec), format!(r#"{{"taints":{after}}}"#));
        }
    }
}
