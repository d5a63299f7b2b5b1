//! Leases: bounds of their numbers.

use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::object::Object;
use keelson_server::registry::{Context, Strategy};

use crate::api::coordination_k8s_io::v1::Lease;
use crate::kube::typed::{non_negative, typed};

/// The rules of leases.
pub struct LeaseStrategy;

impl Strategy for LeaseStrategy {
    fn validate(&self, _context: &Context, object: &dyn Object) -> ErrorList {
        typed::<Lease>(object).map(validate).unwrap_or_default()
    }

    fn validate_update(&self, _context: &Context, new: &dyn Object, _old: &dyn Object) -> ErrorList {
        typed::<Lease>(new).map(validate).unwrap_or_default()
    }
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
    use crate::kube::testing::{context, lines, read};

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
