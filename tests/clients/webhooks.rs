//! Webhooks of a server that runs as a program: those that misbehave cost their time and what their policy says, those
//! that call back are answered, and all are shown what was there.

mod faulty;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::support::{Server, keelson};
use faulty::Faulty;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
const PATIENCE: Duration = Duration::from_secs(60);

/// Status and body of an answer.
async fn ask(client: &Client, method: &str, path: &str, body: Value) -> (u16, Value) {
    let kind = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(Body::from(body.to_string().into_bytes()))
        .unwrap();
    let answer = client.send(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect_bytes().await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

async fn must(client: &Client, method: &str, path: &str, body: Value) -> Value {
    let (status, told) = ask(client, method, path, body).await;
    assert!(status < 300, "{method} {path}: {status} {told}");
    told
}

fn map(name: &str, labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}})
}

/// A webhook that is asked about what a label names, at a URL.
fn hook(name: &str, url: &str, ca: &str, resources: &[&str]) -> Value {
    use base64::Engine;
    let ca = base64::engine::general_purpose::STANDARD.encode(ca);
    json!({
        "name": format!("{name}.example.com"), "clientConfig": {"url": url, "caBundle": ca},
        "rules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": ["*"], "apiVersions": ["v1"],
            "resources": resources}],
        "objectSelector": {"matchLabels": {"hook": name}},
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
    })
}

async fn configure(client: &Client, which: &str, webhooks: Vec<Value>) {
    let kind = format!("{which}WebhookConfiguration");
    let path = format!("{CONFIGURATIONS}/{}s", kind.to_lowercase());
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": "hooks"}, "webhooks": webhooks});
    must(client, "POST", &path, object).await;
}

/// Paths of what misbehaves, each in its way.
const FAULTS: [&str; 9] = [
    "hang",
    "garbage",
    "huge",
    "half",
    "close",
    "redirect",
    "endless",
    "slow-head",
    "no-tls",
];

#[tokio::test]
async fn a_webhook_that_misbehaves_costs_its_time_and_what_its_policy_says() {
    let stub = Faulty::start(None).await;
    let server = Server::start(keelson(), &[]).await;
    let client = server.client().await;
    let mut hooks = Vec::new();
    for fault in FAULTS.iter().chain(&["link-local"]) {
        let url = match *fault {
            // What is there may not be known to clients of this server.
            "link-local" => "https://169.254.169.254/latest/meta-data".to_owned(),
            fault => stub.url(fault),
        };
        for policy in ["Fail", "Ignore"] {
            let mut hook = hook(
                &format!("{fault}-{}", policy.to_lowercase()),
                &url,
                &stub.ca,
                &["configmaps"],
            );
            hook["failurePolicy"] = policy.into();
            hooks.push(hook);
        }
    }
    for which in ["Mutating", "Validating"] {
        configure(&client, which, hooks.clone()).await;
        for fault in FAULTS.iter().chain(&["link-local"]) {
            for (policy, expected) in [("fail", 500), ("ignore", 201)] {
                let name = format!("{fault}-{policy}");
                let begin = Instant::now();
                let asked = ask(
                    &client,
                    "POST",
                    MAPS,
                    map(&format!("{name}-{}", which.to_lowercase()), json!({"hook": name})),
                );
                let beside = async {
                    // Nobody else waits.
                    let begin = Instant::now();
                    must(&client, "POST", &format!("{MAPS}?dryRun=All"), map("beside", json!({}))).await;
                    begin.elapsed()
                };
                let ((status, told), beside) = tokio::join!(asked, beside);
                assert_eq!(status, expected, "{which} {name}: {told}");
                if expected == 500 {
                    let begins = format!("Internal error occurred: failed calling webhook \"{name}.example.com\": ");
                    let message = told["message"].as_str().unwrap();
                    assert!(message.starts_with(&begins) && message.len() < 2_000, "{message}");
                    assert!(!message.contains("secret of the machine"), "{message}");
                }
                assert!(begin.elapsed() < PATIENCE && beside < PATIENCE, "{name}");
            }
        }
        let path = format!("{CONFIGURATIONS}/{}webhookconfigurations/hooks", which.to_lowercase());
        must(&client, "DELETE", &path, json!({})).await;
    }
    assert!(
        !stub.asked().iter().any(|(path, _)| path == "/redirected"),
        "a redirect was followed"
    );
    must(&client, "GET", "/api/v1/namespaces/default", Value::Null).await;
}

#[tokio::test]
async fn a_webhook_that_calls_back_is_answered() {
    const DEPTH: usize = 3;
    const WRITERS: usize = 32;
    let server = Server::start(keelson(), &[]).await;
    let client = server.client().await;
    let stub = Faulty::start(Some(client.clone())).await;
    // Its own writes are shown to it again.
    let mut back = hook("back", &stub.url("back"), &stub.ca, &["configmaps"]);
    back["timeoutSeconds"] = 30.into();
    for which in ["Mutating", "Validating"] {
        configure(&client, which, vec![back.clone()]).await;
    }
    let writes = (0..WRITERS).map(|writer| {
        let object = map(
            &format!("w{writer}"),
            json!({"hook": "back", "depth": DEPTH.to_string()}),
        );
        let client = client.clone();
        async move { must(&client, "POST", MAPS, object).await }
    });
    let all = tokio::time::timeout(PATIENCE, join_all(writes)).await.unwrap();
    assert_eq!(all.len(), WRITERS);
    let list = must(&client, "GET", &format!("{MAPS}?labelSelector=depth%3D0"), Value::Null).await;
    assert!(
        list["items"].as_array().unwrap().len() >= WRITERS,
        "each call made others"
    );
}

/// CVE-2021-25735: what a webhook compares is the object as it was stored, whatever was sent and by which path.
#[tokio::test]
async fn webhooks_are_shown_what_was_there_and_what_is_about_to_be() {
    let stub = Faulty::start(None).await;
    let server = Server::start(keelson(), &[]).await;
    let client = server.client().await;
    let url = stub.url("allow");
    let resources = ["nodes", "nodes/status", "deployments", "deployments/scale"];
    configure(&client, "Validating", vec![hook("seen", &url, &stub.ca, &resources)]).await;
    let labels = json!({"hook": "seen"});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels},
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}});
    must(&client, "POST", "/api/v1/nodes", node).await;
    let path = "/api/v1/nodes/n";
    let merge = json!({"spec": {"unschedulable": true, "taints": [{"key": "b", "effect": "NoExecute"}]}});
    let mut put = must(&client, "GET", path, Value::Null).await;
    put["metadata"]["labels"]["put"] = "yes".into();
    put["spec"]["podCIDR"] = "10.9.0.0/24".into();
    let status = json!({"status": {"nodeInfo": {"kubeletVersion": "v1"}}, "metadata": {"labels": {"x": "y"}}});
    for (method, below, body) in [("PATCH", "", merge), ("PUT", "", put), ("PATCH", "/status", status)] {
        let before = must(&client, "GET", path, Value::Null).await;
        let mut body = body;
        if method == "PUT" {
            body["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        }
        stub.forget();
        must(&client, method, &format!("{path}{below}"), body).await;
        let after = must(&client, "GET", path, Value::Null).await;
        let asked = stub.asked();
        let [(_, review)] = &asked[..] else { panic!("{asked:?}") };
        let request = &review["request"];
        assert_eq!(
            without_owners(&request["oldObject"]),
            without_owners(&before),
            "{method} {below}"
        );
        let mut object = without_owners(&request["object"]);
        // The store gives it when the webhook has said yes.
        object["metadata"]["resourceVersion"] = after["metadata"]["resourceVersion"].clone();
        assert_eq!(object, without_owners(&after), "{method} {below}");
        assert_ne!(
            request["object"]["spec"] == request["oldObject"]["spec"],
            below.is_empty()
        );
    }
}

fn without_owners(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"].as_object_mut().unwrap().remove("managedFields");
    object
}
