//! The service by which pods find this server, and where it leads.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use keelson_api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Service, ServicePort, ServiceSpec,
};
use keelson_api::discovery_k8s_io::v1::{self as discovery, EndpointSlice};
use keelson_machinery::intstr::IntOrString;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::Object;
use keelson_server::server::HookContext;
use tokio::sync::oneshot;

use super::maker::{Maker, Wanted, leave};
use super::{MANAGER, Setting};
use crate::typed::typed;

const NAME: &str = "kubernetes";
const NAMESPACE: &str = "default";
/// Of the service, whatever port the server listens on.
const PORT: i32 = 443;
const PORT_NAME: &str = "https";
/// How often it is looked whether the service is there.
const PERIOD: Duration = Duration::from_secs(10);

/// Makes the service when the range of its address is there, and goes on looking after it.
pub(super) async fn run(
    context: HookContext,
    setting: Rc<Setting>,
    range_made: oneshot::Receiver<()>,
) -> Result<(), String> {
    let address: SocketAddr = context
        .advertise
        .parse()
        .map_err(|_| format!("{} is no address that a service can lead to", context.advertise))?;
    let mut wanted = Vec::new();
    if address.ip().is_loopback() {
        tracing::warn!(%address, "No other machine can reach this address: the service of this server leads nowhere");
    } else {
        wanted.push(make("", "endpoints", Box::new(endpoints(address)), to_endpoints));
        wanted.push(make(
            "discovery.k8s.io",
            "endpointslices",
            Box::new(slice(address)),
            to_slice,
        ));
    }
    let maker = Maker {
        context: &context,
        manager: MANAGER,
    };
    maker.make_all(&wanted).await?;
    // Where it could not be made, that hook says so.
    let _ = range_made.await;
    if let Some((_, first)) = setting.service_ranges.first() {
        let service = service(after(*first), address, setting.kubernetes_node_port);
        keep(&context, make("", "services", Box::new(service), leave)).await;
    }
    Ok(())
}

/// Makes the service, now or later: its address may be another's, and the server serves all the same.
async fn keep(context: &HookContext, service: Wanted) {
    make_service(context, &service).await;
    let context = context.clone();
    tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(PERIOD).await;
            let services = context.registry.resource("", "services");
            let is_there = services.and_then(|services| services.is_held(NAMESPACE, NAME));
            if is_there != Some(true) {
                make_service(&context, &service).await;
            }
        }
    });
}

async fn make_service(context: &HookContext, service: &Wanted) {
    let maker = Maker {
        context,
        manager: MANAGER,
    };
    if let Err(error) = maker.make(service).await {
        tracing::warn!(%error, "the service kubernetes could not be made; it is tried again");
    }
}

fn make(
    group: &'static str,
    plural: &'static str,
    object: Box<dyn Object>,
    reconcile: super::maker::Reconcile,
) -> Wanted {
    Wanted {
        group,
        plural,
        object,
        reconcile,
    }
}

/// The first address of a range that a service can have.
fn after(base: IpAddr) -> IpAddr {
    match base {
        IpAddr::V4(ip) => IpAddr::V4(u32::from(ip).saturating_add(1).into()),
        IpAddr::V6(ip) => IpAddr::V6(u128::from(ip).saturating_add(1).into()),
    }
}

fn metadata<const N: usize>(name: &str, namespace: &str, labels: [(&str, &str); N]) -> ObjectMeta {
    ObjectMeta {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        labels: labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        ..ObjectMeta::default()
    }
}

fn family(ip: IpAddr) -> &'static str {
    if ip.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn service(ip: IpAddr, address: SocketAddr, node_port: Option<u16>) -> Service {
    let port = ServicePort {
        name: PORT_NAME.to_owned(),
        protocol: "TCP".to_owned(),
        port: PORT,
        target_port: IntOrString::Int(address.port().into()),
        node_port: node_port.map(i32::from).unwrap_or_default(),
        ..ServicePort::default()
    };
    Service {
        metadata: metadata(
            NAME,
            NAMESPACE,
            [("component", "apiserver"), ("provider", "kubernetes")],
        ),
        spec: ServiceSpec {
            ports: vec![port],
            cluster_ip: ip.to_string(),
            r#type: if node_port.is_some() { "NodePort" } else { "ClusterIP" }.to_owned(),
            session_affinity: "None".to_owned(),
            ip_family_policy: Some("SingleStack".to_owned()),
            ..ServiceSpec::default()
        },
        ..Service::default()
    }
}

fn endpoints(address: SocketAddr) -> Endpoints {
    Endpoints {
        metadata: metadata(NAME, NAMESPACE, [("endpointslice.kubernetes.io/skip-mirror", "true")]),
        subsets: vec![EndpointSubset {
            addresses: vec![EndpointAddress {
                ip: address.ip().to_string(),
                ..EndpointAddress::default()
            }],
            ports: vec![EndpointPort {
                name: PORT_NAME.to_owned(),
                port: address.port().into(),
                protocol: "TCP".to_owned(),
                ..EndpointPort::default()
            }],
            ..EndpointSubset::default()
        }],
    }
}

fn slice(address: SocketAddr) -> EndpointSlice {
    EndpointSlice {
        metadata: metadata(NAME, NAMESPACE, [("kubernetes.io/service-name", NAME)]),
        address_type: family(address.ip()).to_owned(),
        endpoints: vec![discovery::Endpoint {
            addresses: vec![address.ip().to_string()],
            conditions: discovery::EndpointConditions {
                ready: Some(true),
                ..discovery::EndpointConditions::default()
            },
            ..discovery::Endpoint::default()
        }],
        ports: vec![discovery::EndpointPort {
            name: Some(PORT_NAME.to_owned()),
            protocol: Some("TCP".to_owned()),
            port: Some(address.port().into()),
            ..discovery::EndpointPort::default()
        }],
    }
}

/// The addresses are those of this server alone.
fn to_endpoints(stored: &dyn Object, wanted: &dyn Object) -> Option<Box<dyn Object>> {
    let mut new = typed::<Endpoints>(stored)?.clone();
    new.subsets.clone_from(&typed::<Endpoints>(wanted)?.subsets);
    Some(Box::new(new))
}

fn to_slice(stored: &dyn Object, wanted: &dyn Object) -> Option<Box<dyn Object>> {
    let wanted = typed::<EndpointSlice>(wanted)?;
    let mut new = typed::<EndpointSlice>(stored)?.clone();
    // Its addresses are of one family for ever.
    if new.address_type != wanted.address_type {
        return None;
    }
    new.endpoints.clone_from(&wanted.endpoints);
    new.ports.clone_from(&wanted.ports);
    Some(Box::new(new))
}
