//! Priority classes.

use keelson_api::scheduling_k8s_io::v1::PriorityClass;
use keelson_machinery::field::ErrorList;
use keelson_registry::{Context, Kept, KindCode, Strategy};

use crate::cells;
use crate::faults::{self, Faults};
use crate::metadata;

/// The server's own classes, by name, with their values.
const SYSTEM_PREFIX: &str = "system-";
const SYSTEM_CLASSES: [(&str, i32); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];
/// Highest value of all others.
const USER_MAX: i32 = 1_000_000_000;
const PREEMPTIONS: [&str; 2] = ["PreemptLowerPriority", "Never"];

const KEPT: &[Kept] = &[
    Kept {
        forbidden: Some("may not be changed in an update."),
        ..Kept::at("value")
    },
    Kept::at("preemptionPolicy"),
];

/// Registers the rules of priority classes.
pub fn register(code: &mut KindCode) {
    code.kind::<PriorityClass>()
        .strategy(PriorityClassStrategy)
        .metadata_checks(metadata::CHANGE)
        .kept(KEPT)
        .cells(cells::quota::PRIORITY_CLASS);
}

/// The rules of priority classes.
struct PriorityClassStrategy;

impl Strategy for PriorityClassStrategy {
    type Object = PriorityClass;

    /// A class has a first generation and never another.
    fn prepare_for_create(&self, _context: &Context, object: &mut PriorityClass) {
        object.metadata.generation = 1;
    }

    fn refuses_deletion(&self, name: &str) -> Option<&'static str> {
        let is_systems = SYSTEM_CLASSES.iter().any(|(known, _)| *known == name);
        is_systems.then_some("this is a system priority class and cannot be deleted")
    }

    /// Of one that changed another rule says what stays.
    fn validate(&self, _context: &Context, class: &PriorityClass, old: Option<&PriorityClass>) -> ErrorList {
        match old {
            None => faults::of_object(|f| check(f, class)),
            Some(_) => ErrorList::default(),
        }
    }
}

fn check(f: &mut Faults<'_>, class: &PriorityClass) {
    let is_systems = class.metadata.name.starts_with(SYSTEM_PREFIX);
    if let Some(why) = unlike_systems(class).filter(|_| is_systems) {
        let reserved = format!("priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only");
        f.at("metadata")
            .at("name")
            .forbidden(format!("{reserved}. error: {why}"));
    }
    if !is_systems && class.value > USER_MAX {
        let text = format!("maximum allowed value of a user defined priority is {USER_MAX}");
        f.at("value").forbidden(text);
    }
    f.at("preemptionPolicy")
        .one_of_filled(&class.preemption_policy, &PREEMPTIONS);
}

/// What differs from the class of that name that the server has of its own.
fn unlike_systems(class: &PriorityClass) -> Option<String> {
    let name = class.metadata.name.as_str();
    let Some((_, value)) = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if class.value != *value {
        return Some(format!("value of {name} PriorityClass must be {value}"));
    }
    class
        .global_default
        .then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn what_is_systems_stays_systems() {
        for (name, value, expected) in [
            ("a", 1_000_000_000, ""),
            ("a", 1_000_000_001, "value: Forbidden"),
            ("system-node-critical", 2_000_001_000, ""),
            ("system-node-critical", 1, "metadata.name: Forbidden"),
            ("system-a", 1, "metadata.name: Forbidden"),
        ] {
            let class: PriorityClass = read(&format!(r#"{{"metadata":{{"name":"{name}"}},"value":{value}}}"#));
            let found = lines(&PriorityClassStrategy.validate(&context(), &class, None));
            assert!(
                found.starts_with(expected) && found.is_empty() == expected.is_empty(),
                "{name}: {found}"
            );
        }
    }
}
