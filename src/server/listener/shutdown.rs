//! The one signal that ends a server: listeners, connections and long answers watch it.

use std::sync::Arc;

use tokio::sync::watch;

/// Says that the server is ending. Clones are the same signal; it is given once and stays.
///
/// A handler finds it in the request's extensions ([`Shutdown::of`]) and ends a watch or an upgraded connection when
/// [`wait`](Shutdown::wait) returns.
#[derive(Debug, Clone)]
pub struct Shutdown {
    sender: Arc<watch::Sender<bool>>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Shutdown {
    /// A signal not given yet.
    pub fn new() -> Self {
        Shutdown {
            sender: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Gives the signal. From then on no connection is accepted, HTTP/2 clients get GOAWAY, HTTP/1.1 connections close
    /// after their answer, and whoever waits is woken.
    pub fn begin(&self) {
        self.sender.send_replace(true);
    }

    /// Whether the signal was given.
    pub fn begun(&self) -> bool {
        *self.sender.borrow()
    }

    /// Returns when the signal is given; at once when it was.
    pub fn wait(&self) -> impl Future<Output = ()> + Send + Sync + use<> {
        let mut receiver = self.sender.subscribe();
        // The sender lives on in this future, so waiting cannot fail.
        let sender = Arc::clone(&self.sender);
        async move {
            let _ = receiver.wait_for(|begun| *begun).await;
            drop(sender);
        }
    }

    /// The signal of the server that takes this request; `None` only for requests no listener made.
    pub fn of(request: &impl actix_web::HttpMessage) -> Option<Self> {
        request.extensions().get::<Self>().cloned()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn every_waiter_is_woken_also_the_late_one() {
        let shutdown = Shutdown::new();
        let mut early = Box::pin(shutdown.clone().wait());
        assert!(early.as_mut().now_or_never().is_none() && !shutdown.begun());
        shutdown.begin();
        assert!(early.now_or_never().is_some());
        assert!(shutdown.wait().now_or_never().is_some() && shutdown.begun());
    }
}
