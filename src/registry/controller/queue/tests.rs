//! The promises of a work queue, with simulated time.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use tokio::time::{advance, timeout};

use super::*;

/// No jitter: what chance takes away is nothing.
struct NoChance;

impl Entropy for NoChance {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

fn queue() -> Queue<&'static str> {
    Queue::new(Backoff::default(), Arc::new(NoChance))
}

/// What a worker would get now.
fn taken<'a>(queue: &'a Queue<&'static str>) -> Option<Work<'a, &'static str>> {
    queue.next().now_or_never().flatten()
}

/// What a queue is asked for and what comes of it, one step after the other. Times are milliseconds.
enum Step {
    Add(&'static str),
    After(&'static str, u64),
    Retry(&'static str),
    Forget(&'static str),
    /// A worker asks, and gets this; "": nothing.
    Next(&'static str),
    /// It is done with this.
    Done(&'static str),
    Pass(u64),
    Length(usize),
    End,
}

async fn play(steps: &[Step]) {
    let queue = queue();
    let mut held: Vec<Work<'_, &'static str>> = Vec::new();
    for (n, step) in steps.iter().enumerate() {
        match step {
            Step::Add(key) => queue.add(key),
            Step::After(key, delay) => queue.add_after(key, Duration::from_millis(*delay)),
            Step::Retry(key) => queue.retry(key),
            Step::Forget(key) => queue.forget(key),
            Step::Next(key) => {
                let work = taken(&queue);
                assert_eq!(work.as_deref().copied().unwrap_or_default(), *key, "step {n}");
                held.extend(work);
            }
            Step::Done(key) => {
                let before = held.len();
                held.retain(|work| **work != *key);
                assert_eq!(held.len() + 1, before, "step {n}: {key} is not held");
            }
            Step::Pass(millis) => advance(Duration::from_millis(*millis)).await,
            Step::Length(length) => assert_eq!(queue.len(), *length, "step {n}"),
            Step::End => queue.end(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn keys_come_in_their_order_and_wait_once() {
    use Step::*;
    let steps = [
        Next(""),
        Add("a"),
        Add("b"),
        Add("a"),
        Length(2),
        Next("a"),
        Next("b"),
        Next(""),
        Length(0),
    ];
    play(&steps).await;
}

#[tokio::test(start_paused = true)]
async fn a_key_has_one_worker_at_a_time_and_is_worked_on_again_if_it_came_back() {
    use Step::*;
    let steps = [
        Add("a"),
        Next("a"),
        // It comes back twice while it is worked on.
        Add("a"),
        Add("a"),
        Next(""),
        Add("b"),
        Next("b"),
        Done("a"),
        Next("a"),
        Done("a"),
        Next(""),
        Done("b"),
        Next(""),
    ];
    play(&steps).await;
}

#[tokio::test(start_paused = true)]
async fn delays_are_kept_and_the_earliest_counts() {
    use Step::*;
    let steps = [
        After("a", 100),
        After("b", 50),
        After("a", 20),
        After("a", 70),
        After("c", 0),
        Length(1),
        Next("c"),
        Pass(19),
        Next(""),
        Pass(1),
        Next("a"),
        Pass(29),
        Next(""),
        Pass(1),
        Next("b"),
        // The later ones of `a` were let go.
        Pass(1000),
        Next(""),
    ];
    play(&steps).await;
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_waits_for_its_worker_like_others() {
    use Step::*;
    let steps = [
        Add("a"),
        Next("a"),
        After("a", 10),
        Pass(10),
        Next(""),
        Done("a"),
        Next("a"),
    ];
    play(&steps).await;
}

#[tokio::test(start_paused = true)]
async fn failures_double_the_wait_until_they_are_forgotten() {
    use Step::*;
    let mut steps = Vec::new();
    for wait in [5, 10, 20, 40] {
        steps.extend([Retry("a"), Pass(wait - 1), Next(""), Pass(1), Next("a"), Done("a")]);
    }
    steps.extend([
        Forget("a"),
        Retry("a"),
        Pass(4),
        Next(""),
        Pass(1),
        Next("a"),
        Done("a"),
    ]);
    // Others are not held up by it.
    steps.extend([Retry("b"), Pass(5), Next("b")]);
    play(&steps).await;
}

#[tokio::test(start_paused = true)]
async fn an_ended_queue_gives_nothing_to_anybody() {
    use Step::*;
    let steps = [
        Add("a"),
        Add("b"),
        After("c", 5),
        Next("a"),
        Add("a"),
        End,
        Length(0),
        Done("a"),
        Add("d"),
        After("e", 1),
        Pass(10),
        Next(""),
        Length(0),
    ];
    play(&steps).await;
    let queue = queue();
    let waiting = queue.next();
    let (ended, ()) = tokio::join!(waiting, async { queue.end() });
    assert!(ended.is_none());
}

#[tokio::test(start_paused = true)]
async fn failures_are_counted_for_each_key() {
    let queue = queue();
    assert_eq!(queue.failures(&"a"), 0);
    queue.retry("a");
    queue.retry("a");
    queue.retry("b");
    assert_eq!((queue.failures(&"a"), queue.failures(&"b")), (2, 1));
    queue.forget(&"a");
    assert_eq!((queue.failures(&"a"), queue.failures(&"b")), (0, 1));
}

/// A worker that sleeps for a key of later is woken for one that comes first.
#[tokio::test(start_paused = true)]
async fn sleeping_workers_are_woken() {
    let queue = queue();
    queue.add_after("late", Duration::from_secs(10));
    let begin = Instant::now();
    let (woken, ()) = tokio::join!(queue.next(), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        queue.add_after("soon", Duration::from_secs(2));
    });
    assert_eq!((*woken.unwrap(), begin.elapsed().as_secs()), ("soon", 3));
    assert_eq!((*queue.next().await.unwrap(), begin.elapsed().as_secs()), ("late", 10));
}

/// Many workers on many threads: every key that was added after its worker had taken it is worked on once more, and
/// no key is worked on by two at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_addition_is_lost_among_threads() {
    const KEYS: u64 = 7;
    const ADDITIONS: u64 = 20_000;
    let queue: Arc<Queue<u64>> = Arc::new(Queue::new(Backoff::default(), Arc::new(NoChance)));
    // How often each was asked for, as of which it was worked on, and by how many.
    let counters = || Arc::new([const { AtomicU64::new(0) }; KEYS as usize]);
    let (asked, seen, busy) = (counters(), counters(), counters());
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let (queue, asked, seen, busy) = (queue.clone(), asked.clone(), seen.clone(), busy.clone());
            tokio::spawn(async move {
                while let Some(work) = queue.next().await {
                    let key = *work as usize;
                    assert_eq!(busy[key].fetch_add(1, Ordering::SeqCst), 0, "two work on {key}");
                    seen[key].store(asked[key].load(Ordering::SeqCst), Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    busy[key].fetch_sub(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for n in 0..ADDITIONS {
        let key = n % KEYS;
        asked[key as usize].fetch_add(1, Ordering::SeqCst);
        match n % 3 {
            0 => queue.add_after(key, Duration::from_micros(10)),
            _ => queue.add(key),
        }
        if n % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let all_seen = async {
        let is_behind = |key: usize| seen[key].load(Ordering::SeqCst) != asked[key].load(Ordering::SeqCst);
        while (0..KEYS as usize).any(is_behind) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(30), all_seen)
        .await
        .expect("an addition was lost");
    queue.end();
    for worker in workers {
        worker.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_happens_is_measured() {
    let metrics = super::super::metrics::ControllerMetrics::default();
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let queue = Queue::measured(Backoff::default(), Arc::new(NoChance), metrics.queue("orders"));
    for key in ["a", "a", "b", "c"] {
        queue.add(key);
    }
    queue.retry("d");
    advance(Duration::from_millis(200)).await;
    let a = queue.next().await.unwrap();
    drop(queue.next().await.unwrap());
    advance(Duration::from_secs(3)).await;
    let text = || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    };
    let shown = text();
    for line in [
        "workqueue_adds_total{name=\"orders\"} 4",
        "workqueue_depth{name=\"orders\"} 2",
        "workqueue_retries_total{name=\"orders\"} 1",
        "workqueue_queue_duration_seconds_bucket{le=\"0.1\",name=\"orders\"} 0",
        "workqueue_queue_duration_seconds_bucket{le=\"1.0\",name=\"orders\"} 2",
        "workqueue_work_duration_seconds_count{name=\"orders\"} 1",
        "workqueue_unfinished_work_seconds{name=\"orders\"} 3.0",
        "workqueue_longest_running_processor_seconds{name=\"orders\"} 3.0",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    drop(a);
    assert!(text().contains("workqueue_unfinished_work_seconds{name=\"orders\"} 0.0"));
}
