//! Services of the cluster, as the server finds them in its own objects: calls go to their cluster IPs, those of the
//! service that stands for this server to itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
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
        if let Some(own) = registry.own_address().filter(|_| is_own(service)) {
            return Ok((reachable(own.ip()).to_string(), own.port()));
        }
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

/// Whether the service stands for this server.
fn is_own(service: &ServicePort) -> bool {
    service.namespace == "default" && service.name == "kubernetes" && service.port == 443
}

/// Where a listener on this address is reached from its own machine.
fn reachable(listening: IpAddr) -> IpAddr {
    match listening {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
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
    fn the_service_of_the_server_is_the_server() {
        for (namespace, name, port, own) in [
            ("default", "kubernetes", 443, true),
            ("default", "kubernetes", 6443, false),
            ("other", "kubernetes", 443, false),
            ("default", "other", 443, false),
        ] {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            let service = ServicePort { namespace, name, port };
            assert_eq!(is_own(&service), own, "{service:?}");
        }
        for (listening, reached) in [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("192.0.2.1", "192.0.2.1")] {
            assert_eq!(reachable(listening.parse().unwrap()).to_string(), reached);
        }
    }

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
