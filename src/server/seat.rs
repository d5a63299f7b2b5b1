//! Seats of requests under way. A client that keeps its request waiting, because its body does not come or because it
//! does not read the answer, does not keep others from being served: when others wait, its seat is lent to them.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;
use keelson_access::flowcontrol::level::{Asked, Lending, Level, Ticket, Unseated};
use keelson_access::flowcontrol::queues::Arrival;
use keelson_access::flowcontrol::under_way::UnderWay;
use keelson_access::flowcontrol::watchers::OpenWatch;
use keelson_machinery::status::StatusError;
use keelson_net::listener::AnswerDeadline;
use tokio::time::Instant;

/// How long a request keeps its seat though its client keeps it waiting.
const PATIENCE: Duration = Duration::from_millis(20);
/// A request that has lent its seat waits no longer for another one.
const WAIT: Duration = Duration::from_secs(15);
const TOO_MANY: &str = "too many requests are kept waiting by their clients, please try again later";

/// The seat of one request.
pub struct Seat {
    level: Arc<Level>,
    held: RefCell<Held>,
    /// To come again, for requests that may go on with work.
    again: Option<Arrival<Asked>>,
    /// More of the answer was asked for since somebody looked.
    asked: Cell<bool>,
    /// There is something that the client has not read, or nobody has looked yet.
    is_unread: Cell<bool>,
}

enum Held {
    Seated(Ticket, Option<UnderWay>),
    Unseated { _counted: Unseated },
    Gone,
}

impl Seat {
    pub(crate) fn new(
        level: Arc<Level>,
        ticket: Ticket,
        under_way: UnderWay,
        again: Option<Arrival<Asked>>,
    ) -> Rc<Seat> {
        Rc::new(Seat {
            level,
            held: RefCell::new(Held::Seated(ticket, Some(under_way))),
            again,
            asked: Cell::new(false),
            is_unread: Cell::new(true),
        })
    }

    /// Lends the seat if others wait; false: too many go on without, and this one must end.
    fn lend(&self) -> bool {
        let (ticket, under_way) = match self.held.replace(Held::Gone) {
            Held::Seated(ticket, under_way) => (ticket, under_way),
            other => {
                self.held.replace(other);
                return true;
            }
        };
        let (held, goes_on) = match self.level.lend(ticket) {
            Lending::NobodyWaits(ticket) => (Held::Seated(ticket, under_way), true),
            Lending::Lent(unseated) => (Held::Unseated { _counted: unseated }, true),
            Lending::TooMany => (Held::Gone, false),
        };
        self.held.replace(held);
        goes_on
    }

    /// More of the answer was asked for, and whether there is more.
    fn asked(&self, more: bool) {
        self.asked.set(true);
        self.is_unread.set(more);
    }

    fn is_seated(&self) -> bool {
        matches!(*self.held.borrow(), Held::Seated(..))
    }

    /// Awaits what the client is to send, and lends the seat while it does not come.
    ///
    /// # Errors
    /// 429: others wait, and too many are kept waiting already.
    pub async fn wait_for<T>(
        &self,
        mut coming: impl Future<Output = T> + Unpin,
        since: Instant,
    ) -> Result<T, StatusError> {
        let mut until = since + PATIENCE;
        while self.is_seated() {
            if let Ok(came) = tokio::time::timeout_at(until, &mut coming).await {
                return Ok(came);
            }
            if !self.lend() {
                return Err(StatusError::too_many_requests(TOO_MANY, 1));
            }
            until = Instant::now() + PATIENCE;
        }
        Ok(coming.await)
    }

    /// Everything has come: work may go on, on a seat.
    ///
    /// # Errors
    /// 429: there is none in time.
    pub async fn take_again(&self) -> Result<(), StatusError> {
        let (false, Some(arrival)) = (self.is_seated(), &self.again) else {
            return Ok(());
        };
        let entered = self.level.enter(arrival.clone(), Instant::now() + WAIT, || ()).await;
        let ticket = entered.map_err(|_| StatusError::too_many_requests(TOO_MANY, 1))?;
        self.held.replace(Held::Seated(ticket, None));
        Ok(())
    }
}

/// What a watch has of flow control: its seat until it has begun, and that others know it is open.
pub struct WatchSeat {
    seat: Option<Rc<Seat>>,
    _open: OpenWatch,
}

impl WatchSeat {
    pub(crate) fn new(seat: Rc<Seat>, open: OpenWatch) -> WatchSeat {
        WatchSeat {
            seat: Some(seat),
            _open: open,
        }
    }

    /// The beginning of the watch is sent from now on, up to this deadline.
    pub fn sends(&self, deadline: &AnswerDeadline) {
        if let Some(seat) = &self.seat {
            look_after(seat, deadline.clone());
        }
    }

    /// More of it was asked for, and whether there is more.
    pub fn asked(&self, more: bool) {
        if let Some(seat) = &self.seat {
            seat.asked(more);
        }
    }

    /// The watch has begun.
    pub fn release(&mut self) {
        self.seat = None;
    }
}

/// Lends the seat of an answer that nobody reads, or gives the answer up where too many have done that.
fn look_after(seat: &Rc<Seat>, deadline: AnswerDeadline) {
    let seat = Rc::downgrade(seat);
    tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(PATIENCE).await;
            let Some(seat) = Weak::upgrade(&seat).filter(|seat| seat.is_seated()) else {
                return;
            };
            let read = seat.asked.replace(false) || !seat.is_unread.get();
            if !read && !seat.lend() {
                return deadline.has_come();
            }
        }
    });
}

/// Keeps the seat until the answer is out, as far as that is made while it is sent.
pub(crate) fn hold(response: HttpResponse, seat: Rc<Seat>, deadline: Option<Instant>) -> HttpResponse {
    let mut is_made = false;
    let mut response = response.map_body(|_, body| match body.try_into_bytes() {
        Ok(bytes) => BoxBody::new(bytes),
        Err(body) => {
            is_made = true;
            BoxBody::new(Seated {
                body,
                seat: seat.clone(),
            })
        }
    });
    if let (true, Some(deadline)) = (is_made, deadline) {
        let deadline = AnswerDeadline::at(deadline);
        look_after(&seat, deadline.clone());
        response.extensions_mut().insert(deadline);
    }
    response
}

struct Seated {
    body: BoxBody,
    seat: Rc<Seat>,
}

impl MessageBody for Seated {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let more = Pin::new(&mut self.body).poll_next(cx);
        self.seat.asked(more.is_ready());
        more
    }
}
