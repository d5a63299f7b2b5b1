//! The sentence of a refusal, as kube-apiserver writes it.

use keelson_machinery::field::text::quote;
use keelson_machinery::status::StatusError;

use crate::request_info::RequestInfo;
use crate::user::User;

/// 403 for what was decided about a request, and why.
pub fn refused(user: &User, info: &RequestInfo, reason: &str) -> StatusError {
    StatusError::forbidden(&info.group, &info.resource, &info.name, refusal(user, info, reason))
}

/// `User "a" cannot get resource "pods" in API group "" in the namespace "b": why`.
pub fn refusal(user: &User, info: &RequestInfo, reason: &str) -> String {
    let name = quote(&user.name);
    let mut text = if info.is_resource {
        let (resource, group) = (quote(&resource_path(info)), quote(&info.group));
        let place = match info.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {}", quote(namespace)),
        };
        format!(
            "User {name} cannot {} resource {resource} in API group {group} {place}",
            info.verb
        )
    } else {
        format!("User {name} cannot {} path {}", info.verb, quote(&info.path))
    };
    // What a client chose must not look like markup to whoever shows it.
    if text.contains(['&', '<', '>']) {
        text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    }
    if !reason.is_empty() {
        text.push_str(": ");
        text.push_str(reason);
    }
    text
}

/// `pods`, `pods/status`.
pub fn resource_path(info: &RequestInfo) -> String {
    if info.subresource.is_empty() {
        info.resource.clone()
    } else {
        format!("{}/{}", info.resource, info.subresource)
    }
}
