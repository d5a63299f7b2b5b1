//! Encryption at rest: what lies in the store, what clients see of it, and what happens when the keys change.

use std::path::Path;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use keelson_storage::embedded::EmbeddedStore;
use keelson_storage::{HistoryLimits, Store};
use kube::Api;
use kube::api::PostParams;

use crate::support::{Server, keelson};

const KEY: &str = "/registry/secrets/default/one";

/// A configuration of secrets with one key of AES-GCM, which is 32 times `byte`.
fn configure(folder: &Path, byte: char, more: &str) -> String {
    let secret = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, byte.to_string().repeat(32));
    let path = folder.join("encryption.yaml");
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  \
         providers:\n  - aesgcm: {{keys: [{{name: key1, secret: {secret}}}]}}\n{more}"
    );
    std::fs::write(&path, text).unwrap();
    format!("--encryption-provider-config={}", path.display())
}

async fn stored(folder: &Path) -> Vec<u8> {
    let store = EmbeddedStore::open(&folder.join("keelson/store"), HistoryLimits::default()).unwrap();
    let value = store.get(KEY).await.unwrap().entry.unwrap().value.to_vec();
    store.close().await;
    value
}

#[tokio::test]
async fn secrets_are_encrypted_and_rewritten_and_lost_without_their_key() {
    let files = tempfile::tempdir().unwrap();
    let server = Server::start(keelson(), &[]).await;
    let secrets: Api<Secret> = Api::namespaced(server.client().await, "default");
    let mut secret = Secret::default();
    secret.metadata.name = Some("one".into());
    secret.data = Some([("a".to_owned(), ByteString(b"canary".to_vec()))].into());
    let made = secrets.create(&PostParams::default(), &secret).await.unwrap();
    let (_, _, folder) = server.terminate();
    assert!(stored(folder.path()).await.starts_with(b"k8s\0"));

    let flag = configure(files.path(), 'a', "  - identity: {}\n");
    let server = Server::start_in(keelson(), folder, &[&flag]).await;
    let secrets: Api<Secret> = Api::namespaced(server.client().await, "default");
    let read = secrets.get("one").await.unwrap();
    assert_eq!(read, made);
    let written = secrets.replace("one", &PostParams::default(), &read).await.unwrap();
    assert_ne!(
        written.metadata.resource_version, read.metadata.resource_version,
        "stored anew"
    );
    let again = secrets.replace("one", &PostParams::default(), &written).await.unwrap();
    assert_eq!(again.metadata.resource_version, written.metadata.resource_version);
    assert_eq!(secrets.list(&Default::default()).await.unwrap().items, [again]);
    let log = server.log();
    let (_, _, folder) = server.terminate();
    let value = stored(folder.path()).await;
    assert!(value.starts_with(b"k8s:enc:aesgcm:v1:key1:"));
    assert!(!value.windows(6).any(|bytes| bytes == b"canary") && !log.contains("canary"));

    let flag = configure(files.path(), 'b', "");
    let server = Server::start_in(keelson(), folder, &[&flag]).await;
    let secrets: Api<Secret> = Api::namespaced(server.client().await, "default");
    let text = "cipher: message authentication failed";
    assert_eq!(
        failure(secrets.get("one").await),
        format!("Internal error occurred: {text}")
    );
    assert_eq!(
        failure(secrets.list(&Default::default()).await),
        format!("Internal error occurred: unable to transform key \"{KEY}\": {text}")
    );
    assert!(secrets.delete("one", &Default::default()).await.is_err());
    server.terminate();
}

fn failure<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> String {
    match result.unwrap_err() {
        kube::Error::Api(status) if status.code == 500 => status.message,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_key_management_service_that_is_away_leaves_the_server_alive_but_not_ready() {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("encryption.yaml");
    let kms = format!(
        "apiVersion: v2, name: vault, endpoint: 'unix://{}/kms.sock'",
        files.path().display()
    );
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n";
    let text = format!("{head}- resources: [secrets]\n  providers:\n  - kms: {{{kms}}}\n  - identity: {{}}\n");
    std::fs::write(&path, text).unwrap();
    let flag = format!("--encryption-provider-config={}", path.display());
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_until(keelson(), folder, &[&flag], "/livez").await;
    let client = server.client().await;
    let get = |path: &str| client.request_text(http::Request::get(path).body(Vec::new()).unwrap());
    let ready = said(get("/readyz").await);
    assert!(ready.contains("[-]kms-providers failed: reason withheld"), "{ready}");
    let why = said(get("/readyz/kms-providers").await);
    let begin = "internal server error: kms-provider-0: failed to perform status section of the healthz check for KMS \
                 Provider vault, error: rpc error: code = Unavailable desc = ";
    assert!(why.starts_with(begin), "{why}");

    let mut secret = Secret::default();
    secret.metadata.name = Some("one".into());
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let refused = failure(secrets.create(&PostParams::default(), &secret).await);
    assert!(refused.contains("KMS Provider vault"), "{refused}");
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(client, "default");
    maps.list(&Default::default()).await.unwrap();
    server.terminate();
}

/// The text of an answer that says that something is wrong.
fn said(answer: Result<String, kube::Error>) -> String {
    match answer.unwrap_err() {
        kube::Error::Api(status) => status.message,
        other => panic!("{other}"),
    }
}
