//! The authorizer of expressions: what is asked is answered at once where the answer is known, and found out between
//! two evaluations where it is not.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use keelson_access::request_info::RequestInfo;
use keelson_access::user::{ACCOUNT_PREFIX, User};
use keelson_machinery::cel::{AccessCheck, AccessDecision, AccessTarget, Authorizer, ResourceTarget};
use keelson_machinery::selector::{FieldSelector, LabelSelector};
use keelson_registry::admission::Attributes;

/// The groups of all service accounts.
const ACCOUNTS: &str = "system:serviceaccounts";

/// Decisions on one request.
#[derive(Default)]
pub(crate) struct Decisions {
    known: RefCell<Vec<(AccessCheck, AccessDecision)>>,
    wanted: RefCell<Vec<AccessCheck>>,
}

impl fmt::Debug for Decisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decisions").finish_non_exhaustive()
    }
}

impl Authorizer for Decisions {
    fn decide(&self, check: &AccessCheck) -> Option<AccessDecision> {
        let known = self.known.borrow();
        if let Some((_, decision)) = known.iter().find(|(known, _)| known == check) {
            return Some(decision.clone());
        }
        self.wanted.borrow_mut().push(check.clone());
        None
    }
}

impl Decisions {
    /// None are known yet.
    pub fn new() -> Rc<Decisions> {
        Rc::default()
    }

    /// Finds out what was asked and not known. `false`: nothing was.
    pub async fn complete(&self, attributes: &Attributes<'_>) -> bool {
        let wanted = self.wanted.take();
        let any = !wanted.is_empty();
        for check in wanted {
            let decision = decide(attributes, &check).await;
            self.known.borrow_mut().push((check, decision));
        }
        any
    }
}

async fn decide(attributes: &Attributes<'_>, check: &AccessCheck) -> AccessDecision {
    let account = check
        .service_account
        .as_ref()
        .map(|(namespace, name)| account(namespace, name));
    let user = account.as_ref().unwrap_or_else(|| attributes.user());
    let verdict = attributes.context.authorization.decide(user, &asked(check)).await;
    AccessDecision {
        allowed: verdict.allowed,
        reason: verdict.reason,
        error: verdict.error,
    }
}

/// A service account as it is authenticated.
fn account(namespace: &str, name: &str) -> User {
    User {
        name: format!("{ACCOUNT_PREFIX}{namespace}:{name}"),
        groups: vec![ACCOUNTS.to_owned(), format!("{ACCOUNTS}:{namespace}")],
        ..User::default()
    }
}

fn asked(check: &AccessCheck) -> RequestInfo {
    let verb = check.verb.clone();
    match &check.target {
        AccessTarget::Path(path) => RequestInfo {
            verb,
            path: path.clone(),
            ..RequestInfo::default()
        },
        AccessTarget::Resource(target) => RequestInfo {
            is_resource: true,
            verb,
            group: target.group.clone(),
            version: "*".to_owned(),
            resource: target.resource.clone(),
            subresource: target.subresource.clone(),
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            // A selector that can't be read narrows nothing.
            fields: FieldSelector::parse(&target.field_selector)
                .map(FieldSelector::into_terms)
                .unwrap_or_default(),
            labels: LabelSelector::parse(&target.label_selector)
                .map(LabelSelector::into_requirements)
                .unwrap_or_default(),
            ..RequestInfo::default()
        },
    }
}

/// What the request itself is about.
pub(crate) fn request_resource(attributes: &Attributes<'_>) -> ResourceTarget {
    ResourceTarget {
        group: attributes.kind.group.to_string(),
        resource: attributes.kind.plural.to_string(),
        subresource: attributes.subresource.to_owned(),
        namespace: attributes.requested_namespace().to_owned(),
        name: attributes.requested_name().to_owned(),
        ..ResourceTarget::default()
    }
}
