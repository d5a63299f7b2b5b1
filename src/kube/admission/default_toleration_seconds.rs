//! DefaultTolerationSeconds: a pod stays for a while on a node that is not ready or out of reach.

use keelson_api::core::v1::{Pod, Toleration};
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;

const NO_EXECUTE: &str = "NoExecute";
const KEYS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const SECONDS: i64 = 300;

pub struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
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
    for key in KEYS {
        let tolerations = &mut pod.spec.tolerations;
        let tolerates =
            |t: &Toleration| (t.key == key || t.key.is_empty()) && (t.effect == NO_EXECUTE || t.effect.is_empty());
        if !tolerations.iter().any(tolerates) {
            tolerations.push(Toleration {
                key: key.to_owned(),
                operator: "Exists".to_owned(),
                effect: NO_EXECUTE.to_owned(),
                toleration_seconds: Some(SECONDS),
                ..Toleration::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn a_pod_without_a_word_on_it_stays_for_five_minutes() {
        for (given, keys) in [
            ("[]", &KEYS[..]),
            (r#"[{"operator":"Exists"}]"#, &[""]),
            (r#"[{"key":"a","operator":"Exists"}]"#, &["a", KEYS[0], KEYS[1]]),
            (
                r#"[{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"}]"#,
                &[KEYS[0], KEYS[0], KEYS[1]],
            ),
            (
                r#"[{"key":"node.kubernetes.io/unreachable","effect":"NoExecute"}]"#,
                &[KEYS[1], KEYS[0]],
            ),
        ] {
            let mut pod: Pod = read(&format!(r#"{{"spec":{{"tolerations":{given}}}}}"#));
            tolerate(&mut pod);
            let found: Vec<&str> = pod.spec.tolerations.iter().map(|t| t.key.as_str()).collect();
            assert_eq!(found, keys, "{given}");
        }
    }
}
