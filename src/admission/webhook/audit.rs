//! Audit annotations of webhooks.

use bytes::Bytes;
use keelson_machinery::validation::labels::qualified_name;
use keelson_registry::admission::Attributes;
use serde_json::json;
use serde_json::value::RawValue;

use super::hook::Hook;

const MUTATION: &str = "mutation.webhook.admission.k8s.io/";
const PATCH: &str = "patch.webhook.admission.k8s.io/";
const VALIDATING: &str = "validating.webhook.admission.k8s.io/";

/// The place of a call: the round, and the number of the webhook in it.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub round: u8,
    pub index: usize,
}

impl Turn {
    fn key(self, prefix: &str) -> String {
        format!("{prefix}round_{}_index_{}", self.round, self.index)
    }
}

/// Notes what a webhook wants noted. A name that is none is left out.
pub(super) fn said(attributes: &Attributes<'_>, hook: &Hook, name: &str, value: &str) {
    let key = format!("{}/{name}", hook.name);
    if qualified_name(&key).is_empty() {
        attributes.annotate(key, || value.to_owned());
    }
}

/// Notes that a webhook was called, and whether it changed the object.
pub(super) fn mutation(attributes: &Attributes<'_>, hook: &Hook, turn: Turn, mutated: bool) {
    attributes.annotate(turn.key(MUTATION), || {
        let (configuration, webhook) = (json!(hook.configuration), json!(hook.name));
        format!("{{\"configuration\":{configuration},\"webhook\":{webhook},\"mutated\":{mutated}}}")
    });
}

/// Notes the patch of a webhook, where objects that are sent are recorded too.
pub(super) fn patch(attributes: &Attributes<'_>, hook: &Hook, turn: Turn, patch: &Bytes) {
    attributes.annotate_request(turn.key(PATCH), || {
        let (configuration, webhook) = (json!(hook.configuration), json!(hook.name));
        let patch = sorted(patch);
        format!(
            "{{\"configuration\":{configuration},\"webhook\":{webhook},\"patch\":{patch},\"patchType\":\"JSONPatch\"}}"
        )
    });
}

/// The operations, each with its members in the order of their names.
fn sorted(patch: &[u8]) -> String {
    type Operation<'a> = std::collections::BTreeMap<String, &'a RawValue>;
    let operations: Vec<Operation<'_>> = serde_json::from_slice(patch).unwrap_or_default();
    serde_json::to_string(&operations).unwrap_or_default()
}

/// Notes that the call of a webhook that mutates failed, and the request went on.
pub(super) fn mutating_failed_open(attributes: &Attributes<'_>, hook: &Hook, turn: Turn) {
    attributes.annotate(format!("failed-open.{}", turn.key(MUTATION)), || hook.name.clone());
}

/// The same of one that validates.
pub(super) fn validating_failed_open(attributes: &Attributes<'_>, hook: &Hook, turn: Turn) {
    attributes.annotate(format!("failed-open.{}", turn.key(VALIDATING)), || hook.name.clone());
}
