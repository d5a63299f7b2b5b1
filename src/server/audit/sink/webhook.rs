//! Events sent to another server, as lists, in JSON. They are sent from a thread of their own, several lists at once; a
//! list that does not get through is sent again, whatever the reason, since hardly any is one to lose events for.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use keelson_net::client::{Backoff, Client, Dialer, Kubeconfig, Webhook, WebhookError};
use tokio::sync::Semaphore;

use super::queue::{self, Batching, Delivery, Queue, Taken};
use super::{Mode, Truncation};
use crate::audit::event::write_item;

/// Lists that are on their way at once.
const MAX_DELIVERIES: u32 = 16;
/// As kube-apiserver's client asks for it.
const QUERY: &str = "timeout=30s";

/// The webhook as the command line describes it.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// A file in kubectl's form: the address of its current context is posted to.
    pub config: PathBuf,
    /// The way to it.
    pub dialer: Dialer,
    pub mode: Mode,
    pub batching: Batching,
    pub truncation: Option<Truncation>,
    /// How long to wait before the first repetition.
    pub initial_backoff: Duration,
}

/// Reads the file, and starts the thread that sends what is in the queue until that is closed.
pub fn start(settings: WebhookSettings, queue: Arc<Queue>) -> io::Result<()> {
    let mut file = Kubeconfig::read(&settings.config).map_err(io::Error::other)?;
    file.client.dialer = settings.dialer;
    let client = Client::new(file.client).map_err(io::Error::other)?;
    let url = file.server.split('?').next().unwrap_or_default();
    let mut sender = Sender {
        webhook: Webhook::new(client, format!("{url}?{QUERY}"), Backoff::ONCE),
        backoff: Backoff {
            initial: settings.initial_backoff,
            ..Backoff::WEBHOOK
        },
        places: Arc::new(Semaphore::new(MAX_DELIVERIES as usize)),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let sending = move || runtime.block_on(queue::run(queue, &mut sender));
    std::thread::Builder::new()
        .name("keelson-hook".to_owned())
        .spawn(sending)?;
    Ok(())
}

struct Sender {
    webhook: Webhook,
    backoff: Backoff,
    places: Arc<Semaphore>,
}

impl Delivery for Sender {
    async fn deliver(&mut self, taken: Taken) {
        // Nobody closes the semaphore.
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
            return taken.finish(false);
        };
        let (webhook, backoff) = (self.webhook.clone(), self.backoff);
        tokio::spawn(async move {
            let sent = send(&webhook, backoff, list(taken.batch.events())).await;
            if let Err(error) = &sent {
                tracing::error!(%error, "audit events are lost: the webhook does not take them");
            }
            taken.finish(sent.is_ok());
            drop(place);
        });
    }

    async fn settle(&mut self) {
        drop(self.places.acquire_many(MAX_DELIVERIES).await);
    }
}

async fn send(webhook: &Webhook, backoff: Backoff, list: Bytes) -> Result<(), WebhookError> {
    /// Part of the jitter: there is one sender, so nobody has to be kept apart.
    const CHANCE: f64 = 0.0;
    let mut failed = 0;
    loop {
        let error = match webhook.post(list.clone()).await {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        let Some(wait) = backoff.wait(failed, CHANCE) else {
            return Err(error);
        };
        tracing::debug!(%error, "audit events are sent again");
        tokio::time::sleep(wait).await;
        failed += 1;
    }
}

/// An EventList.
fn list<'a>(events: impl Iterator<Item = &'a [u8]>) -> Bytes {
    let mut out = br#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#.to_vec();
    for (n, event) in events.enumerate() {
        if n > 0 {
            out.push(b',');
        }
        write_item(event, &mut out);
    }
    out.extend_from_slice(b"]}");
    out.into()
}

#[cfg(test)]
mod tests;
