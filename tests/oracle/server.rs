//! A server that is asked: the one of this process, or a real kube-apiserver whose answers are recorded.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderName, HeaderValue, Method};
use keelson::api::SCHEME;
use keelson_access::authn::token_file::StaticTokens;
use keelson_access::authn::tokens::Tokens;
use keelson_access::authn::{self, Authentication};
use keelson_access::authz::node::NodeAuthorizer;
use keelson_access::authz::rbac::Rbac;
use keelson_access::authz::{Authorization, Authorizer, PrivilegedGroup};
use keelson_access::user::{GROUP_MASTERS, User};
use keelson_machinery::scheme::Scheme;
use keelson_net::client::{Call, Client, ClientSettings, ClientTls, Fault};
use keelson_net::listener::ListenerConfig;
use keelson_server::discovery::RuntimeConfig;
use keelson_server::lifecycle::HookState;
use keelson_server::server::{Config, Running, start};
use keelson_server::version::Version;
use keelson_storage::HistoryLimits;
use keelson_storage::memory::MemoryStore;
use serde_json::Value;

/// How long an answer may take: kube-apiserver reads its schemas for the first apply of a group, which takes long on a
/// machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(120);

static SCHEMES: [&Scheme; 1] = [&SCHEME];

/// The server to record, `https://host:port`; its certificate is not looked at. Unset: this process is asked.
pub const RECORD: &str = "RECORD";
/// The token of a member of system:masters there.
const TOKEN: &str = "TOKEN";

/// What a request is sent with, and as whom.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: Method,
    pub path: String,
    pub content_type: &'static str,
    pub body: Vec<u8>,
    /// `None`: the admin.
    pub user: Option<String>,
    /// Asks for another protocol on the connection.
    pub upgrade: bool,
}

impl Ask {
    pub fn new(method: &str, path: impl Into<String>) -> Ask {
        Ask {
            method: Method::from_bytes(method.as_bytes()).unwrap(),
            path: path.into(),
            content_type: "application/json",
            body: Vec::new(),
            user: None,
            upgrade: false,
        }
    }

    pub fn body(self, body: &Value) -> Ask {
        let body = body.to_string().into_bytes();
        Ask { body, ..self }
    }
}

/// Status, and the body as JSON (`null` where it is none).
pub type Told = (u16, Value);

/// A whole answer.
#[derive(Default)]
pub struct Exchange {
    /// 0 where there is none: kube-apiserver closes the connection when a request makes it panic.
    pub status: u16,
    /// The body as JSON; `null` where it is none.
    pub body: Value,
    /// The headers `Warning`.
    pub warnings: Vec<String>,
}

pub struct Server {
    client: Client,
    base: String,
    token: HeaderValue,
    /// The server of this process, to be stopped.
    own: Option<Running>,
    /// Makes names different from those of another run.
    run: String,
}

impl Server {
    /// The one that `RECORD` names, or one of this process, ready to be asked. Must be called within a `LocalSet`.
    pub async fn start() -> Server {
        let own = std::env::var(RECORD).is_err();
        Server::with(own.then(config)).await
    }

    /// One of this process; with `None` the one that `RECORD` names.
    pub async fn with(config: Option<Config>) -> Server {
        let client = Client::new(ClientSettings {
            tls: ClientTls {
                insecure: true,
                ..ClientTls::default()
            },
            max_answer_bytes: 64 << 20,
            ..ClientSettings::default()
        });
        let (base, own) = match config {
            None => (std::env::var(RECORD).unwrap(), None),
            Some(config) => {
                let running = start(config).unwrap();
                while running
                    .state
                    .hooks
                    .states()
                    .iter()
                    .any(|(_, s)| *s == HookState::Running)
                {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                (format!("http://{}", running.local_addr()), Some(running))
            }
        };
        let token = match own {
            Some(_) => "admin".to_owned(),
            None => std::env::var(TOKEN).unwrap(),
        };
        Server {
            client: client.unwrap(),
            base,
            token: HeaderValue::try_from(format!("Bearer {token}")).unwrap(),
            run: match &own {
                Some(_) => String::new(),
                None => SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap()
                    .as_secs()
                    .to_string(),
            },
            own,
        }
    }

    /// A part of names that no other run has.
    pub fn mark(&self, text: &str) -> String {
        format!("{text}{}", self.run)
    }

    /// Whether the answers are those to be recorded.
    pub fn is_recorded(&self) -> bool {
        self.own.is_none()
    }

    pub async fn ask(&self, ask: &Ask) -> Told {
        let exchange = self.exchange(ask).await;
        (exchange.status, exchange.body)
    }

    /// As [`Server::ask`], with what else is told.
    pub async fn exchange(&self, ask: &Ask) -> Exchange {
        let name = HeaderName::from_static;
        let url = format!("{}{}", self.base, ask.path);
        let mut call = Call::sending(ask.method.clone(), url, ask.content_type, ask.body.clone())
            .timeout(PATIENCE)
            .header(http::header::ACCEPT, HeaderValue::from_static("application/json, */*"))
            .header(http::header::AUTHORIZATION, self.token.clone());
        if let Some(user) = &ask.user {
            call = call.header(name("impersonate-user"), HeaderValue::try_from(user).unwrap());
        }
        if ask.upgrade {
            call = call
                .header(http::header::CONNECTION, HeaderValue::from_static("Upgrade"))
                .header(http::header::UPGRADE, HeaderValue::from_static("SPDY/3.1"));
        }
        let answer = match self.client.call(&call).await {
            Ok(answer) => answer,
            // kube-apiserver panics over some requests.
            Err(error) if matches!(error.fault, Fault::Closed | Fault::Reset(_)) => return Exchange::default(),
            Err(error) => panic!("{error}"),
        };
        let warnings = answer.headers.get_all(http::header::WARNING).iter();
        Exchange {
            status: answer.status,
            body: serde_json::from_slice(&answer.body).unwrap_or_default(),
            warnings: warnings
                .map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned())
                .collect(),
        }
    }

    /// As [`Server::ask`], of what has to come out well.
    pub async fn must(&self, ask: Ask) -> Value {
        let (status, told) = self.ask(&ask).await;
        assert!(status < 300, "{} {} {status} {told}", ask.method, ask.path);
        told
    }

    /// Whether a group, version and plural are served.
    pub async fn serves(&self, group: &str, version: &str, plural: &str) -> bool {
        let (status, told) = self.ask(&Ask::new("GET", version_path(group, version))).await;
        let resources = told["resources"].as_array().cloned().unwrap_or_default();
        status == 200 && resources.iter().any(|r| r["name"] == plural)
    }

    pub async fn stop(self) {
        if let Some(running) = self.own {
            running.stop().await;
        }
    }
}

/// `/api/v1`, `/apis/apps/v1`.
pub fn version_path(group: &str, version: &str) -> String {
    match group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    }
}

/// A server of all kinds in all versions, with a store in memory.
pub fn config() -> Config {
    let admin = User {
        name: "admin".to_owned(),
        uid: "uid-admin".to_owned(),
        groups: vec![GROUP_MASTERS.to_owned()],
        ..User::default()
    };
    let tokens = StaticTokens::new([("admin".to_owned(), admin)]);
    let roles = Arc::new(Rbac::new(keelson_kube::rbac::Reader));
    let nodes = NodeAuthorizer::new(keelson_kube::NodeGraph, keelson_kube::node_rules().unwrap());
    let chain: Vec<Arc<dyn Authorizer>> = vec![Arc::new(PrivilegedGroup), Arc::new(nodes), roles.clone()];
    let store = Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap());
    let mut config = Config::new(
        SCHEMES.to_vec(),
        store,
        ListenerConfig::new(([127, 0, 0, 1], 0).into(), None),
    );
    config.resources.code = keelson_kube::code(&keelson_kube::CodeOptions::default());
    config.resources.code.merge(keelson_extensions::code());
    config.resources.admission = keelson_kube::admission::chain();
    config.resources.runtime = RuntimeConfig::parse(["api/all=true"]).unwrap();
    config.access.authentication = Authentication {
        chain: vec![Tokens::new(vec![Arc::new(tokens)], None)],
        ..Authentication::default()
    }
    .with_anonymous(authn::Anonymous::Everywhere);
    config.access.authorization = Authorization::with_roles(chain, Some(roles));
    config.version = Version {
        major: "1".to_owned(),
        minor: "36".to_owned(),
        ..Version::default()
    };
    config.hooks = keelson_kube::bootstrap::hooks(&Default::default());
    config.resources.known_versions = keelson_kube::KNOWN_VERSIONS;
    config
}
