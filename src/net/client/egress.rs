//! Egress selection, by what connections are for: the file of `--egress-selector-config-file`.

use std::collections::BTreeSet;
use std::path::Path as FilePath;
use std::sync::Arc;

use keelson_configuration::apiserver_k8s_io::v1beta1::{
    EgressSelection, EgressSelectorConfiguration, TCPTransport, TLSConfig, Transport,
};
use keelson_configuration::{ConfigurationError, Known};
use keelson_machinery::field::{ErrorList, FieldError, Path};

use super::proxy::{Proxy, ProxyError};
use super::{ClientTls, Dialer, Roots};
use crate::tls::TlsError;
use crate::tls::certs::CertifiedKeyPem;
use crate::tls::files::read_pem;

const KNOWN: Known = Known {
    kind: "EgressSelectorConfiguration",
    versions: &["apiserver.k8s.io/v1beta1", "apiserver.k8s.io/v1alpha1"],
};

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

/// What is wrong with the file, in kube-apiserver's words; or a way that this server does not have.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// It is not of this kind, or has fields that are wrong or unknown.
    #[error("failed to read egress selector config: {0}")]
    File(#[from] ConfigurationError),
    /// Values that make no sense.
    #[error("failed to validate egress selector configuration: {0}")]
    Invalid(ErrorList),
    /// gRPC.
    #[error("egress selection {name:?}: the protocol GRPC is not supported; HTTPConnect is")]
    Protocol { name: String },
    /// Of a connection that there is the direct way for alone.
    #[error("egress selection {name:?}: only Direct is supported")]
    DirectOnly { name: String },
    /// A proxy that can't be used.
    #[error("egress selection {name:?}: {error}")]
    Proxy { name: String, error: ProxyFileError },
}

/// A proxy of the file that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ProxyFileError {
    #[error("one of tcp and uds must be set")]
    Nowhere,
    /// A file of certificates.
    #[error(transparent)]
    Pem(#[from] TlsError),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
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
    /// All that [`EgressError`] has.
    pub fn read(text: &[u8]) -> Result<Egress, EgressError> {
        let given: EgressSelectorConfiguration = keelson_configuration::read(text, &[KNOWN])?;
        let errors = check(&given.egress_selections);
        if !errors.is_empty() {
            return Err(EgressError::Invalid(errors));
        }
        let mut egress = Egress::default();
        for one in &given.egress_selections {
            let Some(proxy) = proxy(one)? else { continue };
            match one.name.as_str() {
                "cluster" => egress.cluster = Dialer::default().through(proxy),
                "controlplane" | "master" => egress.control_plane = Dialer::default().through(proxy),
                name => return Err(EgressError::DirectOnly { name: name.to_owned() }),
            }
        }
        Ok(egress)
    }
}

/// `None`: the direct way.
fn proxy(given: &EgressSelection) -> Result<Option<Arc<Proxy>>, EgressError> {
    let name = given.name.clone();
    match (given.connection.proxy_protocol.as_str(), &given.connection.transport) {
        ("HTTPConnect", Some(transport)) => match proxy_of(transport) {
            Ok(proxy) => Ok(Some(Arc::new(proxy))),
            Err(error) => Err(EgressError::Proxy { name, error }),
        },
        ("GRPC", _) => Err(EgressError::Protocol { name }),
        _ => Ok(None),
    }
}

fn proxy_of(given: &Transport) -> Result<Proxy, ProxyFileError> {
    if let Some(socket) = &given.uds {
        return Ok(Proxy::unix(&socket.uds_name));
    }
    let Some(tcp) = &given.tcp else {
        return Err(ProxyFileError::Nowhere);
    };
    let tls = tcp.tls_config.as_deref().map(load).transpose()?;
    Ok(Proxy::tcp(&tcp.url, tls.as_ref())?)
}

fn load(given: &TLSConfig) -> Result<ClientTls, ProxyFileError> {
    let read = |path: &str| read_pem(FilePath::new(path));
    Ok(ClientTls {
        roots: match given.ca_bundle.as_str() {
            "" => Roots::System,
            path => Roots::Pem(read(path)?),
        },
        identity: Some(CertifiedKeyPem {
            certificate_pem: read(&given.client_cert)?,
            key_pem: read(&given.client_key)?,
        }),
        server_name: Some(given.tls_server_name.clone()).filter(|name| !name.is_empty()),
        ..ClientTls::default()
    })
}

fn check_tls(given: &TLSConfig, path: &Path, errors: &mut ErrorList) {
    let absent = |file: &str| !FilePath::new(file).exists();
    if !given.ca_bundle.is_empty() && absent(&given.ca_bundle) {
        let text = "TLS config ca bundle does not exist";
        errors.push(FieldError::invalid(&path.child("caBundle"), &given.ca_bundle, text));
    }
    for (name, file, needed, missing) in [
        (
            "clientCert",
            &given.client_cert,
            "Using TLS requires clientCert",
            "TLS client cert does not exist",
        ),
        (
            "clientKey",
            &given.client_key,
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

/// kube-apiserver's texts, whose paths begin anew with each selection.
fn check(given: &[EgressSelection]) -> ErrorList {
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

fn check_connection(one: &EgressSelection, root: &Path, errors: &mut ErrorList) {
    let transport = root.child("transport");
    match (one.connection.proxy_protocol.as_str(), &one.connection.transport) {
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
        ("GRPC", Some(given)) if given.uds.is_none() => {
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
    match (&given.tcp, &given.uds) {
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
        (None, Some(socket)) if socket.uds_name.is_empty() => {
            let text = "must be present for UDS connections";
            errors.push(FieldError::invalid(&root.child("udsName"), "nil", text));
        }
        (None, Some(_)) => {}
        (Some(tcp), None) => check_tcp(tcp, root, errors),
    }
}

fn check_tcp(given: &TCPTransport, root: &Path, errors: &mut ErrorList) {
    let at = root.child("tlsConfig");
    match (&given.tls_config, given.url.split("://").next()) {
        (Some(_), Some("http")) => {
            let text = "config must not be present when using HTTP";
            errors.push(FieldError::invalid(&at, "nil", text));
        }
        (None, Some("http")) => {}
        (None, Some("https")) => {
            errors.push(FieldError::required(&at, "TLSConfig must be present when using HTTPS"));
        }
        (Some(tls), Some("https")) => check_tls(tls, &at, errors),
        _ => {
            let text = "supported connection protocols are http:// and https://";
            errors.push(FieldError::invalid(&root.child("url"), &given.url, text));
        }
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
        format!(
            "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n{selections}\n"
        )
    }

    fn fault(text: &str) -> String {
        let read = Egress::read(text.as_bytes());
        read.err().map(|error| error.to_string()).unwrap_or_default()
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
            assert_eq!(
                fault(&text),
                format!("failed to validate egress selector configuration: service.{want}"),
                "{text}"
            );
        }
        let files = connect("tcp: {url: 'https://a:1', tlsConfig: {caBundle: /nofile}}");
        assert_eq!(
            fault(&files),
            "failed to validate egress selector configuration: [service.connection.tlsConfig.caBundle: Invalid value: \
             \"/nofile\": TLS config ca bundle does not exist, service.connection.tlsConfig.clientCert: Invalid value: \
             \"nil\": Using TLS requires clientCert, service.connection.tlsConfig.clientKey: Invalid value: \"nil\": Using \
             TLS requires requires clientKey]"
        );
        let grpc = one("{proxyProtocol: GRPC, transport: {uds: {udsName: /x}}}");
        assert!(fault(&grpc).contains("the protocol GRPC is not supported"));
        let etcd = connect("uds: {udsName: /x}").replace("controlplane", "etcd");
        assert!(fault(&etcd).contains("only Direct is supported"));
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
