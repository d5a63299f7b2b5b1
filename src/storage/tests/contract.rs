//! Runs the cases of the contract against each store.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use super::cases;
use super::etcd_server::EtcdServer;
use crate::{HistoryLimits, Store, StoreConfig, open};

/// Limits that leave it to the test when history is compacted.
const NEVER: HistoryLimits = HistoryLimits {
    age: None,
    bytes: usize::MAX,
};

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// Makes a module of tests per store, one test per case; etcd runs them one after the other, since starting it takes a
/// while and revisions are counted.
macro_rules! contract {
    ($($case:ident),* $(,)?) => {
        mod memory {
            use super::*;
            $(#[test]
            fn $case() {
                block_on(async { cases::$case(memory_store().await, concat!("/", stringify!($case), "/")).await });
            })*
        }

        mod embedded {
            use super::*;
            $(#[test]
            fn $case() {
                let dir = tempfile::tempdir().unwrap();
                let prefix = concat!("/", stringify!($case), "/");
                block_on(async { cases::$case(embedded_store(dir.path()).await, prefix).await });
            })*
        }

        #[test]
        fn etcd() {
            let Some(server) = EtcdServer::start() else { return };
            block_on(async {
                cases::the_first_write_makes_revision_two(etcd_store(&server).await, "/").await;
                $(println!(stringify!($case));
                cases::$case(etcd_store(&server).await, concat!("/", stringify!($case), "/")).await;)*
            });
        }
    };
}

contract!(
    a_key_is_made_changed_and_deleted,
    writes_conflict_when_the_key_is_not_as_expected,
    every_write_raises_the_revision_by_one,
    lists_go_by_prefix_limit_and_start,
    lists_show_the_past,
    snapshots_show_one_revision_whole,
    snapshots_share_their_entries_with_reads_and_events,
    long_lists_come_whole,
    revisions_beyond_history_are_refused,
    nothing_is_read_from_a_revision_to_come,
    no_change_is_told_without_its_past,
    watches_tell_every_change_in_order,
    watches_keep_to_their_prefix,
    a_watch_continues_a_list_without_a_gap,
    lists_and_watches_keep_up_with_a_hot_prefix,
    an_idle_watch_outlives_history,
    no_write_slips_between_a_list_and_its_watch,
    certain_reads_of_an_idle_prefix_are_quick,
    a_slow_watch_misses_nothing,
    watches_hear_of_progress_when_asked,
    keys_end_with_their_lease,
    many_keys_end_together,
    unknown_leases_are_refused,
    no_update_is_lost_among_many_writers,
    a_forgotten_prefix_ends_its_watches_and_begins_anew,
    closing_ends_everything,
);

async fn memory_store() -> Arc<dyn Store> {
    open(StoreConfig::Memory { history: NEVER }).await.unwrap()
}

async fn embedded_store(dir: &Path) -> Arc<dyn Store> {
    open(StoreConfig::Embedded {
        dir: dir.join("store"),
        history: NEVER,
    })
    .await
    .unwrap()
}

async fn etcd_store(server: &EtcdServer) -> Arc<dyn Store> {
    open(StoreConfig::Etcd(server.config())).await.unwrap()
}

/// As many events as a busy cluster makes in an hour, all at their end at once.
#[test]
fn a_hundred_thousand_keys_end_together() {
    let ttl = std::time::Duration::from_secs(20);
    block_on(async { cases::keys_end_together(memory_store().await, "/", 100_000, ttl).await });
}

#[test]
fn the_first_write_makes_revision_two() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        cases::the_first_write_makes_revision_two(memory_store().await, "/").await;
        cases::the_first_write_makes_revision_two(embedded_store(dir.path()).await, "/").await;
    });
}
