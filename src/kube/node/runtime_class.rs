//! Runtime classes.

use std::collections::HashSet;

use keelson_api::node_k8s_io::v1::{RuntimeClass, Scheduling};
use keelson_machinery::field::ErrorList;
use keelson_registry::{ChangeOrder, Context, Kept, KindCode, MetadataChecks, RepeatedChecks, Strategy};

use crate::cells;
use crate::core::pod_spec::{self, Options, affinity};
use crate::core::resource_list::round;
use crate::faults::{self, Faults};
use crate::metadata;
use crate::typed::shown_internal;

/// Registers the rules of runtime classes.
pub fn register(code: &mut KindCode) {
    code.kind::<RuntimeClass>()
        .strategy(RuntimeClassStrategy)
        .defaults(defaults)
        .metadata_checks(MetadataChecks {
            order: ChangeOrder::WholeFirst,
            ..metadata::any_finalizer(RepeatedChecks::BOTH)
        })
        .kept([Kept::at("handler")])
        .cells(cells::quota::RUNTIME_CLASS);
}

/// The rules of runtime classes.
struct RuntimeClassStrategy;

impl Strategy for RuntimeClassStrategy {
    type Object = RuntimeClass;

    fn validate(&self, _context: &Context, new: &RuntimeClass, _old: Option<&RuntimeClass>) -> ErrorList {
        faults::of_object(|f| {
            f.at("handler").filled_label(&new.handler);
            f.some("overhead", new.overhead.as_deref(), |f, overhead| {
                pod_spec::overhead(f, &overhead.pod_fixed, &Options::default());
            });
            f.some("scheduling", new.scheduling.as_deref(), scheduling);
        })
    }
}

fn scheduling(f: &mut Faults<'_>, scheduling: &Scheduling) {
    f.labels("nodeSelector", &scheduling.node_selector);
    affinity::tolerations(f, "tolerations", &scheduling.tolerations, &Options::default());
    let mut seen = HashSet::new();
    f.each("tolerations", &scheduling.tolerations, |f, one| {
        if !seen.insert((&one.key, &one.operator, &one.value, &one.effect)) {
            f.duplicate(shown_internal(one));
        }
    });
}

/// Defaults in code of runtime classes.
fn defaults(class: &mut RuntimeClass) {
    if let Some(overhead) = &mut class.overhead {
        round(&mut overhead.pod_fixed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn a_class_sets_aside_and_tolerates() {
        let toleration = r#"{"key":"a","operator":"Exists"}"#;
        for (class, expected) in [
            (
                format!(r#""overhead":{{"podFixed":{{"cpu":"1"}}}},"scheduling":{{"tolerations":[{toleration}]}}"#),
                "",
            ),
            (
                r#""overhead":{"podFixed":{"cpu":"-1"}}"#.to_owned(),
                "overhead.limits[cpu]: Invalid value: \"-1\"",
            ),
            (
                format!(r#""scheduling":{{"tolerations":[{toleration},{toleration}]}}"#),
                "scheduling.tolerations[1]: Duplicate value",
            ),
        ] {
            let class: RuntimeClass = read(&format!(r#"{{"handler":"h",{class}}}"#));
            let found = lines(&RuntimeClassStrategy.validate(&context(), &class, None));
            assert!(
                found.starts_with(expected) && found.is_empty() == expected.is_empty(),
                "{found}"
            );
        }
    }
}
