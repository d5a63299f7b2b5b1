//! A webhook and the server behind it.

use std::sync::atomic::{AtomicUsize, Ordering};

use keelson_net::client::Dialer;
use keelson_net::client::stub::{Reply, Seen, Stub};
use prometheus_client::metrics::counter::Counter;

use super::super::{Mode, Sink, Wait};
use super::*;

fn event(id: &str) -> Bytes {
    format!(r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"{id}"}}"#).into()
}

struct Hook {
    sink: Sink,
    errors: Counter,
    _config: tempfile::NamedTempFile,
}

fn hook(stub: &Stub, mode: Mode, max_events: usize) -> Hook {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), stub.kubeconfig("/audit?more=1")).unwrap();
    let settings = WebhookSettings {
        config: config.path().to_owned(),
        dialer: Dialer::default(),
        mode,
        batching: Batching {
            buffer: 100,
            max_events,
            max_wait: Duration::from_secs(3600),
            throttle: None,
        },
        truncation: None,
        initial_backoff: Duration::from_millis(1),
    };
    let errors = Counter::default();
    Hook {
        sink: Sink::webhook(settings, errors.clone()).unwrap(),
        errors,
        _config: config,
    }
}

fn ids(seen: &Seen) -> Vec<String> {
    let list = seen.json();
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&"EventList".into(), &"audit.k8s.io/v1".into())
    );
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            assert!(item.get("kind").is_none(), "items have no type");
            item["auditID"].as_str().unwrap().to_owned()
        })
        .collect()
}

#[tokio::test]
async fn events_are_sent_as_lists() {
    let stub = Stub::https(|_| Reply::new(200, "")).await;
    let hook = hook(&stub, Mode::Batch, 2);
    for id in ["a", "b", "c"] {
        assert!(hook.sink.send(&event(id), Wait::Always).await);
    }
    hook.sink.flush().await;
    let seen = stub.seen();
    let mut lists: Vec<_> = seen.iter().map(ids).collect();
    lists.sort();
    assert_eq!(lists, [vec!["a", "b"], vec!["c"]]);
    assert_eq!(
        (seen[0].method.as_str(), seen[0].path.as_str()),
        ("POST", "/audit?timeout=30s")
    );
    assert_eq!(seen[0].header("content-type"), "application/json");
    assert_eq!(hook.errors.get(), 0);
}

#[tokio::test]
async fn a_list_that_is_refused_is_sent_again() {
    let turns = AtomicUsize::new(0);
    let stub = Stub::http(move |_| match turns.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::new(500, ""),
        1 => Reply::new(403, "not today"),
        _ => Reply::new(200, ""),
    })
    .await;
    let hook = hook(&stub, Mode::BlockingStrict, 1);
    assert!(
        hook.sink.send(&event("a"), Wait::Always).await,
        "it is out when this returns"
    );
    let lists: Vec<_> = stub.seen().iter().map(ids).collect();
    assert_eq!(lists, [["a"], ["a"], ["a"]]);
    assert_eq!(hook.errors.get(), 0);
}

#[tokio::test]
async fn what_does_not_get_through_is_counted() {
    let stub = Stub::http(|_| Reply::new(302, "").header("location", "http://elsewhere.example/")).await;
    for (mode, kept) in [
        (Mode::BlockingStrict, false),
        (Mode::Blocking, true),
        (Mode::Batch, true),
    ] {
        let hook = hook(&stub, mode, 1);
        assert_eq!(hook.sink.send(&event("a"), Wait::Always).await, kept, "{mode:?}");
        hook.sink.flush().await;
        assert_eq!(hook.errors.get(), 1);
    }
    assert_eq!(stub.seen().len(), 15, "five times each, and never elsewhere");
}

#[tokio::test]
async fn a_full_buffer_drops_what_comes() {
    let stub = Stub::http(|_| Reply::new(200, "").after(Duration::from_secs(3600))).await;
    let hook = hook(&stub, Mode::Batch, 1);
    for n in 0..1000 {
        assert!(
            hook.sink.send(&event(&n.to_string()), Wait::Always).await,
            "nobody waits"
        );
    }
    assert!(hook.errors.get() >= 1000 - 101 - u64::from(MAX_DELIVERIES));
}
