//! Dialing: names are resolved, and one of their addresses is connected to.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::proxy::Proxy;
use super::service::{Route, ServiceError, ServicePort, Services};
use super::stream::Stream;

/// How long a connection may take to come about, whatever else is allowed.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The least time that one of several addresses gets.
const LEAST_TIMEOUT: Duration = Duration::from_secs(2);
/// Addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Addresses of a name, or why there are none.
pub type Resolved<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Finds the addresses of names.
pub trait Resolver: Send + Sync {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolved<'a>;
}

/// Asks the operating system.
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolved<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Why there is no connection, in Go's words.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error("dial tcp: lookup {host}: no such host")]
    UnknownHost { host: String },
    /// Nobody said in time where the host is.
    #[error("dial tcp: lookup {host}: i/o timeout")]
    LookupTimeout { host: String },
    #[error("dial tcp: address {authority}: missing port in address")]
    MissingPort { authority: String },
    #[error("dial tcp: lookup tcp/{port}: unknown port")]
    UnknownPort { port: String },
    /// An address that must not be connected to.
    #[error("dial tcp {address}: {reason}")]
    Forbidden { address: SocketAddr, reason: String },
    #[error("dial tcp {address}: {}", connect_error(.source))]
    Connect { address: SocketAddr, source: io::Error },
    #[error("dial tcp {address}: i/o timeout")]
    Timeout { address: SocketAddr },
    /// A proxy that can't be reached.
    #[error("dialing proxy {proxy:?} failed: {reason}")]
    ProxyDial { proxy: String, reason: String },
    /// A proxy that does not connect.
    #[error("proxy error from {proxy} while dialing {authority}: {reason}")]
    Proxy {
        proxy: String,
        authority: String,
        reason: String,
    },
    /// A service that is nowhere.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// Says why an address must not be connected to: a text for people, the reason of [`DialError::Forbidden`].
type Permit = dyn Fn(IpAddr) -> Result<(), String> + Send + Sync;

/// Opens connections. A name is resolved once for each of them; what is checked is what is connected to, so that a name
/// server that changes its mind in between gains nothing.
#[derive(Clone)]
pub struct Dialer {
    resolver: Arc<dyn Resolver>,
    permit: Option<Arc<Permit>>,
    proxy: Option<Arc<Proxy>>,
    route: Option<Arc<Route>>,
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialer").finish_non_exhaustive()
    }
}

impl Default for Dialer {
    /// The system's names, and any address.
    fn default() -> Self {
        Dialer::new(Arc::new(SystemResolver))
    }
}

impl Dialer {
    pub fn new(resolver: Arc<dyn Resolver>) -> Dialer {
        Dialer {
            resolver,
            permit: None,
            proxy: None,
            route: None,
        }
    }

    /// Connects only to addresses that `permit` does not object to. IPv4 addresses written as IPv6 come as IPv4.
    pub fn permitting(self, permit: impl Fn(IpAddr) -> Result<(), String> + Send + Sync + 'static) -> Dialer {
        Dialer {
            permit: Some(Arc::new(permit)),
            ..self
        }
    }

    /// Goes through a proxy, which finds the addresses of names itself.
    pub fn through(self, proxy: Arc<Proxy>) -> Dialer {
        Dialer {
            proxy: Some(proxy),
            ..self
        }
    }

    /// Goes to where a service is when it is to connect to [`ServicePort::host`].
    pub fn to_service(self, service: ServicePort, services: Arc<dyn Services>) -> Dialer {
        Dialer {
            route: Some(Arc::new(Route { service, services })),
            ..self
        }
    }

    /// Opens a connection; `host` is a name or an address, without brackets.
    ///
    /// # Errors
    /// What Go says about it: `dial tcp 127.0.0.1:1: connect: connection refused`.
    pub async fn connect(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, DialError> {
        let located = match &self.route {
            Some(route) => route.locate(host, port).await?,
            None => None,
        };
        let (host, port) = located.as_ref().map_or((host, port), |(host, port)| (host, *port));
        match &self.proxy {
            Some(proxy) => proxy.connect(host, port).await,
            None => Ok(Box::new(self.direct(host, port).await?)),
        }
    }

    /// The same without a proxy.
    pub(super) async fn direct(&self, host: &str, port: u16) -> Result<TcpStream, DialError> {
        let deadline = Instant::now() + TIMEOUT;
        let addresses = self.addresses(host).await?;
        let mut first = None;
        for (n, address) in addresses.iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let shares = u32::try_from(addresses.len() - n).unwrap_or(1);
            let share = (left / shares).max(LEAST_TIMEOUT).min(left);
            match self.attempt(SocketAddr::new(*address, port), share).await {
                Ok(stream) => return Ok(stream),
                Err(why) => first = first.or(Some(why)),
            }
        }
        Err(first.unwrap_or_else(|| DialError::UnknownHost { host: host.to_owned() }))
    }

    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, DialError> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![address]);
        }
        let owned = || host.to_owned();
        let mut found = match timeout(TIMEOUT, self.resolver.resolve(host)).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => return Err(DialError::UnknownHost { host: owned() }),
            Err(_) => return Err(DialError::LookupTimeout { host: owned() }),
        };
        found.dedup();
        found.truncate(MAX_ADDRESSES);
        Ok(found)
    }

    async fn attempt(&self, address: SocketAddr, share: Duration) -> Result<TcpStream, DialError> {
        if let Some(permit) = &self.permit {
            let permitted = permit(address.ip().to_canonical());
            permitted.map_err(|reason| DialError::Forbidden { address, reason })?;
        }
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Without it small requests wait for acknowledgements; failing to set it only makes them slower.
                let _ = stream.set_nodelay(true);
                Ok(stream)
            }
            Ok(Err(source)) => Err(DialError::Connect { address, source }),
            Err(_) => Err(DialError::Timeout { address }),
        }
    }
}

fn connect_error(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        ErrorKind::ConnectionReset => "connect: connection reset by peer".to_owned(),
        ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        ErrorKind::TimedOut => "connect: connection timed out".to_owned(),
        _ => error.to_string(),
    }
}

/// Opens a connection to `host:port`. The error is what Go says about it: `dial tcp 127.0.0.1:10250: connect:
/// connection refused`.
pub async fn dial(authority: &str) -> Result<TcpStream, DialError> {
    let missing = || DialError::MissingPort {
        authority: authority.to_owned(),
    };
    let (host, port) = authority.rsplit_once(':').ok_or_else(missing)?;
    let unknown = |_| DialError::UnknownPort { port: port.to_owned() };
    let port = port.parse().map_err(unknown)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Dialer::default().direct(host, port).await
}
