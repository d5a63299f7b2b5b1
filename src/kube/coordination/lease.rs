//! Leases: bounds of their numbers.

use keelson_api::coordination_k8s_io::v1::{Lease, LeaseSpec};
use keelson_machinery::field::ErrorList;
use keelson_registry::{Context, KindCode, RepeatedChecks, Strategy};

use crate::cells;
use crate::faults::{self, Faults, given};
use crate::metadata;

/// Registers the rules of leases.
pub fn register(code: &mut KindCode) {
    code.kind::<Lease>()
        .strategy(LeaseStrategy)
        .metadata_checks(metadata::any_finalizer(RepeatedChecks::CHANGE))
        .cells(cells::coordination::LEASE);
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

    fn validate(&self, _context: &Context, new: &Lease, _old: Option<&Lease>) -> ErrorList {
        faults::of_spec(|f| check(f, &new.spec))
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

fn check(f: &mut Faults<'_>, spec: &LeaseSpec) {
    f.at("leaseDurationSeconds").number(
        spec.lease_duration_seconds,
        |seconds| seconds > 0,
        "must be greater than 0",
    );
    f.at("leaseTransitions").non_negative(spec.lease_transitions);
    let is_alone = given(&spec.preferred_holder).is_some() && given(&spec.strategy).is_none();
    f.at("preferredHolder")
        .forbidden_if(is_alone, "may only be specified if `strategy` is defined");
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
            assert_eq!(lines(&LeaseStrategy.validate(&context(), &lease, None)), expected);
        }
    }
}
