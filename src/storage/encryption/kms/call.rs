//! Calls of a service over its socket.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::client::Grpc;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::encryption::Kms;

const STATUS: &str = "/v2.KeyManagementService/Status";
const ENCRYPT: &str = "/v2.KeyManagementService/Encrypt";
const DECRYPT: &str = "/v2.KeyManagementService/Decrypt";

use super::message::{DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, StatusRequest, StatusResponse};

/// A call that failed, as Go's library words it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("rpc error: code = {code:?} desc = {reason}")]
pub(super) struct CallError {
    code: Code,
    reason: String,
}

impl From<Status> for CallError {
    fn from(status: Status) -> CallError {
        CallError {
            code: status.code(),
            reason: match status.message() {
                "" => causes(&status),
                message => message.to_owned(),
            },
        }
    }
}

/// A service, connected to when it is called. Clones share the connection.
#[derive(Clone)]
pub(super) struct Client {
    channel: Channel,
    timeout: Duration,
}

impl Client {
    /// Belongs to the runtime that calls this.
    pub fn new(kms: &Kms) -> Client {
        let connector = Connector(kms.endpoint.clone());
        // The address is not looked at: the connector knows the only one.
        let endpoint = Endpoint::from_static("http://localhost");
        Client {
            channel: endpoint.connect_with_connector_lazy(connector),
            timeout: kms.timeout,
        }
    }

    pub async fn status(&self) -> Result<StatusResponse, CallError> {
        self.call(STATUS, StatusRequest {}).await
    }

    pub async fn encrypt(&self, request: EncryptRequest) -> Result<EncryptResponse, CallError> {
        self.call(ENCRYPT, request).await
    }

    pub async fn decrypt(&self, request: DecryptRequest) -> Result<DecryptResponse, CallError> {
        self.call(DECRYPT, request).await
    }

    async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, CallError>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let mut grpc = Grpc::new(self.channel.clone());
        let call = async {
            grpc.ready()
                .await
                .map_err(|error| Status::unavailable(causes(&error)))?;
            let path = PathAndQuery::from_static(path);
            grpc.unary(Request::new(request), path, ProstCodec::default()).await
        };
        match tokio::time::timeout(self.timeout, call).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(status.into()),
            Err(_) => Err(Status::deadline_exceeded("context deadline exceeded").into()),
        }
    }
}

fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Connects to a unix socket, whatever address is asked for.
#[derive(Clone)]
struct Connector(PathBuf);

impl Service<Uri> for Connector {
    type Response = TokioIo<UnixStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _address: Uri) -> Self::Future {
        let path = self.0.clone();
        Box::pin(async move {
            let connected = connect(&path).await;
            let explain = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            connected.map(TokioIo::new).map_err(explain)
        })
    }
}

/// A name that begins with `@` is of Linux' abstract sockets, which tokio knows by a zero in its place.
async fn connect(path: &Path) -> io::Result<UnixStream> {
    match path.to_str().and_then(|path| path.strip_prefix('@')) {
        Some(name) => UnixStream::connect(format!("\0{name}")).await,
        None => UnixStream::connect(path).await,
    }
}
