//! The sentence of a refusal, as kube-apiserver writes it.

use keelson_machinery::field::text::quote;

use crate::request_info::RequestInfo;
use crate::user::User;

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
