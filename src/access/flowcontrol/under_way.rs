//! Requests that wait or are served, counted by whether they may change something.

use std::sync::Arc;

use super::control::FlowControl;

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
