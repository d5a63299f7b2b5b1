//! The webhooks of a server: those that mean a request, and what they see of it.

use std::sync::Arc;

use keelson_access::lister::Listers;
use keelson_machinery::object::Object;
use keelson_machinery::scheme::KindRef;
use keelson_machinery::status::StatusError;
use keelson_registry::Followed;
use keelson_registry::admission::Attributes;

use super::hook::{Hook, Hooks};
use crate::expressions::{Inputs, Matched};
use crate::matching::{Candidate, Candidates, Index, ObjectLabels};
use crate::versions::versioned;
use crate::{GROUP, Shared};

/// The webhooks of all configurations of one kind.
pub(super) struct Configured {
    followed: Followed<Hooks>,
    index: Index<Hook>,
}

impl Configured {
    /// `make` reads a configuration.
    pub fn new(make: fn(&dyn Object) -> Option<Hooks>) -> Configured {
        Configured {
            followed: Followed::new(make),
            index: Index::default(),
        }
    }

    /// Follows the configurations.
    pub fn attach(&self, listers: &dyn Listers, plural: &str) {
        self.followed.attach(listers, GROUP, plural);
    }

    /// Those whose rules may mean a request, in the order in which they are called.
    pub fn candidates(&self, attributes: &Attributes<'_>) -> Candidates<Hook> {
        let version = self.followed.version();
        let all = || -> Hooks {
            let all = self.followed.all();
            all.iter().flat_map(|hooks| hooks.iter().cloned()).collect()
        };
        self.index.candidates(attributes, version, all)
    }
}

/// What is at hand of a request: of most candidates it tells without waiting that they are not asked, in a fraction of
/// the time.
pub(super) struct AtHand<'a> {
    name: &'a str,
    labels: ObjectLabels<'a>,
}

impl<'a> AtHand<'a> {
    pub fn of(attributes: &'a Attributes<'_>) -> AtHand<'a> {
        AtHand {
            name: attributes.requested_name(),
            labels: ObjectLabels::of(attributes),
        }
    }

    /// The kind as which a candidate sees the object, if it may be asked.
    pub fn kind<'c>(&self, candidate: &'c Candidate<Hook>) -> Option<&'c KindRef> {
        let kind = candidate.outcome.of(self.name)?;
        (!candidate.hook.selectors.pass_over(&self.labels)).then_some(kind)
    }
}

/// Whether a webhook is asked about a request that it [may be asked about](AtHand::kind), as `kind`.
///
/// # Errors
/// It can't be told, and that is as good as a refusal.
pub(super) async fn means(
    hook: &Hook,
    kind: &KindRef,
    attributes: &Attributes<'_>,
    shared: &Arc<Shared>,
) -> Result<bool, StatusError> {
    if !hook.selectors.select_namespace(attributes, &shared.namespaces).await? {
        return Ok(false);
    }
    if hook.conditions.is_empty() {
        return Ok(true);
    }
    let shown = versioned(attributes, kind).await?;
    let inputs = Inputs::new(attributes, &shown, kind);
    match hook.conditions.evaluate(attributes, &inputs).await {
        Matched::Yes => Ok(true),
        Matched::No => Ok(false),
        Matched::Failed(_) if hook.fails_open => Ok(false),
        Matched::Failed(why) => Err(attributes.forbidden(why)),
    }
}
