//! Driving a connection: hyper's settings, and when to end it.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::TokioTimer;
use tokio::time::{Instant, Sleep, sleep_until};

use super::answer::sent_or_given_up;
use super::connection::Activity;
use super::serve::Context;
use super::{Limits, Phase};

/// How often answers are looked at when the server ends: one of which nothing was read since the last look is given up.
const LOOK: Duration = Duration::from_secs(1);
/// How long a connection of a server that ends may take to send what was answered last.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Runs handlers' tasks on the worker's own thread.
#[derive(Clone)]
pub(super) struct OnThisThread {
    activity: Rc<Activity>,
}

impl<F: Future + 'static> hyper::rt::Executor<F> for OnThisThread {
    fn execute(&self, future: F) {
        match self.activity.take_for_its_task() {
            Some(answer) => drop(tokio::task::spawn_local(sent_or_given_up(answer, future))),
            None => drop(tokio::task::spawn_local(async move {
                future.await;
            })),
        }
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

pub(super) fn http2_settings(limits: &Limits, activity: &Rc<Activity>) -> http2::Builder<OnThisThread> {
    let mut builder = http2::Builder::new(OnThisThread {
        activity: Rc::clone(activity),
    });
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

/// Drives a connection until it ends, and ends it when the server does, an answer says so, or it idles too long. Gives
/// up answers that are not read.
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
    let first_request = Instant::now() + handshake_timeout;
    let mut next_phase = pin!(context.shutdown.reach(Phase::Refusing));
    let mut check = pin!(sleep_until(first_request));
    let mut phase = Phase::Serving;
    let mut ending: Option<Instant> = None;
    loop {
        let now_ending = tokio::select! {
            biased;
            result = connection.as_mut() => return result,
            () = &mut next_phase, if phase < Phase::Ending => {
                phase = context.shutdown.phase();
                next_phase.set(context.shutdown.reach(Phase::Ending));
                check.as_mut().reset(Instant::now() + LOOK);
                phase == Phase::Ending
            }
            () = activity.closed(), if ending.is_none() => true,
            () = due(check.as_mut(), activity) => {
                let now = Instant::now();
                // HTTP/1.1 can't end an answer early but with the connection.
                if activity.give_up(now, phase >= Phase::Refusing) && !http2 {
                    return Ok(());
                }
                let idle_since = activity.idle_since();
                let silent = activity.begun() == 0 && !http2 && now >= first_request;
                // A first HTTP/1.1 head that never came, or a client that ignores that we part. An HTTP/2 client may
                // well connect before it has something to ask.
                if idle_since.is_some_and(|since| silent || has_parted(since, ending, phase, handshake_timeout)) {
                    return Ok(());
                }
                let idle_until = idle_since.unwrap_or(now) + idle_timeout;
                let next = match phase {
                    Phase::Refusing | Phase::Ending => now + LOOK,
                    Phase::Serving | Phase::Leaving if ending.is_some() => now + handshake_timeout,
                    Phase::Serving | Phase::Leaving => idle_until.max(now),
                };
                check.as_mut().reset(next);
                idle_until <= now
            }
        };
        if now_ending && ending.is_none() {
            let now = Instant::now();
            ending = Some(now);
            connection.as_mut().end();
            let wait = if phase >= Phase::Refusing {
                LOOK
            } else {
                handshake_timeout
            };
            check.as_mut().reset(now + wait);
        }
    }
}

/// Returns when it is time to look at a connection: at the latest when the deadline of an answer has come.
async fn due(mut check: Pin<&mut Sleep>, activity: &Activity) {
    poll_fn(|cx| {
        if let Some(at) = activity.next_look()
            && at < check.deadline()
        {
            check.as_mut().reset(at);
        }
        check.as_mut().poll(cx)
    })
    .await;
}

/// Whether a connection that is to end has been idle for so long that its client must be cut off.
fn has_parted(idle_since: Instant, ending: Option<Instant>, phase: Phase, patience: Duration) -> bool {
    let patience = if phase == Phase::Ending { LAST_WORDS } else { patience };
    ending.is_some_and(|since| since.max(idle_since) + patience <= Instant::now())
}
