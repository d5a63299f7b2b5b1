//! The policies of a server, with their bindings.

use std::sync::Arc;

use keelson_access::lister::Listers;
use keelson_machinery::object::Object;
use keelson_machinery::scheme::KindRef;
use keelson_registry::Followed;
use keelson_registry::admission::Attributes;

use super::binding::Binding;
use super::definition::Definition;
use crate::GROUP;
use crate::matching::{Asked, Candidates, Index, Outcome, Ruled};

/// A policy of either kind.
pub(super) trait Policy {
    fn definition(&self) -> &Definition;
}

/// A policy that is bound.
pub(super) struct Bound<P> {
    pub policy: Arc<P>,
    /// In the order of their names.
    pub bindings: Vec<Arc<Binding>>,
}

/// What the rules of a policy and of its bindings say.
pub(super) struct BoundOutcome {
    pub policy: Outcome,
    pub bindings: Vec<Reach>,
}

/// Which requests a binding means.
pub(super) enum Reach {
    /// None.
    Nothing,
    /// All that its policy means.
    Everything,
    /// What these rules say.
    By(Outcome),
}

impl<P: Policy> Ruled for Bound<P> {
    type Outcome = BoundOutcome;

    fn outcome(&self, asked: &Asked<'_>, own: &KindRef, others: &[KindRef]) -> Option<BoundOutcome> {
        let criteria = self.policy.definition().criteria.as_ref()?;
        let policy = criteria.rules.outcome(asked, own, others)?;
        let reach = |binding: &Arc<Binding>| match &binding.criteria {
            None => Reach::Everything,
            Some(criteria) => match criteria.rules.outcome(asked, own, others) {
                Some(outcome) => Reach::By(outcome),
                None => Reach::Nothing,
            },
        };
        Some(BoundOutcome {
            policy,
            bindings: self.bindings.iter().map(reach).collect(),
        })
    }
}

/// The policies of one kind.
pub(super) struct Policies<P: Policy> {
    policies: Followed<P>,
    bindings: Followed<Binding>,
    index: Index<Bound<P>>,
}

impl<P: Policy> Policies<P> {
    /// The functions read a policy and a binding.
    pub fn new(policy: fn(&dyn Object) -> Option<P>, binding: fn(&dyn Object) -> Option<Binding>) -> Policies<P> {
        Policies {
            policies: Followed::new(policy),
            bindings: Followed::new(binding),
            index: Index::default(),
        }
    }

    /// Follows these resources.
    pub fn attach(&self, listers: &dyn Listers, policies: &str, bindings: &str) {
        self.policies.attach(listers, GROUP, policies);
        self.bindings.attach(listers, GROUP, bindings);
    }

    /// Those whose rules may mean a request, in the order of their names.
    pub fn candidates(&self, attributes: &Attributes<'_>) -> Candidates<Bound<P>> {
        // Each of them only grows.
        let version = self.policies.version() + self.bindings.version();
        self.index.candidates(attributes, version, || self.bound())
    }

    fn bound(&self) -> Vec<Arc<Bound<P>>> {
        let bindings = self.bindings.all();
        let bound = self.policies.all().into_iter().filter_map(|policy| {
            let name = &policy.definition().name;
            let of = bindings.iter().filter(|binding| binding.policy == *name);
            let bindings: Vec<_> = of.cloned().collect();
            (!bindings.is_empty()).then(|| Arc::new(Bound { policy, bindings }))
        });
        bound.collect()
    }
}
