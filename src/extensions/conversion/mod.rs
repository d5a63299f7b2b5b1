//! Conversion by webhooks: objects of one version of a custom resource become those of another one.

mod metrics;
mod object;
mod review;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use keelson_api::apiextensions_k8s_io::v1::{CustomResourceDefinition, WebhookClientConfig as Written};
use keelson_machinery::env::Entropy;
use keelson_machinery::object::Object;
use keelson_machinery::scheme::KindRef;
use keelson_machinery::status::StatusError;
use keelson_net::client::{
    Backoff, KubeconfigError, ServicePort, Users, Webhook, WebhookAddress, WebhookClientConfig, WebhookWays,
};
use keelson_registry::{Converted, Converter};

pub use metrics::ConversionMetrics;

use metrics::Fault;
use object::{Checked, checked};
use review::Review;

/// How long a webhook may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The port of services that is called where none is said.
const PORT: u16 = 443;

/// What conversion needs of the server.
#[derive(Clone)]
pub struct Outside {
    /// The ways to webhooks.
    pub ways: WebhookWays,
    /// Of the uids of reviews.
    pub entropy: Arc<dyn Entropy>,
    /// Shows what becomes of them.
    pub metrics: ConversionMetrics,
}

/// Converts what others say how to convert.
pub struct WebhookConverter {
    /// The client; or why there is none, which every conversion is told.
    caller: Result<Arc<Caller>, KubeconfigError>,
}

struct Caller {
    webhook: Webhook,
    /// The name of the definition.
    definition: String,
    /// Of `apiextensions.k8s.io`; `None`: the webhook knows none that this server knows.
    review: Option<Review>,
    entropy: Arc<dyn Entropy>,
    metrics: ConversionMetrics,
}

/// What comes of a call; an error is told to the client.
type Called = Result<Vec<Box<dyn Object>>, (Fault, String)>;

impl WebhookConverter {
    /// That of a definition; `None`: it has no webhook.
    pub fn of(definition: &CustomResourceDefinition, outside: &Outside) -> Option<WebhookConverter> {
        let conversion = definition.spec.conversion.as_deref()?;
        let webhook = conversion
            .webhook
            .as_deref()
            .filter(|_| conversion.strategy == "Webhook")?;
        let config = client_config(webhook.client_config.as_deref()?)?;
        let caller = config
            .webhook(&outside.ways, &Users::default(), TIMEOUT, Backoff::ONCE)
            .map(|client| Caller {
                webhook: client,
                definition: definition.metadata.name.clone(),
                review: Review::first_of(&webhook.conversion_review_versions),
                entropy: outside.entropy.clone(),
                metrics: outside.metrics.clone(),
            });
        Some(WebhookConverter {
            caller: caller.map(Arc::new),
        })
    }
}

fn client_config(written: &Written) -> Option<WebhookClientConfig> {
    let address = match (&written.service, &written.url) {
        (Some(service), _) => {
            let port = service.port.and_then(|port| u16::try_from(port).ok());
            let service_port = ServicePort {
                namespace: service.namespace.clone(),
                name: service.name.clone(),
                port: port.unwrap_or(PORT),
            };
            WebhookAddress::Service(service_port, service.path.clone().unwrap_or_default())
        }
        (None, Some(url)) => WebhookAddress::Url(url.clone()),
        (None, None) => return None,
    };
    Some(WebhookClientConfig {
        address,
        ca_bundle: written.ca_bundle.to_vec(),
    })
}

impl Converter for WebhookConverter {
    fn convert(&self, objects: Vec<Box<dyn Object>>, to: &KindRef) -> Converted {
        let (caller, to) = (self.caller.clone(), to.clone());
        async move {
            let caller = caller.map_err(StatusError::unknown)?;
            caller.convert(&objects, &to).await.map_err(StatusError::unknown)
        }
        .boxed()
    }
}

impl Caller {
    async fn convert(&self, objects: &[Box<dyn Object>], to: &KindRef) -> Checked<Vec<Box<dyn Object>>> {
        let Some(first) = objects.first() else {
            return Ok(Vec::new());
        };
        let review = self.review.ok_or("no supported conversion review versions")?;
        let (begin, from) = (Instant::now(), first.gvk());
        let called = self.call(review, objects, to).await;
        let fault = called.as_ref().err().map(|(fault, _)| *fault);
        let versions = (from.version.as_str(), to.version.as_str());
        self.metrics.observe(&self.definition, versions, fault, begin.elapsed());
        called.map_err(|(_, text)| text)
    }

    /// Asks the webhook for objects, of which there is at least one.
    async fn call(&self, review: Review, objects: &[Box<dyn Object>], to: &KindRef) -> Called {
        let of = objects.first().map(|first| first.gvk().to_string()).unwrap_or_default();
        let failed = |why: String| format!("conversion webhook for {of} failed: {why}");
        let uid = self.new_uid();
        let answer = self.webhook.ask(review.request(&uid, objects, to)).await;
        let answer = answer.map_err(|error| (Fault::Call, failed(error.to_string())))?;
        let converted = review.converted(&uid, &answer);
        let converted = converted.map_err(|why| (Fault::Malformed, failed(why)))?;
        if converted.len() != objects.len() {
            let (found, expected) = (converted.len(), objects.len());
            let text = format!("conversion webhook for {of} returned {found} objects, expected {expected}");
            return Err((Fault::Partial, text));
        }
        let pairs = objects.iter().zip(converted);
        let checked = pairs.map(|(original, text)| checked(&**original, text, to));
        checked.collect::<Result<_, _>>().map_err(|text| (Fault::Invalid, text))
    }

    fn new_uid(&self) -> String {
        let mut random = [0; 16];
        self.entropy.fill(&mut random);
        uuid::Builder::from_random_bytes(random).into_uuid().to_string()
    }
}

#[cfg(test)]
pub mod tests;
