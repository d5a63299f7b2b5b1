//! Authentication: each way to prove who one is, against the server as a program.

use std::path::Path;
use std::time::{Duration, SystemTime};

use keelson_access::authn::token_issuer::TokenIssuer;
use keelson_net::tls::certs::{CertificateAuthority, CertifiedKeyPem, KeyPem, Validity};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::support::{Server, keelson};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
/// Longer than the server remembers whom a token stands for.
const FORGOTTEN: Duration = Duration::from_secs(20);

async fn send(client: &Client, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Result<Value, u16> {
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.header("content-type", "application/json");
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    match client.request::<Value>(request.body(body).unwrap()).await {
        Ok(answer) => Ok(answer),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{method} {path}: {error}"),
    }
}

async fn post(client: &Client, path: &str, body: Value) -> Value {
    send(client, "POST", path, &[], &body)
        .await
        .unwrap_or_else(|code| panic!("POST {path}: {code}"))
}

/// A client with other credentials than the admin's.
async fn client_with(server: &Server, change: impl FnOnce(&mut kube::config::AuthInfo)) -> Client {
    let mut file = Kubeconfig::read_from(&server.kubeconfig).unwrap();
    let user = file.auth_infos[0].auth_info.as_mut().unwrap();
    user.client_certificate_data = None;
    user.client_key_data = None;
    change(user);
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    Client::try_from(config.unwrap()).unwrap()
}

async fn with_token(server: &Server, token: &str) -> Client {
    let token = token.to_owned();
    client_with(server, |user| user.token = Some(token.into())).await
}

/// Who the client is, by its own account.
async fn whoami(client: &Client, headers: &[(&str, &str)]) -> Result<Value, u16> {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = send(
        client,
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        headers,
        &body,
    )
    .await?;
    Ok(answer["status"]["userInfo"].clone())
}

async fn review(admin: &Client, token: &str, audiences: &[&str]) -> Value {
    let body = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token, "audiences": audiences},
    });
    post(admin, "/apis/authentication.k8s.io/v1/tokenreviews", body).await["status"].clone()
}

/// A token of the account, with this `spec`.
async fn token_of(admin: &Client, account: &str, spec: Value) -> String {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let answer = post(admin, &format!("{ACCOUNTS}/{account}/token"), body).await;
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// Waits until a token is refused, which may take as long as the server remembers it.
async fn is_refused(client: &Client) -> bool {
    let deadline = tokio::time::Instant::now() + FORGOTTEN;
    while tokio::time::Instant::now() < deadline {
        if whoami(client, &[]).await == Err(401) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    false
}

#[tokio::test]
async fn service_accounts_are_known_by_their_tokens() {
    let server = Server::start(keelson(), &["--storage-backend=memory"]).await;
    let admin = server.client().await;
    for name in ["one", "two"] {
        post(&admin, ACCOUNTS, json!({"metadata": {"name": name}})).await;
    }
    let secret = json!({"metadata": {"name": "bound"}});
    let secret = post(&admin, "/api/v1/namespaces/default/secrets", secret).await;
    let token = token_of(&admin, "one", json!({})).await;
    let one = with_token(&server, &token).await;
    let user = whoami(&one, &[]).await.unwrap();
    assert_eq!(user["username"], "system:serviceaccount:default:one");
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ];
    assert_eq!(user["groups"], json!(groups));
    let id = user["extra"]["authentication.kubernetes.io/credential-id"][0].as_str();
    assert!(id.unwrap().starts_with("JTI="), "{user}");

    let foreign = token_of(&admin, "one", json!({"audiences": ["elsewhere"]})).await;
    assert_eq!(whoami(&with_token(&server, &foreign).await, &[]).await, Err(401));
    let status = review(&admin, &foreign, &["x", "elsewhere"]).await;
    assert_eq!(
        (&status["authenticated"], &status["audiences"]),
        (&json!(true), &json!(["elsewhere"]))
    );
    let (rest, signature) = token.rsplit_once('.').unwrap();
    let flipped = if signature.starts_with('A') { "B" } else { "A" };
    let forged = format!("{rest}.{flipped}{}", &signature[1..]);
    assert_eq!(whoami(&with_token(&server, &forged).await, &[]).await, Err(401));

    let reference = json!({"kind": "Secret", "apiVersion": "v1", "name": "bound", "uid": secret["metadata"]["uid"]});
    let bound = token_of(&admin, "two", json!({"boundObjectRef": reference})).await;
    let bound = with_token(&server, &bound).await;
    assert!(whoami(&bound, &[]).await.is_ok());
    let gone = ["/api/v1/namespaces/default/secrets/bound", &format!("{ACCOUNTS}/one")];
    for path in gone {
        send(&admin, "DELETE", path, &[], &Value::Null).await.unwrap();
    }
    assert!(is_refused(&bound).await && is_refused(&one).await);
}

#[tokio::test]
async fn tokens_in_secrets_die_with_their_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("sa.key");
    let pem = KeyPem::create().unwrap();
    std::fs::write(&key, &pem.private_pem).unwrap();
    let flag = format!("--service-account-key-file={}", key.display());
    let server = Server::start(keelson(), &["--storage-backend=memory", &flag]).await;
    let admin = server.client().await;
    let account = post(&admin, ACCOUNTS, json!({"metadata": {"name": "old"}})).await;
    let uid = &account["metadata"]["uid"];
    let claims = json!({
        "iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:default:old",
        "kubernetes.io/serviceaccount/namespace": "default",
        "kubernetes.io/serviceaccount/secret.name": "old",
        "kubernetes.io/serviceaccount/service-account.name": "old",
        "kubernetes.io/serviceaccount/service-account.uid": uid,
    });
    let token = TokenIssuer::new(&pem.private_pem, "").unwrap().sign(&claims).unwrap();
    assert_eq!(review(&admin, &token, &[]).await["authenticated"], Value::Null);
    let secret = json!({
        "metadata": {"name": "old", "annotations": {"kubernetes.io/service-account.name": "old"}},
        "type": "kubernetes.io/service-account-token", "stringData": {"token": token},
    });
    let secrets = "/api/v1/namespaces/default/secrets";
    post(&admin, secrets, secret).await;
    let client = with_token(&server, &token).await;
    assert_eq!(
        whoami(&client, &[]).await.unwrap()["username"],
        "system:serviceaccount:default:old"
    );
    let path = format!("{secrets}/old");
    let used = send(&admin, "GET", &path, &[], &Value::Null).await.unwrap();
    assert!(
        used["metadata"]["labels"]["kubernetes.io/legacy-token-last-used"].is_string(),
        "{used}"
    );
    send(&admin, "DELETE", &path, &[], &Value::Null).await.unwrap();
    assert!(is_refused(&client).await);
}

#[tokio::test]
async fn bootstrap_tokens_let_nodes_join() {
    let flags = ["--storage-backend=memory", "--enable-bootstrap-token-auth"];
    let server = Server::start(keelson(), &flags).await;
    let admin = server.client().await;
    let secret = |expiration: &str| {
        json!({
            "metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token",
            "stringData": {
                "token-id": "abcdef", "token-secret": "0123456789abcdef", "expiration": expiration,
                "usage-bootstrap-authentication": "true", "auth-extra-groups": "system:bootstrappers:site",
            },
        })
    };
    let path = "/api/v1/namespaces/kube-system/secrets";
    post(&admin, path, secret("2999-01-01T00:00:00Z")).await;
    let user = whoami(&with_token(&server, "abcdef.0123456789abcdef").await, &[])
        .await
        .unwrap();
    assert_eq!(user["username"], "system:bootstrap:abcdef");
    let groups = [
        "system:bootstrappers",
        "system:bootstrappers:site",
        "system:authenticated",
    ];
    assert_eq!(user["groups"], json!(groups));
    let wrong = with_token(&server, "abcdef.0123456789abcdee").await;
    assert_eq!(whoami(&wrong, &[]).await, Err(401));
    send(
        &admin,
        "DELETE",
        &format!("{path}/bootstrap-token-abcdef"),
        &[],
        &Value::Null,
    )
    .await
    .unwrap();
    post(&admin, path, secret("2020-01-01T00:00:00Z")).await;
    assert!(is_refused(&with_token(&server, "abcdef.0123456789abcdef").await).await);
}

fn proxies() -> CertificateAuthority {
    CertificateAuthority::create("proxies", Validity::years_from(SystemTime::now(), 1)).unwrap()
}

async fn with_certificate(server: &Server, pair: &CertifiedKeyPem) -> Client {
    use base64::Engine;
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let (certificate, key) = (encode(&pair.certificate_pem), encode(&pair.key_pem));
    client_with(server, |user| {
        user.client_certificate_data = Some(certificate);
        user.client_key_data = Some(key.into());
    })
    .await
}

async fn behind_proxy(authority: &CertificateAuthority, folder: &Path) -> Server {
    let file = folder.join("proxies.crt");
    std::fs::write(&file, &authority.pem().certificate_pem).unwrap();
    let file = format!("--requestheader-client-ca-file={}", file.display());
    let flags = [
        "--storage-backend=memory",
        &file,
        "--requestheader-allowed-names=front",
        "--requestheader-username-headers=X-Remote-User,X-Who",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ];
    Server::start(keelson(), &flags).await
}

/// NCC finding kubernetes#119631, and the rows on header trust: what is said in headers counts from the proxy alone,
/// also in headers with configured names.
#[tokio::test]
async fn only_the_front_proxy_says_who_sends_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let authority = proxies();
    let server = behind_proxy(&authority, folder.path()).await;
    let validity = Validity::years_from(SystemTime::now(), 1);
    let claims = [
        ("X-Who", "zed"),
        ("X-Remote-Group", "system:masters"),
        ("x-remote-extra-Scopes", "a"),
    ];
    let front = authority.issue_client("front", None, validity).unwrap();
    let user = whoami(&with_certificate(&server, &front).await, &claims).await.unwrap();
    assert_eq!(
        user,
        json!({"username": "zed", "groups": ["system:masters", "system:authenticated"], "extra": {"scopes": ["a"]}})
    );
    for (stranger, want) in [
        (authority.issue_client("other", None, validity).unwrap(), Err(401)),
        (proxies().issue_client("front", None, validity).unwrap(), Err(401)),
    ] {
        let client = with_certificate(&server, &stranger).await;
        assert_eq!(whoami(&client, &claims).await, want);
    }
    let admin = server.client().await;
    assert_eq!(whoami(&admin, &claims).await.unwrap()["username"], "kubernetes-admin");
    let nobody = client_with(&server, |_| {}).await;
    assert_eq!(whoami(&nobody, &claims).await, Err(403), "anonymous");
    let info = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let info = send(&admin, "GET", info, &[], &Value::Null).await.unwrap();
    assert_eq!(
        info["data"]["requestheader-username-headers"],
        r#"["X-Remote-User","X-Who"]"#
    );
}

#[tokio::test]
async fn a_file_says_which_anonymous_requests_are_taken_and_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("authentication.yaml");
    let write = |paths: &str| {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {{enabled: true, \
             conditions: [{paths}]}}\n"
        );
        std::fs::write(&path, text).unwrap();
    };
    write("{path: /livez}");
    let flag = format!("--authentication-config={}", path.display());
    let server = Server::start(keelson(), &["--storage-backend=memory", &flag]).await;
    let nobody = client_with(&server, |_| {}).await;
    let get = async |path: &str| {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        nobody.request_text(request).await.map_err(|_| ())
    };
    assert_eq!((get("/livez").await.is_ok(), get("/version").await), (true, Err(())));
    write("{path: /version}");
    let deadline = tokio::time::Instant::now() + FORGOTTEN;
    while get("/version").await.is_err() {
        assert!(tokio::time::Instant::now() < deadline, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(get("/livez").await, Err(()));
    std::fs::write(&path, "nonsense").unwrap();
    let reloads = "apiserver_authentication_config_controller_automatic_reloads_total";
    let admin = server.client().await;
    let failed = async || {
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        let text = admin.request_text(request).await.unwrap();
        text.lines()
            .any(|line| line.starts_with(reloads) && line.contains("failure"))
    };
    while !failed().await {
        assert!(tokio::time::Instant::now() < deadline, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(get("/version").await.is_ok(), "what was read before stays");
}

/// CVE-2019-11250, CVE-2020-8565: tokens and keys are in no log, however much is logged.
#[tokio::test]
async fn tokens_are_not_logged() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens.csv");
    std::fs::write(&tokens, "canary-static-token,ann,u\n").unwrap();
    let flag = format!("--token-auth-file={}", tokens.display());
    let server = Server::start(keelson(), &["--storage-backend=memory", &flag, "-v=10"]).await;
    let admin = server.client().await;
    post(&admin, ACCOUNTS, json!({"metadata": {"name": "one"}})).await;
    let issued = token_of(&admin, "one", json!({})).await;
    let signature = issued.rsplit_once('.').unwrap().1;
    for token in ["canary-static-token", "canary-wrong-token", &issued] {
        let _ = whoami(&with_token(&server, token).await, &[]).await;
        review(&admin, token, &[]).await;
    }
    let log = server.log();
    assert!(log.contains("unable to authenticate"), "nothing was logged");
    for secret in ["canary-static", "canary-wrong", signature] {
        assert!(!log.contains(secret), "{secret}");
    }
}
