//! The modes of impersonation, and what each asks of the authorizers.

use keelson_machinery::field::text::quote;
use keelson_machinery::field::{FieldError, Path};
use keelson_machinery::validation::names::{dns_label, dns_subdomain};

use crate::authz::aggregate;
use crate::request_info::RequestInfo;
use crate::user::{ACCOUNT_PREFIX, GROUP_MASTERS, NODE_PREFIX, User};

const GROUP: &str = "authentication.k8s.io";
const VERSION: &str = "v1";
/// The extra of a service account's token that names the node of its pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// Any name or key.
const ALL: &str = "*";
/// From so many checks on it is asked first whether all may be had at once.
const MANY: usize = 4;
/// What the path of a key may have beside letters and digits.
const PATH_MARKS: &[u8] = b"/-._~%!$&'()*+,;=:";

/// One permission that is needed.
pub struct Check {
    pub info: RequestInfo,
    /// Why nobody can have it.
    pub impossible: Option<String>,
    /// Who has this needs none of so many that follow; who has not, may have each of them.
    pub stands_for: usize,
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
    checks.extend(impossible_group(&wanted.groups).map(|(name, why)| Check {
        impossible: Some(why),
        ..possible(part(verb, GROUP, "groups", "", name))
    }));
    let groups = wanted
        .groups
        .iter()
        .map(|group| possible(part(verb, GROUP, "groups", "", group)));
    checks.extend(or_all(groups.collect(), part(verb, GROUP, "groups", "", ALL)));
    let fault = wanted.extra.iter().find_map(|(key, values)| extra_fault(key, values));
    checks.extend(fault.map(|why| Check {
        impossible: Some(why),
        ..possible(part(verb, GROUP, "userextras", "", ""))
    }));
    let pairs = wanted
        .extra
        .iter()
        .flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
    let extras: Vec<Check> = pairs.map(|(key, value)| extra(verb, key, value)).collect();
    checks.extend(or_all(extras, extra(verb, ALL, ALL).info));
    checks
}

/// What nobody may be given by a permission that is meant to be narrow: a group without a name, and the one that may do
/// everything.
fn impossible_group(groups: &[String]) -> Option<(&'static str, String)> {
    let has = |name: &str| groups.iter().any(|group| group == name);
    if has("") {
        return Some(("", "impersonating the empty string group is not allowed".to_owned()));
    }
    has(GROUP_MASTERS).then(|| {
        let why = format!("impersonating the {GROUP_MASTERS} group is not allowed");
        (GROUP_MASTERS, why)
    })
}

/// Many checks, before which it is asked whether all may be had at once.
fn or_all(checks: Vec<Check>, all: RequestInfo) -> Vec<Check> {
    if checks.len() < MANY {
        return checks;
    }
    let all = Check {
        stands_for: checks.len(),
        ..possible(all)
    };
    std::iter::once(all).chain(checks).collect()
}

/// Why an extra can't be had.
fn extra_fault(key: &str, values: &[String]) -> Option<String> {
    let what = match key {
        "" => "the empty string key in extra is not allowed".to_owned(),
        key if domain_prefix_fault(key).is_some() => {
            let fault = domain_prefix_fault(key).unwrap_or_default();
            format!("an invalid key in extra is not allowed: {fault}")
        }
        key if key.to_lowercase() != key => format!("a non-lowercase key in extra is not allowed: {}", quote(key)),
        _ if values.is_empty() => "empty values in extra is not allowed".to_owned(),
        _ if values.iter().any(String::is_empty) => "the empty string value in extra is not allowed".to_owned(),
        _ => return None,
    };
    Some(format!("impersonating {what}"))
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
    Check {
        info,
        impossible: None,
        stands_for: 0,
    }
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

/// Name of the node of a user name; one that no node can have is a user like others.
fn node(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_PREFIX)
        .filter(|name| dns_subdomain(name).is_empty())
}

/// What is wrong with a key that should be like `acme.io/foo`.
fn domain_prefix_fault(key: &str) -> Option<String> {
    let path = Path::new("extra").child("key");
    let (domain, rest) = match key.split_once('/') {
        Some((domain, rest)) if !domain.is_empty() && !rest.is_empty() => (domain, rest),
        _ => {
            let text = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            return Some(FieldError::invalid(&path, key, text).to_string());
        }
    };
    let texts = dns_subdomain(domain).into_iter();
    let mut faults: Vec<FieldError> = texts.map(|text| FieldError::invalid(&path, domain, text)).collect();
    let fits = |b: u8| b.is_ascii_alphanumeric() || PATH_MARKS.contains(&b);
    if !rest.bytes().all(fits) {
        let text = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        faults.push(FieldError::invalid(&path, rest, text));
    }
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| aggregate(&texts))
}
