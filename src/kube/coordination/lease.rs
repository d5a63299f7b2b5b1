//! Leases: bounds of their numbers.

use keelson_api::coordination_k8s_io::v1::Lease;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_registry::{Context, KindCode, RepeatedChecks, Strategy};

use crate::cells;
use crate::metadata;
use crate::typed::non_negative;

/// Registers the rules of leases.
pub fn register(code: &mut KindCode) {
    code.kind::<Lease>()
        .strategy(LeaseStrategy)
        .metadata_checks(metadata::any_finalizer(RepeatedChecks::CHANGE))
        .cells(cells::config::LEASE);
}

/// The rules of leases.
struct LeaseStrategy;

impl Strategy for LeaseStrategy {
    type Object = Lease;

    fn prepare_for_create(&self, _context: &Context, object: &mut Lease) {
        drop_disabled(object, None);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut Lease, old: &Lease) {
        drop_disabled(new, Some(old));
    }

    fn validate(&self, _context: &Context, object: &Lease) -> ErrorList {
        validate(object)
    }

    fn validate_update(&self, _context: &Context, new: &Lease, _old: &Lease) -> ErrorList {
        validate(new)
    }
}

/// Coordinated elections are a feature that is not enabled; what was stored of them stays.
fn drop_disabled(lease: &mut Lease, old: Option<&Lease>) {
    if old.is_some_and(|o| o.spec.strategy.is_some() || o.spec.preferred_holder.is_some()) {
        return;
    }
    lease.spec.strategy = None;
    lease.spec.preferred_holder = None;
}

fn validate(lease: &Lease) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = ErrorList::default();
    if let Some(seconds) = lease.spec.lease_duration_seconds.filter(|s| *s <= 0) {
        errors.push(FieldError::invalid(
            &path.child("leaseDurationSeconds"),
            seconds,
            "must be greater than 0",
        ));
    }
    if let Some(transitions) = lease.spec.lease_transitions {
        errors.extend(non_negative(transitions.into(), &path.child("leaseTransitions")));
    }
    if lease.spec.preferred_holder.as_ref().is_some_and(|h| !h.is_empty())
        && lease.spec.strategy.as_ref().is_none_or(String::is_empty)
    {
        let text = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden(&path.child("preferredHolder"), text));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn numbers_are_bounded() {
        for (spec, expected) in [
            (r#"{"leaseDurationSeconds":1,"leaseTransitions":0}"#, ""),
            (
                r#"{"leaseDurationSeconds":0,"leaseTransitions":-1}"#,
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0\n\
                 spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ),
        ] {
            let lease: Lease = read(&format!(r#"{{"spec":{spec}}}"#));
            assert_eq!(lines(&LeaseStrategy.validate(&context(), &lease)), expected);
        }
    }
}
