//! Services of the cluster, as the server finds them in its own objects: calls go to their cluster IPs.

use std::sync::{Arc, Weak};

use keelson_machinery::json;
use keelson_net::client::{Located, ServicePort, Services};
use keelson_registry::Registry;
use serde::Deserialize;

/// The services that a server holds.
pub struct ClusterServices {
    /// Whoever calls services may be part of it.
    registry: Weak<Registry>,
}

/// What is looked at of one.
#[derive(Deserialize)]
struct Service {
    spec: Spec,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    r#type: String,
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    external_name: String,
    ports: Vec<Port>,
}

#[derive(Deserialize)]
struct Port {
    port: u16,
}

impl ClusterServices {
    /// Those of a registry.
    pub fn new(registry: &Arc<Registry>) -> ClusterServices {
        ClusterServices {
            registry: Arc::downgrade(registry),
        }
    }

    async fn find(&self, service: &ServicePort) -> Result<(String, u16), String> {
        let registry = self.registry.upgrade().ok_or("the server has ended")?;
        let services = registry.resource("", "services").ok_or("the server has no services")?;
        let found = services.find(&service.namespace, &service.name).await;
        let found = found.map_err(|error| error.to_string())?;
        let found = found.ok_or_else(|| format!("service {:?} not found", service.name))?;
        let mut text = Vec::new();
        json::write(found.object.as_reflect(), &mut text);
        let found: Service = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        found.spec.address(service)
    }
}

impl Services for ClusterServices {
    fn locate<'a>(&'a self, service: &'a ServicePort) -> Located<'a> {
        Box::pin(self.find(service))
    }
}

impl Spec {
    fn address(self, wanted: &ServicePort) -> Result<(String, u16), String> {
        let (name, port) = (&wanted.name, wanted.port);
        match self.r#type.as_str() {
            "ClusterIP" if self.cluster_ip == "None" => {
                Err("cannot route to service with ClusterIP \"None\"".to_owned())
            }
            "ClusterIP" | "NodePort" | "LoadBalancer" => match self.ports.iter().any(|known| known.port == port) {
                true => Ok((self.cluster_ip, port)),
                false => Err(format!("no service port {port} found for service {name:?}")),
            },
            "ExternalName" => Ok((self.external_name, port)),
            other => Err(format!("unsupported service type {other:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn services_are_called_at_their_cluster_ip() {
        let wanted = ServicePort {
            namespace: "a".to_owned(),
            name: "s".to_owned(),
            port: 443,
        };
        for (spec, want) in [
            (
                json!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": [{"port": 80}, {"port": 443}]}),
                Ok("10.0.0.1"),
            ),
            (
                json!({"type": "NodePort", "clusterIP": "10.0.0.1", "ports": [{"port": 80}]}),
                Err("no service port 443 found for service \"s\""),
            ),
            (
                json!({"type": "ClusterIP", "clusterIP": "None", "ports": [{"port": 443}]}),
                Err("cannot route to service with ClusterIP \"None\""),
            ),
            (
                json!({"type": "ExternalName", "externalName": "example.com"}),
                Ok("example.com"),
            ),
            (json!({"type": "Other"}), Err("unsupported service type \"Other\"")),
        ] {
            let found: Service = serde_json::from_value(json!({"spec": spec})).unwrap();
            let found = found.spec.address(&wanted);
            let want = want.map(|host| (host.to_owned(), 443)).map_err(str::to_owned);
            assert_eq!(found, want, "{spec}");
        }
    }
}
