//! Paths that mean to lead elsewhere: none of them reaches the store but by a key of its own kind.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::recorded::{Asked, Recorded};
use crate::setting::{ORDERS, Server, soon, text};

const KEYS: &str = "/registry/shop/orders/";
const GROUP: &str = "/apis/shop.example.com/v1";

/// Targets of requests, as they stand in the first line. `~` stands for the path of a collection.
const TARGETS: &[&str] = &[
    "~/.",
    "~/..",
    "~/../orders/x",
    "~/%2e",
    "~/%2e%2e",
    "~/%2E%2E",
    "~/..%2f..%2fsecrets",
    "~/%2e%2e%2f%2e%2e%2fsecrets",
    "~/a%2fb",
    "~/a%252fb",
    "~/a%25b",
    "~/%c0%ae%c0%ae",
    "~/%ff%fe",
    "~/x%00",
    "~/x%00%2f..",
    "~/x%0d%0aSet-Cookie:%20a=b",
    "~/x;y",
    "~/x%3by",
    "~/x\\y",
    "~/..\\y",
    "~//x",
    "~//",
    "~/x//",
    "~/x/..",
    "~/x/%2e%2e",
    "~/x/status/..",
    "~/x/status/../../y",
    "~/x/status%2f..",
    "~/x/nothing",
    "~/x/%2e%2e/%2e%2e/y",
    "~?limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi9zZWNyZXRzLyJ9",
    "~?fieldSelector=metadata.name=..",
    "~?fieldSelector=metadata.name=..%2f..%2fsecrets",
    "~?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=..%2fx",
    "^/namespaces/../orders",
    "^/namespaces/../orders/x",
    "^/namespaces/./orders/x",
    "^/namespaces/%2e%2e/orders",
    "^/namespaces/%2E%2e/orders/x",
    "^/namespaces/%2e%2e%2f%2e%2e/orders/x",
    "^/namespaces/a%2fb/orders",
    "^/namespaces/a%2fb/orders/x",
    "^/namespaces/default%2forders%2fx/orders/y",
    "^/namespaces//orders",
    "^/namespaces//orders/x",
    "^/namespaces/%00/orders/x",
    "^/watch/namespaces/../orders?timeoutSeconds=1",
    "^/orders/x",
    "^/orders/../secrets/x",
    "/apis/shop.example.com/%2e%2e/orders",
    "/apis/shop.example.com%2fv1/orders",
    "/apis/..%2f../v1/namespaces/default/orders/x",
    "/apis//shop.example.com/v1/namespaces/default/orders/x",
    "//apis/shop.example.com/v1/namespaces/default/orders/x",
    "/api/../apis/shop.example.com/v1/namespaces/default/orders/x",
    "/apis/shop.example.com/v1/%2e%2e/v1/namespaces/default/orders/x",
    "/%61pis/shop.example.com/v1/namespaces/default/orders/%2e%2e",
    "/..",
    "/../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/logs/..%2f..%2fetc%2fpasswd",
    "/logs/../../etc/passwd",
    "/static/%2e%2e/x",
    "/openapi/v3/apis/..%2f..",
    "*",
];

fn filled(target: &str) -> String {
    let target = target.replacen('~', ORDERS, 1);
    match target.strip_prefix('^') {
        Some(rest) => format!("{GROUP}{rest}"),
        None => target,
    }
}

/// A server, and what its store is asked for.
fn server() -> (Server, Asked) {
    let asked = Asked::default();
    let noting = asked.clone();
    let server = Server::configured(move |config| {
        config.storage.store = Arc::new(Recorded::new(Arc::clone(&config.storage.store), &noting));
    });
    (server, asked)
}

/// What comes back, head and all.
async fn send(server: &Server, method: &str, target: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let length = body.len();
    let kind = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // The server may close while it has bytes of ours unread, which is a reset.
    let _ = soon(stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// Whether it is the kind's prefix and then a namespace and a name, and nothing more.
fn is_typed(key: &str) -> bool {
    let parts: Vec<&str> = match key.strip_prefix(KEYS) {
        Some(rest) => rest.split('/').collect(),
        None => return false,
    };
    parts.len() == 2 && parts.iter().all(|part| !matches!(*part, "" | "." | ".."))
}

/// Whether it holds objects of one kind, of one namespace or of all: it must end where a name ends.
fn is_collection(prefix: &str) -> bool {
    let Some(rest) = prefix.strip_prefix(KEYS) else {
        return false;
    };
    rest.is_empty()
        || rest
            .strip_suffix('/')
            .is_some_and(|namespace| is_typed(&format!("{KEYS}{namespace}/x")))
}

/// CVE-2015-5305 (names that lead elsewhere in the store) and CVE-2022-3162 (one collection read through another).
#[tokio::test]
async fn no_path_leads_out_of_its_kind() {
    let (server, asked) = server();
    let body = r#"{"metadata":{"name":"x"},"spec":{"customer":"ann","items":[{"article":"a"}]}}"#;
    let mut reached = 0;
    for target in TARGETS.iter().map(|target| filled(target)) {
        for method in ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"] {
            // Some name the collection, as kube-apiserver reads them; the others may not even look.
            let found = ["?", "orders//", ".com%2fv1/"].iter().any(|odd| target.contains(odd));
            let answer = send(&server, method, &target, body).await;
            let status = answer.split(' ').nth(1).unwrap_or_default();
            let fits = status.starts_with('4') || found && status == "200";
            // The one text of kube-apiserver for a namespace that leads elsewhere is that of an error of its own.
            let named = status == "500" && answer.contains("invalid key: ");
            assert!(
                fits || named || method == "HEAD" && status == "500",
                "{method} {target}: {answer}"
            );
            assert!(!answer.contains("\nSet-Cookie"), "{method} {target}: {answer}");
            for key in asked.keys() {
                assert!(is_typed(&key), "{method} {target} reaches {key}");
                reached += 1;
            }
            for prefix in asked.prefixes() {
                assert!(is_collection(&prefix), "{method} {target} reads {prefix}");
            }
        }
    }
    assert!(reached > 10, "odd names that are names are looked up");
    let mut client = server.client().await;
    let all = text(client.get(&format!("{GROUP}/orders")).await).await;
    assert!(all.contains(r#""items":[]"#), "{all}");
}

/// The same by what a body says.
#[tokio::test]
async fn no_body_leads_out_of_its_kind() {
    let (server, asked) = server();
    for metadata in [
        r#""name":"..""#,
        r#""name":".""#,
        r#""name":"../x""#,
        r#""name":"a/b""#,
        r#""name":"%2e%2e""#,
        r#""name":"a\u0000b""#,
        r#""name":"a","namespace":"..""#,
        r#""name":"a","namespace":"../other""#,
        r#""name":"a","namespace":"other/""#,
        r#""generateName":"../""#,
        r#""generateName":"a/""#,
        r#""name":"""#,
    ] {
        let body = format!(
            r#"{{"metadata":{{{metadata}}},"spec":{{"customer":"ann","street":"s","items":[{{"article":"a"}}],"price":1}}}}"#
        );
        let answer = send(&server, "POST", ORDERS, &body).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{metadata}: {answer}");
        let keys = asked.keys();
        assert!(keys.is_empty(), "{metadata} reaches {keys:?}");
    }
}

/// A very long part of a path is a name that nobody has.
#[tokio::test]
async fn long_parts_of_paths_are_names_or_refused() {
    let (server, asked) = server();
    for length in [300, 5_000, 60_000, 200_000] {
        let long = "a".repeat(length);
        for target in [
            format!("{ORDERS}/{long}"),
            format!("{GROUP}/namespaces/{long}/orders/x"),
        ] {
            let answer = send(&server, "GET", &target, "").await;
            assert!(answer.starts_with("HTTP/1.1 4"), "{length}: {answer}");
            assert!(asked.keys().iter().all(|key| is_typed(key)));
        }
    }
}
