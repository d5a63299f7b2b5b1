//! The one signal that ends a server: listeners, connections and long answers watch it.

use std::sync::Arc;

use tokio::sync::watch;

/// How far a server's end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It has not begun.
    Serving,
    /// All goes on, but the server says that it is not ready, so that balancers look for another one.
    Leaving,
    /// Long answers end, and requests that come are sent away.
    Refusing,
    /// No connection is accepted, and those that are open end.
    Ending,
}

/// Says that the server is ending. Clones are the same signal; phases only go forward.
///
/// A handler finds it in the request's extensions ([`Shutdown::of`]) and ends a watch or an upgraded connection when
/// [`refusing`](Shutdown::refusing) returns.
#[derive(Debug, Clone)]
pub struct Shutdown {
    sender: Arc<watch::Sender<Phase>>,
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
            sender: Arc::new(watch::Sender::new(Phase::Serving)),
        }
    }

    /// Goes forward to `phase`; never back.
    pub fn enter(&self, phase: Phase) {
        self.sender.send_if_modified(|now| {
            let forward = phase > *now;
            *now = phase.max(*now);
            forward
        });
    }

    /// Gives the signal ([`Phase::Ending`]). From then on no connection is accepted, HTTP/2 clients get GOAWAY,
    /// HTTP/1.1 connections close after their answer, and whoever waits is woken.
    pub fn begin(&self) {
        self.enter(Phase::Ending);
    }

    /// How far it has come.
    pub fn phase(&self) -> Phase {
        *self.sender.borrow()
    }

    /// Whether the signal was given.
    pub fn begun(&self) -> bool {
        self.phase() == Phase::Ending
    }

    /// Returns when the signal is given; at once when it was.
    pub fn wait(&self) -> impl Future<Output = ()> + Send + Sync + use<> {
        self.reach(Phase::Ending)
    }

    /// Returns when long answers are to end ([`Phase::Refusing`]); at once when that was said.
    pub fn refusing(&self) -> impl Future<Output = ()> + Send + Sync + use<> {
        self.reach(Phase::Refusing)
    }

    /// Returns when this phase has come.
    pub(super) fn reach(&self, phase: Phase) -> impl Future<Output = ()> + Send + Sync + use<> {
        let mut receiver = self.sender.subscribe();
        // The sender lives on in this future, so waiting cannot fail.
        let sender = Arc::clone(&self.sender);
        async move {
            let _ = receiver.wait_for(|now| *now >= phase).await;
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

    #[test]
    fn phases_go_forward_only() {
        let shutdown = Shutdown::new();
        shutdown.enter(Phase::Refusing);
        shutdown.enter(Phase::Leaving);
        assert_eq!(shutdown.phase(), Phase::Refusing);
        assert!(shutdown.refusing().now_or_never().is_some());
        assert!(shutdown.wait().now_or_never().is_none());
    }
}
