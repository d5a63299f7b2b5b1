//! The log of a container.

use keelson_machinery::status::StatusError;
use keelson_net::client::dial;
use keelson_registry::{Answer, Call, Handler, Reply};

use super::kubelet::{self, unspoken};
use super::log_options;

pub struct Log;

impl Handler for Log {
    fn get<'a>(&'a self, call: &'a Call<'a>) -> Answer<'a, Reply> {
        Box::pin(async move {
            let options = log_options::parse(call.query)?;
            let errors = log_options::validate(&options);
            if !errors.is_empty() {
                return Err(StatusError::invalid("", "PodLogOptions", call.name(), &errors));
            }
            let pod = kubelet::pod(call).await?;
            let container = kubelet::container(&pod, &options.container)?;
            if pod.spec.node_name.is_empty() {
                // Nothing has run yet, so there is nothing to show.
                return Ok(Reply::Empty);
            }
            let kubelet = kubelet::of_pod(call, &pod).await?;
            let authority = kubelet.authority();
            let meta = &pod.metadata;
            let url = format!(
                "https://{authority}/containerLogs/{}/{}/{container}{}",
                meta.namespace,
                meta.name,
                log_options::kubelet_query(&options)
            );
            dial(&authority)
                .await
                .map_err(|error| StatusError::unknown(format!("Get {url:?}: {error}")))?;
            Err(unspoken("kubelets"))
        })
    }
}
