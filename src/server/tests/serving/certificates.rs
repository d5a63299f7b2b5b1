//! Client certificates over real handshakes: those of the clients' authority are users, those of the proxies' authority
//! may say who sends, and all others are nobody.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use keelson_access::authn::certificate::ClientCertificates;
use keelson_access::authn::request_header::{FrontProxy, IdentityHeaders};
use keelson_access::authz::Authorization;
use keelson_net::tls::certs::{CertificateAuthority, Validity};
use keelson_net::tls::{ServingCertificates, TlsSettings, TlsState, certificates};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::headers::Questions;
use crate::setting::{ORDERS, Server, soon};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// An authority and what it signs with.
struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        Authority { certificate, issuer }
    }

    fn der(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.der().clone()]
    }
}

/// A certificate with its key.
struct Presented {
    chain: Vec<CertificateDer<'static>>,
    key: KeyPair,
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn for_clients(name: &str) -> CertificateParams {
    let mut params = named(name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

fn signed(authority: &Authority, params: &CertificateParams) -> Presented {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &authority.issuer).unwrap();
    let chain = vec![certificate.der().clone()];
    Presented { chain, key }
}

fn self_signed(params: &CertificateParams) -> Presented {
    let key = KeyPair::generate().unwrap();
    let chain = vec![params.self_signed(&key).unwrap().der().clone()];
    Presented { chain, key }
}

/// A server with TLS, its authority, and what its authorizer is asked.
fn server(clients: &Authority, proxies: &Authority) -> (Server, CertificateDer<'static>, Questions) {
    let own = CertificateAuthority::create("own", Validity::years_from(SystemTime::now(), 1)).unwrap();
    let local = ["127.0.0.1".parse().unwrap()];
    let validity = Validity::years_from(SystemTime::now(), 1);
    let pair = own.issue_server("server", &["localhost"], &local, validity).unwrap();
    let state = TlsState::new(ServingCertificates::new(&pair).unwrap(), &TlsSettings::default()).unwrap();
    let questions = Questions::default();
    let asked = questions.clone();
    let (clients, proxies) = (clients.der(), proxies.der());
    let server = Server::configured(move |config| {
        let headers = IdentityHeaders {
            usernames: vec!["X-Remote-User".into()],
            groups: vec!["X-Remote-Group".into()],
            ..IdentityHeaders::default()
        };
        config.listener.tls = Some(Arc::new(state));
        config.access.authentication.chain = vec![
            Arc::new(FrontProxy::new(&proxies, vec!["front".into()], headers).unwrap()),
            Arc::new(ClientCertificates::new(&clients).unwrap()),
        ];
        config.access.authorization = Authorization::new(vec![Arc::new(asked)]);
    });
    let own = certificates(&own.pem().certificate_pem).unwrap().remove(0);
    (server, own, questions)
}

/// The status of a request that claims to be sent by `admin`, with this certificate; `None`: the handshake fails.
async fn ask(
    server: &Server,
    trusted: &CertificateDer<'static>,
    shown: Option<&Presented>,
    old: bool,
) -> Option<String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions: &[&rustls::SupportedProtocolVersion] = match old {
        true => &[&rustls::version::TLS12],
        false => &[&rustls::version::TLS13],
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = match shown {
        None => builder.with_no_client_auth(),
        Some(shown) => {
            let key = PrivatePkcs8KeyDer::from(shown.key.serialize_der());
            builder.with_client_auth_cert(shown.chain.clone(), key.into()).unwrap()
        }
    };
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let tcp = TcpStream::connect(server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = soon(connector.connect(name, tcp)).await.ok()?;
    let request = format!(
        "GET {ORDERS} HTTP/1.1\r\nHost: x\r\nX-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    let _ = soon(stream.read_to_end(&mut answer)).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    answer.split(' ').nth(1).map(str::to_owned)
}

/// Reliability, client authentication: who is known, who is anonymous, and who is refused.
#[tokio::test]
async fn a_certificate_that_proves_nothing_is_refused_and_never_somebody() {
    let (clients, proxies, strangers) = (
        Authority::new("clients"),
        Authority::new("proxies"),
        Authority::new("clients"),
    );
    let (server, own, questions) = server(&clients, &proxies);
    let now = SystemTime::now();
    let mut expired = for_clients("ann");
    (expired.not_before, expired.not_after) = ((now - 20 * DAY).into(), (now - 10 * DAY).into());
    let mut early = for_clients("ann");
    (early.not_before, early.not_after) = ((now + 10 * DAY).into(), (now + 20 * DAY).into());
    let mut for_servers = named("ann");
    for_servers.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let mut nameless = for_clients("");
    nameless.distinguished_name = rcgen::DistinguishedName::new();
    // A client whose certificate is valid vouches for another, as if it were an authority.
    let leaf_key = KeyPair::generate().unwrap();
    let leaf = for_clients("ann").signed_by(&leaf_key, &clients.issuer).unwrap();
    let of_leaf = Issuer::new(for_clients("ann"), leaf_key);
    let vouched_key = KeyPair::generate().unwrap();
    let vouched = for_clients("admin").signed_by(&vouched_key, &of_leaf).unwrap();
    let vouched = Presented {
        chain: vec![vouched.der().clone(), leaf.der().clone()],
        key: vouched_key,
    };
    let ann = ["ann[system:authenticated] list orders"].as_slice();
    let admin = ["admin[system:masters system:authenticated] list orders"].as_slice();
    let nobody = ["system:anonymous[system:unauthenticated] list orders"].as_slice();
    let rows = [
        (
            "of the clients",
            Some(signed(&clients, &for_clients("ann"))),
            "200",
            ann,
        ),
        (
            "of the proxy",
            Some(signed(&proxies, &for_clients("front"))),
            "200",
            admin,
        ),
        ("none", None, "200", nobody),
        ("without a name", Some(signed(&clients, &nameless)), "401", &[]),
        (
            "of a proxy that is not allowed",
            Some(signed(&proxies, &for_clients("back"))),
            "401",
            &[],
        ),
        ("expired", Some(signed(&clients, &expired)), "401", &[]),
        ("not yet valid", Some(signed(&clients, &early)), "401", &[]),
        ("for servers", Some(signed(&clients, &for_servers)), "401", &[]),
        (
            "of an authority of the same name",
            Some(signed(&strangers, &for_clients("ann"))),
            "401",
            &[],
        ),
        ("of itself", Some(self_signed(&for_clients("ann"))), "401", &[]),
        ("of a client", Some(vouched), "401", &[]),
        (
            "of an expired proxy",
            Some(signed(&proxies, &{
                let mut front = expired.clone();
                front.distinguished_name = for_clients("front").distinguished_name;
                front
            })),
            "401",
            &[],
        ),
    ];
    for (name, shown, status, asked) in &rows {
        for old in [false, true] {
            let got = ask(&server, &own, shown.as_ref(), old).await;
            // A client's own library may stop where a server need not.
            assert_eq!(got.as_deref(), Some(*status), "{name}, TLS 1.2: {old}");
            assert_eq!(questions.taken(), *asked, "{name}");
        }
    }
}
