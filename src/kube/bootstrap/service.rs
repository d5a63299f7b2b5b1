//! The service by which pods find this server, and where it leads.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use keelson_api::core::v1::{Namespace, Service, ServicePort, ServiceSpec};
use keelson_machinery::intstr::IntOrString;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_server::server::{HookContext, HookError};
use tokio::sync::oneshot;

use super::endpoints::Reconciler;
use super::maker::{Maker, Wanted, leave, retried};
use super::{EndpointReconciler, MANAGER, Setting};

const NAME: &str = "kubernetes";
const NAMESPACE: &str = "default";
/// Of the service, whatever port the server listens on.
const PORT: i32 = 443;
const PORT_NAME: &str = "https";
/// How often it is looked whether the service is there, and its endpoints are right.
const PERIOD: Duration = Duration::from_secs(10);

/// Makes the service when the range of its address is there, and goes on looking after it and its endpoints.
pub(super) async fn run(
    context: HookContext,
    setting: Rc<Setting>,
    range_made: oneshot::Receiver<()>,
) -> Result<(), HookError> {
    let address: SocketAddr = context.advertise.parse().map_err(|_| {
        HookError::Other(format!(
            "{} is no address that a service can lead to",
            context.advertise
        ))
    })?;
    if address.ip().is_loopback() {
        tracing::warn!(%address, "No other machine can reach this address: the service of this server leads nowhere");
    } else {
        keep_endpoints(&context, setting.endpoint_reconciler, address).await?;
    }
    // Where it could not be made, that hook says so.
    let _ = range_made.await;
    if let Some((_, first)) = setting.service_ranges.first() {
        let service = Wanted {
            group: "",
            plural: "services",
            object: Box::new(service(after(*first), address, setting.kubernetes_node_port)),
            reconcile: leave,
        };
        keep(&context, service).await;
    }
    Ok(())
}

/// Adds this server to the endpoints, keeps it there, and takes it out when it ends.
async fn keep_endpoints(context: &HookContext, kind: EndpointReconciler, address: SocketAddr) -> Result<(), HookError> {
    make_namespace(context).await?;
    let reconciler = || Reconciler::new(context, MANAGER, kind, address);
    let (first, at_end) = (reconciler()?, reconciler()?);
    retried(|| Box::pin(first.reconcile())).await?;
    let keeping = tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(PERIOD).await;
            if let Err(error) = first.reconcile().await {
                tracing::warn!(%error, "the endpoints of this server could not be looked after; it is tried again");
            }
        }
    });
    let keeping = keeping.abort_handle();
    context.ending.then(move || async move {
        keeping.abort();
        if let Err(error) = at_end.leave().await {
            tracing::warn!(%error, "this server could not be taken out of the endpoints");
        }
    });
    Ok(())
}

/// The namespace may not have been made yet.
async fn make_namespace(context: &HookContext) -> Result<(), HookError> {
    let namespace = Wanted {
        group: "",
        plural: "namespaces",
        object: Box::new(Namespace {
            metadata: ObjectMeta {
                name: NAMESPACE.to_owned(),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        }),
        reconcile: leave,
    };
    let maker = Maker {
        context,
        manager: MANAGER,
    };
    maker.make_all(&[namespace]).await
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

/// The first address of a range that a service can have.
fn after(base: IpAddr) -> IpAddr {
    match base {
        IpAddr::V4(ip) => IpAddr::V4(u32::from(ip).saturating_add(1).into()),
        IpAddr::V6(ip) => IpAddr::V6(u128::from(ip).saturating_add(1).into()),
    }
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
        metadata: ObjectMeta {
            name: NAME.to_owned(),
            namespace: NAMESPACE.to_owned(),
            labels: [("component", "apiserver"), ("provider", "kubernetes")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            ..ObjectMeta::default()
        },
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
