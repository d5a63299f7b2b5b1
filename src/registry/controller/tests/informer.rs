//! Informers: nothing that happens is lost, and what a writer was answered is seen.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use keelson_machinery::meta::v1::DeleteOptions;
use keelson_machinery::selector::LabelSelector;
use tokio::time::timeout;

use super::*;
use crate::generic::{Informer, Lister};

const PATIENCE: Duration = Duration::from_secs(60);

fn names(changes: &crate::generic::Changes) -> Vec<&str> {
    changes.all.iter().map(|change| change.key.name.as_str()).collect()
}

#[tokio::test]
async fn all_is_told_first_and_then_what_happens() {
    let verbs = verbs(memory());
    let objects = client(&verbs);
    for name in ["a", "b"] {
        objects.create(order(&objects, name)).await.unwrap();
    }
    let mut informer = Informer::new(orders(&verbs));
    assert!(!informer.has_synced());
    let first = informer.next().await.unwrap();
    assert!(first.anew && informer.has_synced());
    assert_eq!(names(&first), ["a", "b"]);

    label(&objects, "a", "7").await;
    let changes = informer.next().await.unwrap();
    assert!(!changes.anew);
    assert_eq!(names(&changes), ["a"]);
    let [change] = &*changes.all else { panic!() };
    let (old, new) = (
        change.old_object().await.unwrap().unwrap(),
        change.object().await.unwrap().unwrap(),
    );
    assert_eq!((labelled(&*old), labelled(&*new), change.is_deletion()), (0, 7, false));

    objects.delete("a", &DeleteOptions::default()).await.unwrap();
    let changes = informer.next().await.unwrap();
    let [change] = &*changes.all else { panic!() };
    assert!(change.is_deletion() && change.object().await.unwrap().is_none());
    assert_eq!(labelled(&*change.old_object().await.unwrap().unwrap()), 7);
    verbs.backend.store.close().await;
    assert!(informer.next().await.is_none());
}

/// Nobody watched while history was forgotten: what went meanwhile is told of as well.
#[tokio::test]
async fn what_went_while_nobody_watched_is_told() {
    let verbs = verbs(memory());
    let objects = client(&verbs);
    for name in ["a", "b"] {
        objects.create(order(&objects, name)).await.unwrap();
    }
    let mut informer = Informer::new(orders(&verbs));
    informer.next().await.unwrap();
    objects.delete("a", &DeleteOptions::default()).await.unwrap();
    objects.create(order(&objects, "c")).await.unwrap();
    let store = &verbs.backend.store;
    store.compact(store.current_revision().await.unwrap()).await.unwrap();
    let changes = informer.next().await.unwrap();
    assert!(changes.anew);
    let told: BTreeMap<_, _> = changes
        .all
        .iter()
        .map(|c| (c.key.name.as_str(), c.is_deletion()))
        .collect();
    assert_eq!(told, BTreeMap::from([("a", true), ("b", false), ("c", false)]));
    // From then on it goes on as before.
    label(&objects, "b", "1").await;
    let changes = informer.next().await.unwrap();
    assert_eq!((names(&changes), changes.anew), (vec!["b"], false));
}

/// Makes, changes and deletes orders of its own; after each answer the lister shows what was written.
async fn write(verbs: Arc<Verbs>, writer: usize) {
    const ROUNDS: u64 = 300;
    let objects = client(&verbs);
    let lister = Lister::new(orders(&verbs));
    for round in 1..=ROUNDS {
        let name = format!("w{writer}-{}", round % 3);
        let there = objects.find(&name).await.unwrap().is_some();
        match (there, round % 5) {
            (false, _) => drop(objects.create(order(&objects, &name)).await.unwrap()),
            (true, 0) => drop(objects.delete(&name, &DeleteOptions::default()).await.unwrap()),
            (true, _) => label(&objects, &name, &round.to_string()).await,
        }
        let shown = lister.get(&key(&name)).await.unwrap();
        let expected = match (there, round % 5) {
            (false, _) => Some(0),
            (true, 0) => None,
            (true, _) => Some(round),
        };
        assert_eq!(shown.map(|object| labelled(&*object)), expected, "{name}");
    }
}

/// Runs something that need not be sent elsewhere on a thread of its own.
fn on_a_thread<F: Future<Output = ()>>(make: impl FnOnce() -> F + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(make());
    })
}

/// Writers on threads of their own, a reader that is told which objects changed and reads them, sometimes late and
/// after history was cut: in the end it knows what is there.
#[tokio::test]
async fn no_change_is_lost_in_a_race() {
    const WRITERS: usize = 4;
    let verbs = verbs(memory());
    let running = Arc::new(AtomicUsize::new(WRITERS));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (verbs, running) = (verbs.clone(), running.clone());
            on_a_thread(move || async move {
                write(verbs, writer).await;
                running.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .collect();
    let mut informer = Informer::new(orders(&verbs));
    let lister = informer.lister();
    let mut known = BTreeMap::new();
    let mut told = 0;
    let store = verbs.backend.store.clone();
    let follow = async {
        loop {
            // Nothing more comes when all writers have ended and nothing comes for a while.
            let idle = timeout(Duration::from_millis(500), informer.next()).await;
            let Ok(changes) = idle else {
                match running.load(Ordering::SeqCst) {
                    0 => return,
                    _ => continue,
                }
            };
            let changes = changes.unwrap();
            for change in changes.all {
                told += 1;
                match lister.get(&change.key).await.unwrap() {
                    Some(object) => drop(known.insert(change.key.name, labelled(&*object))),
                    None => drop(known.remove(&change.key.name)),
                }
            }
            if told % 97 == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
                store.compact(store.current_revision().await.unwrap()).await.unwrap();
            }
        }
    };
    timeout(PATIENCE, follow).await.expect("the writers do not end");
    for writer in writers {
        writer.join().unwrap();
    }
    let there = lister.list("default").await.unwrap();
    let there: BTreeMap<_, _> = there.iter().map(|o| (o.meta().name.clone(), labelled(&**o))).collect();
    assert_eq!(known, there);
    assert!(!there.is_empty());
}

#[tokio::test]
async fn listers_list_and_select() {
    let verbs = verbs(memory());
    let objects = client(&verbs);
    for name in ["a", "b", "c"] {
        objects.create(order(&objects, name)).await.unwrap();
    }
    label(&objects, "b", "1").await;
    let lister = Lister::new(orders(&verbs));
    assert_eq!(lister.names("").await.unwrap(), ["a", "b", "c"].map(key));
    assert_eq!(lister.names("other").await.unwrap(), []);
    assert_eq!(lister.list("default").await.unwrap().len(), 3);
    let selector = LabelSelector::parse("n=1").unwrap();
    let selected = lister.select("default", &selector).await.unwrap();
    assert_eq!(
        selected.iter().map(|o| NamespacedName::of(&**o)).collect::<Vec<_>>(),
        [key("b")]
    );
    assert!(lister.exists(&key("a")).await.unwrap() && !lister.exists(&key("d")).await.unwrap());
    type Order = keelson_codegen_sample::api::shop_example_com::v1::Order;
    let typed = lister.typed::<Order>();
    assert_eq!(typed.get(&key("a")).await.unwrap().unwrap().spec.customer, "ann");
    assert_eq!(typed.list("").await.unwrap().len(), 3);
}
