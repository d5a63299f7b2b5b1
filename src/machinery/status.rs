//! Errors that become a Kubernetes `Status`: codes, reasons, details and the wording that clients compare with.
//!
//! Every constructor here stands for one kind of failure of the API. The text of [`StatusError::message`] is for the
//! caller; what only the log may know does not belong into it.

use std::borrow::Cow;
use std::fmt::Display;

use crate::field::ErrorList;
use crate::field::text::quote;
use crate::meta::v1;

/// Machine-readable reasons of a Status; "" is unknown.
pub mod reason {
    pub const UNKNOWN: &str = "";
    pub const UNAUTHORIZED: &str = "Unauthorized";
    pub const FORBIDDEN: &str = "Forbidden";
    pub const NOT_FOUND: &str = "NotFound";
    pub const ALREADY_EXISTS: &str = "AlreadyExists";
    pub const CONFLICT: &str = "Conflict";
    pub const GONE: &str = "Gone";
    pub const INVALID: &str = "Invalid";
    pub const SERVER_TIMEOUT: &str = "ServerTimeout";
    pub const STORE_READ_ERROR: &str = "StorageReadError";
    pub const TIMEOUT: &str = "Timeout";
    pub const TOO_MANY_REQUESTS: &str = "TooManyRequests";
    pub const BAD_REQUEST: &str = "BadRequest";
    pub const METHOD_NOT_ALLOWED: &str = "MethodNotAllowed";
    pub const NOT_ACCEPTABLE: &str = "NotAcceptable";
    pub const REQUEST_ENTITY_TOO_LARGE: &str = "RequestEntityTooLarge";
    pub const UNSUPPORTED_MEDIA_TYPE: &str = "UnsupportedMediaType";
    pub const INTERNAL_ERROR: &str = "InternalError";
    pub const EXPIRED: &str = "Expired";
    pub const SERVICE_UNAVAILABLE: &str = "ServiceUnavailable";
}

/// Message of [`StatusError::conflict`] for a write with a stale resource version.
pub const STALE: &str = "the object has been modified; please apply your changes to the latest version and try again";

const EXPIRED_LIST: &str = "The resourceVersion for the provided list is too old.";
const EXPIRED_WATCH: &str = "The resourceVersion for the provided watch is too old.";
const EXPIRED_CONTINUE: &str = "The provided continue parameter is too old to display a consistent list result. You \
    can start a new list without the continue parameter, or use the continue token in this response to retrieve the \
    remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
    created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// A failure of a request, as its caller sees it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct StatusError {
    /// HTTP status code.
    pub code: u16,
    /// Mostly one of [`reason`]; webhooks say others.
    pub reason: Cow<'static, str>,
    pub message: String,
    pub details: Option<Box<Details>>,
    /// `metadata.continue`: only of an expired list.
    pub continue_token: Option<Box<str>>,
}

/// What a failure is about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Details {
    pub name: String,
    pub group: String,
    /// The resource (plural) in most failures, the kind in those of validation.
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    /// 0: not said. Also sent as the header `Retry-After`.
    pub retry_after_seconds: i32,
}

/// One cause of a failure.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cause {
    pub reason: Cow<'static, str>,
    pub message: String,
    pub field: String,
}

/// `configmaps`, `widgets.example.com`: a resource or kind with its group.
fn qualified(group: &str, name: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

fn about(group: &str, kind: &str, name: &str) -> Option<Box<Details>> {
    let (group, kind, name) = (group.to_owned(), kind.to_owned(), name.to_owned());
    Some(Box::new(Details {
        name,
        group,
        kind,
        ..Details::default()
    }))
}

fn retry(seconds: i32) -> Option<Box<Details>> {
    Some(Box::new(Details {
        retry_after_seconds: seconds,
        ..Details::default()
    }))
}

impl StatusError {
    /// A failure without details.
    pub fn new(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> StatusError {
        StatusError {
            code,
            reason: reason.into(),
            message: message.into(),
            details: None,
            continue_token: None,
        }
    }

    fn with(mut self, details: Option<Box<Details>>) -> StatusError {
        self.details = details;
        self
    }

    /// 404: no such object.
    pub fn not_found(group: &str, resource: &str, name: &str) -> StatusError {
        let message = format!("{} {} not found", qualified(group, resource), quote(name));
        StatusError::new(404, reason::NOT_FOUND, message).with(about(group, resource, name))
    }

    /// 500: objects of a list can't be read from the store, each with a cause.
    pub fn store_read_error(group: &str, resource: &str, causes: Vec<Cause>) -> StatusError {
        let message = format!(
            "failed to read one or more {} from the storage",
            qualified(group, resource)
        );
        let mut error = StatusError::new(500, reason::STORE_READ_ERROR, message).with(about(group, resource, "list"));
        error.details_mut().causes = causes;
        error
    }

    /// 409: an object of that name is there.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> StatusError {
        let message = format!("{} {} already exists", qualified(group, resource), quote(name));
        StatusError::new(409, reason::ALREADY_EXISTS, message).with(about(group, resource, name))
    }

    /// 409: no free name was found for a `generateName`.
    pub fn generate_name_conflict(group: &str, resource: &str, name: &str, retry_after: i32) -> StatusError {
        let message = format!(
            "{} {} already exists, the server was not able to generate a unique name for the object",
            qualified(group, resource),
            quote(name)
        );
        let error = StatusError::new(409, reason::ALREADY_EXISTS, message).with(about(group, resource, name));
        error.retry_after(retry_after)
    }

    /// 409: the write does not fit the stored object; see [`STALE`].
    pub fn conflict(group: &str, resource: &str, name: &str, why: impl Display) -> StatusError {
        let message = format!(
            "Operation cannot be fulfilled on {} {}: {why}",
            qualified(group, resource),
            quote(name)
        );
        StatusError::new(409, reason::CONFLICT, message).with(about(group, resource, name))
    }

    /// 422: the object breaks its rules. The kind is that of the object, not its resource.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &ErrorList) -> StatusError {
        let mut message = format!("{} {} is invalid", qualified(group, kind), quote(name));
        if !errors.is_empty() {
            message = format!("{message}: {errors}");
        }
        let causes = errors.iter().map(|e| Cause {
            reason: e.kind.reason().into(),
            message: e.body(),
            field: e.field.clone(),
        });
        let mut error = StatusError::new(422, reason::INVALID, message).with(about(group, kind, name));
        error.details_mut().causes = causes.collect();
        error
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> StatusError {
        StatusError::new(400, reason::BAD_REQUEST, message)
    }

    /// 401. The message of the API server is always `Unauthorized`.
    pub fn unauthorized() -> StatusError {
        StatusError::new(401, reason::UNAUTHORIZED, "Unauthorized")
    }

    /// 403. `resource` may be empty (a path that is none), and so may `name`.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: impl Display) -> StatusError {
        let message = match (resource.is_empty() && group.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{} is forbidden: {why}", qualified(group, resource)),
            (false, false) => format!("{} {} is forbidden: {why}", qualified(group, resource), quote(name)),
        };
        StatusError::new(403, reason::FORBIDDEN, message).with(about(group, resource, name))
    }

    /// 405 of a resource that has not got that verb.
    pub fn method_not_supported(group: &str, resource: &str, verb: &str) -> StatusError {
        let message = format!(
            "{verb} is not supported on resources of kind {}",
            quote(&qualified(group, resource))
        );
        StatusError::new(405, reason::METHOD_NOT_ALLOWED, message).with(about(group, resource, ""))
    }

    /// 405 of a path under a served group: the router knows no such method there.
    pub fn method_not_allowed() -> StatusError {
        StatusError::generic(405, "")
    }

    /// 404 of a path under a served group: there is no such resource.
    pub fn no_such_resource() -> StatusError {
        StatusError::generic(404, "")
    }

    /// A failure that has only its status code to tell by, with empty details. `message` counts where the code alone
    /// does not say it: 403, 406, 415, and 500 and above.
    pub fn generic(code: u16, message: &str) -> StatusError {
        let (reason, message) = generic_text(code, message);
        StatusError::new(code, reason, message).with(Some(Box::default()))
    }

    /// 406: none of the types that the caller takes can be made.
    pub fn not_acceptable(accepted: &[&str]) -> StatusError {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        StatusError::new(406, reason::NOT_ACCEPTABLE, message)
    }

    /// 415: the body is of an unknown type.
    pub fn unsupported_media_type(accepted: &[&str]) -> StatusError {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        StatusError::new(415, reason::UNSUPPORTED_MEDIA_TYPE, message)
    }

    /// 410 Gone.
    pub fn gone(message: impl Into<String>) -> StatusError {
        StatusError::new(410, reason::GONE, message)
    }

    /// 410 Expired.
    pub fn expired(message: impl Into<String>) -> StatusError {
        StatusError::new(410, reason::EXPIRED, message)
    }

    /// 410: the revision of a list is compacted.
    pub fn expired_list() -> StatusError {
        StatusError::expired(EXPIRED_LIST)
    }

    /// 410: the revision of a watch is compacted in the store.
    pub fn expired_watch() -> StatusError {
        StatusError::expired(EXPIRED_WATCH)
    }

    /// 410: the watch asks for more than the history of the cache holds; `oldest` is the oldest revision it may name.
    pub fn too_old_resource_version(asked: u64, oldest: u64) -> StatusError {
        StatusError::expired(format!("too old resource version: {asked} ({oldest})"))
    }

    /// 410: the revision of a continue token is compacted; `token` goes on at the same key with the newest state.
    pub fn expired_continue(token: &str) -> StatusError {
        let mut error = StatusError::expired(EXPIRED_CONTINUE);
        error.continue_token = Some(token.into());
        error
    }

    /// 504: not done in time.
    pub fn timeout(message: impl Display, retry_after: i32) -> StatusError {
        StatusError::new(504, reason::TIMEOUT, format!("Timeout: {message}")).with(retry(retry_after))
    }

    /// 500: the operation may work later.
    pub fn server_timeout(group: &str, resource: &str, operation: &str, retry_after: i32) -> StatusError {
        let message = format!(
            "The {operation} operation against {} could not be completed at this time, please try again.",
            qualified(group, resource)
        );
        let error = StatusError::new(500, reason::SERVER_TIMEOUT, message).with(about(group, resource, operation));
        error.retry_after(retry_after)
    }

    /// 504: the caller asks for a revision that does not exist yet.
    pub fn too_large_resource_version(asked: u64, current: u64) -> StatusError {
        let message = format!("Too large resource version: {asked}, current: {current}");
        let mut error = StatusError::timeout(message, 1);
        error.details_mut().causes.push(Cause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        });
        error
    }

    /// 429.
    pub fn too_many_requests(message: impl Into<String>, retry_after: i32) -> StatusError {
        StatusError::new(429, reason::TOO_MANY_REQUESTS, message).with(retry(retry_after))
    }

    /// 413: the body exceeds `limit` bytes.
    pub fn request_entity_too_large(limit: usize) -> StatusError {
        StatusError::entity_too_large(format!("limit is {limit}"))
    }

    /// 413 for another reason.
    pub fn entity_too_large(why: impl Display) -> StatusError {
        StatusError::new(
            413,
            reason::REQUEST_ENTITY_TOO_LARGE,
            format!("Request entity too large: {why}"),
        )
    }

    /// 503.
    pub fn service_unavailable(message: impl Into<String>) -> StatusError {
        StatusError::new(503, reason::SERVICE_UNAVAILABLE, message)
    }

    /// 500 with the reason InternalError.
    pub fn internal_error(why: impl Display) -> StatusError {
        let message = format!("Internal error occurred: {why}");
        let mut error = StatusError::new(500, reason::INTERNAL_ERROR, message);
        let cause = Cause {
            message: why.to_string(),
            ..Cause::default()
        };
        error.details_mut().causes.push(cause);
        error
    }

    /// 500 without a reason: a failure that no rule of the API names.
    pub fn unknown(message: impl Display) -> StatusError {
        StatusError::new(500, reason::UNKNOWN, message.to_string())
    }

    /// The failure that somebody else has put into a Status. Its code has to be one.
    pub fn from_status(status: &v1::Status) -> StatusError {
        let code = u16::try_from(status.code).unwrap_or(500);
        let details = status
            .details
            .as_deref()
            .map(|details| Box::new(Details::from_message(details)));
        StatusError::new(code, status.reason.clone(), status.message.clone()).with(details)
    }

    /// The same failure with `details.retryAfterSeconds`.
    #[must_use]
    pub fn retry_after(mut self, seconds: i32) -> StatusError {
        self.details_mut().retry_after_seconds = seconds;
        self
    }

    /// The details, made if there were none.
    pub fn details_mut(&mut self) -> &mut Details {
        self.details.get_or_insert_default()
    }

    /// The body of the answer.
    pub fn to_status(&self) -> v1::Status {
        let mut status = v1::Status::default();
        status.metadata.r#continue = self.continue_token.as_deref().unwrap_or_default().to_owned();
        status.status = "Failure".to_owned();
        status.message = self.message.clone();
        status.reason = self.reason.clone().into_owned();
        status.details = self.details.as_deref().map(|d| Box::new(d.to_message()));
        status.code = i32::from(self.code);
        status
    }
}

impl Details {
    /// Out of a Status.
    pub fn from_message(message: &v1::StatusDetails) -> Details {
        let cause = |cause: &v1::StatusCause| Cause {
            reason: cause.reason.clone().into(),
            message: cause.message.clone(),
            field: cause.field.clone(),
        };
        Details {
            name: message.name.clone(),
            group: message.group.clone(),
            kind: message.kind.clone(),
            uid: message.uid.clone(),
            causes: message.causes.iter().map(cause).collect(),
            retry_after_seconds: message.retry_after_seconds,
        }
    }

    /// As a part of a Status.
    pub fn to_message(&self) -> v1::StatusDetails {
        v1::StatusDetails {
            name: self.name.clone(),
            group: self.group.clone(),
            kind: self.kind.clone(),
            uid: self.uid.clone(),
            causes: self
                .causes
                .iter()
                .map(|c| v1::StatusCause {
                    reason: c.reason.clone().into_owned(),
                    message: c.message.clone(),
                    field: c.field.clone(),
                })
                .collect(),
            retry_after_seconds: self.retry_after_seconds,
        }
    }
}

fn generic_text(code: u16, message: &str) -> (&'static str, String) {
    let (reason, text) = match code {
        400 => (
            reason::BAD_REQUEST,
            "the server rejected our request for an unknown reason",
        ),
        401 => (
            reason::UNAUTHORIZED,
            "the server has asked for the client to provide credentials",
        ),
        403 => (reason::FORBIDDEN, message),
        404 => (reason::NOT_FOUND, "the server could not find the requested resource"),
        405 => (
            reason::METHOD_NOT_ALLOWED,
            "the server does not allow this method on the requested resource",
        ),
        406 if message.is_empty() || message == "unknown" => (
            reason::NOT_ACCEPTABLE,
            "the server was unable to respond with a content type that the client supports",
        ),
        406 => (reason::NOT_ACCEPTABLE, message),
        409 => (reason::CONFLICT, "the server reported a conflict"),
        415 => (reason::UNSUPPORTED_MEDIA_TYPE, message),
        422 => (
            reason::INVALID,
            "the server rejected our request due to an error in our request",
        ),
        429 => (
            reason::TOO_MANY_REQUESTS,
            "the server has received too many requests and has asked us to try again later",
        ),
        503 => (
            reason::SERVICE_UNAVAILABLE,
            "the server is currently unable to handle the request",
        ),
        504 => (
            reason::TIMEOUT,
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        500.. => {
            let text = format!(
                "an error on the server ({}) has prevented the request from succeeding",
                quote(message)
            );
            return (reason::INTERNAL_ERROR, text);
        }
        _ => {
            let text = format!("the server responded with the status code {code} but did not return more information");
            return (reason::UNKNOWN, text);
        }
    };
    (reason, text.to_owned())
}

mod bound;
#[cfg(test)]
mod tests;
