//! `GET /debug/store/snapshot`: a copy of the whole store as it is now, while it serves. `store check FILE` reads it, and
//! `store restore FILE` puts it back.

use std::io::Read;

use actix_web::body::SizedStream;
use actix_web::http::{Method, header};
use actix_web::{HttpResponse, error};
use bytes::Bytes;
use futures_util::stream;
use keelson_machinery::status::StatusError;
use keelson_storage::{StoreCopy, StoreError};

use crate::respond;
use crate::rest::request::Request;
use crate::state::ServerState;

pub const PATH: &str = "/debug/store/snapshot";
/// Bytes read from the copy at once.
const CHUNK: usize = 256 * 1024;

/// `None`: another path, or a store that has no copies.
pub async fn serve(state: &ServerState, request: &Request) -> Option<HttpResponse> {
    if request.info.path != PATH {
        return None;
    }
    let copy = state.rest.backend.store.copy()?;
    if request.http.method() != Method::GET {
        return Some(failed(request, &StatusError::method_not_allowed()));
    }
    Some(match copy.await.and_then(sized) {
        Ok((length, copy)) => HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, "application/octet-stream"))
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .body(SizedStream::new(length, stream::unfold(Some(copy), next))),
        Err(error) => failed(request, &StatusError::service_unavailable(error.to_string())),
    })
}

fn failed(request: &Request, error: &StatusError) -> HttpResponse {
    respond::error(request, error)
}

fn sized(copy: StoreCopy) -> Result<(u64, StoreCopy), StoreError> {
    let length = copy.file.metadata().map(|metadata| metadata.len());
    let length = length.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    Ok((length, copy))
}

/// The next part; after an error there are no more, so that the client sees the answer break off.
async fn next(copy: Option<StoreCopy>) -> Option<(Result<Bytes, actix_web::Error>, Option<StoreCopy>)> {
    let mut copy = copy?;
    let read = tokio::task::spawn_blocking(move || {
        let mut chunk = vec![0; CHUNK];
        let length = copy.file.read(&mut chunk)?;
        chunk.truncate(length);
        Ok::<_, std::io::Error>((chunk, copy))
    });
    match read.await {
        Ok(Ok((chunk, _))) if chunk.is_empty() => None,
        Ok(Ok((chunk, copy))) => Some((Ok(chunk.into()), Some(copy))),
        Ok(Err(error)) => Some((Err(error.into()), None)),
        Err(error) => Some((Err(error::ErrorInternalServerError(error)), None)),
    }
}
