//! Services of the cluster, as the server finds them in its own objects: calls go to their cluster IPs.

use std::sync::{Arc, Weak};

use keelson_machinery::json;
use keelson_net::client::{Located, ServiceError, ServicePort, Services};
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

    async fn find(&self, service: &ServicePort) -> Result<(String, u16), ServiceError> {
        let registry = self.registry.upgrade();
        let registry = registry.ok_or(ServiceError::Unknown("the server has ended"))?;
        let services = registry.resource("", "services");
        let services = services.ok_or(ServiceError::Unknown("the server has no services"))?;
        let found = services.find(&service.namespace, &service.name).await;
        let found = found.map_err(|error| ServiceError::Unread(error.to_string()))?;
        let found = found.ok_or_else(|| ServiceError::NotFound(service.name.clone()))?;
        let mut text = Vec::new();
        json::write(found.object.as_reflect(), &mut text);
        let found: Service = serde_json::from_slice(&text).map_err(|error| ServiceError::Unread(error.to_string()))?;
        found.spec.address(service)
    }
}

impl Services for ClusterServices {
    fn locate<'a>(&'a self, service: &'a ServicePort) -> Located<'a> {
        Box::pin(self.find(service))
    }
}

impl Spec {
    fn address(self, wanted: &ServicePort) -> Result<(String, u16), ServiceError> {
        let (name, port) = (&wanted.name, wanted.port);
        match self.r#type.as_str() {
            "ClusterIP" if self.cluster_ip == "None" => Err(ServiceError::Headless),
            "ClusterIP" | "NodePort" | "LoadBalancer" => match self.ports.iter().any(|known| known.port == port) {
                true => Ok((self.cluster_ip, port)),
                false => Err(ServiceError::NoPort {
                    name: name.clone(),
                    port,
                }),
            },
            "ExternalName" => Ok((self.external_name, port)),
            other => Err(ServiceError::Type(other.to_owned())),
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
            let found = found.spec.address(&wanted).map_err(|error| error.to_string());
            let want = want.map(|host| (host.to_owned(), 443)).map_err(str::to_owned);
            assert_eq!(found, want, "{spec}");
        }
    }
}
