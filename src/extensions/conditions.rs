//! Conditions of definitions: what controllers say of them in their status.

use keelson_api::apiextensions_k8s_io::v1::{CustomResourceDefinition, CustomResourceDefinitionCondition as Condition};
use keelson_machinery::time::Time;

/// Its objects are served.
pub const ESTABLISHED: &str = "Established";
/// No other definition of its group has its names.
pub const NAMES_ACCEPTED: &str = "NamesAccepted";
/// It is being deleted, and its objects before it.
pub const TERMINATING: &str = "Terminating";
/// Whether a group of Kubernetes itself may have it.
pub const API_APPROVAL: &str = "KubernetesAPIApprovalPolicyConformant";

/// Why a definition is not established whose names are accepted: nobody can be trusted to be its webhook.
pub const INVALID_CA_BUNDLE: &str = "InvalidCABundle";

/// The finalizer of definitions whose objects have to go first.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A condition that was not told yet.
pub fn condition(ty: &str, is_true: bool, reason: &str, message: impl Into<String>) -> Condition {
    Condition {
        r#type: ty.to_owned(),
        status: if is_true { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message: message.into(),
        ..Condition::default()
    }
}

/// The condition of a type.
pub fn find<'a>(definition: &'a CustomResourceDefinition, ty: &str) -> Option<&'a Condition> {
    definition.status.conditions.iter().find(|known| known.r#type == ty)
}

/// Whether a condition is there and true.
pub fn is_true(definition: &CustomResourceDefinition, ty: &str) -> bool {
    find(definition, ty).is_some_and(|known| known.status == "True")
}

/// Whether they say the same, whenever it was that they began to.
pub fn says_same(a: &Condition, b: &Condition) -> bool {
    (&a.r#type, &a.status, &a.reason, &a.message) == (&b.r#type, &b.status, &b.reason, &b.message)
}

/// Sets a condition, as of now if its status is another one.
pub fn set(conditions: &mut Vec<Condition>, new: Condition, now: Time) {
    let now = now.truncate_to_seconds();
    let Some(known) = conditions.iter_mut().find(|known| known.r#type == new.r#type) else {
        conditions.push(Condition {
            last_transition_time: now,
            ..new
        });
        return;
    };
    let since = match known.status != new.status || known.last_transition_time.is_zero() {
        true => now,
        false => known.last_transition_time,
    };
    *known = Condition {
        last_transition_time: since,
        observed_generation: known.observed_generation,
        ..new
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_condition_is_that_of_its_status() {
        let at = |seconds| Time::from_unix(seconds, 0);
        let mut all = Vec::new();
        set(&mut all, condition(ESTABLISHED, false, "Installing", "a"), at(10));
        set(&mut all, condition(NAMES_ACCEPTED, true, "NoConflicts", "b"), at(20));
        set(&mut all, condition(ESTABLISHED, false, "NotAccepted", "c"), at(30));
        assert_eq!((all[0].last_transition_time, &*all[0].reason), (at(10), "NotAccepted"));
        set(
            &mut all,
            condition(ESTABLISHED, true, "InitialNamesAccepted", "d"),
            at(40),
        );
        let told: Vec<_> = all
            .iter()
            .map(|c| (&*c.r#type, &*c.status, c.last_transition_time))
            .collect();
        assert_eq!(told, [(ESTABLISHED, "True", at(40)), (NAMES_ACCEPTED, "True", at(20))]);
    }
}
