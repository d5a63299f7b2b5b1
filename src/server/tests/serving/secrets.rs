//! Secrets of clients, which are in no log and no metric, whatever becomes of their requests.

use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::Full;
use keelson_access::authn::token_file::StaticTokens;
use keelson_access::authn::tokens::Tokens;
use keelson_access::user::User;
use tracing_subscriber::fmt::MakeWriter;

use crate::setting::{ORDERS, Server, soon, text};

/// All that the process logs.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Logged {
    type Writer = Logged;

    fn make_writer(&'a self) -> Logged {
        self.clone()
    }
}

const CANARY: &str = "canary-in-the-coal-mine";

/// Requests that end in every way, each with the canary as a token, in its body, or in both.
fn requests() -> Vec<http::Request<Full<Bytes>>> {
    let one = format!("{ORDERS}/one");
    let good = format!(
        r#"{{"metadata":{{"name":"one"}},"spec":{{"customer":"ann","street":"s","items":[{{"article":"a"}}],"price":1,"notes":{{"n":"{CANARY}"}},"extra":{{"apiVersion":"v1","kind":"X"}}}}}}"#
    );
    let invalid = good.replace("\"ann\"", "\"\"");
    let json = "application/json";
    let merge = "application/merge-patch+json";
    let rows = [
        ("POST", ORDERS, json, good.as_str()),
        ("POST", ORDERS, json, &good),
        ("POST", ORDERS, json, &invalid),
        ("POST", ORDERS, json, &format!("{{\"{CANARY}\"")),
        ("POST", ORDERS, "application/yaml", &format!("a: [{CANARY}")),
        ("POST", ORDERS, "application/vnd.kubernetes.protobuf", CANARY),
        ("POST", ORDERS, "text/strange", CANARY),
        ("PUT", &one, json, &good),
        (
            "PATCH",
            &one,
            merge,
            &format!(r#"{{"spec":{{"customer":["{CANARY}"]}}}}"#),
        ),
        ("PATCH", &one, merge, CANARY),
        (
            "PATCH",
            &one,
            "application/json-patch+json",
            &format!(r#"[{{"op":"test","path":"/spec","value":"{CANARY}"}}]"#),
        ),
        ("PATCH", &one, "application/apply-patch+yaml", &format!("{CANARY}: 1")),
        (
            "DELETE",
            &one,
            json,
            &format!(r#"{{"preconditions":{{"uid":"{CANARY}"}}}}"#),
        ),
        ("GET", "/version", json, CANARY),
        ("GET", "/nowhere", json, CANARY),
        ("GET", "/metrics", json, ""),
    ];
    let request = |(method, path, content_type, body): (&str, &str, &str, &str)| {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("http://localhost{path}"))
            .header("content-type", content_type)
            .header("authorization", format!("Bearer {CANARY}"))
            .header(
                "sec-websocket-protocol",
                format!("base64url.bearer.authorization.k8s.io.{CANARY}"),
            )
            .header("cookie", CANARY);
        if path == "/version" {
            request = request.header("impersonate-extra-secret", CANARY);
        }
        request.body(Full::from(Bytes::from(body.to_owned()))).unwrap()
    };
    rows.into_iter().map(request).collect()
}

#[tokio::test]
async fn no_log_at_any_verbosity_and_no_metric_has_a_secret() {
    let logged = Logged::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(logged.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let user = User {
        name: "ann".to_owned(),
        ..User::default()
    };
    let tokens = StaticTokens::new([(CANARY.to_owned(), user)]);
    let server = Server::configured(|config| {
        config.access.authentication.chain = vec![Tokens::new(vec![Arc::new(tokens)], None)];
    });
    let mut client = server.client().await;
    let mut codes = Vec::new();
    for mut request in requests() {
        let answer = soon(client.sender.send_request(request.clone())).await.unwrap();
        codes.push(answer.status().as_u16());
        let wrong = format!("Bearer {CANARY}-of-somebody-else").parse().unwrap();
        request.headers_mut().insert("authorization", wrong);
        let answer = soon(client.sender.send_request(request)).await.unwrap();
        assert_eq!(answer.status(), 401);
        let metrics = text(client.get("/metrics").await).await;
        assert!(!metrics.contains(CANARY));
    }
    codes.sort_unstable();
    codes.dedup();
    assert!(codes.len() > 4, "they end in many ways: {codes:?}");
    drop((client, server));
    let logged = String::from_utf8_lossy(&logged.0.lock().unwrap()).into_owned();
    let leaks: Vec<&str> = logged.lines().filter(|line| line.contains(CANARY)).collect();
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
    assert!(logged.contains("unable to authenticate"), "something was logged");
}

/// Whatever clients call themselves and ask for, there are as many series as before.
#[tokio::test]
async fn clients_make_no_series() {
    let server = Server::with(|_| {});
    let mut client = server.client().await;
    let mut series = Vec::new();
    for round in 0..3 {
        for n in 0..300 {
            let strange = format!("{round}x{n}");
            let paths = [
                format!("/{strange}"),
                format!("/apis/{strange}/v1/things"),
                format!("/apis/shop.example.com/{strange}/orders"),
                format!("/apis/shop.example.com/v1/{strange}"),
                format!("{ORDERS}/{strange}"),
                format!("{ORDERS}/{strange}/{strange}"),
                format!("/apis/shop.example.com/v1/namespaces/{strange}/orders?fieldSelector={strange}"),
            ];
            let request = http::Request::builder()
                .method(if n % 10 == 0 { "MKCOL" } else { "GET" })
                .uri(format!("http://localhost{}", paths[n % paths.len()]))
                .header("user-agent", &strange)
                .header("audit-id", &strange)
                .header("impersonate-user", &strange)
                .header("accept", format!("application/{strange}, */*"))
                .body(Full::default())
                .unwrap();
            text(soon(client.sender.send_request(request)).await.unwrap()).await;
        }
        series.push(text(client.get("/metrics").await).await.lines().count());
    }
    assert!(series[0] > 10);
    assert_eq!(series[1], series[2], "{series:?}");
}
