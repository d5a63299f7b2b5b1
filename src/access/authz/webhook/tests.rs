//! The authorizer against webhooks of all kinds.

use std::sync::atomic::{AtomicUsize, Ordering};

use keelson_net::client::stub::{Reply, Seen, Stub, vacant_port, validity};
use keelson_net::client::{Backoff, Client, ClientSettings, Roots};
use keelson_net::tls::certs::CertificateAuthority;
use serde_json::{Value, json};

use super::*;
use crate::request_info::Query;

fn settings() -> WebhookSettings {
    WebhookSettings {
        name: "hook".to_owned(),
        version: Version::V1,
        authorized_ttl: Duration::ZERO,
        unauthorized_ttl: Duration::ZERO,
        failure_policy: FailurePolicy::NoOpinion,
        conditions: Arc::default(),
    }
}

fn authorizer(client: ClientSettings, url: &str, settings: WebhookSettings) -> WebhookAuthorizer {
    let webhook = Webhook::new(Client::new(client).unwrap(), url, Backoff::ONCE);
    WebhookAuthorizer::new(webhook, settings, AuthorizationMetrics::default())
}

fn alice() -> User {
    User {
        name: "alice".into(),
        uid: "7".into(),
        groups: vec!["devs".into()],
        extra: [("k".to_owned(), vec!["v".to_owned()])].into(),
    }
}

fn info(url: &str) -> RequestInfo {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    RequestInfo::parse("GET", path, &Query::parse(query)).unwrap()
}

fn review(status: Value) -> Reply {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": status});
    Reply::new(200, review.to_string()).header("content-type", "application/json")
}

async fn decide(authorizer: &WebhookAuthorizer, url: &str) -> Decision {
    authorizer.decide(&alice(), &info(url)).await
}

#[tokio::test]
async fn a_question_is_a_review() {
    let stub = Stub::https(|_| review(json!({"allowed": true}))).await;
    let authorizer = authorizer(stub.trusted(), &stub.url("/"), settings());
    for url in [
        "/api/v1/namespaces/n/pods?fieldSelector=spec.nodeName%3Dx,metadata.name%21%3Dy&labelSelector=b,a%20in%20(c),!d",
        "/apis/apps/v1/namespaces/n/deployments/x/scale",
        "/healthz",
    ] {
        assert_eq!(decide(&authorizer, url).await, Decision::Allow(String::new()));
    }
    let who = |mut attributes: Value| {
        for (key, value) in [
            ("user", json!("alice")),
            ("groups", json!(["devs"])),
            ("extra", json!({"k": ["v"]})),
            ("uid", json!("7")),
        ] {
            attributes[key] = value;
        }
        attributes
    };
    let want = [
        who(json!({"resourceAttributes": {
            "namespace": "n", "verb": "list", "version": "v1", "resource": "pods",
            "fieldSelector": {"requirements": [
                {"key": "metadata.name", "operator": "NotIn", "values": ["y"]},
                {"key": "spec.nodeName", "operator": "In", "values": ["x"]}]},
            "labelSelector": {"requirements": [
                {"key": "a", "operator": "In", "values": ["c"]},
                {"key": "b", "operator": "Exists"},
                {"key": "d", "operator": "DoesNotExist"}]}}})),
        who(json!({"resourceAttributes": {
            "namespace": "n", "verb": "get", "group": "apps", "version": "v1", "resource": "deployments",
            "subresource": "scale", "name": "x"}})),
        who(json!({"nonResourceAttributes": {"path": "/healthz", "verb": "get"}})),
    ];
    let seen: Vec<Value> = stub.seen().iter().map(Seen::json).collect();
    for (seen, want) in seen.iter().zip(want) {
        let review = json!({
            "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": want,
            "status": {"allowed": false}});
        assert_eq!(seen.to_string(), review.to_string());
    }
}

#[tokio::test]
async fn old_reviews_name_groups_otherwise() {
    let stub = Stub::http(|_| {
        let review = json!({"apiVersion": "authorization.k8s.io/v1beta1", "kind": "SubjectAccessReview",
                            "status": {"allowed": false, "denied": true, "reason": "no"}});
        Reply::new(200, review.to_string())
    })
    .await;
    let settings = WebhookSettings {
        version: Version::V1Beta1,
        ..settings()
    };
    let authorizer = authorizer(stub.trusted(), &stub.url("/"), settings);
    assert_eq!(decide(&authorizer, "/healthz").await, Decision::Deny("no".to_owned()));
    let seen = stub.seen()[0].json();
    assert_eq!(
        (&seen["spec"]["group"], &seen["spec"]["groups"]),
        (&json!(["devs"]), &Value::Null)
    );
}

#[tokio::test]
async fn answers_are_decisions() {
    let text = "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type \
                struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                \"json:\\\"kind,omitempty\\\"\" }";
    let pod = r#"{"apiVersion":"v1","kind":"Pod"}"#;
    let failed = |text: &str| Decision::Failed(text.to_owned());
    for (reply, want) in [
        (
            review(json!({"allowed": true, "reason": "r"})),
            Decision::Allow("r".to_owned()),
        ),
        (
            review(json!({"denied": true, "reason": "r"})),
            Decision::Deny("r".to_owned()),
        ),
        (
            review(json!({"allowed": false, "reason": "r"})),
            Decision::NoOpinion("r".to_owned()),
        ),
        (review(Value::Null), Decision::NoOpinion(String::new())),
        (
            review(json!({"allowed": true, "denied": true})),
            Decision::FailedClosed("webhook subject access review returned both allow and deny response".to_owned()),
        ),
        (Reply::new(200, "not json"), failed(text)),
        (
            Reply::new(200, pod),
            failed("converting (v1.Pod) to (v1.SubjectAccessReview): unknown conversion"),
        ),
        (
            Reply::new(200, "").header("content-type", "application/json"),
            failed("0-length response with status code: 200 and content type: application/json"),
        ),
        (
            Reply::new(503, ""),
            failed("the server is currently unable to handle the request"),
        ),
        (
            Reply::new(500, "x"),
            failed("an error on the server (\"unknown\") has prevented the request from succeeding"),
        ),
    ] {
        let stub = Stub::http(move |_| reply.clone()).await;
        let authorizer = authorizer(stub.trusted(), &stub.url("/"), settings());
        assert_eq!(decide(&authorizer, "/api/v1/pods").await, want);
    }
}

/// reliability: whoever stands in for a webhook cannot lead the server astray, and a slow or large one not tie it up.
#[tokio::test]
async fn a_webhook_that_misbehaves_allows_nothing() {
    let allow = Stub::http(|_| review(json!({"allowed": true}))).await;
    let elsewhere = allow.url("/");
    let redirecting = Stub::https(move |_| Reply::new(307, "").header("location", &elsewhere)).await;
    let slow = Stub::https(|_| review(json!({"allowed": true})).after(Duration::from_secs(60))).await;
    let large = Stub::https(|_| review(json!({"allowed": true, "reason": "x".repeat(10_000)}))).await;
    let impatient = ClientSettings {
        timeout: Duration::from_millis(100),
        ..slow.trusted()
    };
    let bounded = ClientSettings {
        max_answer_bytes: 5_000,
        ..large.trusted()
    };
    let stranger = CertificateAuthority::create("stranger", validity()).unwrap();
    let mut distrusting = large.trusted();
    distrusting.tls.roots = Roots::Pem(stranger.pem().certificate_pem.clone());
    let gone = format!("http://127.0.0.1:{}/", vacant_port());
    for (client, url, why) in [
        (
            redirecting.trusted(),
            redirecting.url("/"),
            "is a redirect (307), which is not followed",
        ),
        (impatient, slow.url("/"), "context deadline exceeded"),
        (bounded, large.url("/"), "larger than the 5000 bytes"),
        (
            distrusting,
            large.url("/"),
            "x509: certificate signed by unknown authority",
        ),
        (ClientSettings::default(), gone, "connect: connection refused"),
    ] {
        let Decision::Failed(error) = decide(&authorizer(client.clone(), &url, settings()), "/x").await else {
            panic!("{why}");
        };
        assert!(error.contains(why), "{error}");
        let closed = WebhookSettings {
            failure_policy: FailurePolicy::Deny,
            ..settings()
        };
        let decision = decide(&authorizer(client, &url, closed), "/x").await;
        assert_eq!(decision, Decision::FailedClosed(error));
    }
    assert!(allow.seen().is_empty());
}

#[tokio::test]
async fn what_was_said_is_remembered_but_not_failures() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let stub = Stub::http(move |seen| {
        counted.fetch_add(1, Ordering::SeqCst);
        match seen.json()["spec"]["resourceAttributes"]["namespace"].as_str() {
            Some("yes") => review(json!({"allowed": true})),
            Some("fails") => Reply::new(503, ""),
            _ => review(json!({"allowed": false})),
        }
    })
    .await;
    let minute = Duration::from_secs(60);
    let calls = async |authorized, unauthorized, namespace: &str| {
        let settings = WebhookSettings {
            authorized_ttl: authorized,
            unauthorized_ttl: unauthorized,
            ..settings()
        };
        let authorizer = authorizer(stub.trusted(), &stub.url("/"), settings);
        let before = count.load(Ordering::SeqCst);
        for _ in 0..3 {
            decide(&authorizer, &format!("/api/v1/namespaces/{namespace}/pods")).await;
        }
        decide(&authorizer, &format!("/api/v1/namespaces/{namespace}/services")).await;
        count.load(Ordering::SeqCst) - before
    };
    let zero = Duration::ZERO;
    assert_eq!(calls(minute, zero, "yes").await, 2);
    assert_eq!(calls(zero, minute, "yes").await, 4);
    assert_eq!(calls(zero, minute, "no").await, 2);
    assert_eq!(calls(minute, zero, "no").await, 4);
    assert_eq!(calls(minute, minute, "fails").await, 4);
    let long = "x".repeat(MAX_REMEMBERED_BYTES);
    assert_eq!(calls(minute, minute, &long).await, 4);
}

#[tokio::test]
async fn match_conditions_say_who_is_asked_about() {
    let stub = Stub::http(|_| review(json!({"denied": true}))).await;
    let mut conditions = MatchConditions::default();
    for expression in [
        "has(request.resourceAttributes)",
        "request.resourceAttributes.namespace != 'skip' && request.resourceAttributes.group == ''",
        "request.resourceAttributes.namespace != 'err' || request.extra['nope'][0] == 'x'",
        "!has(request.resourceAttributes.fieldSelector) || \
         request.resourceAttributes.fieldSelector.requirements.all(r, r.operator == 'In')",
        "request.user == 'alice' && 'devs' in request.groups && request.extra.k == ['v']",
    ] {
        conditions.add(expression).unwrap();
    }
    let settings = WebhookSettings {
        conditions: Arc::new(conditions),
        ..settings()
    };
    let authorizer = authorizer(stub.trusted(), &stub.url("/"), settings);
    let none = Decision::NoOpinion(String::new());
    let denied = Decision::Deny(String::new());
    for (url, want) in [
        ("/healthz", none.clone()),
        ("/api/v1/namespaces/skip/pods", none.clone()),
        ("/apis/apps/v1/deployments", none.clone()),
        ("/api/v1/pods?fieldSelector=spec.nodeName%21%3Dx", none),
        ("/api/v1/pods?fieldSelector=spec.nodeName%3Dx", denied.clone()),
        ("/api/v1/pods", denied),
        (
            "/api/v1/namespaces/err/pods",
            Decision::Failed(
                "cel evaluation error: expression 'request.resourceAttributes.namespace != 'err' || \
                 request.extra['nope'][0] == 'x'' resulted in error: no such key: nope"
                    .to_owned(),
            ),
        ),
    ] {
        assert_eq!(decide(&authorizer, url).await, want, "{url}");
    }
    assert_eq!(stub.seen().len(), 2);
}

/// What was said of one question is said of no other one, however alike they are when they are written one after the
/// other.
#[tokio::test]
async fn what_was_said_is_said_of_the_very_question() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let stub = Stub::http(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        review(json!({"allowed": true}))
    })
    .await;
    let minute = Duration::from_secs(60);
    let settings = WebhookSettings {
        authorized_ttl: minute,
        unauthorized_ttl: minute,
        ..settings()
    };
    let authorizer = authorizer(stub.trusted(), &stub.url("/"), settings);
    let user = |name: &str, uid: &str, groups: &[&str], extra: &[(&str, &[&str])]| {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        User {
            name: name.to_owned(),
            uid: uid.to_owned(),
            groups: owned(groups),
            extra: extra
                .iter()
                .map(|(key, values)| ((*key).to_owned(), owned(values)))
                .collect(),
        }
    };
    let users = [
        user("a", "", &["b", "c"], &[]),
        user("a", "", &["bc"], &[]),
        user("a", "", &["b,c"], &[]),
        user("a", "", &["c", "b"], &[]),
        user("a", "b", &["c"], &[]),
        user("ab", "", &["c"], &[]),
        user("a", "", &[], &[("b", &["c"])]),
        user("a", "", &[], &[("b", &["c", ""])]),
        user("a", "", &[], &[("b", &[]), ("c", &[])]),
        user("a", "", &[], &[("b", &["c\",\"d"])]),
        user("a", "", &[], &[("b", &["c", "d"])]),
        user("", "a", &[], &[]),
        user("a\",\"uid\":\"b", "", &[], &[]),
    ];
    let urls = [
        "/api/v1/namespaces/n/pods/x",
        "/api/v1/namespaces/n/pods/x/x",
        "/api/v1/namespaces/n/pods",
        "/api/v1/namespaces/x/pods",
        "/api/v1/pods",
        "/api/v2/pods",
        "/apis/v1/v1/pods",
        "/apis/x/v1/pods",
        "/healthz",
        "/healthz/x",
        "/api/v1/pods?labelSelector=a",
        "/api/v1/pods?labelSelector=!a",
        "/api/v1/pods?labelSelector=a=b",
        "/api/v1/pods?fieldSelector=a=b",
        "/api/v1/pods?fieldSelector=a!=b",
    ];
    for round in 0..2 {
        for user in &users {
            for url in urls {
                authorizer.decide(user, &info(url)).await;
            }
        }
        assert_eq!(asked.load(Ordering::SeqCst), users.len() * urls.len(), "round {round}");
    }
}

/// An answer in another version or of another kind allows nothing. (One that leaves both out is what was asked for.)
#[tokio::test]
async fn an_answer_to_another_question_is_none() {
    for (kind, version) in [
        ("SubjectAccessReview", "authorization.k8s.io/v9"),
        ("SubjectAccessReview", "authorization.k8s.io"),
        ("SubjectAccessReview", "v1"),
        ("SelfSubjectAccessReview", "authorization.k8s.io/v1"),
        ("LocalSubjectAccessReview", "authorization.k8s.io/v1"),
        ("TokenReview", "authentication.k8s.io/v1"),
    ] {
        let answer = json!({"apiVersion": version, "kind": kind, "status": {"allowed": true}}).to_string();
        let stub =
            Stub::http(move |_| Reply::new(200, answer.clone()).header("content-type", "application/json")).await;
        let authorizer = authorizer(stub.trusted(), &stub.url("/"), settings());
        let decision = decide(&authorizer, "/api/v1/pods").await;
        assert!(
            matches!(decision, Decision::Failed(_)),
            "{version} {kind}: {decision:?}"
        );
    }
    for status in [
        json!({"allowed": "true"}),
        json!({"allowed": 1}),
        json!({"Allowed": [true]}),
        json!([{"allowed": true}]),
        json!("allowed"),
    ] {
        let stub = Stub::http(move |_| review(status.clone())).await;
        let authorizer = authorizer(stub.trusted(), &stub.url("/"), settings());
        let decision = decide(&authorizer, "/api/v1/pods").await;
        assert!(!matches!(decision, Decision::Allow(_)), "{decision:?}");
    }
}
