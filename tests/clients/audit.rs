//! Audit of the kinds of Kubernetes, by the server as a program: who asked for what, and nothing that is confidential.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::StreamExt;
use kube::Client;
use serde_json::{Value, json};

use crate::support::{Server, keelson};

const CANARY: &str = "canary-in-the-coal-mine";
const POLICY: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

/// A request with an id of its own, and what came back, if that is JSON.
async fn send(client: &Client, id: &str, method: &str, path: &str, content_type: &str, body: &str) -> Value {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("audit-id", id)
        .header("content-type", content_type)
        .body(body.as_bytes().to_vec())
        .unwrap();
    let answer = client.request_text(request).await.unwrap_or_default();
    serde_json::from_str(&answer).unwrap_or_default()
}

/// Requests about secrets and tokens that end in many ways; the token that was issued.
async fn confidential(client: &Client) -> String {
    let json = "application/json";
    let merge = "application/merge-patch+json";
    let secrets = "/api/v1/namespaces/default/secrets";
    let (one, accounts) = (format!("{secrets}/one"), "/api/v1/namespaces/default/serviceaccounts");
    let secret = json!({"metadata": {"name": "one"}, "stringData": {"k": CANARY}}).to_string();
    let broken = format!("{{\"data\": \"{CANARY}");
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let review = json!({"spec": {"token": CANARY}}).to_string();
    for (id, method, path, content_type, body) in [
        ("make", "POST", secrets, json, secret.as_str()),
        ("again", "POST", secrets, json, &secret),
        ("broken", "POST", secrets, json, &broken),
        ("unfit", "PATCH", &one, merge, &format!(r#"{{"data":["{CANARY}"]}}"#)),
        (
            "patch",
            "PATCH",
            &one,
            merge,
            &format!(r#"{{"stringData":{{"l":"{CANARY}"}}}}"#),
        ),
        ("apply", "PATCH", &one, "application/apply-patch+yaml", CANARY),
        ("put", "PUT", &one, json, &secret),
        ("list", "GET", secrets, json, ""),
        ("get", "GET", &one, json, ""),
        ("review", "POST", reviews, json, &review),
        ("account", "POST", accounts, json, r#"{"metadata":{"name":"robot"}}"#),
    ] {
        send(client, id, method, path, content_type, body).await;
    }
    let path = format!("{accounts}/robot/token");
    let issued = send(client, "token", "POST", &path, json, r#"{"spec":{}}"#).await;
    let token = issued["status"]["token"].as_str().unwrap().to_owned();
    let review = json!({"spec": {"token": token}}).to_string();
    let known = send(client, "known", "POST", reviews, json, &review).await;
    assert_eq!(known["status"]["authenticated"], true);
    send(client, "delete", "DELETE", &one, json, "").await;
    token
}

#[tokio::test]
async fn secrets_and_tokens_are_in_no_event_and_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit/audit.log"));
    std::fs::write(&policy, POLICY).unwrap();
    let flags = [
        "--storage-backend=memory".to_owned(),
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", log.display()),
        "-v=9".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Server::start(keelson(), &flags).await;
    let client = server.client().await;
    let token = confidential(&client).await;

    let text = std::fs::read_to_string(&log).unwrap();
    let parts = [
        CANARY.to_owned(),
        BASE64.encode(CANARY),
        token.split('.').nth(1).unwrap().to_owned(),
        token,
    ];
    for part in &parts {
        assert!(!text.contains(part.as_str()), "{part} is recorded");
        assert!(!server.log().contains(part.as_str()), "{part} is in the log");
    }
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&log), mode(log.parent().unwrap())), (0o600, 0o700));

    let event = |id: &str| -> Value {
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events
            .into_iter()
            .find(|event| event["auditID"] == id)
            .unwrap_or_else(|| panic!("{id} is not recorded"))
    };
    for (id, code, name) in [
        ("make", 201, "one"),
        ("again", 409, "one"),
        ("broken", 400, ""),
        ("unfit", 422, "one"),
        ("patch", 200, "one"),
        ("get", 200, "one"),
        ("token", 201, "robot"),
        ("known", 201, ""),
    ] {
        let event = event(id);
        assert_eq!(event["responseStatus"]["code"], code, "{event}");
        assert_eq!(event["objectRef"]["name"].as_str().unwrap_or_default(), name, "{event}");
        assert_eq!(event["user"]["groups"][0], "system:masters");
        assert!(event.get("requestObject").is_none() && event.get("responseObject").is_none());
    }
    let issued = &event("token")["annotations"]["authentication.kubernetes.io/issued-credential-id"];
    assert!(issued.as_str().unwrap().starts_with("JTI="), "{issued}");
}

#[tokio::test]
async fn events_name_who_acts_as_whom_and_on_what() {
    let folder = tempfile::tempdir().unwrap();
    let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
    std::fs::write(&policy, POLICY).unwrap();
    let policy = format!("--audit-policy-file={}", policy.display());
    let path = format!("--audit-log-path={}", log.display());
    let server = Server::start(keelson(), &["--storage-backend=memory", &policy, &path]).await;
    let client = server.client().await;
    let pods = "/api/v1/namespaces/default/pods";
    for (id, method, path, headers) in [
        (
            "as",
            "GET",
            "/api/v1/nodes/n",
            vec![("impersonate-user", "ann"), ("impersonate-group", "g")],
        ),
        ("exec", "POST", &format!("{pods}/p/exec?command=ls"), vec![]),
        ("evict", "POST", &format!("{pods}/p/eviction"), vec![]),
        (
            "scale",
            "GET",
            "/apis/apps/v1/namespaces/default/deployments/d/scale",
            vec![],
        ),
        (
            "old",
            "GET",
            "/api/v1/componentstatuses",
            vec![("x-forwarded-for", "192.0.2.7")],
        ),
    ] {
        let mut request = http::Request::builder().method(method).uri(path).header("audit-id", id);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let _ = client.request_text(request.body(Vec::new()).unwrap()).await;
    }
    let text = std::fs::read_to_string(&log).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |id: &str| -> Vec<&Value> { events.iter().filter(|event| event["auditID"] == id).collect() };

    let acting = of("as")[0];
    assert_eq!(
        acting["impersonatedUser"],
        json!({"username": "ann", "groups": ["g", "system:authenticated"]})
    );
    assert_eq!(
        acting["authenticationMetadata"],
        json!({"impersonationConstraint": "impersonate:user-info"})
    );
    assert_eq!(acting["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(acting["responseStatus"]["reason"], "Forbidden");

    let exec = of("exec");
    assert_eq!(exec.len(), 2, "a stream begins and ends");
    assert_eq!(
        (&exec[0]["stage"], &exec[1]["stage"]),
        (&json!("ResponseStarted"), &json!("ResponseComplete"))
    );
    assert_eq!(
        (&exec[0]["verb"], &exec[0]["objectRef"]["subresource"]),
        (&json!("create"), &json!("exec"))
    );
    assert_eq!(of("evict")[0]["objectRef"]["subresource"], "eviction");
    assert_eq!(
        of("scale")[0]["objectRef"],
        json!({"resource": "deployments", "namespace": "default", "name": "d", "apiGroup": "apps", "apiVersion": "v1",
               "subresource": "scale"})
    );
    let old = of("old")[0];
    assert_eq!(old["annotations"]["k8s.io/deprecated"], "true");
    assert_eq!(old["sourceIPs"], json!(["192.0.2.7", "127.0.0.1"]));
}

/// The events in all files of a folder, by request and stage.
fn recorded(folder: &std::path::Path) -> BTreeMap<(String, String), usize> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines() {
            let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let of = |key: &str| event[key].as_str().unwrap().to_owned();
            *found.entry((of("auditID"), of("stage"))).or_default() += 1;
        }
    }
    found
}

/// Files of a megabyte are put aside while requests come and the server is killed.
#[tokio::test]
async fn a_kill_loses_no_event_of_an_answered_request() {
    const REQUESTS: usize = 400;
    const AT_ONCE: usize = 16;
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    let rules = "rules: [{level: Metadata, nonResourceURLs: [/version]}]";
    std::fs::write(&policy, format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}\n")).unwrap();
    let logs = folder.path().join("logs");
    let policy = format!("--audit-policy-file={}", policy.display());
    let log = format!("--audit-log-path={}", logs.join("audit.log").display());
    let flags = ["--storage-backend=memory", &policy, &log, "--audit-log-maxsize=1"];
    let padding = "x".repeat(3000);
    let mut answered = Vec::new();
    for round in 0..3 {
        let server = Server::start(keelson(), &flags).await;
        let client = server.client().await;
        let asked = (0..REQUESTS).map(|n| {
            let (client, id) = (client.clone(), format!("{round}-{n}"));
            let request = http::Request::get(format!("/version?{padding}")).header("audit-id", &id);
            let request = request.body(Vec::new()).unwrap();
            async move { client.request_text(request).await.is_ok().then_some(id) }
        });
        let mut answers = futures_util::stream::iter(asked).buffer_unordered(AT_ONCE);
        // The last ones are under way when it is killed.
        for _ in 0..REQUESTS - AT_ONCE {
            answered.extend(answers.next().await.unwrap());
        }
        drop(server);
    }
    let found = recorded(&logs);
    assert!(std::fs::read_dir(&logs).unwrap().count() > 1, "files were put aside");
    assert!(answered.len() >= 3 * (REQUESTS - AT_ONCE));
    for id in answered {
        for stage in ["RequestReceived", "ResponseComplete"] {
            assert_eq!(found.get(&(id.clone(), stage.to_owned())), Some(&1), "{id} {stage}");
        }
    }
    assert!(found.values().all(|times| *times == 1), "no event stands twice");
}
