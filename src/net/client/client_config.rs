//! Webhooks that objects name (`clientConfig`): by a URL or as a service of the cluster, with the authorities that
//! certify them.

use std::sync::Arc;
use std::time::Duration;

use super::target::Target;
use super::{
    Backoff, ClientSettings, ClientTls, Dialer, Identity, Kubeconfig, KubeconfigError, Roots, ServicePort, Services,
    Users, Webhook,
};

/// What an object says of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookClientConfig {
    pub address: WebhookAddress,
    /// Certificates in PEM; blank: those that the machine trusts.
    pub ca_bundle: Vec<u8>,
}

/// Where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookAddress {
    Url(String),
    /// A service, and the path there; "": its root.
    Service(ServicePort, String),
}

/// The ways to webhooks.
#[derive(Clone)]
pub struct WebhookWays {
    pub dialer: Dialer,
    pub services: Arc<dyn Services>,
}

impl WebhookClientConfig {
    /// A client for it, which is there who `users` say. `timeout` is for one call.
    ///
    /// # Errors
    /// Certificates that are none.
    pub fn webhook(
        &self,
        ways: &WebhookWays,
        users: &Users,
        timeout: Duration,
        backoff: Backoff,
    ) -> Result<Webhook, KubeconfigError> {
        let (server, dialer) = match &self.address {
            WebhookAddress::Url(url) => (clean(url), ways.dialer.clone()),
            WebhookAddress::Service(service, path) => {
                let url = format!("https://{}:{}/{path}", service.host(), service.port);
                let dialer = ways.dialer.clone();
                (clean(&url), dialer.to_service(service.clone(), ways.services.clone()))
            }
        };
        // A URL that is none fails when it is called.
        let origin = Target::parse(&server).map(|target| target.origin);
        let identity = origin.map_or_else(
            |_| Identity::default(),
            |origin| users.of(&origin.host, origin.port).clone(),
        );
        let roots = match String::from_utf8_lossy(&self.ca_bundle) {
            blank if blank.trim().is_empty() => Roots::System,
            pem => Roots::Pem(pem.into_owned()),
        };
        let client = ClientSettings {
            tls: ClientTls {
                roots,
                identity: identity.certificate,
                ..ClientTls::default()
            },
            credentials: identity.credentials,
            dialer,
            ..ClientSettings::default()
        };
        Webhook::of(Kubeconfig { server, client }, timeout, backoff)
    }
}

/// The same with a path as Go's clients clean it: neither empty segments nor a slash at its end, and never none.
fn clean(url: &str) -> String {
    let after = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(after);
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("{scheme}{authority}/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::stub::{Reply, Stub};
    use super::super::{Located, ServiceError};
    use super::*;

    /// One service, at this port of this machine.
    struct One(u16);

    impl Services for One {
        fn locate<'a>(&'a self, service: &'a ServicePort) -> Located<'a> {
            Box::pin(std::future::ready(match service.name.as_str() {
                "stub" => Ok(("127.0.0.1".to_owned(), self.0)),
                other => Err(ServiceError::NotFound(other.to_owned())),
            }))
        }
    }

    async fn post(config: &WebhookClientConfig, stub: &Stub) -> Result<(), String> {
        let ways = WebhookWays {
            dialer: Dialer::default(),
            services: Arc::new(One(stub.port())),
        };
        let webhook = config.webhook(&ways, &Users::default(), Duration::from_secs(30), Backoff::ONCE);
        let webhook = webhook.map_err(|error| error.to_string())?;
        webhook.post("{}").await.map(drop).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn services_are_called_where_they_are_and_certified_by_their_names() {
        let stub = Stub::https(|_| Reply::new(200, "{}")).await;
        let service = |name: &str| ServicePort {
            namespace: "example".to_owned(),
            name: name.to_owned(),
            port: 443,
        };
        let mut config = WebhookClientConfig {
            address: WebhookAddress::Service(service("stub"), "/convert".to_owned()),
            ca_bundle: stub.ca_pem.clone().into_bytes(),
        };
        let error = post(&config, &stub).await.unwrap_err();
        assert!(error.contains("not stub.example.svc"), "{error}");
        config.address = WebhookAddress::Service(service("other"), String::new());
        assert_eq!(
            post(&config, &stub).await.unwrap_err(),
            "Post \"https://other.example.svc:443/?timeout=30s\": service \"other\" not found"
        );
        config.address = WebhookAddress::Url(stub.url("/convert/"));
        post(&config, &stub).await.unwrap();
        assert_eq!(stub.seen()[0].path, "/convert?timeout=30s");
        config.ca_bundle = b"no certificate".to_vec();
        assert!(
            post(&config, &stub)
                .await
                .unwrap_err()
                .contains("unable to load root certificates")
        );
        config.ca_bundle = b" \n".to_vec();
        assert!(post(&config, &stub).await.unwrap_err().contains("x509"));
    }

    #[test]
    fn paths_are_clean() {
        for (url, want) in [
            ("https://a", "https://a/"),
            ("https://a:1/", "https://a:1/"),
            ("https://a//b/./c/../d/", "https://a/b/d"),
        ] {
            assert_eq!(clean(url), want);
        }
    }
}
