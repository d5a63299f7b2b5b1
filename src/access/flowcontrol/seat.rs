//! Seats as requests hold them: that of a watch until it has begun, and the count of requests that wait or are served.

use std::sync::Arc;

use super::control::FlowControl;
use super::level::Ticket;
use super::watchers::OpenWatch;
use crate::request_info::RequestInfo;

/// What a watch has of flow control: its seat until it has begun, and that others know it is open.
pub struct WatchSeat {
    ticket: Option<(Ticket, UnderWay)>,
    _open: OpenWatch,
}

impl WatchSeat {
    /// That of a watch which has got `ticket` to begin.
    pub fn new(control: &Arc<FlowControl>, ticket: Ticket, info: &RequestInfo) -> WatchSeat {
        WatchSeat {
            ticket: Some((ticket, UnderWay::of(control, false, false))),
            _open: control.open_watch(info),
        }
    }

    /// The watch has begun.
    pub fn release(&mut self) {
        self.ticket = None;
    }
}

/// A request that is counted by whether it may change something, and waits or is served.
pub struct UnderWay {
    control: Arc<FlowControl>,
    is_write: bool,
    waits: bool,
}

impl UnderWay {
    /// One that begins to wait or to be served.
    pub fn of(control: &Arc<FlowControl>, is_write: bool, waits: bool) -> UnderWay {
        control.count_sort(|sorts, now| sorts.gauge(is_write, waits).add(now));
        UnderWay {
            control: control.clone(),
            is_write,
            waits,
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let (is_write, waits) = (self.is_write, self.waits);
        self.control
            .count_sort(|sorts, now| sorts.gauge(is_write, waits).remove(now));
    }
}
