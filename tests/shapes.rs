//! Metadata alone and Tables are the same whichever way they are made: from what is kept of each object, or from the
//! object as a whole, which is how indented JSON is made.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

mod arbitrary;

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arbitrary::{Seed, fill};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use keelson::api::SCHEME;
use keelson_access::authn::{Anonymous, Authentication};
use keelson_access::authz::{AlwaysAllow, Authorization};
use keelson_machinery::env::Clock;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::Object;
use keelson_machinery::scheme::KindDesc;
use keelson_machinery::time::Time;
use keelson_machinery::{json, protobuf};
use keelson_net::listener::ListenerConfig;
use keelson_server::discovery::RuntimeConfig;
use keelson_server::server::{Config, start};
use keelson_storage::memory::MemoryStore;
use keelson_storage::{Expect, HistoryLimits, Store, Write};

/// Objects of each kind. Every third lies in the store as JSON.
const OBJECTS: u64 = 6;
/// Pods beside those, so many that their lists are compressed.
const PODS: u64 = 2500;
/// No test waits longer for something that must happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// Elements of a list, the metadata of a partial object.
const ITEMS: u32 = 2;
const METADATA: u32 = 1;
const LIST: &str = "as=PartialObjectMetadataList;g=meta.k8s.io";
const ONE: &str = "as=PartialObjectMetadata;g=meta.k8s.io";
const TABLE: &str = "as=Table;g=meta.k8s.io";

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Time {
        Time::from_unix(1_795_260_840, 0)
    }
}

fn kinds() -> impl Iterator<Item = &'static KindDesc> {
    SCHEME.groups.iter().flat_map(|g| g.versions).flat_map(|v| v.kinds)
}

/// The kinds whose objects are stored, each in its stored version.
fn stored() -> impl Iterator<Item = &'static KindDesc> {
    kinds().filter(|kind| kind.storage && !kind.unstored && kind.same_as.is_none())
}

fn name(round: u64) -> String {
    format!("o{round}")
}

/// An object with anything in it. Its metadata has what each object's has.
fn generated(kind: &KindDesc, round: u64) -> Box<dyn Object> {
    let mut seed = Seed(round);
    for byte in kind.kind.bytes() {
        seed = Seed(seed.next() ^ u64::from(byte));
    }
    let mut object = kind.new_object();
    fill(object.as_reflect_mut(), &mut seed);
    let meta = object.meta_mut();
    meta.name = name(round);
    meta.namespace = if kind.namespaced { "default" } else { "" }.to_owned();
    meta.annotations
        .insert("deprecated.daemonset.template.generation".into(), "3".into());
    object
}

async fn fill_store(store: &MemoryStore) {
    for kind in stored() {
        let extra = if kind.kind == "Pod" { PODS } else { 0 };
        for round in 0..OBJECTS + extra {
            let object = generated(kind, round);
            let value = match round % 3 {
                0 => {
                    let mut text = Vec::new();
                    json::write_kind(&*object, &mut text);
                    text
                }
                _ => protobuf::encode(&*object),
            };
            let place = if kind.namespaced { "default/" } else { "" };
            let key = format!("/registry/{}/{place}{}", kind.storage_path, name(round));
            let put = Write::Put {
                value: value.into(),
                lease: None,
            };
            store.write(&key, Expect::Absent, put).await.unwrap();
        }
    }
}

fn serve() -> SocketAddr {
    let (started, is_started) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let store = Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap());
            fill_store(&store).await;
            let listener = ListenerConfig::new(([127, 0, 0, 1], 0).into(), None);
            let mut config = Config::new(vec![&SCHEME], store, listener);
            config.resources.code = keelson_kube::code(&keelson_kube::CodeOptions::default());
            config.resources.code.merge(keelson_extensions::code());
            config.resources.admission = keelson_kube::admission::chain();
            config.clock = Arc::new(Fixed);
            config.resources.runtime = RuntimeConfig::parse(["api/all=true"]).unwrap();
            config.access.authentication = Authentication::default().with_anonymous(Anonymous::Everywhere);
            config.access.authorization = Authorization::new(vec![Arc::new(AlwaysAllow)]);
            let running = start(config).unwrap();
            started.send(running.local_addr()).unwrap();
            std::future::pending::<()>().await;
        });
    });
    is_started.recv().unwrap()
}

struct Client {
    sender: SendRequest<Full<Bytes>>,
}

impl Client {
    async fn connect(server: SocketAddr) -> Client {
        let stream = tokio::net::TcpStream::connect(server).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        Client { sender }
    }

    /// Status and body of an answer, decompressed.
    async fn get(&mut self, path: &str, accept: &str, coding: &str) -> (u16, Vec<u8>) {
        let request = http::Request::get(format!("http://localhost{path}"))
            .header("accept", accept)
            .header("accept-encoding", coding)
            .body(Full::default())
            .unwrap();
        let answer = tokio::time::timeout(PATIENCE, self.sender.send_request(request)).await;
        let (parts, body) = answer.expect("no answer in time").unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        if !parts.headers.contains_key("content-encoding") {
            return (parts.status.as_u16(), body.to_vec());
        }
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut plain).unwrap();
        (parts.status.as_u16(), plain)
    }

    /// The answer in JSON, which must be the same if it is indented.
    async fn both_ways(&mut self, path: &str, shape: &str, query: &str) -> String {
        let accept = format!("application/json;{shape};v=v1");
        let (status, short) = self.get(&format!("{path}?{query}"), &accept, "identity").await;
        let (long_status, indented) = self.get(&format!("{path}?{query}&pretty=1"), &accept, "identity").await;
        let mut long = Vec::new();
        json::compact(&indented, &mut long);
        let short = String::from_utf8(short).unwrap();
        assert_eq!(
            short.trim_end(),
            String::from_utf8(long).unwrap(),
            "{path} {shape} {query}"
        );
        assert_eq!((status, long_status), (200, 200), "{path} {shape}: {short}");
        short
    }
}

fn collection(kind: &KindDesc) -> String {
    let root = match kind.group.as_str() {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    };
    match kind.namespaced {
        true => format!("{root}/namespaces/default/{}", kind.plural),
        false => format!("{root}/{}", kind.plural),
    }
}

/// The bodies of all fields of this number.
fn parts(mut body: &[u8], number: u32) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let [tag, rest @ ..] = body {
        // Tags here are of one byte, and all fields have lengths.
        assert_eq!(tag & 0x87, 2, "an unexpected field");
        let (mut length, mut width) = (0, 0);
        loop {
            length |= usize::from(rest[width] & 0x7f) << (7 * width);
            width += 1;
            if rest[width - 1] < 0x80 {
                break;
            }
        }
        let (part, after) = rest[width..].split_at(length);
        if u32::from(tag >> 3) == number {
            found.push(part);
        }
        body = after;
    }
    found
}

/// The metadata in an encoded partial object, as JSON shows them.
fn metadata_json(partial: &[u8]) -> String {
    let mut metadata = ObjectMeta::default();
    protobuf::read_message(parts(partial, METADATA)[0], &mut metadata).unwrap();
    let mut written = Vec::new();
    protobuf::write_message(&metadata, &mut written);
    assert_eq!(written, parts(partial, METADATA)[0], "not as it would be written");
    let mut text = Vec::new();
    json::write(&metadata, &mut text);
    String::from_utf8(text).unwrap()
}

fn raw_json(text: &str) -> Vec<String> {
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    let items = value["items"].as_array().cloned().unwrap_or_else(|| vec![value]);
    items.iter().map(|item| item["metadata"].to_string()).collect()
}

fn sorted(text: &str) -> String {
    serde_json::from_str::<serde_json::Value>(text).unwrap().to_string()
}

#[tokio::test]
async fn every_kind_looks_the_same_both_ways() {
    let mut client = Client::connect(serve()).await;
    let mut count = 0;
    let served: Vec<_> = stored().map(|kind| (&kind.group, &kind.plural)).collect();
    let all = kinds().filter(|kind| served.contains(&(&kind.group, &kind.plural)));
    for kind in all {
        let path = collection(kind);
        if client.get(&path, "application/json", "identity").await.0 == 404 {
            // A version that is only stored.
            continue;
        }
        let list = client.both_ways(&path, LIST, "").await;
        for include in ["", "None", "Metadata", "Object"] {
            client
                .both_ways(&path, TABLE, &format!("includeObject={include}"))
                .await;
        }
        client.both_ways(&path, LIST, "limit=2").await;
        client.both_ways(&path, LIST, "labelSelector=none%3Dof-them").await;
        client.both_ways(&path, TABLE, "labelSelector=none%3Dof-them").await;
        let one = format!("{path}/{}", name(1));
        let single = client.both_ways(&one, ONE, "").await;
        client.both_ways(&one, TABLE, "").await;

        let accept = format!("application/vnd.kubernetes.protobuf;{LIST};v=v1");
        let (_, encoded) = client.get(&path, &accept, "identity").await;
        let envelope = protobuf::decode_envelope(&encoded).unwrap();
        let items = parts(envelope.raw, ITEMS)
            .into_iter()
            .map(|item| sorted(&metadata_json(item)));
        assert_eq!(items.collect::<Vec<_>>(), raw_json(&list), "{path}");
        let accept = format!("application/vnd.kubernetes.protobuf;{ONE};v=v1");
        let (_, encoded) = client.get(&one, &accept, "identity").await;
        let envelope = protobuf::decode_envelope(&encoded).unwrap();
        assert_eq!(vec![sorted(&metadata_json(envelope.raw))], raw_json(&single), "{one}");
        count += 1;
    }
    assert!(count > 80, "only {count} kinds were looked at");
}

#[tokio::test]
async fn what_is_compressed_is_the_same() {
    let mut client = Client::connect(serve()).await;
    let path = "/api/v1/namespaces/default/pods";
    for accept in [
        format!("application/json;{LIST};v=v1"),
        format!("application/vnd.kubernetes.protobuf;{LIST};v=v1"),
        format!("application/json;{TABLE};v=v1"),
        format!("application/json;{TABLE};v=v1beta1"),
    ] {
        let plain = client.get(path, &accept, "identity").await;
        assert!(plain.1.len() > 256_000, "{accept}: {}", plain.1.len());
        assert_eq!(client.get(path, &accept, "gzip").await, plain, "{accept}");
    }
}
