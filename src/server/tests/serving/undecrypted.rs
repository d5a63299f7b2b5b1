//! A key management service that does not answer: whoever needs what it has to decrypt waits, and nobody else.

use std::io::Read;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use keelson_storage::encryption::{Configuration, Encryption, Kms, Provider, Rule};
use keelson_storage::{Expect, Write};
use tempfile::TempDir;

use crate::faulty_store::Meddled;
use crate::setting::{ORDERS, Server, soon};

const TIMEOUT: Duration = Duration::from_secs(2);
/// What nobody else may wait.
const SOON: Duration = Duration::from_millis(1500);

/// A service that takes calls and does not answer.
fn silent_service() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(dir.path().join("kms.sock")).unwrap();
    std::thread::spawn(move || {
        let mut taken = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 64]);
            taken.push(stream);
        }
    });
    dir
}

/// What another server has stored, under a seed that nobody here has met: fields 1 to 3 and 5 of the message.
fn sealed() -> Vec<u8> {
    let mut value = b"k8s:enc:kms:v2:silent:".to_vec();
    for (field, bytes) in [(1_u8, [7_u8; 64].as_slice()), (2, b"key"), (3, &[9; 32])] {
        value.extend([field << 3 | 2, bytes.len() as u8]);
        value.extend(bytes);
    }
    value.extend([5 << 3, 1]);
    value
}

async fn setting() -> (TempDir, Server) {
    let dir = silent_service();
    let kms = Kms {
        name: "silent".to_owned(),
        endpoint: dir.path().join("kms.sock"),
        timeout: TIMEOUT,
    };
    let (sender, receiver) = std::sync::mpsc::channel();
    let server = Server::configured(move |config| {
        sender.send(Meddled::of(config)).unwrap();
        config.listener.workers = 1;
        let rule = Rule {
            resources: vec!["orders.shop.example.com".to_owned()],
            providers: vec![Provider::Identity, Provider::Kms(kms)],
        };
        config.storage.encryption = Encryption::new(Configuration { rules: vec![rule] }).unwrap();
    });
    let store = receiver.recv().unwrap();
    let mut client = server.client().await;
    client.create("plain", 1).await;
    let key = store.entry("plain").await.unwrap().key.replace("plain", "sealed");
    let write = Write::Put {
        value: sealed().into(),
        lease: None,
    };
    store.store.write(&key, Expect::Absent, write).await.unwrap();
    (dir, server)
}

#[tokio::test]
async fn who_needs_what_is_not_decrypted_waits_alone() {
    for (method, path, media_type, body) in [
        ("GET", "/sealed", "application/json", ""),
        ("GET", "", "application/json", ""),
        ("GET", "?labelSelector=a", "application/json", ""),
        (
            "GET",
            "?watch=1&fieldSelector=metadata.name%3Dsealed",
            "application/json",
            "",
        ),
        (
            "PATCH",
            "/sealed",
            "application/merge-patch+json",
            r#"{"metadata":{"labels":{"a":"b"}}}"#,
        ),
        ("DELETE", "/sealed", "application/json", "{}"),
    ] {
        let (_dir, server) = setting().await;
        let (mut waiting, mut other) = (server.client().await, server.client().await);
        let path = format!("{ORDERS}{path}");
        let begun = Instant::now();
        let waiting = tokio::spawn(async move { waiting.send(method, &path, media_type, body).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        while begun.elapsed() < TIMEOUT / 2 {
            let asked = Instant::now();
            assert_eq!(other.get(&format!("{ORDERS}/plain")).await.status(), 200);
            assert!(asked.elapsed() < SOON, "{method}: {:?}", asked.elapsed());
        }
        let (code, told) = soon(waiting).await.unwrap();
        assert!(begun.elapsed() >= TIMEOUT, "{method}: {told}");
        let told = told.to_string();
        assert!(told.contains("failed to decrypt DEK"), "{method}: {code} {told}");
    }
}
