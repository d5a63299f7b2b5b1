//! Proxies to pods, services and nodes.

use std::net::IpAddr;

use keelson_api::core::v1::{Endpoints, Node, Pod, Service};
use keelson_machinery::status::StatusError;
use keelson_registry::{Answer, Call, Handler, Reply};

use super::kubelet::{self, unspoken};
use crate::typed::typed;

pub struct OfPod;
pub struct OfService;
pub struct OfNode;

impl Handler for OfPod {
    fn connect<'a>(&'a self, call: &'a Call<'a>) -> Answer<'a, Reply> {
        Box::pin(async move {
            let name = target(call, "pod")?.name;
            let stored = call.stored("", "pods")?.get(&call.context.namespace, name).await?;
            let ip = typed::<Pod>(&*stored.object).map_or("", |p| p.status.pod_ip.as_str());
            check_address(ip)?;
            Err(unspoken("pods"))
        })
    }
}

impl Handler for OfService {
    fn connect<'a>(&'a self, call: &'a Call<'a>) -> Answer<'a, Reply> {
        Box::pin(async move {
            let target = target(call, "service")?;
            let address = endpoint(call, &target).await?;
            check_address(&address)?;
            Err(unspoken("services"))
        })
    }
}

impl Handler for OfNode {
    fn connect<'a>(&'a self, call: &'a Call<'a>) -> Answer<'a, Reply> {
        Box::pin(async move {
            let name = target(call, "node")?.name;
            let nodes = call.stored("", "nodes")?;
            let stored = nodes.get("", name).await?;
            let node = typed::<Node>(&*stored.object).ok_or_else(|| StatusError::not_found("", "nodes", name))?;
            check_address(&kubelet::of_node(node)?.host)?;
            Err(unspoken("nodes"))
        })
    }
}

/// What the name in the path says: `name`, `name:port` or `scheme:name:port`.
#[derive(PartialEq, Eq, Debug)]
struct Target<'a> {
    name: &'a str,
    port: &'a str,
}

fn target<'a>(call: &'a Call<'_>, kind: &str) -> Result<Target<'a>, StatusError> {
    let name = call.name();
    split(name).ok_or_else(|| StatusError::bad_request(format!("invalid {kind} request {name:?}")))
}

fn split(text: &str) -> Option<Target<'_>> {
    let parts: Vec<&str> = text.split(':').collect();
    let (scheme, name, port) = match parts.as_slice() {
        [name] => ("", *name, ""),
        [name, port] => ("", *name, *port),
        [scheme, name, port] => (*scheme, *name, *port),
        _ => return None,
    };
    (matches!(scheme, "" | "http" | "https") && !name.is_empty()).then_some(Target { name, port })
}

/// The address of an endpoint of the service that has the port asked for.
async fn endpoint(call: &Call<'_>, target: &Target<'_>) -> Result<String, StatusError> {
    let namespace = &call.context.namespace;
    let name = target.name;
    let stored = call.stored("", "services")?.get(namespace, name).await?;
    let service = typed::<Service>(&*stored.object).ok_or_else(|| StatusError::not_found("", "services", name))?;
    let port = port_name(service, target)?;
    let endpoints = call.stored("", "endpoints")?.find(namespace, name).await?;
    let endpoints = endpoints.as_ref().and_then(|s| typed::<Endpoints>(&*s.object));
    let endpoints = endpoints.ok_or_else(|| StatusError::not_found("", "services", name))?;
    let fitting = endpoints
        .subsets
        .iter()
        .find(|s| !s.addresses.is_empty() && s.ports.iter().any(|p| p.name == port));
    let address = fitting.and_then(|s| s.addresses.first());
    address.map(|a| a.ip.clone()).ok_or_else(|| {
        let asked = call.name();
        StatusError::service_unavailable(format!("no endpoints available for service {asked:?}"))
    })
}

/// The name of the service's port that is asked for; numbers must be those of one.
fn port_name<'a>(service: &'a Service, target: &'a Target<'_>) -> Result<&'a str, StatusError> {
    let Ok(number) = target.port.parse::<i32>() else {
        return Ok(target.port);
    };
    let mut ports = service.spec.ports.iter();
    ports
        .find(|p| p.port == number)
        .map(|p| p.name.as_str())
        .ok_or_else(|| {
            let name = &service.metadata.name;
            StatusError::service_unavailable(format!("no service port {number} found for service {name:?}"))
        })
}

/// Addresses that lead to the server itself or to everybody are none to connect to.
fn check_address(text: &str) -> Result<(), StatusError> {
    let refused = || StatusError::bad_request("address not allowed");
    let allowed = match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => {
            let everybody = ip.is_multicast() || ip.is_broadcast();
            !(ip.is_unspecified() || ip.is_loopback() || ip.is_link_local() || everybody)
        }
        Ok(IpAddr::V6(ip)) => {
            !(ip.is_unspecified() || ip.is_loopback() || ip.is_unicast_link_local() || ip.is_multicast())
        }
        Err(_) => !text.is_empty(),
    };
    if allowed { Ok(()) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_scheme_and_port() {
        for (text, want) in [
            ("a", Some(("a", ""))),
            ("a:80", Some(("a", "80"))),
            (":a:", Some(("a", ""))),
            ("https:a:web", Some(("a", "web"))),
            ("ftp:a:1", None),
            ("a:b:c:d", None),
        ] {
            let got = split(text);
            assert_eq!(got.map(|t| (t.name, t.port)), want, "{text}");
        }
    }

    #[test]
    fn addresses_of_the_server_itself_are_refused() {
        for bad in ["", "127.0.0.1", "::1", "169.254.1.1", "fe80::1", "224.0.0.1", "0.0.0.0"] {
            assert_eq!(check_address(bad).unwrap_err().message, "address not allowed", "{bad}");
        }
        assert!(check_address("10.1.2.3").is_ok());
    }
}
