//! Controllers at work: what they are called for, what becomes of failures, and their end.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use keelson_machinery::meta::v1::DeleteOptions;

use super::super::*;
use super::{client, key, label, labelled, memory, order, verbs};
use crate::generic::Verbs;

const ORDERS: GroupResource = GroupResource::new(super::GROUP, "orders");

/// What it was asked to reconcile, and what was there.
type Seen = Arc<Mutex<Vec<(String, Option<u64>)>>>;

/// Notes what it is called for; some keys are special.
#[derive(Clone, Default)]
struct Noting {
    seen: Seen,
    tries: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    whole: bool,
}

impl Controller for Noting {
    fn name(&self) -> &'static str {
        "noting"
    }

    fn reconciles(&self) -> GroupResource {
        ORDERS
    }

    fn begins_with(&self) -> Vec<NamespacedName> {
        Vec::from_iter(self.whole.then(|| key("whole")))
    }

    async fn reconcile(&self, key: &NamespacedName, context: &ControllerContext) -> Result<Next, Failure> {
        let there = context.lister(&ORDERS).unwrap().get(key).await?;
        let there = there.map(|object| labelled(&*object));
        self.seen.lock().unwrap().push((key.name.clone(), there));
        match key.name.as_str() {
            "failing" if self.tries.fetch_add(1, Ordering::SeqCst) < 3 => Err("not yet".into()),
            "panicking" if self.tries.fetch_add(1, Ordering::SeqCst) < 2 => panic!("not yet"),
            "again" => Ok(Next::After(Duration::from_millis(20))),
            "slow" => {
                tokio::time::sleep(Duration::from_millis(300)).await;
                self.ended.fetch_add(1, Ordering::SeqCst);
                Ok(Next::Done)
            }
            "endless" => std::future::pending().await,
            _ => Ok(Next::Done),
        }
    }
}

impl Noting {
    fn times(&self, name: &str) -> usize {
        self.seen
            .lock()
            .unwrap()
            .iter()
            .filter(|(seen, _)| seen == name)
            .count()
    }

    fn last(&self, name: &str) -> Option<Option<u64>> {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .rev()
            .find(|(seen, _)| seen == name)
            .map(|(_, there)| *there)
    }
}

/// Waits until something holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn started(noting: &Noting) -> (Arc<Verbs>, Controllers) {
    let (verbs, controllers) = (verbs(memory()), Controllers::default());
    controllers.run(&verbs, noting.clone()).unwrap();
    (verbs, controllers)
}

#[tokio::test]
async fn each_change_is_reconciled_with_what_is_there() {
    let noting = Noting::default();
    let verbs = verbs(memory());
    let objects = client(&verbs);
    objects.create(order(&objects, "before")).await.unwrap();
    let controllers = Controllers::default();
    controllers.run(&verbs, noting.clone()).unwrap();
    until("the one that was there", || noting.last("before") == Some(Some(0))).await;
    objects.create(order(&objects, "a")).await.unwrap();
    until("a new one", || noting.last("a") == Some(Some(0))).await;
    label(&objects, "a", "5").await;
    until("a change", || noting.last("a") == Some(Some(5))).await;
    objects.delete("a", &DeleteOptions::default()).await.unwrap();
    until("a deletion", || noting.last("a") == Some(None)).await;
    controllers.stop().await;
}

#[tokio::test]
async fn failures_and_panics_are_tried_again() {
    for (name, times) in [("failing", 4), ("panicking", 3)] {
        let noting = Noting::default();
        let (verbs, controllers) = started(&noting);
        let objects = client(&verbs);
        objects.create(order(&objects, name)).await.unwrap();
        until(name, || noting.times(name) == times).await;
        objects.create(order(&objects, "other")).await.unwrap();
        until("others go on", || noting.times("other") == 1).await;
        assert_eq!(noting.times(name), times);
        controllers.stop().await;
    }
}

#[tokio::test]
async fn again_after_is_kept() {
    let noting = Noting::default();
    let (verbs, controllers) = started(&noting);
    let objects = client(&verbs);
    objects.create(order(&objects, "again")).await.unwrap();
    until("again", || noting.times("again") == 5).await;
    controllers.stop().await;
    let times = noting.times("again");
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(noting.times("again"), times, "it goes on after its end");
    assert!(matches!(
        controllers.run(&verbs, noting),
        Err(RunError::Ending("noting"))
    ));
}

#[tokio::test]
async fn what_is_kept_right_as_a_whole_is_reconciled_without_an_object() {
    let noting = Noting {
        whole: true,
        ..Noting::default()
    };
    let (_verbs, controllers) = started(&noting);
    until("the whole", || noting.last("whole") == Some(None)).await;
    controllers.stop().await;
}

/// The end waits for what is under way, but not for ever.
#[tokio::test]
async fn the_end_is_waited_for() {
    let noting = Noting::default();
    let (verbs, controllers) = started(&noting);
    let objects = client(&verbs);
    objects.create(order(&objects, "slow")).await.unwrap();
    until("it begins", || noting.times("slow") == 1).await;
    controllers.stop().await;
    assert_eq!(noting.ended.load(Ordering::SeqCst), 1, "it was not waited for");

    let noting = Noting::default();
    let (verbs, controllers) = started(&noting);
    let objects = client(&verbs);
    objects.create(order(&objects, "endless")).await.unwrap();
    until("it begins", || noting.times("endless") == 1).await;
    let begin = Instant::now();
    controllers.stop().await;
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
}

/// Orders wait for the one of the same name in another namespace.
#[derive(Clone, Default)]
struct Following(Noting);

impl Controller for Following {
    fn name(&self) -> &'static str {
        "following"
    }

    fn reconciles(&self) -> GroupResource {
        ORDERS
    }

    fn watches(&self) -> Vec<GroupResource> {
        vec![ORDERS]
    }

    async fn affected(&self, change: &Change, _context: &ControllerContext) -> Result<Vec<NamespacedName>, Failure> {
        if change.key.name == "failing" && self.0.tries.fetch_add(1, Ordering::SeqCst) < 2 {
            return Err("not yet".into());
        }
        Ok(vec![key(&format!("{}-follower", change.key.name))])
    }

    async fn reconcile(&self, key: &NamespacedName, context: &ControllerContext) -> Result<Next, Failure> {
        self.0.reconcile(key, context).await
    }
}

#[tokio::test]
async fn watched_objects_concern_others() {
    let following = Following::default();
    let verbs = verbs(memory());
    let objects = client(&verbs);
    objects.create(order(&objects, "a")).await.unwrap();
    let controllers = Controllers::default();
    controllers.run(&verbs, following.clone()).unwrap();
    until("what was there", || following.0.times("a-follower") == 1).await;
    objects.create(order(&objects, "failing")).await.unwrap();
    until("what failed", || following.0.times("failing-follower") == 1).await;
    controllers.stop().await;
}

/// A controller that names what is not there.
struct Misspelt;

impl Controller for Misspelt {
    fn name(&self) -> &'static str {
        "misspelt"
    }

    fn reconciles(&self) -> GroupResource {
        GroupResource::new(super::GROUP, "ordres")
    }

    async fn reconcile(&self, _key: &NamespacedName, _context: &ControllerContext) -> Result<Next, Failure> {
        Ok(Next::Done)
    }
}

#[tokio::test]
async fn an_unknown_resource_is_named() {
    let error = Controllers::default().run(&verbs(memory()), Misspelt).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the controller misspelt: the server has no resource ordres.shop.example.com"
    );
}
