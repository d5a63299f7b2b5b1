//! AlwaysAdmit and AlwaysDeny: for tests, and without meaning else.

use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Plugin, Scope};
use keelson_registry::outcome::now;

/// Refuses nothing.
pub struct AlwaysAdmit;

impl Plugin for AlwaysAdmit {
    fn name(&self) -> &'static str {
        "AlwaysAdmit"
    }

    fn enabled_by_default(&self) -> bool {
        false
    }

    fn handles(&self, _scope: &Scope<'_>) -> Handles {
        Handles::NOTHING
    }
}

/// Refuses everything.
pub struct AlwaysDeny;

impl Plugin for AlwaysDeny {
    fn name(&self) -> &'static str {
        "AlwaysDeny"
    }

    fn enabled_by_default(&self) -> bool {
        false
    }

    fn handles(&self, _scope: &Scope<'_>) -> Handles {
        Handles::BOTH
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        now(Err(attributes.forbidden(WHY)))
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        now(Err(attributes.forbidden(WHY)))
    }
}

const WHY: &str = "admission control is denying all modifications";
