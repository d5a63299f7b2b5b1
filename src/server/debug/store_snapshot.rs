//! `GET /debug/store/snapshot`: a copy of the whole store as it is now, while it serves. `store check FILE` reads it,
//! and `store restore FILE` puts it back.
//!
//! It holds every secret, so that a right to look at `/debug/*`, which whoever finds out about slow servers has, is not
//! enough: the verb [`VERB`] on the path is needed as well.

use std::io::Read;
use std::time::Duration;

use actix_web::body::SizedStream;
use actix_web::http::{Method, header};
use actix_web::{HttpResponse, error};
use bytes::Bytes;
use futures_util::stream;
use keelson_access::authz::refused;
use keelson_access::request_info::RequestInfo;
use keelson_machinery::status::StatusError;
use keelson_storage::{StoreCopy, StoreError};
use tokio::time::Instant;

use crate::request::Request;
use crate::state::ServerState;

pub const PATH: &str = "/debug/store/snapshot";
/// Bytes read from the copy at once.
const CHUNK: usize = 256 * 1024;
/// What the sender must be allowed beside `get`.
const VERB: &str = "copy";
/// How long a copy is sent before it breaks off: nobody holds one for ever.
const LONGEST: Duration = Duration::from_secs(3600);

/// `None`: another path, or a store that has no copies.
pub async fn serve(state: &ServerState, request: &Request) -> Option<HttpResponse> {
    if request.info.path != PATH {
        return None;
    }
    if let Some(refusal) = refusal(state, request).await {
        return Some(failed(request, &refusal));
    }
    let copy = state.rest.backend.store.copy()?;
    if request.http.method() != Method::GET {
        return Some(failed(request, &StatusError::method_not_allowed()));
    }
    Some(match copy.await.and_then(sized) {
        Ok((length, copy)) => HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, "application/octet-stream"))
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .body(SizedStream::new(length, stream::unfold(Some(sending(copy)), next))),
        Err(error) => failed(request, &StatusError::service_unavailable(error.to_string())),
    })
}

/// Why the sender may not have a copy.
async fn refusal(state: &ServerState, request: &Request) -> Option<StatusError> {
    let info = RequestInfo {
        verb: VERB.to_owned(),
        ..(*request.info).clone()
    };
    let verdict = state.authorization.decide(&request.user, &info).await;
    match verdict.error {
        _ if verdict.allowed => None,
        Some(error) => Some(StatusError::internal_error(error)),
        None => Some(refused(&request.user, &info, &verdict.reason)),
    }
}

/// A copy on its way, and when it breaks off.
struct Sending {
    copy: StoreCopy,
    end: Instant,
}

fn sending(copy: StoreCopy) -> Sending {
    let end = Instant::now() + LONGEST;
    Sending { copy, end }
}

fn failed(request: &Request, error: &StatusError) -> HttpResponse {
    request.error(error)
}

fn sized(copy: StoreCopy) -> Result<(u64, StoreCopy), StoreError> {
    let length = copy.file.metadata().map(|metadata| metadata.len());
    let length = length.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    Ok((length, copy))
}

/// The next part; after an error there are no more, so that the client sees the answer break off.
async fn next(sending: Option<Sending>) -> Option<(Result<Bytes, actix_web::Error>, Option<Sending>)> {
    let mut sending = sending?;
    if Instant::now() > sending.end {
        return Some((Err(error::ErrorGatewayTimeout("the copy took too long")), None));
    }
    let read = tokio::task::spawn_blocking(move || {
        let mut chunk = vec![0; CHUNK];
        let length = sending.copy.file.read(&mut chunk)?;
        chunk.truncate(length);
        Ok::<_, std::io::Error>((chunk, sending))
    });
    match read.await {
        Ok(Ok((chunk, _))) if chunk.is_empty() => None,
        Ok(Ok((chunk, sending))) => Some((Ok(chunk.into()), Some(sending))),
        Ok(Err(error)) => Some((Err(error.into()), None)),
        Err(error) => Some((Err(error::ErrorInternalServerError(error)), None)),
    }
}
