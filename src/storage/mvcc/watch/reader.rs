//! The reading side of a watch.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;

use super::Subscription;
use super::queue::Found;
use crate::{Event, Revision, StoreError, WatchItem};

/// No item has more events, unless they share one revision.
const EVENTS_PER_ITEM: usize = 256;
/// Changes of history looked at under one lock, unless more share one revision.
const SCAN: usize = 1024;

/// A watch as the stream of its items. It tells how far it is when asked, and whenever it is polled, has nothing else
/// to yield, and has come further than it said.
pub(super) struct Reader {
    /// `None`: the end was told.
    subscription: Option<Subscription>,
    /// Everything up to this revision, and nothing after it, has been yielded.
    delivered: u64,
}

impl Reader {
    pub fn new(subscription: Subscription, after: u64) -> Self {
        Reader {
            subscription: Some(subscription),
            delivered: after,
        }
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Result<WatchItem, StoreError>> {
        loop {
            let Some(subscription) = &self.subscription else {
                return Poll::Ready(Err(StoreError::Closed));
            };
            if self.delivered < subscription.history_until {
                let (events, delivered) = read_history(subscription, self.delivered)?;
                self.delivered = delivered;
                if events.is_empty() {
                    // Others have a turn before more of a long history is looked through.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                return Poll::Ready(Ok(WatchItem::Events(events)));
            }
            // Read before the queue is: see there.
            let published = subscription.mvcc.watchers.published();
            match subscription.queue.take(EVENTS_PER_ITEM, cx) {
                Found::Changes(changes) => {
                    self.delivered = changes.last().map_or(self.delivered, |change| change.revision);
                    let events = changes.iter().map(|change| change.event()).collect();
                    return Poll::Ready(Ok(WatchItem::Events(events)));
                }
                Found::Nothing { asked } => {
                    let further = published > self.delivered;
                    if further || (asked && published == self.delivered) {
                        self.delivered = published;
                        return Poll::Ready(Ok(WatchItem::Progress(Revision(published))));
                    }
                    return Poll::Pending;
                }
                Found::Forgotten => return Poll::Ready(Err(StoreError::Closed)),
                // The queue overflowed, or the store is closed, which the new subscription would say.
                Found::End => {
                    let renewed = Subscription::new(&subscription.mvcc, &subscription.prefix, self.delivered)?;
                    self.subscription = Some(renewed);
                }
            }
        }
    }
}

impl Stream for Reader {
    type Item = Result<WatchItem, StoreError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.subscription.is_none() {
            return Poll::Ready(None);
        }
        let polled = self.poll_item(cx);
        if let Poll::Ready(Err(_)) = &polled {
            self.subscription = None;
        }
        polled.map(Some)
    }
}

/// Some of the events after `delivered` that history has, and how far it has been read then: never a part of a
/// revision.
fn read_history(subscription: &Subscription, delivered: u64) -> Result<(Vec<Event>, u64), StoreError> {
    let until = subscription.history_until;
    let state = subscription.mvcc.read();
    if let Some(why) = &state.ended {
        return Err(why.clone());
    }
    if delivered + 1 < state.view.oldest() {
        return Err(StoreError::Compacted {
            oldest: Revision(state.view.oldest()),
        });
    }
    let (mut events, mut seen, mut read) = (Vec::new(), 0, delivered);
    for change in state.history.slice(delivered, until) {
        if change.revision > read && (seen >= SCAN || events.len() >= EVENTS_PER_ITEM) {
            return Ok((events, read));
        }
        seen += 1;
        if change.key.starts_with(&*subscription.prefix) {
            let event = change.event();
            if event.has_lost_its_past() {
                // Only the oldest change that is kept can have, after a restart.
                return Err(StoreError::Compacted {
                    oldest: event.revision(),
                });
            }
            events.push(event);
        }
        read = change.revision;
    }
    Ok((events, read.max(until)))
}
