//! Following certificate files: an administrator renews them in place, and the server serves the new ones without a
//! restart.

use std::sync::Arc;
use std::time::Duration;

use super::{ServingCertificates, TlsError, TlsState};
use crate::listener::Shutdown;

impl TlsState {
    /// Calls `load` every so often and serves what it returns, until the shutdown. While it fails (half-written
    /// files, a key that is not the certificate's), a warning is logged and the old certificates stay.
    ///
    /// kube-apiserver looks once a minute.
    pub async fn follow<L>(self: Arc<Self>, load: L, every: Duration, shutdown: Shutdown)
    where
        L: Fn() -> Result<ServingCertificates, TlsError> + Send + Sync + 'static,
    {
        let load = Arc::new(load);
        let mut ended = std::pin::pin!(shutdown.wait());
        loop {
            tokio::select! {
                () = &mut ended => return,
                () = tokio::time::sleep(every) => {}
            }
            let load = Arc::clone(&load);
            // Reading files blocks.
            match tokio::task::spawn_blocking(move || load()).await {
                Ok(Ok(certificates)) if self.serves(&certificates) => {}
                Ok(Ok(certificates)) => {
                    self.replace(certificates);
                    tracing::info!("serving with renewed certificates");
                }
                Ok(Err(error)) => tracing::warn!(%error, "the certificate files are not usable; the old ones stay"),
                Err(error) => tracing::warn!(%error, "reading the certificate files failed"),
            }
        }
    }
}
