//! Assigns a pod to a node.

use keelson_api::core::v1::{Binding, Pod, PodCondition};
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::object::{Kind, Object};
use keelson_machinery::status::StatusError;
use keelson_machinery::time::Time;
use keelson_registry::write::{Part, UpdateRequest, precondition_failed};
use keelson_registry::{Answer, Call, Handler, Reply};

use crate::typed::{body, typed_mut};

/// Both of `bindings` and of `pods/binding`.
pub struct Binder;

impl Handler for Binder {
    fn create<'a>(&'a self, call: &'a Call<'a>, object: Box<dyn Kind>) -> Answer<'a, Reply> {
        Box::pin(async move {
            let mut binding: Binding = *body(object)?;
            if call.subresource.is_none() {
                // As of every object that is created: through the collection its uid is no precondition.
                binding.metadata.uid.clear();
            } else if binding.metadata.name != call.name() {
                return Err(StatusError::bad_request(
                    "name in URL does not match name in Binding object",
                ));
            }
            let errors = validate(&binding);
            if !errors.is_empty() {
                return Err(StatusError::unknown(errors.to_string()));
            }
            bind(call, &binding).await?;
            Ok(Reply::success(201))
        })
    }
}

fn validate(binding: &Binding) -> ErrorList {
    let path = Path::new("target");
    let mut errors = ErrorList::default();
    let kind = binding.target.kind.as_str();
    if !matches!(kind, "" | "Node") {
        let path = path.child("kind");
        errors.push(FieldError::not_supported(&path, kind, &["Node", "<empty>"]));
    }
    if binding.target.name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    errors
}

async fn bind(call: &Call<'_>, binding: &Binding) -> Result<(), StatusError> {
    let pods = call.stored("", "pods")?;
    let name = binding.metadata.name.as_str();
    let target = call.nested(&pods, "binding", name, &call.context);
    let key = pods.key(&call.context.namespace, name)?;
    let key = pods.told_key(&call.context, &key);
    let mut updater = |current: Option<&dyn Object>| {
        let mut object = current.ok_or_else(|| pods.not_found(name))?.clone_object();
        let wanted = &binding.metadata;
        precondition_failed(key, "UID", &wanted.uid, &object.meta().uid)
            .or_else(|| {
                let found = &object.meta().resource_version;
                precondition_failed(key, "ResourceVersion", &wanted.resource_version, found)
            })
            .map_or(Ok(()), |text| Err(StatusError::conflict("", "pods", name, text)))?;
        if let Some(pod) = typed_mut::<Pod>(&mut *object) {
            assign(pod, binding, call.context.now)
                .map_err(|text| StatusError::conflict("", "pods/binding", name, text))?;
        }
        Ok(object)
    };
    let request = UpdateRequest::of(Part::Internal);
    call.verbs.update(&target, &request, &mut updater).await.map(drop)
}

/// Writes down the node; the error is the text of the conflict, which says why this pod can't have one.
fn assign(pod: &mut Pod, binding: &Binding, now: Time) -> Result<(), String> {
    let name = &pod.metadata.name;
    if pod.metadata.deletion_timestamp.is_some() {
        return Err(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if !pod.spec.node_name.is_empty() {
        let node = &pod.spec.node_name;
        return Err(format!("pod {name} is already assigned to node {node:?}"));
    }
    if !pod.spec.scheduling_gates.is_empty() {
        return Err(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    pod.spec.node_name.clone_from(&binding.target.name);
    let (annotations, labels) = (&binding.metadata.annotations, &binding.metadata.labels);
    pod.metadata.annotations.extend(annotations.clone());
    pod.metadata.labels.extend(labels.clone());
    let scheduled = PodCondition {
        r#type: "PodScheduled".to_owned(),
        status: "True".to_owned(),
        ..PodCondition::default()
    };
    set_condition(&mut pod.status.conditions, scheduled, now);
    Ok(())
}

/// Replaces the condition of this type, or adds it. The time of its last transition stays while its status does.
pub(super) fn set_condition(conditions: &mut Vec<PodCondition>, mut condition: PodCondition, now: Time) {
    condition.last_transition_time = now.truncate_to_seconds();
    match conditions.iter_mut().find(|c| c.r#type == condition.r#type) {
        Some(old) => {
            if old.status == condition.status {
                condition.last_transition_time = old.last_transition_time;
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    const NOW: i64 = 1_700_000_000;

    #[test]
    fn a_bound_pod_has_node_condition_and_metadata() {
        let mut pod: Pod = read(r#"{"metadata":{"name":"p","labels":{"a":"b"}}}"#);
        let binding: Binding = read(r#"{"metadata":{"name":"p","labels":{"a":"c"}},"target":{"name":"n"}}"#);
        assign(&mut pod, &binding, Time::from_unix(NOW, 5)).unwrap();
        assert_eq!(pod.spec.node_name, "n");
        assert_eq!(pod.metadata.labels["a"], "c");
        let condition = &pod.status.conditions[0];
        assert_eq!(
            (condition.r#type.as_str(), condition.status.as_str()),
            ("PodScheduled", "True")
        );
        assert_eq!(condition.last_transition_time.unix_seconds(), NOW);
        assert_eq!(
            assign(&mut pod, &binding, Time::from_unix(NOW, 0)).unwrap_err(),
            "pod p is already assigned to node \"n\""
        );
    }

    #[test]
    fn gates_and_deletion_keep_a_pod_from_its_node() {
        let binding: Binding = read(r#"{"target":{"name":"n"}}"#);
        for (text, why) in [
            (
                r#"{"metadata":{"name":"p"},"spec":{"schedulingGates":[{"name":"g"}]}}"#,
                "pod p has non-empty .spec.schedulingGates",
            ),
            (
                r#"{"metadata":{"name":"p","deletionTimestamp":"2024-01-01T00:00:00Z"}}"#,
                "pod p is being deleted, cannot be assigned to a host",
            ),
        ] {
            let mut pod: Pod = read(text);
            assert_eq!(assign(&mut pod, &binding, Time::from_unix(NOW, 0)).unwrap_err(), why);
        }
    }

    #[test]
    fn targets_are_nodes() {
        let binding: Binding = read(r#"{"target":{"kind":"Pod"}}"#);
        assert_eq!(
            validate(&binding).to_string(),
            "[target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\", target.name: Required value]"
        );
    }
}
