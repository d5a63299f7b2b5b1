//! Binding, accepting, and giving each connection to a worker.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use actix_http::Request;
use actix_http::body::MessageBody;
use actix_service::{IntoServiceFactory, ServiceFactory};
use actix_web::dev::AppConfig;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};

use super::serve::Context;
use super::worker::{self, Worker};
use super::{Bind, ListenerConfig, ListenerError, Shutdown, descriptors};

/// Connections the kernel keeps while none is accepted.
const BACKLOG: i32 = 1024;
/// Pause after accepting failed for want of descriptors or memory: waiting is all that helps.
const PAUSE_WHEN_EXHAUSTED: Duration = Duration::from_millis(50);

/// Takes the address. Nothing is accepted before [`Bound::serve`], but clients that connect wait.
///
/// # Errors
/// [`ListenerError::Bind`].
pub fn bind(config: ListenerConfig) -> Result<Bound, ListenerError> {
    let address = match &config.bind {
        Bind::Address(address) => address.to_string(),
        Bind::Socket(_) => "the given socket".to_owned(),
    };
    match open(&config.bind) {
        Ok((listener, local)) => Ok(Bound {
            listener,
            local,
            config,
        }),
        Err(source) => Err(ListenerError::Bind { address, source }),
    }
}

fn open(bind: &Bind) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = match bind {
        Bind::Address(address) => {
            let socket = Socket::new(Domain::for_address(*address), Type::STREAM, Some(Protocol::TCP))?;
            socket.set_reuse_address(true)?;
            if address.is_ipv6() {
                // `[::]` takes IPv4 clients too, as Go's listener does.
                socket.set_only_v6(false)?;
            }
            socket.bind(&(*address).into())?;
            socket.listen(BACKLOG)?;
            TcpListener::from(socket)
        }
        Bind::Socket(socket) => socket.try_clone()?,
    };
    listener.set_nonblocking(true)?;
    let local = listener.local_addr()?;
    Ok((listener, local))
}

/// An address taken.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    local: SocketAddr,
    config: ListenerConfig,
}

impl Bound {
    /// The address, with the port the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Starts the workers and accepts. `application` is called once in each worker; it returns an
    /// [`actix_web::App`]. Returns when every worker is ready.
    ///
    /// # Errors
    /// [`ListenerError::Worker`] or [`ListenerError::Application`]; nothing keeps running then.
    pub fn serve<F, I, S, B>(self, application: F, shutdown: Shutdown) -> Result<Serving, ListenerError>
    where
        F: Fn() -> I + Clone + Send + 'static,
        I: IntoServiceFactory<S, Request>,
        S: ServiceFactory<Request, Config = AppConfig> + 'static,
        S::Error: Into<actix_web::Error>,
        S::InitError: std::fmt::Debug,
        S::Response: Into<actix_http::Response<B>>,
        B: MessageBody + 'static,
    {
        let Bound {
            listener,
            local,
            config,
        } = self;
        let context = Arc::new(Context::new(&config, shutdown.clone()));
        let (alive, ended) = mpsc::channel(1);
        let (mut workers, mut threads) = (Vec::new(), Vec::new());
        for number in 0..config.workers.max(1) {
            let (worker, thread) = worker::start(number, application.clone(), Arc::clone(&context), alive.clone())?;
            workers.push(worker);
            threads.push(thread);
        }
        let loads = workers.iter().map(|worker: &Worker| Arc::clone(&worker.load)).collect();
        let places = descriptors::connections(config.limits.max_connections);
        let places = Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let acceptor = Acceptor {
            listener,
            workers,
            places: Arc::clone(&places),
            context,
        };
        threads.push(
            std::thread::Builder::new()
                .name("keelson-accept".into())
                .spawn(move || {
                    let _alive = alive;
                    runtime.block_on(acceptor.run());
                })?,
        );
        Ok(Serving {
            local,
            shutdown,
            threads,
            ended,
            loads,
        })
    }
}

/// A running listener. Dropping it leaves it running; [`Shutdown::begin`] ends it.
pub struct Serving {
    local: SocketAddr,
    shutdown: Shutdown,
    threads: Vec<JoinHandle<()>>,
    /// Closed when the last thread ends.
    ended: mpsc::Receiver<Infallible>,
    loads: Vec<Arc<Load>>,
}

impl Serving {
    /// The address listened on.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Connections open now, upgraded ones too.
    pub fn connections(&self) -> usize {
        self.loads.iter().map(|load| load.connections()).sum()
    }

    /// Begins the shutdown, if nobody did, and waits for the end: at once when nothing is under way, at most the
    /// drain timeout otherwise.
    pub async fn stop(self) {
        self.shutdown.begin();
        self.ended().await;
    }

    /// Waits until the shutdown, begun elsewhere, is complete.
    pub async fn ended(mut self) {
        let _ = self.ended.recv().await;
        for thread in self.threads {
            // The threads have let go of their channel, so joining them takes no time. A panic was reported when it
            // happened.
            let _ = thread.join();
        }
    }
}

/// A connection's place: among all connections, and in its worker's load. Whoever holds it keeps the connection open.
pub(super) struct Admission {
    load: Arc<Load>,
    _place: OwnedSemaphorePermit,
}

impl Drop for Admission {
    fn drop(&mut self) {
        if self.load.connections.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.load.none_left.notify_one();
        }
    }
}

/// How many connections a worker has.
#[derive(Default)]
pub(super) struct Load {
    connections: AtomicUsize,
    none_left: Notify,
}

impl Load {
    fn admit(self: &Arc<Self>, place: OwnedSemaphorePermit) -> Admission {
        self.connections.fetch_add(1, Ordering::AcqRel);
        Admission {
            load: Arc::clone(self),
            _place: place,
        }
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Acquire)
    }

    /// Returns when no connection is left.
    pub(super) async fn drained(&self) {
        while self.connections() > 0 {
            self.none_left.notified().await;
        }
    }
}

/// A connection on its way to a worker.
pub(super) struct Accepted {
    pub(super) stream: std::net::TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) admission: Admission,
}

struct Acceptor {
    listener: TcpListener,
    workers: Vec<Worker>,
    places: Arc<Semaphore>,
    context: Arc<Context>,
}

impl Acceptor {
    /// Accepts until the shutdown begins, then closes the socket and the workers' queues.
    async fn run(self) {
        let listener = match self.listener.try_clone().and_then(tokio::net::TcpListener::from_std) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!(%error, "cannot accept connections"),
        };
        let shutdown = self.context.shutdown.wait();
        tokio::select! {
            () = shutdown => {}
            () = self.accept_all(&listener) => {}
        }
    }

    async fn accept_all(&self, listener: &tokio::net::TcpListener) {
        // Whether the trouble is one that was told of already.
        let mut told = false;
        loop {
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((stream, peer)) => {
                    told = false;
                    self.hand_over(stream, peer, place).await;
                }
                Err(error) if of_one_connection(&error) => {}
                Err(error) => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::warn!(%error, "no connection can be accepted; trying on");
                    }
                    tokio::time::sleep(PAUSE_WHEN_EXHAUSTED).await;
                }
            }
        }
    }

    async fn hand_over(&self, stream: TcpStream, peer: SocketAddr, place: OwnedSemaphorePermit) {
        if let Err(error) = self.prepare(&stream) {
            return tracing::debug!(%error, %peer, "the connection ended before it began");
        }
        let Ok(stream) = stream.into_std() else { return };
        let Some(worker) = self.workers.iter().min_by_key(|worker| worker.load.connections()) else {
            return;
        };
        let admission = worker.load.admit(place);
        // Fails only when the worker ended, which it does after this loop.
        let _ = worker
            .queue
            .send(Accepted {
                stream,
                peer,
                admission,
            })
            .await;
    }

    fn prepare(&self, stream: &TcpStream) -> io::Result<()> {
        // Without it a small HTTP/2 answer may wait 40 ms for the client's delayed acknowledgement.
        stream.set_nodelay(true)?;
        let keepalive = TcpKeepalive::new().with_time(self.context.limits.tcp_keepalive);
        SockRef::from(stream).set_tcp_keepalive(&keepalive)
    }
}

/// Errors of the connection that was about to be accepted; the next one may be fine.
fn of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}
