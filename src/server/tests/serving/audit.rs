//! The log of an audit, as a client's requests fill it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use keelson_access::authz::Authorization;
use keelson_base::env::SystemClock;
use keelson_server::audit::sink::{Batching, Format, LogSettings, Mode, Rotation, Truncation};
use keelson_server::audit::{Audit, AuditSettings, Policy};
use keelson_server::server::Config;
use serde_json::{Value, json};

use crate::panics::Panics;
use crate::setting::{Client, ORDERS, Server, soon, text};

/// A server that is audited, and its log.
struct Audited {
    server: Server,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

/// Audits by these rules (YAML) in the plain mode.
fn audited(rules: &str) -> Audited {
    audited_as(rules, |_| {})
}

fn audited_as(rules: &str, change: impl FnOnce(&mut LogSettings)) -> Audited {
    audited_under(rules, change, |_| {})
}

/// The same, of a server that is otherwise, too.
fn audited_under(
    rules: &str,
    change: impl FnOnce(&mut LogSettings),
    server: impl FnOnce(&mut Config) + Send + 'static,
) -> Audited {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.log");
    let policy = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}\n");
    let mut settings = LogSettings {
        path: Some(log.clone()),
        format: Format::Json,
        mode: Mode::Blocking,
        batching: Batching {
            buffer: 100,
            max_events: 1,
            max_wait: Duration::ZERO,
            throttle: None,
        },
        truncation: None,
        rotation: Rotation {
            max_bytes: 100 << 20,
            max_days: 0,
            max_files: 0,
            compress: false,
        },
    };
    change(&mut settings);
    let settings = AuditSettings {
        policy: Some(Policy::read(policy.as_bytes()).unwrap().0),
        log: Some(settings),
        webhook: None,
    };
    let audit = Audit::start(settings, Arc::new(SystemClock)).unwrap();
    Audited {
        server: Server::configured(move |config| {
            config.audit = audit;
            server(config);
        }),
        log,
        _folder: folder,
    }
}

impl Audited {
    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// The events of a request.
    fn events(&self, id: &str) -> Vec<Value> {
        let events = self
            .lines()
            .into_iter()
            .map(|line| serde_json::from_str(&line).unwrap());
        events.filter(|event: &Value| event["auditID"] == id).collect()
    }

    /// The last event of a request, when there are so many.
    async fn last(&self, id: &str, count: usize) -> Value {
        let ready = async {
            while self.events(id).len() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon(ready).await;
        let mut events = self.events(id);
        assert_eq!(events.len(), count, "{events:#?}");
        events.pop().unwrap()
    }
}

/// Sends a request with an id of its own; the answer's status.
async fn send(client: &mut Client, id: &str, method: &str, path: &str, body: &str) -> u16 {
    let content_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = http::Request::builder()
        .method(method)
        .uri(format!("http://localhost{path}"))
        .header("audit-id", id)
        .header("user-agent", "tester/1")
        .header("authorization", "Bearer CANARY-TOKEN")
        .header("content-type", content_type)
        .body(Full::from(Bytes::from(body.to_owned())))
        .unwrap();
    let answer = soon(client.sender.send_request(request)).await.unwrap();
    assert_eq!(answer.headers()["audit-id"], id);
    let status = answer.status().as_u16();
    text(answer).await;
    status
}

fn order(name: &str) -> String {
    let order = json!({
        "metadata": {"name": name},
        "spec": {"customer": "ann", "street": "s", "notes": {"n": "<CANARY-BODY>"}, "items": [{"article": "a"}], "price": 1,
                 "extra": {"apiVersion": "v1", "kind": "X"}},
    });
    order.to_string()
}

fn object(event: &Value) -> &Value {
    &event["objectRef"]
}

#[tokio::test]
async fn a_request_has_an_event_when_it_comes_and_one_when_it_ends() {
    let audited = audited("[{level: Metadata}]");
    let mut client = audited.server.client().await;
    assert_eq!(send(&mut client, "make", "POST", ORDERS, &order("one")).await, 201);
    let events = audited.events("make");
    let head = |stage: &str, name: Value| {
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "make", "stage": stage,
            "requestURI": ORDERS, "verb": "create",
            "user": {"username": "system:anonymous", "groups": ["system:unauthenticated"]},
            "sourceIPs": ["127.0.0.1"], "userAgent": "tester/1",
            "objectRef": name,
        })
    };
    let path =
        json!({"resource": "orders", "namespace": "default", "apiGroup": "shop.example.com", "apiVersion": "v1"});
    let named = json!({"resource": "orders", "namespace": "default", "name": "one", "apiGroup": "shop.example.com", "apiVersion": "v1"});
    let mut wanted = [head("RequestReceived", path), head("ResponseComplete", named)];
    wanted[1]["responseStatus"] = json!({"metadata": {}, "code": 201});
    for (event, want) in events.iter().zip(&mut wanted) {
        for time in ["requestReceivedTimestamp", "stageTimestamp"] {
            assert_eq!(event[time].as_str().unwrap().len(), "2006-01-02T15:04:05.000000Z".len());
            want[time] = event[time].clone();
        }
    }
    wanted[1]["annotations"] = json!({"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""});
    assert_eq!(events[0]["requestReceivedTimestamp"], events[0]["stageTimestamp"]);
    // As text, since the order of fields is part of it.
    let texts = |events: &[Value]| events.iter().map(Value::to_string).collect::<Vec<_>>();
    assert_eq!(texts(&events), texts(&wanted));
    let all = audited.lines().join("\n");
    assert!(!all.contains("CANARY"), "bodies and tokens are not for this level");
}

#[tokio::test]
async fn bodies_are_recorded_as_far_as_the_level_says() {
    let rules = "[{level: Request, verbs: [patch]}, {level: RequestResponse, verbs: [create, delete, list, get]}, \
                 {level: Metadata}]";
    let audited = audited(rules);
    let mut client = audited.server.client().await;
    let one = format!("{ORDERS}/one");
    assert_eq!(send(&mut client, "make", "POST", ORDERS, &order("one")).await, 201);
    let made = audited.last("make", 2).await;
    assert_eq!(made["requestObject"]["spec"]["notes"]["n"], "<CANARY-BODY>");
    assert_eq!(made["requestObject"]["kind"], "Order");
    assert!(made["requestObject"]["metadata"].get("uid").is_none());
    let uid = &made["responseObject"]["metadata"]["uid"];
    assert!(uid.is_string() && made["responseObject"]["apiVersion"] == "shop.example.com/v1");
    assert!(
        audited.lines().join("").contains(r"\u003cCANARY-BODY\u003e"),
        "as Go writes it"
    );

    assert_eq!(
        send(&mut client, "patch", "PATCH", &one, "{ \"spec\": {\"price\": 2} }").await,
        200
    );
    let patched = audited.last("patch", 2).await;
    assert_eq!(patched["requestObject"], json!({"spec": {"price": 2}}));
    assert!(patched.get("responseObject").is_none());

    assert_eq!(send(&mut client, "broken", "PATCH", &one, "{\"spec\":").await, 400);
    assert_eq!(audited.last("broken", 2).await["requestObject"], "{\"spec\":");

    assert_eq!(send(&mut client, "list", "GET", ORDERS, "").await, 200);
    let listed = audited.last("list", 2).await;
    assert_eq!(listed["responseObject"]["kind"], "OrderList");
    assert_eq!(listed["responseObject"]["items"][0]["spec"]["price"], 2);

    let options = r#"{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}"#;
    assert_eq!(send(&mut client, "delete", "DELETE", &one, options).await, 200);
    let deleted = audited.last("delete", 2).await;
    assert_eq!(
        deleted["requestObject"],
        json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal", "propagationPolicy": "Background"})
    );
    assert_eq!(deleted["responseObject"]["metadata"]["uid"], *uid);

    assert_eq!(send(&mut client, "gone", "GET", &one, "").await, 404);
    let gone = audited.last("gone", 2).await;
    assert_eq!(object(&gone)["name"], "one");
    assert_eq!(gone["responseStatus"]["reason"], "NotFound");
    assert_eq!(gone["responseObject"]["kind"], "Status");
}

#[tokio::test]
async fn an_update_names_the_object_it_was_meant_for() {
    let audited = audited("[{level: Metadata}]");
    let mut client = audited.server.client().await;
    send(&mut client, "make", "POST", ORDERS, &order("one")).await;
    let mut body: Value = serde_json::from_str(&order("one")).unwrap();
    body["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000".into();
    body["metadata"]["resourceVersion"] = "1".into();
    let status = send(&mut client, "put", "PUT", &format!("{ORDERS}/one"), &body.to_string()).await;
    assert_eq!(status, 409);
    let put = audited.last("put", 2).await;
    assert_eq!(object(&put)["uid"], body["metadata"]["uid"]);
    assert_eq!(object(&put)["resourceVersion"], "1");
}

#[tokio::test]
async fn managed_fields_are_left_out_where_the_policy_says_so() {
    let audited = audited("[{level: RequestResponse, omitManagedFields: true}]");
    let mut client = audited.server.client().await;
    send(&mut client, "make", "POST", ORDERS, &order("one")).await;
    send(&mut client, "list", "GET", ORDERS, "").await;
    assert_eq!(
        audited.last("make", 2).await["responseObject"]["metadata"]["name"],
        "one"
    );
    assert_eq!(
        audited.last("list", 2).await["responseObject"]["items"][0]["metadata"]["name"],
        "one"
    );
    assert!(!audited.lines().join("").contains("managedFields"));
}

#[tokio::test]
async fn what_the_policy_leaves_out_does_not_appear() {
    let rules =
        "[{level: None, resources: [{group: shop.example.com}]}, {level: Metadata, omitStages: [RequestReceived]}]";
    let audited = audited(rules);
    let mut client = audited.server.client().await;
    send(&mut client, "secret", "POST", ORDERS, &order("one")).await;
    send(&mut client, "secret", "GET", &format!("{ORDERS}/nothing"), "").await;
    send(&mut client, "open", "GET", "/version", "").await;
    assert_eq!(audited.last("open", 1).await["stage"], "ResponseComplete");
    assert_eq!(audited.lines().len(), 1);
}

#[tokio::test]
async fn a_watch_has_an_event_when_it_begins_and_one_when_it_ends() {
    let audited = audited("[{level: RequestResponse}]");
    let mut client = audited.server.client().await;
    client.create("seen", 0).await;
    let request = http::Request::get(format!("http://localhost{ORDERS}?watch=1"))
        .header("audit-id", "watch")
        .body(Full::default())
        .unwrap();
    let answer = soon(client.sender.send_request(request)).await.unwrap();
    let begun = audited.last("watch", 2).await;
    assert_eq!(
        (&begun["stage"], &begun["verb"]),
        (&json!("ResponseStarted"), &json!("watch"))
    );
    assert_eq!(begun["responseStatus"], json!({"metadata": {}, "code": 200}));
    drop((answer, client));
    let ended = audited.last("watch", 3).await;
    assert_eq!(ended["stage"], "ResponseComplete");
    assert!(ended.get("responseObject").is_none());
}

#[tokio::test]
async fn requests_that_are_refused_at_the_door_are_recorded() {
    let audited = audited("[{level: Metadata, users: [ann]}, {level: Request}]");
    let mut client = audited.server.client().await;
    assert_eq!(
        send(&mut client, "time", "GET", &format!("{ORDERS}?timeout=x"), "").await,
        400
    );
    let refused = audited.last("time", 1).await;
    assert_eq!(refused["stage"], "ResponseStarted");
    assert_eq!((&refused["level"], &refused["user"]), (&json!("Request"), &json!({})));
    assert_eq!(refused["responseStatus"]["code"], 400);
    assert_eq!(object(&refused)["resource"], "orders");
}

#[tokio::test]
async fn a_request_that_runs_out_of_time_ends_in_the_log_too() {
    let audited = audited("[{level: Metadata}]");
    let mut client = audited.server.client().await;
    let late = format!("{ORDERS}?resourceVersion=99999999&timeout=50ms");
    assert_eq!(send(&mut client, "late", "GET", &late, "").await, 504);
    let late = audited.last("late", 2).await;
    assert_eq!(late["stage"], "ResponseComplete");
    assert_eq!(late["responseStatus"]["code"], 504);
}

#[tokio::test]
async fn large_events_lose_their_objects() {
    let truncation = Some(Truncation { max_event: 1500 });
    let audited = audited_as("[{level: RequestResponse}]", |log| log.truncation = truncation);
    let mut client = audited.server.client().await;
    client.create("large", 5000).await;
    let cut = &audited.lines()[1];
    assert!(cut.len() <= 1500);
    let cut: Value = serde_json::from_str(cut).unwrap();
    assert_eq!(cut["annotations"]["audit.k8s.io/truncated"], "true");
    assert!(cut.get("requestObject").is_none() && cut.get("responseObject").is_none());
    assert_eq!(object(&cut)["name"], "large");
}

/// Also where nothing is said of large events, and of many that come together.
#[tokio::test]
async fn no_line_is_longer_than_a_file() {
    const FILE: u64 = 2000;
    let audited = audited_as("[{level: RequestResponse}]", |log| {
        log.rotation.max_bytes = FILE;
        log.mode = Mode::Batch;
        log.batching.max_events = 100;
        log.batching.max_wait = Duration::from_millis(200);
    });
    let mut client = audited.server.client().await;
    for n in 0..8 {
        client.create(&format!("large{n}"), 5000).await;
    }
    let files = || {
        let found = std::fs::read_dir(audited.log.parent().unwrap()).unwrap();
        found.map(|file| file.unwrap().path()).collect::<Vec<_>>()
    };
    let text = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    soon(async {
        while files().iter().map(|path| text(path).lines().count()).sum::<usize>() < 16 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(files().len() > 4);
    for path in files() {
        let text = text(&path);
        assert!(text.len() <= usize::try_from(FILE).unwrap(), "{}", text.len());
        assert!(
            text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()),
            "{text}"
        );
    }
}

#[tokio::test]
async fn the_form_of_old_has_one_line_of_words() {
    let audited = audited_as("[{level: Metadata}]", |log| log.format = Format::Legacy);
    let mut client = audited.server.client().await;
    send(&mut client, "a \"b\"", "GET", "/version", "").await;
    send(&mut client, "make", "POST", ORDERS, &order("one")).await;
    let lines = audited.lines();
    let after = |line: &str| line.split_once("Z AUDIT: ").unwrap().1.to_owned();
    let user = r#"user="system:anonymous" groups="\"system:unauthenticated\"" as="<self>" asgroups="<lookup>" user-agent="tester/1""#;
    assert_eq!(
        after(&lines[0]),
        format!(
            r#"id="a \"b\"" stage="RequestReceived" ip="127.0.0.1" method="get" {user} namespace="<none>" uri="/version" response="<deferred>""#
        )
    );
    assert_eq!(
        after(&lines[3]),
        format!(
            r#"id="make" stage="ResponseComplete" ip="127.0.0.1" method="create" {user} namespace="default" uri="{ORDERS}" response="201""#
        )
    );
}

#[tokio::test]
async fn batches_are_written_by_the_end_of_the_server() {
    let mut audited = audited_as("[{level: Metadata, omitStages: [RequestReceived]}]", |log| {
        log.mode = Mode::Batch;
        log.batching.max_events = 1000;
        log.batching.max_wait = Duration::from_secs(3600);
    });
    let mut client = audited.server.client().await;
    for n in 0..20 {
        send(&mut client, &format!("r{n}"), "GET", "/version", "").await;
    }
    assert_eq!(audited.lines().len(), 0, "they wait for others");
    drop(client);
    audited.server.begin_to_stop();
    audited.last("r19", 1).await;
    assert_eq!(audited.lines().len(), 20);
}

/// A log that can't be written any more: each line wants a file of its own, in a folder that is gone.
#[tokio::test]
async fn only_a_strict_log_that_fails_stops_requests() {
    for (mode, status) in [(Mode::BlockingStrict, 500), (Mode::Blocking, 201), (Mode::Batch, 201)] {
        let audited = audited_as(
            "[{level: None, nonResourceURLs: [/metrics]}, {level: Metadata}]",
            |log| {
                log.mode = mode;
                log.rotation.max_bytes = 900;
            },
        );
        let mut client = audited.server.client().await;
        assert_eq!(send(&mut client, "first", "GET", "/version", "").await, 200);
        soon(async {
            while !audited.lines().iter().any(|line| line.contains("ResponseComplete")) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        std::fs::remove_dir_all(audited.log.parent().unwrap()).unwrap();
        assert_eq!(
            send(&mut client, "make", "POST", ORDERS, &order("one")).await,
            status,
            "{mode:?}"
        );
        let metrics = text(client.get("/metrics").await).await;
        assert!(!metrics.contains("apiserver_audit_event_total 0\n"));
        let rejected = metrics.contains("apiserver_audit_requests_rejected_total 1\n");
        assert_eq!(rejected, mode == Mode::BlockingStrict);
    }
}

/// A request that panics ends with the stage of its name, and its status is that of the answer.
#[tokio::test]
async fn a_panic_is_a_stage() {
    let audited = audited_under(
        "[{level: Metadata}]",
        |_| {},
        |config| config.access.authorization = Authorization::new(vec![Arc::new(Panics)]),
    );
    let mut client = audited.server.client().await;
    let status = send(&mut client, "panic-1", "GET", &format!("{ORDERS}/panic"), "").await;
    assert_eq!(status, 500);
    let event = audited.last("panic-1", 2).await;
    assert_eq!(event["stage"], "Panic");
    assert_eq!(event["responseStatus"]["code"], 500);
    assert_eq!(event["objectRef"]["name"], "panic");
}
