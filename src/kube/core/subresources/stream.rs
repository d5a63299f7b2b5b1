//! exec, attach and portforward: streams between a client and a container.

use keelson_access::request_info::RequestInfo;
use keelson_api::core::v1::Pod;
use keelson_machinery::status::StatusError;
use keelson_net::client::dial;
use keelson_registry::{Answer, Call, Handler, Reply};

use super::kubelet::{self, unspoken};
use super::log_options;

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
            log_options::ports(call.query)?;
            may_create(call).await?;
            let pod = kubelet::pod(call).await?;
            stream(call, &pod).await
        })
    }
}

/// Whoever opens a stream acts on the pod, also with a GET: that needs the right to `create` too.
async fn may_create(call: &Call<'_>) -> Result<(), StatusError> {
    let info = &call.context.asked;
    if info.verb == "create" {
        return Ok(());
    }
    let creation = RequestInfo {
        verb: "create".to_owned(),
        ..(**info).clone()
    };
    let verdict = call.authorization.decide(&call.context.user, &creation).await;
    match verdict.error {
        _ if verdict.allowed => Ok(()),
        Some(error) => Err(StatusError::unknown(error)),
        None => Err(StatusError::forbidden(
            &info.group,
            &info.resource,
            &info.name,
            verdict.reason,
        )),
    }
}

async fn of_container(call: &Call<'_>) -> Result<Reply, StatusError> {
    may_create(call).await?;
    let pod = kubelet::pod(call).await?;
    kubelet::container(&pod, call.query.get("container").unwrap_or_default())?;
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
    if !call.upgrade {
        return Err(StatusError::bad_request("Upgrade request required"));
    }
    dial(&kubelet.authority())
        .await
        .map_err(|error| StatusError::unknown(format!("error dialing backend: {error}")))?;
    Err(unspoken("kubelets"))
}
