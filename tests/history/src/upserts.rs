//! An upsert, a server-side apply by force of an object that may be absent, never learns that it lost a race: whoever
//! makes the object first, the others go on as updates.

use crate::Violation;
use crate::record::{Action, History, Outcome};

pub(crate) fn check(history: &History, violations: &mut Vec<Violation>) {
    for operation in &history.operations {
        let wrong = matches!(operation.action, Action::Apply(_))
            && matches!(operation.outcome, Outcome::Exists | Outcome::Conflict | Outcome::Absent);
        if wrong {
            violations.push(Violation::new("upserts never collide", format!("{operation:?}")));
        }
    }
}
