//! The certificates of the server and its clients, made of checked settings. Authentication and authorization have
//! [`crate::authentication`] and [`crate::authorization`].

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keelson_access::authn::CertificateError;
use keelson_access::authn::certificate::ClientCertificates;
use keelson_access::authn::request_header::FrontProxy;
use keelson_net::listener::Shutdown;
use keelson_net::tls::certs::CertifiedKeyPem;
use keelson_net::tls::{ServingCertificates, TlsError, TlsState, certificates, files, follow};
use rustls_pki_types::CertificateDer;

use keelson_options::provision::Credentials;
use keelson_options::{FrontProxySettings, NamedCertificate, OptionError, ServingCertificate, Settings};

/// How often the files of certificates are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// What the server shows to clients, and what it wants to see of them. Both can be replaced while it runs.
pub(crate) struct Certificates {
    pub tls: Arc<TlsState>,
    pub clients: Arc<ClientCertificates>,
    /// Who may say in headers who sends a request.
    pub proxy: Option<Arc<FrontProxy>>,
}

impl Certificates {
    /// Reads the files.
    pub(crate) fn load(settings: &Settings, credentials: &Credentials) -> Result<Certificates, OptionError> {
        let fault =
            |error: TlsError| OptionError::file("--tls-cert-file", settings.serving.certificate.files().0, error);
        let serving = serving_certificates(&settings.serving.certificate, &settings.serving.named).map_err(fault)?;
        let tls = TlsState::new(serving, &settings.serving.tls).map_err(fault)?;
        let fault = |reason: String| OptionError::flag("--client-ca-file", reason);
        let authorities = certificates(&credentials.client_ca_pem).map_err(|error| fault(error.to_string()))?;
        let clients = ClientCertificates::new(&authorities).map_err(|error| fault(error.to_string()))?;
        Ok(Certificates {
            tls: Arc::new(tls),
            clients: Arc::new(clients),
            proxy: settings
                .authentication
                .front_proxy
                .as_ref()
                .map(front_proxy)
                .transpose()?,
        })
    }

    /// Goes on with renewed files until the shutdown.
    pub(crate) fn follow(self, settings: &Settings, shutdown: &Shutdown) {
        let (serving, named) = (settings.serving.certificate.clone(), settings.serving.named.clone());
        let load = move || serving_certificates(&serving, &named);
        tokio::task::spawn_local(self.tls.follow(load, LOOK, shutdown.clone()));
        if let Some(path) = settings.authentication.client_ca_file.clone() {
            let known = settings.authentication.client_ca_pem.clone().unwrap_or_default();
            let replace = move |new: &[_]| self.clients.replace(new);
            follow_authorities("authorities of clients", path, known, replace, shutdown);
        }
        if let (Some(proxy), Some(given)) = (self.proxy, &settings.authentication.front_proxy) {
            let (path, known) = (given.client_ca_file.clone(), given.client_ca_pem.clone());
            let replace = move |new: &[_]| proxy.replace(new);
            follow_authorities("authorities of proxies", path, known, replace, shutdown);
        }
    }
}

fn front_proxy(settings: &FrontProxySettings) -> Result<Arc<FrontProxy>, OptionError> {
    let fault = |reason: String| OptionError::flag("--requestheader-client-ca-file", reason);
    let authorities = certificates(&settings.client_ca_pem).map_err(|error| fault(error.to_string()))?;
    let proxy = FrontProxy::new(&authorities, settings.allowed_names.clone(), settings.headers.clone());
    Ok(Arc::new(proxy.map_err(|error| fault(error.to_string()))?))
}

/// Looks at a file of authorities now and then, and puts what is new in the place of what was `known`.
fn follow_authorities(
    what: &'static str,
    path: PathBuf,
    known: String,
    replace: impl Fn(&[CertificateDer<'static>]) -> Result<(), CertificateError> + Send + Sync + 'static,
    shutdown: &Shutdown,
) {
    let known = Mutex::new(known);
    let reload = move || {
        let text = files::read_pem(&path).map_err(|error| error.to_string())?;
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == text {
            return Ok(false);
        }
        let authorities = certificates(&text).map_err(|error| error.to_string())?;
        replace(&authorities).map_err(|error| error.to_string())?;
        *known = text;
        Ok::<_, String>(true)
    };
    tokio::task::spawn_local(follow(what, reload, LOOK, shutdown.clone()));
}

/// Reads the certificates that are served. Names that somebody gave come before those that certificates are for.
fn serving_certificates(
    serving: &ServingCertificate,
    named: &[NamedCertificate],
) -> Result<ServingCertificates, TlsError> {
    let (certificate, key) = serving.files();
    let mut set = ServingCertificates::new(&CertifiedKeyPem::read(certificate, key)?)?;
    let (given, own): (Vec<_>, Vec<_>) = named.iter().partition(|named| !named.names.is_empty());
    for named in given {
        let pair = CertifiedKeyPem::read(&named.certificate, &named.key)?;
        let names: Vec<&str> = named.names.iter().map(String::as_str).collect();
        set = set.with_named(&names, &pair)?;
    }
    for named in own {
        set = set.with_own_names(&CertifiedKeyPem::read(&named.certificate, &named.key)?)?;
    }
    Ok(set)
}
