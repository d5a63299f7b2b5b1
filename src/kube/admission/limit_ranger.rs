//! LimitRanger: containers, pods and claims within the bounds of their namespace, which are defaults of containers too.

mod constraint;
mod defaults;

use std::sync::Arc;

use keelson_access::authz::aggregate;
use keelson_access::lister::Listers;
use keelson_api::core::v1::{LimitRange, PersistentVolumeClaim, Pod};
use keelson_machinery::status::StatusError;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;
use keelson_registry::{Followed, Outcome, Verbs};

const PODS: &str = "pods";
const CLAIMS: &str = "persistentvolumeclaims";

pub struct LimitRanger {
    ranges: Followed<LimitRange>,
}

impl Default for LimitRanger {
    fn default() -> Self {
        LimitRanger {
            ranges: Followed::new(|object| object.downcast_ref::<LimitRange>().cloned()),
        }
    }
}

impl Plugin for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let Scope {
            operation,
            group,
            plural,
            subresource,
            ..
        } = *scope;
        match (operation, group, plural, subresource) {
            (Operation::Create, "", PODS, "") | (Operation::Update, "", PODS, "resize") => Handles::BOTH,
            (Operation::Create | Operation::Update, "", CLAIMS, "") => Handles::VALIDATES,
            _ => Handles::NOTHING,
        }
    }

    fn attach(&self, listers: &dyn Listers, _verbs: &Arc<Verbs>) {
        self.ranges.attach(listers, "", "limitranges");
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        let ranges = self.ranges_for(attributes);
        now(match attributes.typed_mut::<Pod>() {
            Some(pod) => ranges.iter().try_for_each(|range| defaults::fill(pod, range)),
            None => Ok(()),
        })
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        let mut ranges = self.ranges_for(attributes).into_iter();
        now(ranges.try_for_each(|range| check(attributes, &range)))
    }
}

impl LimitRanger {
    /// What is about to go is not held up.
    fn ranges_for(&self, attributes: &Attributes<'_>) -> Vec<Arc<LimitRange>> {
        let is_going = match (
            attributes.old_typed::<Pod>(),
            attributes.old_typed::<PersistentVolumeClaim>(),
        ) {
            (Some(pod), _) => pod.metadata.deletion_timestamp.is_some(),
            (_, Some(claim)) => claim.metadata.deletion_timestamp.is_some(),
            (None, None) => false,
        };
        match is_going {
            true => Vec::new(),
            false => self.ranges.of_namespace(attributes.namespace()),
        }
    }
}

fn check(attributes: &Attributes<'_>, range: &LimitRange) -> Result<(), StatusError> {
    let faults = match (attributes.typed::<Pod>(), attributes.typed::<PersistentVolumeClaim>()) {
        (Some(pod), _) => constraint::of_pod(&pod.spec, range),
        (_, Some(claim)) => constraint::of_claim(claim, range),
        (None, None) => Vec::new(),
    };
    match faults.is_empty() {
        true => Ok(()),
        false => Err(attributes.forbidden(aggregate(&faults))),
    }
}
