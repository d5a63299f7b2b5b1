//! Reservations: what a write takes before it is stored (an address, a port, a share of a quota), and gives back unless
//! it commits.

use std::cell::RefCell;

use futures_util::future::LocalBoxFuture;

use super::write::Attempt;

/// Something that is taken for one attempt to write. Dropped, it is given back: the write was refused, was a dry run,
/// changed nothing, or lost to another writer and is tried again with a reservation of its own.
pub trait Reservation {
    /// The write is durable: what was taken stays taken.
    fn commit(self: Box<Self>);

    /// Whether the write is durable is not known: the store failed, or nobody waited for its answer. What is taken
    /// twice does more harm than what is taken for nothing, so it stays taken unless said otherwise.
    fn uncertain(self: Box<Self>) {
        self.commit();
    }

    /// Asked once, when it is held: what ends when everything is done that the end of this reservation takes, whichever
    /// end that is. The request waits for it before it is answered; the work must not depend on that, since clients
    /// leave. `None`: whoever ends it does all there is to do.
    fn settled(&mut self) -> Option<LocalBoxFuture<'static, ()>> {
        None
    }
}

/// The reservations of the attempt that is under way.
#[derive(Default)]
pub struct Reserved {
    guards: RefCell<Vec<Box<dyn Reservation>>>,
    settling: RefCell<Vec<LocalBoxFuture<'static, ()>>>,
}

impl Reserved {
    /// Keeps a reservation until it is known what becomes of the attempt.
    pub fn hold(&self, mut guard: Box<dyn Reservation>) {
        self.settling.borrow_mut().extend(guard.settled());
        self.guards.borrow_mut().push(guard);
    }

    /// Gives back what an attempt took that came to nothing, and waits for what the end of others takes.
    pub(super) async fn end(&self) {
        // Taken out first: whoever gives something back may ask for something else.
        drop(self.guards.take());
        for settled in self.settling.take() {
            settled.await;
        }
    }

    /// The attempt is about to be sent to the store.
    pub(super) fn writing(&self) -> Writing {
        Writing {
            guards: self.guards.take(),
        }
    }
}

/// Reservations of a write that the store has been asked for. Dropped before the store has answered, nothing is known
/// of the write.
#[must_use]
pub(super) struct Writing {
    guards: Vec<Box<dyn Reservation>>,
}

impl Writing {
    /// The store has answered.
    pub fn end<T>(mut self, attempt: &Attempt<T>) {
        let guards = std::mem::take(&mut self.guards);
        match attempt {
            Attempt::Written(_) => guards.into_iter().for_each(Reservation::commit),
            Attempt::Uncertain(_) => guards.into_iter().for_each(Reservation::uncertain),
            Attempt::Unwritten(_) | Attempt::Overtaken(_) => drop(guards),
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.guards.drain(..).for_each(Reservation::uncertain);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use futures_util::FutureExt;
    use keelson_machinery::status::StatusError;
    use tokio::sync::oneshot;

    use super::*;

    /// Tells what became of it.
    struct Guard(Rc<RefCell<Vec<&'static str>>>, bool);

    impl Guard {
        fn ends(mut self, how: &'static str) {
            self.0.borrow_mut().push(how);
            self.1 = true;
        }
    }

    impl Reservation for Guard {
        fn commit(self: Box<Self>) {
            self.ends("commit");
        }
        fn uncertain(self: Box<Self>) {
            self.ends("uncertain");
        }
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            if !self.1 {
                self.0.borrow_mut().push("release");
            }
        }
    }

    fn ends(how: impl FnOnce(Reserved)) -> Vec<&'static str> {
        let told = Rc::new(RefCell::new(Vec::new()));
        let reserved = Reserved::default();
        for _ in 0..2 {
            reserved.hold(Box::new(Guard(told.clone(), false)));
        }
        how(reserved);
        told.take()
    }

    #[test]
    fn a_reservation_ends_as_its_write_does() {
        let written = |attempt: Attempt<()>| ends(|reserved| reserved.writing().end(&attempt));
        assert_eq!(written(Attempt::Written(())), ["commit"; 2]);
        assert_eq!(written(Attempt::Unwritten(())), ["release"; 2]);
        assert_eq!(written(Attempt::Overtaken(None)), ["release"; 2]);
        let failed = StatusError::internal_error("no answer");
        assert_eq!(written(Attempt::Uncertain(failed)), ["uncertain"; 2]);
    }

    #[test]
    fn what_is_not_waited_for_is_uncertain() {
        assert_eq!(ends(|reserved| drop(reserved.writing())), ["uncertain"; 2]);
    }

    #[test]
    fn what_is_never_sent_is_given_back() {
        assert_eq!(ends(drop), ["release"; 2]);
        assert_eq!(ends(|reserved| reserved.end().now_or_never().unwrap()), ["release"; 2]);
    }

    /// Leaves work behind when it ends.
    struct Slow(
        Option<oneshot::Sender<()>>,
        Option<oneshot::Receiver<()>>,
        Rc<RefCell<Vec<oneshot::Sender<()>>>>,
    );

    impl Reservation for Slow {
        fn commit(self: Box<Self>) {}
        fn settled(&mut self) -> Option<LocalBoxFuture<'static, ()>> {
            let ended = self.1.take()?;
            Some(ended.map(drop).boxed_local())
        }
    }

    impl Drop for Slow {
        fn drop(&mut self) {
            self.2.borrow_mut().extend(self.0.take());
        }
    }

    #[test]
    fn a_request_waits_for_what_the_end_of_a_reservation_takes() {
        let work = Rc::default();
        let (end, ended) = oneshot::channel();
        let reserved = Reserved::default();
        reserved.hold(Box::new(Slow(Some(end), Some(ended), Rc::clone(&work))));
        let mut ending = Box::pin(reserved.end());
        assert!(ending.as_mut().now_or_never().is_none());
        work.take().into_iter().for_each(|one| one.send(()).unwrap());
        assert!(ending.now_or_never().is_some());
        assert!(reserved.end().now_or_never().is_some(), "it is waited for once");
    }
}
