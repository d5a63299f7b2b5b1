//! Quotas under many writers: sums are exact, whoever comes first and whatever becomes of a write.

use std::sync::Arc;

use keelson_api::core::v1::{ConfigMap, ResourceQuota as Quota};
use keelson_machinery::quantity::Quantity;
use keelson_registry::{TypedObjects, Verbs};

use super::ResourceQuota;
use crate::admission::testing::{client, named, server};

const NAMESPACE: &str = "default";
const MAPS: &str = "configmaps";

fn objects<T: keelson_machinery::object::Object + Default + Clone>(verbs: &Arc<Verbs>) -> TypedObjects<T> {
    client(verbs).of::<T>(NAMESPACE).unwrap()
}

async fn bound(verbs: &Arc<Verbs>, name: &str, most: i64) {
    let quotas = objects::<Quota>(verbs);
    quotas
        .create(named(Quota::default(), |o| &mut o.metadata, name))
        .await
        .unwrap();
    let status = quotas.subresource("status").unwrap();
    let set = |quota: &mut Quota| {
        quota.status.hard.insert(MAPS.to_owned(), Quantity::from_int(most));
        quota.status.used.insert(MAPS.to_owned(), Quantity::from_int(0));
    };
    status.update(name, set).await.unwrap();
}

async fn used(verbs: &Arc<Verbs>, name: &str) -> i64 {
    let quota = objects::<Quota>(verbs).find(name).await.unwrap().unwrap();
    quota.status.used[MAPS].value()
}

/// What is given back is written behind the answer.
async fn settles(verbs: &Arc<Verbs>, name: &str, expected: i64) {
    for _ in 0..500 {
        if used(verbs, name).await == expected {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(used(verbs, name).await, expected);
}

/// Creates config maps of these names on a thread of its own, all at once, and says how many there were to be made.
fn create(verbs: &Arc<Verbs>, names: Vec<String>) -> std::thread::JoinHandle<usize> {
    let verbs = verbs.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let all = async {
            let maps = objects::<ConfigMap>(&verbs);
            let creations = names.iter().map(|name| {
                let map = named(ConfigMap::default(), |o| &mut o.metadata, name);
                maps.create(map)
            });
            let results = futures_util::future::join_all(creations).await;
            results.iter().filter(|result| result.is_ok()).count()
        };
        runtime.block_on(all)
    })
}

async fn quota_server() -> Arc<Verbs> {
    server(vec![Arc::new(ResourceQuota::default())]).await
}

#[tokio::test]
async fn many_writers_get_no_more_than_there_is() {
    let verbs = quota_server().await;
    bound(&verbs, "a", 50).await;
    bound(&verbs, "b", 60).await;
    let names = |thread: usize| (0..40).map(|n| format!("map-{thread}-{n}")).collect();
    let threads: Vec<_> = (0..4).map(|thread| create(&verbs, names(thread))).collect();
    let made: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(made, 50);
    assert_eq!(objects::<ConfigMap>(&verbs).objects.all().await.unwrap().len(), 50);
    settles(&verbs, "a", 50).await;
    settles(&verbs, "b", 50).await;
}

#[tokio::test]
async fn what_comes_to_nothing_is_given_back() {
    let verbs = quota_server().await;
    bound(&verbs, "a", 1000).await;
    // Every name is taken by one of four.
    let names = || (0..30).map(|n| format!("map-{n}")).collect();
    let threads: Vec<_> = (0..4).map(|_| create(&verbs, names())).collect();
    let made: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(made, 30);
    settles(&verbs, "a", 30).await;
}

#[tokio::test]
async fn what_somebody_else_has_counted_anew_is_not_given_back() {
    let verbs = quota_server().await;
    bound(&verbs, "a", 1000).await;
    let maps = objects::<ConfigMap>(&verbs);
    let map = || named(ConfigMap::default(), |o| &mut o.metadata, "map");
    maps.create(map()).await.unwrap();
    assert_eq!(maps.create(map()).await.err().unwrap().code, 409);
    settles(&verbs, "a", 1).await;
    let status = objects::<Quota>(&verbs).subresource("status").unwrap();
    let set = |number: i64| {
        move |quota: &mut Quota| drop(quota.status.used.insert(MAPS.to_owned(), Quantity::from_int(number)))
    };
    status.update("a", set(7)).await.unwrap();
    maps.create(named(ConfigMap::default(), |o| &mut o.metadata, "other"))
        .await
        .unwrap();
    assert_eq!(used(&verbs, "a").await, 8);
}

#[tokio::test]
async fn a_dry_run_takes_nothing_and_is_bound_all_the_same() {
    let verbs = quota_server().await;
    bound(&verbs, "a", 1).await;
    let dry = client(&verbs).dry_run(true).of::<ConfigMap>(NAMESPACE).unwrap();
    let map = || named(ConfigMap::default(), |o| &mut o.metadata, "map");
    dry.create(map()).await.unwrap();
    assert_eq!(used(&verbs, "a").await, 0);
    objects::<ConfigMap>(&verbs).create(map()).await.unwrap();
    let other = named(ConfigMap::default(), |o| &mut o.metadata, "other");
    let error = dry.create(other).await.err().unwrap();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            403,
            "configmaps \"other\" is forbidden: exceeded quota: a, requested: configmaps=1, used: configmaps=1, limited: \
             configmaps=1"
        )
    );
}
