//! Egress selection, by what connections are for: the file of `--egress-selector-config-file`.

use std::collections::BTreeSet;
use std::path::Path as FilePath;
use std::sync::Arc;

use keelson_base::configuration::{Document, Fields};
use keelson_machinery::field::{ErrorList, FieldError, Path};

use super::proxy::Proxy;
use super::{ClientTls, Dialer, Roots};
use crate::tls::certs::CertifiedKeyPem;
use crate::tls::files::read_pem;

const KIND: &str = "EgressSelectorConfiguration";
const VERSIONS: [&str; 2] = ["apiserver.k8s.io/v1beta1", "apiserver.k8s.io/v1alpha1"];

/// The ways. Each is direct where nothing else was said.
#[derive(Clone, Default)]
pub struct Egress {
    /// To what runs in the cluster: nodes, pods, services.
    pub cluster: Dialer,
    /// To webhooks that authenticate, authorize and take audit events.
    pub control_plane: Dialer,
}

/// Which way the connections of somebody take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// The direct one, whatever the file says.
    #[default]
    Direct,
    Cluster,
    ControlPlane,
}

impl std::fmt::Debug for Egress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Egress").finish_non_exhaustive()
    }
}

/// One way as it is written.
struct Given {
    name: String,
    protocol: String,
    transport: Option<Transport>,
}

struct Transport {
    tcp: Option<Tcp>,
    socket: Option<String>,
}

struct Tcp {
    url: String,
    tls: Option<Tls>,
}

struct Tls {
    authorities: String,
    certificate: String,
    key: String,
    server_name: String,
}

impl Egress {
    /// What opens connections on this way.
    pub fn dialer(&self, way: Way) -> Dialer {
        match way {
            Way::Direct => Dialer::default(),
            Way::Cluster => self.cluster.clone(),
            Way::ControlPlane => self.control_plane.clone(),
        }
    }

    /// Reads and checks the text of a file, and the certificates that it names.
    ///
    /// # Errors
    /// kube-apiserver's text; or that this server has no such way: neither gRPC, nor any but the direct one to etcd.
    pub fn read(text: &[u8]) -> Result<Egress, String> {
        let failed = |why: String| format!("failed to read egress selector config: {why}");
        if text.trim_ascii().is_empty() {
            return Err(failed("Object 'Kind' is missing in ''".to_owned()));
        }
        let document = Document::parse(text, KIND, &VERSIONS).map_err(failed)?;
        let root = document.root(KIND).map_err(failed)?.known(&["egressSelections"]);
        let selections = root.objects("egressSelections", "EgressSelection").map_err(failed)?;
        let given: Result<Vec<Given>, String> = selections.into_iter().map(Given::read).collect();
        let given = given.map_err(failed)?;
        document.finish().map_err(failed)?;
        let errors = check(&given);
        if !errors.is_empty() {
            return Err(format!("failed to validate egress selector configuration: {errors}"));
        }
        let mut egress = Egress::default();
        for one in &given {
            match (one.name.as_str(), one.proxy()?) {
                (_, None) => {}
                ("cluster", Some(proxy)) => egress.cluster = Dialer::default().through(proxy),
                ("controlplane" | "master", Some(proxy)) => egress.control_plane = Dialer::default().through(proxy),
                (name, Some(_)) => return Err(format!("egress selection {name:?}: only Direct is supported")),
            }
        }
        Ok(egress)
    }
}

impl Given {
    fn read(fields: Fields<'_>) -> Result<Given, String> {
        let fields = fields.known(&["name", "connection"]);
        let connection = fields.object("connection", "Connection")?;
        let connection = connection.map(|fields| fields.known(&["proxyProtocol", "transport"]));
        let (protocol, transport) = match &connection {
            None => (String::new(), None),
            Some(fields) => (
                fields.text("proxyProtocol")?.to_owned(),
                fields
                    .object("transport", "Transport")?
                    .map(Transport::read)
                    .transpose()?,
            ),
        };
        Ok(Given {
            name: fields.text("name")?.to_owned(),
            protocol,
            transport,
        })
    }

    /// `None`: the direct way.
    fn proxy(&self) -> Result<Option<Arc<Proxy>>, String> {
        let name = &self.name;
        match (self.protocol.as_str(), &self.transport) {
            ("HTTPConnect", Some(transport)) => {
                let proxy = transport.proxy();
                proxy
                    .map(|proxy| Some(Arc::new(proxy)))
                    .map_err(|why| format!("egress selection {name:?}: {why}"))
            }
            ("GRPC", _) => Err(format!(
                "egress selection {name:?}: the protocol GRPC is not supported; HTTPConnect is"
            )),
            _ => Ok(None),
        }
    }
}

impl Transport {
    fn read(fields: Fields<'_>) -> Result<Transport, String> {
        let fields = fields.known(&["tcp", "uds"]);
        let uds = fields
            .object("uds", "UDSTransport")?
            .map(|fields| fields.known(&["udsName"]));
        Ok(Transport {
            tcp: fields.object("tcp", "TCPTransport")?.map(Tcp::read).transpose()?,
            socket: match uds {
                Some(fields) => Some(fields.text("udsName")?.to_owned()),
                None => None,
            },
        })
    }

    fn proxy(&self) -> Result<Proxy, String> {
        if let Some(path) = &self.socket {
            return Ok(Proxy::unix(path));
        }
        let Some(tcp) = &self.tcp else {
            return Err("one of tcp and uds must be set".to_owned());
        };
        let tls = tcp.tls.as_ref().map(Tls::load).transpose()?;
        Proxy::tcp(&tcp.url, tls.as_ref())
    }
}

impl Tcp {
    fn read(fields: Fields<'_>) -> Result<Tcp, String> {
        let fields = fields.known(&["url", "tlsConfig"]);
        Ok(Tcp {
            url: fields.text("url")?.to_owned(),
            tls: fields.object("tlsConfig", "TLSConfig")?.map(Tls::read).transpose()?,
        })
    }
}

impl Tls {
    fn read(fields: Fields<'_>) -> Result<Tls, String> {
        let fields = fields.known(&["caBundle", "clientKey", "clientCert", "tlsServerName"]);
        let text = |name: &str| fields.text(name).map(str::to_owned);
        Ok(Tls {
            authorities: text("caBundle")?,
            certificate: text("clientCert")?,
            key: text("clientKey")?,
            server_name: text("tlsServerName")?,
        })
    }

    fn load(&self) -> Result<ClientTls, String> {
        let read = |path: &str| read_pem(FilePath::new(path)).map_err(|error| error.to_string());
        Ok(ClientTls {
            roots: match self.authorities.as_str() {
                "" => Roots::System,
                path => Roots::Pem(read(path)?),
            },
            identity: Some(CertifiedKeyPem {
                certificate_pem: read(&self.certificate)?,
                key_pem: read(&self.key)?,
            }),
            server_name: Some(self.server_name.clone()).filter(|name| !name.is_empty()),
            ..ClientTls::default()
        })
    }

    fn check(&self, path: &Path, errors: &mut ErrorList) {
        let absent = |file: &str| !FilePath::new(file).exists();
        if !self.authorities.is_empty() && absent(&self.authorities) {
            let text = "TLS config ca bundle does not exist";
            errors.push(FieldError::invalid(&path.child("caBundle"), &self.authorities, text));
        }
        for (name, file, needed, missing) in [
            (
                "clientCert",
                &self.certificate,
                "Using TLS requires clientCert",
                "TLS client cert does not exist",
            ),
            (
                "clientKey",
                &self.key,
                "Using TLS requires requires clientKey",
                "TLS client key does not exist",
            ),
        ] {
            if file.is_empty() {
                errors.push(FieldError::invalid(&path.child(name), "nil", needed));
            } else if absent(file) {
                errors.push(FieldError::invalid(&path.child(name), file, missing));
            }
        }
    }
}

/// kube-apiserver's texts, whose paths begin anew with each selection.
fn check(given: &[Given]) -> ErrorList {
    let mut errors = ErrorList::new();
    let root = Path::new("service").child("connection");
    let mut names = BTreeSet::new();
    for (n, one) in given.iter().enumerate() {
        let known = ["cluster", "controlplane", "etcd"];
        if !known.contains(&one.name.as_str()) && one.name != "master" {
            errors.push(FieldError::not_supported(&root, &one.name, &known));
        }
        if !names.insert(&one.name) {
            errors.push(FieldError::duplicate(&root.index(n), &one.name));
        }
        check_connection(one, &root, &mut errors);
    }
    errors
}

fn check_connection(one: &Given, root: &Path, errors: &mut ErrorList) {
    let transport = root.child("transport");
    match (one.protocol.as_str(), &one.transport) {
        ("Direct", None) => {}
        ("Direct", Some(_)) => {
            let text = "config must be absent for direct connect";
            errors.push(FieldError::invalid(&transport, "direct", text));
        }
        (protocol @ ("HTTPConnect" | "GRPC"), None) => {
            errors.push(FieldError::required(
                &transport,
                format!("transport must be set for {protocol}"),
            ));
        }
        ("GRPC", Some(given)) if given.socket.is_none() => {
            errors.push(FieldError::required(&root.child("uds"), "UDS must be set with GRPC"));
        }
        ("HTTPConnect" | "GRPC", Some(given)) => check_transport(given, root, errors),
        (other, _) => {
            let known = ["Direct", "HTTPConnect", "GRPC"];
            errors.push(FieldError::not_supported(&root.child("protocol"), other, &known));
        }
    }
}

fn check_transport(given: &Transport, root: &Path, errors: &mut ErrorList) {
    match (&given.tcp, &given.socket) {
        (None, None) => errors.push(FieldError::required(
            &root.child("tcp"),
            "One of TCP or UDS must be set",
        )),
        (Some(tcp), Some(_)) => {
            let shown = serde_json::json!({"URL": tcp.url, "TLSConfig": null}).to_string();
            let value = keelson_machinery::field::BadValue::json(shown);
            errors.push(FieldError::invalid(
                &root.child("tcp"),
                value,
                "TCP and UDS cannot both be set",
            ));
        }
        (None, Some(path)) if path.is_empty() => {
            let text = "must be present for UDS connections";
            errors.push(FieldError::invalid(&root.child("udsName"), "nil", text));
        }
        (None, Some(_)) => {}
        (Some(tcp), None) => match (&tcp.tls, tcp.url.split("://").next()) {
            (Some(_), Some("http")) => {
                let text = "config must not be present when using HTTP";
                errors.push(FieldError::invalid(&root.child("tlsConfig"), "nil", text));
            }
            (None, Some("http")) => {}
            (None, Some("https")) => {
                let text = "TLSConfig must be present when using HTTPS";
                errors.push(FieldError::required(&root.child("tlsConfig"), text));
            }
            (Some(tls), Some("https")) => tls.check(&root.child("tlsConfig"), errors),
            _ => {
                let text = "supported connection protocols are http:// and https://";
                errors.push(FieldError::invalid(&root.child("url"), &tcp.url, text));
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream, UnixListener};

    use super::super::stub::{Reply, Stub, vacant_port};
    use super::super::{Call, Client, ClientSettings};
    use super::*;

    fn file(selections: &str) -> String {
        format!("apiVersion: apiserver.k8s.io/v1beta1\nkind: {KIND}\negressSelections:\n{selections}\n")
    }

    fn connect(transport: &str) -> String {
        file(&format!(
            "- {{name: controlplane, connection: {{proxyProtocol: HTTPConnect, transport: {{{transport}}}}}}}"
        ))
    }

    #[test]
    fn mistakes_are_told_as_kube_apiserver_tells_them() {
        let one = |connection: &str| file(&format!("- {{name: cluster, connection: {connection}}}"));
        for (text, want) in [
            (
                file("- {name: foo, connection: {proxyProtocol: Direct}}"),
                "connection: Unsupported value: \"foo\": supported values: \"cluster\", \"controlplane\", \"etcd\"",
            ),
            (
                one("{proxyProtocol: Foo}"),
                "connection.protocol: Unsupported value: \"Foo\": supported values: \"Direct\", \"HTTPConnect\", \"GRPC\"",
            ),
            (
                one("{proxyProtocol: Direct, transport: {}}"),
                "connection.transport: Invalid value: \"direct\": config must be absent for direct connect",
            ),
            (
                one("{proxyProtocol: HTTPConnect}"),
                "connection.transport: Required value: transport must be set for HTTPConnect",
            ),
            (
                connect(""),
                "connection.tcp: Required value: One of TCP or UDS must be set",
            ),
            (
                connect("tcp: {url: 'http://a:1'}, uds: {udsName: /x}"),
                "connection.tcp: Invalid value: {\"URL\":\"http://a:1\",\"TLSConfig\":null}: TCP and UDS cannot both be set",
            ),
            (
                connect("tcp: {url: 'ftp://a'}"),
                "connection.url: Invalid value: \"ftp://a\": supported connection protocols are http:// and https://",
            ),
            (
                connect("tcp: {url: 'https://a:1'}"),
                "connection.tlsConfig: Required value: TLSConfig must be present when using HTTPS",
            ),
            (
                connect("tcp: {url: 'http://a:1', tlsConfig: {caBundle: /x}}"),
                "connection.tlsConfig: Invalid value: \"nil\": config must not be present when using HTTP",
            ),
            (
                connect("uds: {udsName: ''}"),
                "connection.udsName: Invalid value: \"nil\": must be present for UDS connections",
            ),
            (
                one("{proxyProtocol: GRPC, transport: {tcp: {url: 'https://a:1'}}}"),
                "connection.uds: Required value: UDS must be set with GRPC",
            ),
        ] {
            let error = Egress::read(text.as_bytes()).err().unwrap();
            assert_eq!(
                error,
                format!("failed to validate egress selector configuration: service.{want}"),
                "{text}"
            );
        }
        let files = connect("tcp: {url: 'https://a:1', tlsConfig: {caBundle: /nofile}}");
        assert_eq!(
            Egress::read(files.as_bytes()).err().unwrap(),
            "failed to validate egress selector configuration: [service.connection.tlsConfig.caBundle: Invalid value: \
             \"/nofile\": TLS config ca bundle does not exist, service.connection.tlsConfig.clientCert: Invalid value: \
             \"nil\": Using TLS requires clientCert, service.connection.tlsConfig.clientKey: Invalid value: \"nil\": Using \
             TLS requires requires clientKey]"
        );
        let grpc = one("{proxyProtocol: GRPC, transport: {uds: {udsName: /x}}}");
        assert!(
            Egress::read(grpc.as_bytes())
                .err()
                .unwrap()
                .contains("the protocol GRPC is not supported")
        );
        let etcd = connect("uds: {udsName: /x}").replace("controlplane", "etcd");
        assert!(
            Egress::read(etcd.as_bytes())
                .err()
                .unwrap()
                .contains("only Direct is supported")
        );
        assert!(Egress::read(file("").as_bytes()).is_ok() && Egress::read(b"").is_err());
    }

    /// A proxy that does what it is asked for, or refuses.
    async fn relay(mut from: impl super::super::stream::Stream, refuse: bool) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(from.read_u8().await.unwrap());
        }
        let text = String::from_utf8(head).unwrap();
        let place = text.split(' ').nth(1).unwrap().to_owned();
        if refuse {
            from.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await.unwrap();
            return;
        }
        let mut to = TcpStream::connect(place.replace("name.invalid", "127.0.0.1"))
            .await
            .unwrap();
        from.write_all(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n").await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
    }

    async fn get(egress: &Egress, stub: &Stub, url: String) -> Result<u16, String> {
        let client = Client::new(ClientSettings {
            dialer: egress.control_plane.clone(),
            ..stub.trusted()
        });
        let answer = client.unwrap().call(&Call::get(url)).await;
        answer.map(|answer| answer.status).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn connections_go_through_the_proxy() {
        let stub = Stub::https(|_| Reply::new(200, "")).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap();
        tokio::spawn(async move {
            for refuse in [false, true] {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(relay(stream, refuse));
            }
        });
        let text = connect(&format!("tcp: {{url: 'http://{place}'}}"));
        let egress = Egress::read(text.as_bytes()).unwrap();
        assert_eq!(get(&egress, &stub, stub.url("/")).await, Ok(200));
        let url = stub.url("/");
        let port = stub.port();
        assert_eq!(
            get(&egress, &stub, url.clone()).await.unwrap_err(),
            format!("Get {url:?}: proxy error from {place} while dialing 127.0.0.1:{port}: code 403")
        );
        let gone = connect(&format!("tcp: {{url: 'http://127.0.0.1:{}'}}", vacant_port()));
        let error = get(&Egress::read(gone.as_bytes()).unwrap(), &stub, url)
            .await
            .unwrap_err();
        assert!(
            error.contains("dialing proxy") && error.ends_with("connection refused"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn proxies_may_be_sockets_and_find_names_themselves() {
        let stub = Stub::http(|_| Reply::new(200, "")).await;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("proxy");
        let listener = UnixListener::bind(&path).unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            relay(stream, false).await;
        });
        let text = connect(&format!("uds: {{udsName: {}}}", path.display()));
        let egress = Egress::read(text.as_bytes()).unwrap();
        let url = format!("http://name.invalid:{}/", stub.port());
        assert_eq!(get(&egress, &stub, url).await, Ok(200));
    }
}
