//! Results that may have to be waited for: code of kinds and plug-ins answers at once where it can, and then nothing is
//! allocated.

use futures_util::future::{Either, LocalBoxFuture, Ready, ready};
use keelson_machinery::status::StatusError;

/// An answer that is waited for; it need not be sent to another thread.
pub type Answer<'a, T> = LocalBoxFuture<'a, Result<T, StatusError>>;

/// A future of what may be there already.
pub type Outcome<'a, T> = Either<Ready<Result<T, StatusError>>, Answer<'a, T>>;

/// What is known without waiting.
pub fn now<'a, T>(result: Result<T, StatusError>) -> Outcome<'a, T> {
    Either::Left(ready(result))
}

/// What has to be waited for.
pub fn later<'a, T>(answer: impl Future<Output = Result<T, StatusError>> + 'a) -> Outcome<'a, T> {
    Either::Right(Box::pin(answer))
}
