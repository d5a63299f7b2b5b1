//! One run of a controller: informers fill its queue, workers empty it.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{join_all, select_all};
use tokio::time::{sleep, timeout};

use super::{Backoff, Controller, ControllerContext, Failure, Next, Queue};
use crate::generic::{Change, Changes, Client, Informer, NamespacedName, Resource};

/// How long keys that are being reconciled may go on when the server ends.
const GRACE: Duration = Duration::from_secs(2);

/// A controller at work.
pub(super) struct Loop<'a, C> {
    pub controller: &'a C,
    pub queue: &'a Queue<NamespacedName>,
    /// The resource that it reconciles.
    pub reconciled: &'a Arc<Resource>,
    pub watched: &'a [Arc<Resource>],
}

impl<C: Controller> Loop<'_, C> {
    /// Runs until `stop` returns, and then until the keys that are being reconciled are done, or some seconds have
    /// passed. Returns too when the store is closed. Dropping it ends it at once.
    pub async fn run(&self, client: Client, stop: impl Future<Output = ()>) {
        let mut informers: Vec<_> = std::iter::once(self.reconciled)
            .chain(self.watched)
            .map(|resource| Informer::new(resource.clone()))
            .collect();
        let context = ControllerContext {
            client,
            listers: informers.iter().map(Informer::lister).collect(),
        };
        let mut stop = pin!(stop);
        let fed = tokio::select! {
            biased;
            () = &mut stop => return,
            fed = self.feed_all(&mut informers, &context) => fed,
        };
        if fed.is_none() {
            return;
        }
        let begun = self.controller.begins_with().into_iter();
        begun.for_each(|key| self.queue.add(key));
        let mut workers = pin!(join_all(
            (0..self.controller.workers().max(1)).map(|_| self.work(&context))
        ));
        tokio::select! {
            biased;
            () = stop => {}
            () = self.follow(&mut informers, &context) => {}
            // Somebody else has ended the queue.
            _ = &mut workers => return,
        }
        self.queue.end();
        if timeout(GRACE, workers).await.is_err() {
            tracing::warn!(controller = self.controller.name(), "a controller did not end in time");
        }
    }

    /// Everything that is there when it begins; `None`: the store is closed.
    async fn feed_all(&self, informers: &mut [Informer], context: &ControllerContext) -> Option<()> {
        for (n, informer) in informers.iter_mut().enumerate() {
            let changes = informer.next().await?;
            self.feed(n, changes, true, context).await;
        }
        Some(())
    }

    /// What happens from then on, until the store is closed.
    async fn follow(&self, informers: &mut [Informer], context: &ControllerContext) {
        let each = informers.iter_mut().enumerate().map(|(n, informer)| {
            Box::pin(async move {
                while let Some(changes) = informer.next().await {
                    self.feed(n, changes, false, context).await;
                }
            })
        });
        select_all(each).await;
    }

    /// What the nth informer tells.
    async fn feed(&self, n: usize, changes: Changes, first: bool, context: &ControllerContext) {
        if n == 0 {
            return changes.all.into_iter().for_each(|change| self.queue.add(change.key));
        }
        for change in &changes.all {
            for key in self.affected(change, context).await {
                self.queue.add(key);
            }
        }
        // Who was concerned by what is gone, nobody may know any more.
        if changes.anew && !first {
            self.add_all(context).await;
        }
    }

    /// Which keys a change concerns; tried until it is known.
    async fn affected(&self, change: &Change, context: &ControllerContext) -> Vec<NamespacedName> {
        for failed in 0_u32.. {
            let asked = AssertUnwindSafe(self.controller.affected(change, context)).catch_unwind();
            match outcome(asked.await) {
                Ok(keys) => return keys,
                Err(error) => self.wait(failed, &change.key, error).await,
            }
        }
        Vec::new()
    }

    async fn add_all(&self, context: &ControllerContext) {
        let lister = context.lister_of(self.reconciled);
        for failed in 0_u32.. {
            match lister.names("").await {
                Ok(names) => return names.into_iter().for_each(|key| self.queue.add(key)),
                Err(error) => self.wait(failed, &NamespacedName::default(), error.into()).await,
            }
        }
    }

    async fn wait(&self, failed: u32, key: &NamespacedName, error: Failure) {
        let backoff = Backoff {
            cap: Duration::from_secs(30),
            ..self.controller.backoff()
        };
        self.log(key, &error);
        sleep(backoff.wait(failed, 0.0)).await;
    }

    async fn work(&self, context: &ControllerContext) {
        while let Some(key) = self.queue.next().await {
            let reconciled = AssertUnwindSafe(self.controller.reconcile(&key, context)).catch_unwind();
            match outcome(reconciled.await) {
                Ok(Next::Done) => self.queue.forget(&key),
                Ok(Next::After(delay)) => {
                    self.queue.forget(&key);
                    self.queue.add_after(key.clone(), delay);
                }
                Err(error) => {
                    self.log(&key, &error);
                    self.queue.retry(key.clone());
                }
            }
        }
    }

    fn log(&self, key: &NamespacedName, error: &Failure) {
        let controller = self.controller.name();
        tracing::warn!(controller, %key, %error, "a controller failed; it tries again");
    }
}

/// A panic is a failure like others: it ends neither the thread nor the work on other keys.
fn outcome<T>(caught: std::thread::Result<Result<T, Failure>>) -> Result<T, Failure> {
    caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(format!("panicked: {text}").into())
    })
}
