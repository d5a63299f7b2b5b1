//! The limit on managers of updates in managedFields.

use super::{Managed, Operation, Owner, seconds};

/// Above this the oldest updates of each version become one entry.
pub const MAX_UPDATERS: usize = 10;
/// The owner of what the oldest updates did.
const ANCIENT: &str = "ancient-changes";

impl Managed {
    /// Merges the oldest owners by update until there are at most [`MAX_UPDATERS`], as far as there are several of one
    /// version.
    pub fn limit_updaters(&mut self) {
        let is_update = |o: &&Owner| o.operation == Operation::Update;
        let mut count = self.owners.iter().filter(is_update).count();
        if count <= MAX_UPDATERS {
            return;
        }
        let mut oldest: Vec<Owner> = self.owners.iter().filter(is_update).cloned().collect();
        oldest.sort_by(|a, b| {
            (seconds(a.time).cmp(&seconds(b.time)))
                .then_with(|| a.manager.cmp(&b.manager))
                .then_with(|| a.api_version.cmp(&b.api_version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        // The first of each version, which the later ones are merged with.
        let mut firsts: Vec<Owner> = Vec::new();
        for owner in oldest {
            if count <= MAX_UPDATERS {
                return;
            }
            match firsts.iter().find(|f| f.api_version == owner.api_version).cloned() {
                None => firsts.push(owner),
                Some(first) => {
                    self.merge_ancient(&first, &owner);
                    count -= 1;
                }
            }
        }
    }

    /// Puts the fields of `owner`, and those of `first` if it is still there, into the entry for old updates.
    fn merge_ancient(&mut self, first: &Owner, owner: &Owner) {
        let mut ancient = Owner::new(ANCIENT, Operation::Update, &owner.api_version, "");
        if self.find(&ancient).is_none()
            && let Some(at) = self.owners.iter().position(|o| o.is_same(first))
        {
            ancient.set_fields(self.owners.remove(at).take_fields());
        }
        let ancient = self.entry(ancient);
        ancient.gain(owner.fields().clone());
        // The more recent of the two times.
        ancient.time = owner.time;
        if !ancient.is_same(owner) {
            self.owners.retain(|o| !o.is_same(owner));
        }
    }
}
