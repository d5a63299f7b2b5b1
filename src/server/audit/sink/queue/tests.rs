//! Tests of batches: what goes together, and who is woken for it. Where nothing is to go out, its time comes in an
//! hour.

use super::*;

/// What was delivered, by batches.
#[derive(Clone, Default)]
struct Delivered(Arc<Mutex<Vec<Vec<String>>>>);

impl Delivery for Delivered {
    async fn deliver(&mut self, taken: Taken) {
        let texts = taken
            .batch
            .events()
            .map(|event| String::from_utf8_lossy(event).into_owned());
        let texts = texts.collect();
        self.0.lock().unwrap().push(texts);
        taken.finish(true);
    }

    async fn settle(&mut self) {}
}

impl Delivered {
    fn take(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

const HOUR: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_millis(1);

fn queue(mode: Mode, buffer: usize, max_events: usize, patience: Duration) -> (Arc<Queue>, Delivered) {
    let batching = Batching {
        buffer,
        max_events,
        max_wait: patience,
        throttle: None,
    };
    let mut queue = Queue::new(mode, &batching, Counter::default());
    queue.patience = patience;
    let queue = Arc::new(queue);
    let delivered = Delivered::default();
    let (own, mut delivery) = (queue.clone(), delivered.clone());
    tokio::task::spawn_local(async move { run(own, &mut delivery).await });
    (queue, delivered)
}

/// Lets tasks run until they have nothing more to do.
async fn rest() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

/// What is delivered sooner or later.
async fn sooner_or_later(delivered: &Delivered) -> Vec<Vec<String>> {
    loop {
        match delivered.take() {
            none if none.is_empty() => tokio::time::sleep(SOON).await,
            some => return some,
        }
    }
}

async fn within<T>(test: impl Future<Output = T>) -> T {
    tokio::task::LocalSet::new().run_until(test).await
}

fn woken(queue: &Queue, event: &str, waits: bool) -> bool {
    let done = waits.then(|| oneshot::channel().0);
    let bell = queue.offer(event.as_bytes(), done);
    bell.is_ok_and(|bell| bell.0.is_some())
}

#[tokio::test]
async fn batches_go_when_they_are_complete_or_their_time_is_over() {
    within(async {
        let (slow, delivered) = queue(Mode::Batch, 100, 3, HOUR);
        rest().await;
        assert!(woken(&slow, "a", false), "somebody has to look at the clock");
        rest().await;
        assert!(!woken(&slow, "b", false), "it will look in time");
        rest().await;
        assert_eq!(delivered.take().len(), 0);
        assert!(woken(&slow, "c", false), "there are no more to wait for");
        rest().await;
        assert_eq!(delivered.take(), [["a", "b", "c"]]);
        let (fast, delivered) = queue(Mode::Batch, 100, 3, SOON);
        woken(&fast, "d", false);
        assert_eq!(sooner_or_later(&delivered).await, [["d"]]);
    })
    .await;
}

#[tokio::test]
async fn what_nobody_waits_for_goes_with_what_somebody_does() {
    within(async {
        let (slow, delivered) = queue(Mode::Blocking, 1, 1, HOUR);
        rest().await;
        assert!(!woken(&slow, "received 1", false), "it will look in time");
        rest().await;
        assert_eq!(delivered.take().len(), 0);
        assert!(woken(&slow, "complete 1", true));
        assert!(!woken(&slow, "complete 2", true), "it is awake");
        rest().await;
        assert_eq!(delivered.take(), [["received 1", "complete 1", "complete 2"]]);
        let (fast, delivered) = queue(Mode::Blocking, 1, 1, SOON);
        woken(&fast, "received 3", false);
        assert_eq!(sooner_or_later(&delivered).await, [["received 3"]], "not for ever");
    })
    .await;
}

#[tokio::test]
async fn whoever_sleeps_deeply_is_woken_once() {
    within(async {
        let (queue, delivered) = queue(Mode::Blocking, 1, 1, SOON);
        rest().await;
        // It has not expected more for that long.
        tokio::time::sleep(SOON * 20).await;
        assert!(woken(&queue, "a", false));
        assert_eq!(sooner_or_later(&delivered).await, [["a"]]);
    })
    .await;
}

#[tokio::test]
async fn who_waits_is_told_and_who_finds_no_room_waits() {
    within(async {
        let (queue, delivered) = queue(Mode::BlockingStrict, 1, 1, Duration::ZERO);
        let (done, written) = oneshot::channel();
        drop(queue.offer(b"a", Some(done)).unwrap());
        assert_eq!(written.await, Ok(true));
        let offered = (0..=BLOCKING_QUEUE).map(|_| queue.offer(b"b", None).is_ok());
        assert_eq!(offered.filter(|taken| *taken).count(), BLOCKING_QUEUE);
        assert!(queue.room().await);
        drop(queue.put(b"c", None).unwrap());
        queue.flush().await;
        let all = delivered.take().concat();
        assert_eq!((all.len(), all.last().unwrap().as_str()), (BLOCKING_QUEUE + 2, "c"));
    })
    .await;
}

#[tokio::test]
async fn a_full_buffer_takes_no_more() {
    within(async {
        let (queue, delivered) = queue(Mode::Batch, 5, 2, HOUR);
        let offered: Vec<bool> = (0..7).map(|n| queue.offer(&[b'0' + n], None).is_ok()).collect();
        assert_eq!(offered, [true, true, true, true, true, false, false]);
        queue.flush().await;
        assert_eq!(delivered.take(), [vec!["0", "1"], vec!["2", "3"], vec!["4"]]);
        assert!(queue.offer(b"7", None).is_ok());
        queue.close();
        rest().await;
        assert_eq!(delivered.take(), [["7"]], "nothing is left behind");
        assert_eq!(queue.offer(b"8", None).err(), Some(Turned::Gone));
    })
    .await;
}

#[tokio::test]
async fn whoever_goes_away_has_rung_the_bell() {
    within(async {
        let (queue, delivered) = queue(Mode::Blocking, 1, 1, HOUR);
        rest().await;
        let (done, written) = oneshot::channel();
        let bell = queue.offer(b"a", Some(done)).unwrap();
        rest().await;
        assert_eq!(delivered.take().len(), 0);
        drop((bell, written));
        rest().await;
        assert_eq!(delivered.take(), [["a"]]);
    })
    .await;
}
