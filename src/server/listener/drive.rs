//! Driving a connection: hyper's settings, and when to end it.

use std::convert::Infallible;
use std::pin::{Pin, pin};

use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::TokioTimer;
use tokio::time::{Instant, sleep_until};

use super::Limits;
use super::connection::Activity;
use super::serve::Context;

/// Runs handlers' tasks on the worker's own thread.
#[derive(Clone, Copy)]
pub(super) struct OnThisThread;

impl<F: Future + 'static> hyper::rt::Executor<F> for OnThisThread {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move {
            future.await;
        });
    }
}

/// A hyper connection that can be asked to end in an orderly way.
pub(super) trait Conversing: Future<Output = hyper::Result<()>> {
    fn end(self: Pin<&mut Self>);
}

impl<T, S, B> Conversing for http1::UpgradeableConnection<T, S>
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    S: hyper::service::HttpService<Incoming, ResBody = B, Error = Infallible>,
    B: http_body::Body + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    fn end(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<T, S, B> Conversing for http2::Connection<T, S, OnThisThread>
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin,
    S: hyper::service::HttpService<Incoming, ResBody = B, Error = Infallible>,
    S::Future: 'static,
    B: http_body::Body + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    fn end(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

pub(super) fn http1_settings(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_timeout)
        .max_headers(limits.max_headers)
        .max_header_size(limits.max_header_bytes)
        // The read buffer must be able to hold the largest head; hyper wants 8 KiB at least.
        .max_buf_size(limits.max_header_bytes.max(8192))
        // Go's servers write `Content-Type`; some scripts look for just that.
        .title_case_headers(true);
    builder
}

pub(super) fn http2_settings(limits: &Limits) -> http2::Builder<OnThisThread> {
    let mut builder = http2::Builder::new(OnThisThread);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.http2_max_streams)
        .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(limits.http2_max_pending_resets)
        .max_local_error_reset_streams(limits.http2_max_error_resets)
        .initial_stream_window_size(limits.http2_stream_window)
        .initial_connection_window_size(limits.http2_connection_window)
        .max_send_buf_size(limits.http2_max_send_buffer)
        .keep_alive_interval(limits.http2_ping_interval)
        .keep_alive_timeout(limits.http2_ping_timeout);
    builder
}

/// Drives a connection until it ends, and ends it when the server does, an answer says so, or it idles too long.
pub(super) async fn drive<C: Conversing>(
    mut connection: Pin<&mut C>,
    http2: bool,
    activity: &Activity,
    context: &Context,
) -> hyper::Result<()> {
    let Limits {
        handshake_timeout,
        idle_timeout,
        ..
    } = context.limits;
    let mut shutdown = pin!(context.shutdown.wait());
    let mut check = pin!(sleep_until(Instant::now() + handshake_timeout));
    let mut ending = false;
    loop {
        let now_ending = tokio::select! {
            biased;
            result = connection.as_mut() => return result,
            () = &mut shutdown, if !ending => true,
            () = activity.closed(), if !ending => true,
            () = &mut check => {
                let now = Instant::now();
                let idle_since = activity.idle_since();
                // A first HTTP/1.1 head that never came, or a client that ignores that we part. An HTTP/2 client may
                // well connect before it has something to ask.
                if idle_since.is_some() && (ending || (activity.begun() == 0 && !http2)) {
                    return Ok(());
                }
                let due = idle_since.unwrap_or(now) + idle_timeout;
                check.as_mut().reset(due);
                due <= now
            }
        };
        if now_ending && !ending {
            ending = true;
            connection.as_mut().end();
            check.as_mut().reset(Instant::now() + handshake_timeout);
        }
    }
}
