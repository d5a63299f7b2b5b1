//! Requests for certificates: who asks is who sent the request, and what is asked for never changes.

use std::collections::HashMap;

use keelson_api::certificates_k8s_io::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition as Condition,
};
use keelson_machinery::field::ErrorList;
use keelson_machinery::time::Time;
use keelson_registry::write::Part;
use keelson_registry::{Context, KindCode, MetadataChecks, RepeatedChecks, Strategy};

use super::{conditions, issued, request};
use crate::cells;
use crate::faults;
use crate::metadata;

const CHECKS: MetadataChecks = MetadataChecks {
    status: RepeatedChecks::BOTH,
    ..metadata::WHOLE_FIRST
};

/// Registers the rules of requests for certificates.
pub fn register(code: &mut KindCode) {
    code.kind::<CertificateSigningRequest>()
        .strategy(CertificateSigningRequestStrategy)
        .metadata_checks(CHECKS)
        .cells(cells::certificates::CERTIFICATE_SIGNING_REQUEST);
}

/// The rules of requests for certificates.
struct CertificateSigningRequestStrategy;

impl Strategy for CertificateSigningRequestStrategy {
    type Object = CertificateSigningRequest;

    fn prepare_for_create(&self, context: &Context, o: &mut CertificateSigningRequest) {
        let (spec, user) = (&mut o.spec, &context.user);
        spec.username.clone_from(&user.name);
        spec.uid.clone_from(&user.uid);
        spec.groups.clone_from(&user.groups);
        spec.extra.clone_from(&user.extra);
    }

    /// What is asked for never changes.
    fn validate(
        &self,
        _context: &Context,
        new: &CertificateSigningRequest,
        old: Option<&CertificateSigningRequest>,
    ) -> ErrorList {
        match old {
            None => faults::of_spec(|f| request::check(f, &new.spec)),
            Some(_) => ErrorList::default(),
        }
    }

    fn order_of_fields(&self) -> &'static [&'static str] {
        &["request", "usages", "signerName"]
    }

    fn prepare_for_update(
        &self,
        _context: &Context,
        new: &mut CertificateSigningRequest,
        old: &CertificateSigningRequest,
    ) {
        new.spec = old.spec.clone();
    }

    /// Who may write the status of a request may not decide on it.
    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        match part {
            Part::Main => &[&["spec"]],
            Part::Status => &[&["status", "conditions"]],
            Part::Internal => &[],
            Part::Named(_) => &[&["spec"], &["status", "certificate"]],
        }
    }

    fn prepare_for_status_update(
        &self,
        context: &Context,
        new: &mut CertificateSigningRequest,
        old: &CertificateSigningRequest,
    ) {
        for decision in conditions::DECISIONS {
            keep_conditions(&mut new.status.conditions, &old.status.conditions, decision);
        }
        set_times(&mut new.status.conditions, &old.status.conditions, context.now);
    }

    /// An approval changes the conditions and nothing else.
    fn prepare_for_subresource(
        &self,
        context: &Context,
        name: &str,
        new: &mut CertificateSigningRequest,
        old: &CertificateSigningRequest,
    ) {
        if name == "approval" {
            new.spec = old.spec.clone();
            new.status.certificate = old.status.certificate.clone();
            set_times(&mut new.status.conditions, &old.status.conditions, context.now);
        }
    }

    fn validate_status_update(
        &self,
        _context: &Context,
        new: &CertificateSigningRequest,
        old: &CertificateSigningRequest,
    ) -> ErrorList {
        let mut errors = faults::of_status(|f| {
            conditions::check(f, new, old);
            conditions::decisions_added(f, new, old);
        });
        errors.extend(issued::validate(&new.status.certificate, &old.status.certificate));
        errors
    }

    fn validate_subresource(
        &self,
        _context: &Context,
        _name: &str,
        new: &CertificateSigningRequest,
        old: &CertificateSigningRequest,
    ) -> ErrorList {
        faults::of_status(|f| conditions::check(f, new, old))
    }
}

/// Puts back the conditions of a type in the places where they stand. Those that came or went are left for validation.
fn keep_conditions(new: &mut [Condition], old: &[Condition], ty: &str) {
    let kept = old.iter().filter(|c| c.r#type == ty);
    for (condition, old) in new.iter_mut().filter(|c| c.r#type == ty).zip(kept) {
        *condition = old.clone();
    }
}

/// Gives times to conditions without: of the update now, of the transition when it came to be what it is.
fn set_times(new: &mut [Condition], old: &[Condition], now: Time) {
    let now = now.truncate_to_seconds();
    // Of conditions that are alike the first counts.
    let key = |c: &Condition| (c.r#type.clone(), c.status.clone());
    let known: HashMap<_, Time> = old.iter().rev().map(|c| (key(c), c.last_transition_time)).collect();
    for condition in new {
        if condition.last_update_time.is_zero() {
            condition.last_update_time = now;
        }
        if condition.last_transition_time.is_zero() {
            let known = known.get(&key(condition)).filter(|time| !time.is_zero());
            condition.last_transition_time = known.copied().unwrap_or(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    fn with(conditions: &[&str]) -> CertificateSigningRequest {
        let list: Vec<String> = conditions
            .iter()
            .map(|ty| format!(r#"{{"type":"{ty}","status":"True"}}"#))
            .collect();
        read(&format!(r#"{{"status":{{"conditions":[{}]}}}}"#, list.join(",")))
    }

    fn types(o: &CertificateSigningRequest) -> Vec<&str> {
        o.status.conditions.iter().map(|c| c.r#type.as_str()).collect()
    }

    #[test]
    fn the_requester_is_who_asks() {
        let mut o: CertificateSigningRequest = read(r#"{"spec":{"username":"x","groups":["y"],"extra":{"k":["v"]}}}"#);
        CertificateSigningRequestStrategy.prepare_for_create(&context(), &mut o);
        assert_eq!(o.spec.username, "system:anonymous");
        assert_eq!(o.spec.groups, ["system:unauthenticated"]);
        assert!(o.spec.extra.is_empty());
    }

    #[test]
    fn a_status_write_decides_nothing() {
        let old = with(&["Denied"]);
        let mut new = with(&["Failed", "Denied"]);
        new.status.conditions[1].reason = "r".to_owned();
        CertificateSigningRequestStrategy.prepare_for_status_update(&context(), &mut new, &old);
        assert_eq!(types(&new), ["Failed", "Denied"]);
        assert_eq!(new.status.conditions[0].last_update_time, context().now);
        assert_eq!(new.status.conditions[1].reason, "");
        let of = |types: &[&str]| {
            lines(&CertificateSigningRequestStrategy.validate_status_update(&context(), &with(types), &old))
        };
        assert_eq!(of(&["Denied", "Failed"]), "");
        assert_eq!(
            of(&["Approved"]),
            "status.conditions: Forbidden: updates may not remove a condition of type \"Denied\"\n\
             status.conditions: Forbidden: updates may not add a condition of type \"Approved\""
        );
    }

    #[test]
    fn an_approval_is_conditions_alone() {
        let old: CertificateSigningRequest = read(r#"{"spec":{"signerName":"a"},"status":{"certificate":"YQ=="}}"#);
        let mut new = with(&["Approved"]);
        new.spec.signer_name = "b".to_owned();
        CertificateSigningRequestStrategy.prepare_for_subresource(&context(), "approval", &mut new, &old);
        assert_eq!((&*new.spec.signer_name, types(&new)), ("a", vec!["Approved"]));
        assert_eq!(new.status.certificate, old.status.certificate);
        assert_eq!(new.status.conditions[0].last_transition_time, context().now);
    }
}
