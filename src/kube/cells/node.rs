//! Cells of nodes.

use std::collections::BTreeSet;

use keelson_api::core::v1::Node;

use super::NONE;

cells! { pub const NODE: Node =
    "node_container_runtime" => container_runtime,
    "node_external_ip" => external_ip,
    "node_internal_ip" => internal_ip,
    "node_kernel_version" => kernel_version,
    "node_os_image" => os_image,
    "node_roles" => roles,
    "node_status" => status,
    "node_version" => version,
}

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";
const UNKNOWN: &str = "<unknown>";

/// `Ready`, `NotReady` or `Unknown`, and whether new pods are kept away.
fn status(node: &Node) -> String {
    let ready = node.status.conditions.iter().rfind(|c| c.r#type == "Ready");
    let word = match ready.map(|c| c.status.as_str()) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    };
    let suffix = if node.spec.unschedulable {
        ",SchedulingDisabled"
    } else {
        ""
    };
    format!("{word}{suffix}")
}

/// The roles that labels give the node, sorted.
fn roles(node: &Node) -> String {
    let role = |(key, value): (&String, &String)| match key.strip_prefix(ROLE_PREFIX) {
        Some("") => None,
        Some(role) => Some(role.to_owned()),
        None => (key == ROLE_LABEL && !value.is_empty()).then(|| value.clone()),
    };
    let roles: BTreeSet<String> = node.metadata.labels.iter().filter_map(role).collect();
    match roles.len() {
        0 => NONE.to_owned(),
        _ => roles.into_iter().collect::<Vec<_>>().join(","),
    }
}

/// Version of the kubelet.
fn version(node: &Node) -> String {
    node.status.node_info.kubelet_version.clone()
}

/// The first internal address.
fn internal_ip(node: &Node) -> String {
    address(node, "InternalIP")
}

/// The first external address.
fn external_ip(node: &Node) -> String {
    address(node, "ExternalIP")
}

/// Name of the operating system's image.
fn os_image(node: &Node) -> String {
    or_unknown(&node.status.node_info.os_image)
}

/// Version of the kernel.
fn kernel_version(node: &Node) -> String {
    or_unknown(&node.status.node_info.kernel_version)
}

/// Name and version of what runs the containers.
fn container_runtime(node: &Node) -> String {
    or_unknown(&node.status.node_info.container_runtime_version)
}

fn address(node: &Node, ty: &str) -> String {
    let found = node.status.addresses.iter().find(|a| a.r#type == ty);
    found.map_or_else(|| NONE.to_owned(), |a| a.address.clone())
}

fn or_unknown(text: &str) -> String {
    if text.is_empty() {
        UNKNOWN.to_owned()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;

    use super::*;

    fn node(text: &str) -> Node {
        let mut node = Node::default();
        json::read(text.as_bytes(), &mut node).unwrap();
        node
    }

    #[test]
    fn the_status_is_a_word_or_two() {
        for (text, expected) in [
            ("{}", "Unknown"),
            (
                r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#,
                "Ready",
            ),
            (
                r#"{"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}"#,
                "NotReady",
            ),
            (
                r#"{"spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#,
                "Ready,SchedulingDisabled",
            ),
        ] {
            assert_eq!(status(&node(text)), expected, "{text}");
        }
    }

    #[test]
    fn roles_come_from_labels() {
        for (text, expected) in [
            ("{}", "<none>"),
            (
                r#"{"metadata":{"labels":{"node-role.kubernetes.io/":"x","kubernetes.io/role":""}}}"#,
                "<none>",
            ),
            (
                r#"{"metadata":{"labels":{"node-role.kubernetes.io/worker":"","kubernetes.io/role":"edge","node-role.kubernetes.io/control-plane":""}}}"#,
                "control-plane,edge,worker",
            ),
        ] {
            assert_eq!(roles(&node(text)), expected, "{text}");
        }
    }

    #[test]
    fn what_is_absent_shows_as_such() {
        let empty = Node::default();
        assert_eq!(internal_ip(&empty), "<none>");
        assert_eq!(os_image(&empty), "<unknown>");
        let node = node(r#"{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}}"#);
        assert_eq!(internal_ip(&node), "10.0.0.1");
        assert_eq!(external_ip(&node), "<none>");
    }
}
