//! exec, attach and portforward: streams between a client and a container.

use actix_web::http::header;
use keelson_machinery::status::StatusError;
use keelson_server::outgoing::dial;
use keelson_server::registry::{Answer, Call, Handler, Reply};

use super::kubelet::{self, unspoken};
use super::log_options;
use crate::api::core::v1::Pod;

pub struct Attach;
pub struct Exec;
pub struct PortForward;

impl Handler for Attach {
    fn connect<'a>(&'a self, call: &'a Call<'a>) -> Answer<'a, Reply> {
        Box::pin(of_container(call))
    }
}

impl Handler for Exec {
    fn connect<'a>(&'a self, call: &'a Call<'a>) -> Answer<'a, Reply> {
        Box::pin(of_container(call))
    }
}

impl Handler for PortForward {
    fn connect<'a>(&'a self, call: &'a Call<'a>) -> Answer<'a, Reply> {
        Box::pin(async move {
            log_options::ports(&call.request.query)?;
            let pod = kubelet::pod(call).await?;
            stream(call, &pod).await
        })
    }
}

async fn of_container(call: &Call<'_>) -> Result<Reply, StatusError> {
    let pod = kubelet::pod(call).await?;
    kubelet::container(&pod, call.request.query.get("container").unwrap_or_default())?;
    stream(call, &pod).await
}

async fn stream(call: &Call<'_>, pod: &Pod) -> Result<Reply, StatusError> {
    if pod.spec.node_name.is_empty() {
        let name = &pod.metadata.name;
        return Err(StatusError::bad_request(format!(
            "pod {name} does not have a host assigned"
        )));
    }
    let kubelet = kubelet::of_pod(call, pod).await?;
    if !wants_upgrade(call) {
        return Err(StatusError::bad_request("Upgrade request required"));
    }
    dial(&kubelet.authority())
        .await
        .map_err(|error| StatusError::unknown(format!("error dialing backend: {error}")))?;
    Err(unspoken("kubelets"))
}

/// Whether the client asks for another protocol on this connection.
fn wants_upgrade(call: &Call<'_>) -> bool {
    let connection = call.request.header(&header::CONNECTION).unwrap_or_default();
    connection.to_ascii_lowercase().contains("upgrade")
}
