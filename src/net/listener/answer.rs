//! Answers on their way to clients that may not read them: when each is given up.
//!
//! A body is not asked for more while its client's window is closed, so it can't see that its time is over: the task
//! that drives the connection looks after all answers of it.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use tokio::time::Instant;

use super::connection::Activity;

/// When an answer that is made while it is sent is given up if its client has not read it by then. It belongs into the
/// extensions of the response; what is not made while it is sent has the listener's own
/// ([`Limits::answer_timeout`](super::Limits::answer_timeout)). Clones are the same deadline.
#[derive(Clone)]
pub struct AnswerDeadline(Rc<OfAnswer>);

struct OfAnswer {
    at: Cell<Option<Instant>>,
    /// The answer, when it is under way.
    answer: RefCell<Weak<Answer>>,
}

impl AnswerDeadline {
    /// At this moment.
    pub fn at(moment: Instant) -> AnswerDeadline {
        AnswerDeadline(Rc::new(OfAnswer {
            at: Cell::new(Some(moment)),
            answer: RefCell::default(),
        }))
    }

    /// From now on the answer may go on as long as it likes.
    pub fn lift(&self) {
        self.0.at.set(None);
    }

    /// The answer is given up: on HTTP/2 at once, on HTTP/1.1 when its connection is looked at.
    pub fn has_come(&self) {
        self.0.at.set(Some(Instant::now()));
        if let Some(answer) = self.0.answer.borrow().upgrade() {
            answer.give_up();
        }
    }
}

impl std::fmt::Debug for AnswerDeadline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AnswerDeadline").field(&self.0.at.get()).finish()
    }
}

/// A request under way, until the last of its answer is out.
pub(super) struct Answer {
    activity: Rc<Activity>,
    deadline: RefCell<Deadline>,
    progress: Cell<Progress>,
    given_up: Cell<bool>,
    /// Of the task that sends the answer on HTTP/2.
    task: Cell<Option<Waker>>,
}

#[derive(Default)]
enum Deadline {
    #[default]
    None,
    OfTheListener(Instant),
    OfTheApplication(AnswerDeadline),
}

/// How far an answer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// The application has not answered.
    Awaited,
    /// There was nothing to send when the body was asked last.
    Idle,
    /// There was something, and the client has not taken it all.
    Unread,
    /// Nor did it when somebody looked before.
    Stalled,
}

impl Answer {
    pub(super) fn new(activity: Rc<Activity>) -> Answer {
        Answer {
            activity,
            deadline: RefCell::default(),
            progress: Cell::new(Progress::Awaited),
            given_up: Cell::new(false),
            task: Cell::default(),
        }
    }

    /// The application has answered, with a deadline of its own or none.
    pub(super) fn begins(self: &Rc<Self>, deadline: Option<AnswerDeadline>) {
        if let Some(deadline) = &deadline {
            deadline.0.answer.replace(Rc::downgrade(self));
        }
        self.begins_until(deadline.map_or(Deadline::None, Deadline::OfTheApplication));
    }

    /// The application has answered, and nothing of that is left to be made.
    pub(super) fn begins_whole(&self, deadline: Instant) {
        self.begins_until(Deadline::OfTheListener(deadline));
    }

    fn begins_until(&self, deadline: Deadline) {
        self.progress.set(Progress::Unread);
        self.deadline.replace(deadline);
        if let Some(at) = self.deadline() {
            self.activity.look_at(at);
        }
    }

    /// The body was asked for more: because the client has read what there was, and whether there is more now.
    pub(super) fn asked(&self, more: bool) {
        self.progress.set(if more { Progress::Unread } else { Progress::Idle });
    }

    /// When it is given up at the latest.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match &*self.deadline.borrow() {
            Deadline::None => None,
            Deadline::OfTheListener(at) => Some(*at),
            Deadline::OfTheApplication(deadline) => deadline.0.at.get(),
        }
    }

    /// Whether the client has read nothing of what there is since the last call.
    pub(super) fn has_stalled(&self) -> bool {
        match self.progress.get() {
            Progress::Unread => self.progress.set(Progress::Stalled),
            Progress::Stalled => return true,
            Progress::Awaited | Progress::Idle => {}
        }
        false
    }

    /// Ends the task that sends it.
    pub(super) fn give_up(&self) {
        self.given_up.set(true);
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.activity.ended(self);
    }
}

/// Sends an answer on HTTP/2, or gives it up: then the stream is reset.
pub(super) async fn sent_or_given_up(answer: Rc<Answer>, sending: impl Future) {
    let mut sending = std::pin::pin!(sending);
    std::future::poll_fn(|cx: &mut Context<'_>| {
        if answer.given_up.get() || sending.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        // Until the application has answered there is nothing that a client could read.
        if answer.progress.get() != Progress::Awaited {
            let known = answer.task.take().filter(|task| task.will_wake(cx.waker()));
            answer.task.set(Some(known.unwrap_or_else(|| cx.waker().clone())));
        }
        Poll::Pending
    })
    .await;
}
