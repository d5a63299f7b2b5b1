//! The modes of impersonation, and what each asks of the authorizers.

use keelson_machinery::validation::names::{dns_label, dns_subdomain};

use crate::request_info::RequestInfo;
use crate::user::{ACCOUNT_PREFIX, GROUP_MASTERS, NODE_PREFIX, User};

const GROUP: &str = "authentication.k8s.io";
const VERSION: &str = "v1";
/// The extra of a service account's token that names the node of its pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// One permission that is needed.
pub struct Check {
    pub info: RequestInfo,
    /// Why nobody can have it.
    pub impossible: Option<String>,
}

/// What a constrained permission is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The node that runs the pod of the service account that asks.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    /// Any other user, with groups, uid and extras.
    UserInfo,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::AssociatedNode => "associated-node",
            Mode::ArbitraryNode => "arbitrary-node",
            Mode::ServiceAccount => "serviceaccount",
            Mode::UserInfo => "user-info",
        }
    }

    /// The verb of the right to be an identity.
    pub fn verb(self) -> &'static str {
        match self {
            Mode::AssociatedNode => "impersonate:associated-node",
            Mode::ArbitraryNode => "impersonate:arbitrary-node",
            Mode::ServiceAccount => "impersonate:serviceaccount",
            Mode::UserInfo => "impersonate:user-info",
        }
    }

    pub fn is_node(self) -> bool {
        matches!(self, Mode::AssociatedNode | Mode::ArbitraryNode)
    }

    /// First the request itself, then each part of the identity.
    pub fn checks(self, info: &RequestInfo, wanted: &User) -> Vec<Check> {
        let request = RequestInfo {
            verb: format!("impersonate-on:{}:{}", self.name(), info.verb),
            ..info.clone()
        };
        let verb = self.verb();
        let mut checks = vec![possible(request)];
        match (self, service_account(&wanted.name), node(&wanted.name)) {
            (Mode::ServiceAccount, Some((namespace, name)), _) => {
                checks.push(possible(part(verb, GROUP, "serviceaccounts", namespace, name)));
            }
            // Which node it is has been seen to.
            (Mode::AssociatedNode, ..) => checks.push(possible(part(verb, GROUP, "nodes", "", "*"))),
            (Mode::ArbitraryNode, _, Some(name)) => checks.push(possible(part(verb, GROUP, "nodes", "", name))),
            _ => checks.extend(user_info(verb, wanted)),
        }
        checks
    }
}

/// The constrained modes that can give this identity, in the order in which they are asked.
pub fn modes(user: &User, wanted: &User) -> Vec<Mode> {
    let bare = wanted.groups.is_empty() && wanted.uid.is_empty() && wanted.extra.is_empty();
    match (node(&wanted.name), service_account(&wanted.name), bare) {
        (Some(_), _, false) | (_, Some(_), false) => Vec::new(),
        (Some(name), ..) if runs_on(user, name) => vec![Mode::AssociatedNode, Mode::ArbitraryNode],
        (Some(_), ..) => vec![Mode::ArbitraryNode],
        (_, Some(_), _) => vec![Mode::ServiceAccount],
        _ => vec![Mode::UserInfo],
    }
}

fn user_info(verb: &str, wanted: &User) -> Vec<Check> {
    let mut checks = vec![possible(part(verb, GROUP, "users", "", &wanted.name))];
    if !wanted.uid.is_empty() {
        checks.push(possible(part(verb, GROUP, "uids", "", &wanted.uid)));
    }
    for group in &wanted.groups {
        // Who may do everything must not be had by a permission that is meant to be narrow.
        let never = group == GROUP_MASTERS;
        checks.push(Check {
            info: part(verb, GROUP, "groups", "", group),
            impossible: never.then(|| format!("impersonating the {GROUP_MASTERS} group is not allowed")),
        });
    }
    for (key, values) in &wanted.extra {
        if !is_domain_prefixed(key) {
            checks.push(Check {
                info: part(verb, GROUP, "userextras", "", ""),
                impossible: Some(format!(
                    "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {}: \
                     must be a domain-prefixed path (such as \"acme.io/foo\")",
                    keelson_machinery::field::text::quote(key)
                )),
            });
        }
        checks.extend(values.iter().map(|value| extra(verb, key, value)));
    }
    checks
}

/// What the verb `impersonate` is needed on.
pub fn legacy(wanted: &User) -> Vec<Check> {
    let verb = "impersonate";
    let mut checks = vec![match service_account(&wanted.name) {
        Some((namespace, name)) => possible(part(verb, "", "serviceaccounts", namespace, name)),
        None => possible(part(verb, "", "users", "", &wanted.name)),
    }];
    for group in &wanted.groups {
        checks.push(possible(part(verb, "", "groups", "", group)));
    }
    for (key, values) in &wanted.extra {
        checks.extend(values.iter().map(|value| extra(verb, key, value)));
    }
    if !wanted.uid.is_empty() {
        checks.push(possible(part(verb, GROUP, "uids", "", &wanted.uid)));
    }
    checks
}

fn possible(info: RequestInfo) -> Check {
    Check { info, impossible: None }
}

fn extra(verb: &str, key: &str, value: &str) -> Check {
    possible(RequestInfo {
        subresource: key.to_owned(),
        ..part(verb, GROUP, "userextras", "", value)
    })
}

fn part(verb: &str, group: &str, resource: &str, namespace: &str, name: &str) -> RequestInfo {
    RequestInfo {
        is_resource: true,
        verb: verb.to_owned(),
        group: group.to_owned(),
        version: VERSION.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..RequestInfo::default()
    }
}

fn runs_on(user: &User, node: &str) -> bool {
    let named = user.extra.get(NODE_NAME).map(Vec::as_slice);
    service_account(&user.name).is_some() && matches!(named, Some([name]) if name == node)
}

/// Namespace and name of a service account's user name.
pub fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
    (dns_label(namespace).is_empty() && dns_subdomain(name).is_empty()).then_some((namespace, name))
}

fn node(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_PREFIX).filter(|name| !name.is_empty())
}

/// `acme.io/foo`
fn is_domain_prefixed(key: &str) -> bool {
    matches!(key.split_once('/'), Some((domain, path)) if dns_subdomain(domain).is_empty() && !path.is_empty())
}
