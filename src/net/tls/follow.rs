//! Reloading of certificate files: an administrator renews them in place, and the server goes on with the new ones
//! without a restart.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use super::{ServingCertificates, TlsError, TlsState};
use crate::shutdown::Shutdown;

/// Calls `reload` every so often until the shutdown. It looks at files and says whether it found and took something
/// new; while it fails (half-written files, a key that is not the certificate's), a warning is logged and the old ones
/// stay.
///
/// kube-apiserver looks once a minute, and at once where the system tells of changes.
pub async fn follow<R, E>(what: &'static str, reload: R, every: Duration, shutdown: Shutdown)
where
    R: Fn() -> Result<bool, E> + Send + Sync + 'static,
    E: Display + Send + 'static,
{
    let reload = Arc::new(reload);
    let mut ended = std::pin::pin!(shutdown.wait());
    loop {
        tokio::select! {
            () = &mut ended => return,
            () = tokio::time::sleep(every) => {}
        }
        let reload = Arc::clone(&reload);
        // Reading files blocks.
        match tokio::task::spawn_blocking(move || reload()).await {
            Ok(Ok(false)) => {}
            Ok(Ok(true)) => tracing::info!(what, "renewed files are in use"),
            Ok(Err(error)) => tracing::warn!(what, %error, "the files are not usable; what was read before stays"),
            Err(error) => tracing::warn!(what, %error, "reading the files failed"),
        }
    }
}

impl TlsState {
    /// Calls `load` every so often and serves what it returns, until the shutdown; see [`follow`].
    pub async fn follow<L>(self: Arc<Self>, load: L, every: Duration, shutdown: Shutdown)
    where
        L: Fn() -> Result<ServingCertificates, TlsError> + Send + Sync + 'static,
    {
        let reload = move || {
            let certificates = load()?;
            let new = !self.serves(&certificates);
            if new {
                self.replace(certificates);
            }
            Ok::<_, TlsError>(new)
        };
        follow("serving certificates", reload, every, shutdown).await;
    }
}
