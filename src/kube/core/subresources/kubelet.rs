//! Kubelet locations of pods, and the containers that are meant.

use std::net::IpAddr;

use keelson_api::core::v1::{Node, Pod};
use keelson_machinery::status::StatusError;
use keelson_registry::Call;

use crate::typed::typed;

/// Types of addresses in the order in which they are tried.
const PREFERRED: [&str; 5] = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
const DEFAULT_PORT: u16 = 10250;

/// Address of a kubelet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kubelet {
    pub host: String,
    pub port: u16,
}

impl Kubelet {
    /// `host:port`, IPv6 addresses in brackets.
    pub fn authority(&self) -> String {
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(ip)) => format!("[{ip}]:{}", self.port),
            _ => format!("{}:{}", self.host, self.port),
        }
    }
}

/// The pod that the path names.
pub async fn pod(call: &Call<'_>) -> Result<Pod, StatusError> {
    let pods = call.stored("", "pods")?;
    let stored = pods.get(&call.context.namespace, call.name()).await?;
    typed::<Pod>(&*stored.object)
        .cloned()
        .ok_or_else(|| StatusError::not_found("", "pods", call.name()))
}

/// The container that is meant: the one named, or the only one of the pod's proper containers.
pub fn container(pod: &Pod, named: &str) -> Result<String, StatusError> {
    let spec = &pod.spec;
    let all: Vec<&str> = (spec.init_containers.iter().map(|c| c.name.as_str()))
        .chain(spec.containers.iter().map(|c| c.name.as_str()))
        .chain(
            spec.ephemeral_containers
                .iter()
                .map(|c| c.ephemeral_container_common.name.as_str()),
        )
        .collect();
    let name = &pod.metadata.name;
    if !named.is_empty() {
        return match all.contains(&named) {
            true => Ok(named.to_owned()),
            false => Err(StatusError::bad_request(format!(
                "container {named} is not valid for pod {name}"
            ))),
        };
    }
    match spec.containers.as_slice() {
        [] => Err(StatusError::bad_request(format!(
            "a container name must be specified for pod {name}"
        ))),
        [only] => Ok(only.name.clone()),
        _ => Err(StatusError::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            all.join(" ")
        ))),
    }
}

/// What a client gets where the other side is there: the conversation with it is not built yet.
pub fn unspoken(what: &str) -> StatusError {
    StatusError::new(501, "", format!("this server does not speak with {what} yet"))
}

/// The kubelet of a pod that is on a node.
pub async fn of_pod(call: &Call<'_>, pod: &Pod) -> Result<Kubelet, StatusError> {
    let name = pod.spec.node_name.as_str();
    // A node that is gone is reported as if it were a pod; clients know it so.
    let stored = call.stored("", "nodes")?.find("", name).await?;
    let node = stored.as_ref().and_then(|s| typed::<Node>(&*s.object));
    of_node(node.ok_or_else(|| StatusError::not_found("", "pods", name))?)
}

/// The kubelet of a node.
pub fn of_node(node: &Node) -> Result<Kubelet, StatusError> {
    let addresses = &node.status.addresses;
    let by_type = |wanted: &&str| addresses.iter().find(|a| a.r#type == **wanted);
    let Some(address) = PREFERRED.iter().find_map(by_type) else {
        let known: Vec<String> = addresses
            .iter()
            .map(|a| format!("{{{} {}}}", a.r#type, a.address))
            .collect();
        return Err(StatusError::unknown(format!(
            "no preferred addresses found; known addresses: [{}]",
            known.join(" ")
        )));
    };
    let port = u16::try_from(node.status.daemon_endpoints.kubelet_endpoint.port).unwrap_or(0);
    Ok(Kubelet {
        host: address.address.clone(),
        port: if port == 0 { DEFAULT_PORT } else { port },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn the_only_container_need_not_be_named() {
        let one: Pod =
            read(r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"a"}],"initContainers":[{"name":"i"}]}}"#);
        assert_eq!(container(&one, "").unwrap(), "a");
        assert_eq!(container(&one, "i").unwrap(), "i");
        assert_eq!(
            container(&one, "x").unwrap_err().message,
            "container x is not valid for pod p"
        );
        let two: Pod = read(
            r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"a"},{"name":"b"}],
            "initContainers":[{"name":"i"}],"ephemeralContainers":[{"name":"e"}]}}"#,
        );
        assert_eq!(
            container(&two, "").unwrap_err().message,
            "a container name must be specified for pod p, choose one of: [i a b e]"
        );
    }

    #[test]
    fn addresses_are_tried_by_their_type() {
        let node: Node = read(
            r#"{"status":{"addresses":[{"type":"ExternalIP","address":"1.1.1.1"},{"type":"InternalIP","address":"::1"}]}}"#,
        );
        let kubelet = of_node(&node).unwrap();
        assert_eq!(kubelet.authority(), "[::1]:10250");
        let node: Node = read(r#"{"status":{"addresses":[{"type":"Foo","address":"1.2.3.4"}]}}"#);
        assert_eq!(
            of_node(&node).unwrap_err().message,
            "no preferred addresses found; known addresses: [{Foo 1.2.3.4}]"
        );
    }
}
