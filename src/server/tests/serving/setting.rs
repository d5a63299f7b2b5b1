//! A server on a thread of its own, and a client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use keelson_access::authn::{Anonymous, Authentication};
use keelson_access::authz::{AlwaysAllow, Answer, Authorization, Authorizer, Decision, Rules};
use keelson_access::request_info::RequestInfo;
use keelson_access::user::User;
use keelson_net::listener::{ListenerConfig, Phase, Shutdown};
use keelson_server::server::{Config, start};
use keelson_server::settings::RequestSettings;
use keelson_storage::{HistoryLimits, StoreConfig};
use tokio::net::TcpStream;

/// No test waits longer for something that must happen.
const PATIENCE: Duration = Duration::from_secs(30);
pub const ORDERS: &str = "/apis/shop.example.com/v1/namespaces/default/orders";

/// Awaits what must happen.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what)
        .await
        .expect("it did not happen in time")
}

/// An authorizer that allows these verbs, whatever they are for.
pub struct Verbs(pub &'static [&'static str]);

impl Authorizer for Verbs {
    fn authorize<'a>(&'a self, _user: &'a User, info: &'a RequestInfo) -> Answer<'a> {
        match self.0.contains(&info.verb.as_str()) {
            true => Decision::Allow(String::new()),
            false => Decision::NoOpinion("no such verb".to_owned()),
        }
        .into()
    }

    fn rules(&self, _user: &User, _namespace: &str) -> Rules {
        Rules::default()
    }
}

/// A running server; it ends when this is dropped.
pub struct Server {
    pub address: SocketAddr,
    pub shutdown: Shutdown,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: std::thread::JoinHandle<()>,
}

impl Server {
    /// With changed settings of requests.
    pub fn with(change: impl FnOnce(&mut RequestSettings)) -> Self {
        let mut requests = RequestSettings::default();
        change(&mut requests);
        Server::configured(move |config| config.requests = requests)
    }

    /// With any other configuration.
    pub fn configured(change: impl FnOnce(&mut Config) + Send + 'static) -> Self {
        let (started, is_started) = std::sync::mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                let mut config = config().await;
                change(&mut config);
                let running = start(config).unwrap();
                started
                    .send((running.local_addr(), running.shutdown().clone()))
                    .unwrap();
                let _ = stopped.await;
                running.stop().await;
            });
        });
        let (address, shutdown) = is_started.recv().unwrap();
        Server {
            address,
            shutdown,
            stop: Some(stop),
            thread,
        }
    }

    /// Tells the server to end.
    pub fn begin_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Waits until the server's end has come so far.
    pub async fn reaches(&self, phase: Phase) {
        soon(async {
            while self.shutdown.phase() < phase {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Whether the server has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// A client on a connection of its own.
    pub async fn client(&self) -> Client {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        Client { sender }
    }
}

impl Drop for Server {
    /// Waits for nothing: clients whose tasks run on this thread could not take their leave meanwhile.
    fn drop(&mut self) {
        self.begin_to_stop();
    }
}

async fn config() -> Config {
    let history = HistoryLimits::default();
    let mut listener = ListenerConfig::new(([127, 0, 0, 1], 0).into(), None);
    listener.workers = 2;
    let store = keelson_storage::open(StoreConfig::Memory { history }).await.unwrap();
    let mut config = Config::new(vec![&keelson_codegen_sample::api::SCHEME], store, listener);
    config.storage.cache_bytes = 16 << 20;
    config.access.authentication = Authentication::default().with_anonymous(Anonymous::Everywhere);
    config.access.authorization = Authorization::new(vec![Arc::new(AlwaysAllow)]);
    config
}

/// A client on one HTTP/2 connection.
#[derive(Clone)]
pub struct Client {
    pub sender: SendRequest<Full<Bytes>>,
}

impl Client {
    pub async fn get(&mut self, path: &str) -> http::Response<Incoming> {
        self.get_as(path, "application/json").await
    }

    /// With this `Accept` header.
    pub async fn get_as(&mut self, path: &str, accept: &str) -> http::Response<Incoming> {
        let request = http::Request::get(format!("http://localhost{path}"))
            .header("accept", accept)
            .body(Full::default())
            .unwrap();
        soon(self.sender.send_request(request)).await.unwrap()
    }

    /// Sends a body; the status and the answer, which is JSON.
    pub async fn send(&mut self, method: &str, path: &str, media_type: &str, body: &str) -> (u16, serde_json::Value) {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("http://localhost{path}"))
            .header("content-type", media_type)
            .body(Full::from(Bytes::from(body.to_owned())))
            .unwrap();
        let answer = soon(self.sender.send_request(request)).await.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str(&text(answer).await).unwrap())
    }

    /// What is read there.
    pub async fn object(&mut self, path: &str) -> serde_json::Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status(), 200);
        serde_json::from_str(&text(answer).await).unwrap()
    }

    /// Makes an order with a note of so many bytes.
    pub async fn create(&mut self, name: &str, note: usize) {
        let note = "n".repeat(note);
        let body = format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"customer":"ann","street":"s","items":[{{"article":"a"}}],"price":1,"notes":{{"n":"{note}"}},"extra":{{"apiVersion":"v1","kind":"X"}}}}}}"#
        );
        let request = http::Request::post(format!("http://localhost{ORDERS}"))
            .header("content-type", "application/json")
            .body(Full::from(body))
            .unwrap();
        let answer = soon(self.sender.send_request(request)).await.unwrap();
        let status = answer.status();
        assert!(status.is_success(), "{status}: {}", text(answer).await);
    }

    /// An open watch of all orders.
    pub async fn watch(&mut self, query: &str) -> Events {
        self.watch_as(query, "application/json").await
    }

    /// With this `Accept` header.
    pub async fn watch_as(&mut self, query: &str, accept: &str) -> Events {
        self.watch_path_as(&format!("{ORDERS}?watch=1&{query}"), accept).await
    }

    /// An open watch of what is there.
    pub async fn watch_path(&mut self, path: &str) -> Events {
        self.watch_path_as(path, "application/json").await
    }

    async fn watch_path_as(&mut self, path: &str, accept: &str) -> Events {
        let answer = self.get_as(path, accept).await;
        assert_eq!(answer.status(), 200);
        Events {
            body: answer.into_body(),
            read: Vec::new(),
        }
    }
}

/// The whole body as text.
pub async fn text(answer: http::Response<Incoming>) -> String {
    let body = soon(answer.into_body().collect()).await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// The events of a watch.
pub struct Events {
    body: Incoming,
    read: Vec<u8>,
}

impl Events {
    /// The next event; `None` at the end.
    pub async fn next(&mut self) -> Option<serde_json::Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = soon(self.body.frame()).await?.unwrap();
            self.read.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    /// The next event of a stream in protobuf, without its frame.
    pub async fn next_frame(&mut self) -> Vec<u8> {
        const LENGTH: usize = 4;
        loop {
            if let Some(length) = self.read.first_chunk::<LENGTH>() {
                let end = LENGTH + u32::from_be_bytes(*length) as usize;
                if self.read.len() >= end {
                    return self.read.drain(..end).skip(LENGTH).collect();
                }
            }
            let frame = soon(self.body.frame()).await.expect("the watch has ended").unwrap();
            self.read.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    /// The name of the next event's object.
    pub async fn next_name(&mut self) -> String {
        let event = self.next().await.expect("the watch has ended");
        event["object"]["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}
