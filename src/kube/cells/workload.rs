//! Cells of the kinds that run pods from a template.

use keelson_api::apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet};
use keelson_api::core::v1::{Container, PodTemplate, PodTemplateSpec, ReplicationController};
use keelson_machinery::meta::v1::{self, ObjectMeta, OwnerReference};
use keelson_machinery::selector::label::LabelSelector;

use super::{NONE, pairs};

cells! { pub const CONTROLLER_REVISION: ControllerRevision =
    "controller_revision_controller" => controller_revision_controller,
    "controller_revision_revision" => controller_revision_revision,
}
cells! { pub const DAEMON_SET: DaemonSet =
    "containers" => |o| containers(&o.spec.template),
    "images" => |o| images(&o.spec.template),
    "daemon_set_available" => daemon_set_available,
    "daemon_set_current" => daemon_set_current,
    "daemon_set_desired" => daemon_set_desired,
    "daemon_set_node_selector" => daemon_set_node_selector,
    "daemon_set_ready" => daemon_set_ready,
    "daemon_set_selector" => daemon_set_selector,
    "daemon_set_up_to_date" => daemon_set_up_to_date,
}
cells! { pub const DEPLOYMENT: Deployment =
    "containers" => |o| containers(&o.spec.template),
    "images" => |o| images(&o.spec.template),
    "deployment_available" => deployment_available,
    "deployment_ready" => deployment_ready,
    "deployment_selector" => deployment_selector,
    "deployment_up_to_date" => deployment_up_to_date,
}
cells! { pub const REPLICA_SET: ReplicaSet =
    "containers" => |o| containers(&o.spec.template),
    "images" => |o| images(&o.spec.template),
    "replica_set_current" => replica_set_current,
    "replica_set_desired" => replica_set_desired,
    "replica_set_ready" => replica_set_ready,
    "replica_set_selector" => replica_set_selector,
}
cells! { pub const STATEFUL_SET: StatefulSet =
    "containers" => |o| containers(&o.spec.template),
    "images" => |o| images(&o.spec.template),
    "stateful_set_ready" => stateful_set_ready,
}
cells! { pub const REPLICATION_CONTROLLER: ReplicationController =
    "containers" => |o| o.spec.template.as_deref().map_or_else(String::new, containers),
    "images" => |o| o.spec.template.as_deref().map_or_else(String::new, images),
    "replication_controller_current" => |o| o.status.replicas,
    "replication_controller_desired" => |o| o.spec.replicas.unwrap_or(0),
    "replication_controller_ready" => |o| o.status.ready_replicas,
    "replication_controller_selector" => |o| pairs(&o.spec.selector),
}
cells! { pub const POD_TEMPLATE: PodTemplate =
    "containers" => |o| containers(&o.template),
    "images" => |o| images(&o.template),
    "pod_template_pod_labels" => |o| pairs(&o.template.metadata.labels),
}

/// Names of the containers.
pub fn containers(template: &PodTemplateSpec) -> String {
    of_containers(template, |c| &c.name)
}

/// Images of the containers.
pub fn images(template: &PodTemplateSpec) -> String {
    of_containers(template, |c| &c.image)
}

fn of_containers(template: &PodTemplateSpec, text: fn(&Container) -> &str) -> String {
    template.spec.containers.iter().map(text).collect::<Vec<_>>().join(",")
}

/// Ready replicas of those wanted.
fn deployment_ready(o: &Deployment) -> String {
    format!("{}/{}", o.status.ready_replicas, o.spec.replicas.unwrap_or(0))
}

/// Replicas of the newest template.
fn deployment_up_to_date(o: &Deployment) -> i64 {
    o.status.updated_replicas.into()
}

/// Replicas that have been ready for long enough.
fn deployment_available(o: &Deployment) -> i64 {
    o.status.available_replicas.into()
}

/// The selector; a broken one shows as such.
fn deployment_selector(o: &Deployment) -> String {
    LabelSelector::from_message(o.spec.selector.as_deref())
        .map_or_else(|_| "<invalid>".to_owned(), |selector| selector.to_string())
}

/// Replicas wanted.
fn replica_set_desired(o: &ReplicaSet) -> i64 {
    o.spec.replicas.unwrap_or(0).into()
}

/// Replicas there are.
fn replica_set_current(o: &ReplicaSet) -> i64 {
    o.status.replicas.into()
}

/// Replicas that are ready.
fn replica_set_ready(o: &ReplicaSet) -> i64 {
    o.status.ready_replicas.into()
}

/// The selector in text form.
fn replica_set_selector(o: &ReplicaSet) -> String {
    selector(o.spec.selector.as_deref())
}

/// Ready replicas of those wanted.
fn stateful_set_ready(o: &StatefulSet) -> String {
    format!("{}/{}", o.status.ready_replicas, o.spec.replicas.unwrap_or(0))
}

/// Nodes that should run a pod.
fn daemon_set_desired(o: &DaemonSet) -> i64 {
    o.status.desired_number_scheduled.into()
}

/// Nodes that run a pod.
fn daemon_set_current(o: &DaemonSet) -> i64 {
    o.status.current_number_scheduled.into()
}

/// Nodes whose pod is ready.
fn daemon_set_ready(o: &DaemonSet) -> i64 {
    o.status.number_ready.into()
}

/// Nodes whose pod is of the newest template.
fn daemon_set_up_to_date(o: &DaemonSet) -> i64 {
    o.status.updated_number_scheduled.into()
}

/// Nodes whose pod has been ready for long enough.
fn daemon_set_available(o: &DaemonSet) -> i64 {
    o.status.number_available.into()
}

/// Labels of the nodes that pods run on.
fn daemon_set_node_selector(o: &DaemonSet) -> String {
    pairs(&o.spec.template.spec.node_selector)
}

/// The selector in text form.
fn daemon_set_selector(o: &DaemonSet) -> String {
    selector(o.spec.selector.as_deref())
}

/// The controller that keeps this revision, `deployment.apps/web`.
fn controller_revision_controller(o: &ControllerRevision) -> String {
    controller(&o.metadata).map_or_else(|| NONE.to_owned(), resource_name)
}

/// Number of the revision.
fn controller_revision_revision(o: &ControllerRevision) -> i64 {
    o.revision
}

fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().find(|o| o.controller == Some(true))
}

/// Kind and group in lower case, then the name.
fn resource_name(owner: &OwnerReference) -> String {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let dot = if group.is_empty() { "" } else { "." };
    match owner.kind.as_str() {
        "" => owner.name.clone(),
        kind => format!("{}/{}", format!("{kind}{dot}{group}").to_lowercase(), owner.name),
    }
}

fn selector(message: Option<&v1::LabelSelector>) -> String {
    match LabelSelector::from_message(message).map(|s| s.to_string()) {
        Err(_) => "<error>".to_owned(),
        Ok(text) if text.is_empty() => NONE.to_owned(),
        Ok(text) => text,
    }
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;

    use super::*;

    #[test]
    fn containers_and_images_are_those_of_the_template() {
        let mut o = Deployment::default();
        let text = br#"{"spec":{"replicas":3,"selector":{"matchLabels":{"b":"1","a":"2"},"matchExpressions":[
            {"key":"c","operator":"In","values":["y","x"]}]},"template":{"spec":{"containers":[
            {"name":"a","image":"x:1"},{"name":"b","image":"y"}]}}},"status":{"readyReplicas":2}}"#;
        json::read(text, &mut o).unwrap();
        assert_eq!(containers(&o.spec.template), "a,b");
        assert_eq!(images(&o.spec.template), "x:1,y");
        assert_eq!(deployment_ready(&o), "2/3");
        assert_eq!(deployment_selector(&o), "a=2,b=1,c in (x,y)");
        if let Some(selector) = &mut o.spec.selector {
            selector.match_expressions[0].operator = "Or".to_owned();
        }
        assert_eq!(deployment_selector(&o), "<invalid>");
        assert_eq!(selector(o.spec.selector.as_deref()), "<error>");
        assert_eq!(selector(None), "<none>");
    }

    #[test]
    fn the_controller_is_the_owner_that_says_so() {
        for (owners, expected) in [
            ("[]", "<none>"),
            (r#"[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"a"}]"#, "<none>"),
            (
                r#"[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"a","controller":true}]"#,
                "daemonset.apps/a",
            ),
            (
                r#"[{"apiVersion":"v1","kind":"Pod","name":"a","controller":true}]"#,
                "pod/a",
            ),
        ] {
            let mut o = ControllerRevision::default();
            json::read(
                format!(r#"{{"metadata":{{"ownerReferences":{owners}}}}}"#).as_bytes(),
                &mut o,
            )
            .unwrap();
            assert_eq!(controller_revision_controller(&o), expected);
        }
    }
}
