//! Priority: pods get the number that their priority class stands for, and only one class is that of all others.

use std::sync::Arc;

use keelson_access::lister::Listers;
use keelson_api::core::v1::Pod;
use keelson_api::scheduling_k8s_io::v1::PriorityClass;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;
use keelson_registry::{Followed, Outcome, Verbs};

const GROUP: &str = "scheduling.k8s.io";
const CLASSES: &str = "priorityclasses";
const PREEMPTS: &str = "PreemptLowerPriority";

pub struct Priority {
    classes: Followed<PriorityClass>,
}

impl Default for Priority {
    fn default() -> Self {
        Priority {
            classes: Followed::new(|object| object.downcast_ref::<PriorityClass>().cloned()),
        }
    }
}

/// What a class says of a pod.
#[derive(Clone, PartialEq, Debug)]
struct Established {
    class: String,
    value: i32,
    preemption: Option<String>,
}

impl Established {
    fn of(class: &PriorityClass) -> Established {
        Established {
            class: class.metadata.name.clone(),
            value: class.value,
            preemption: class.preemption_policy.clone(),
        }
    }
}

impl Plugin for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let writes = matches!(scope.operation, Operation::Create | Operation::Update);
        if scope.is(GROUP, CLASSES) {
            return Handles::VALIDATES.when(writes);
        }
        Handles::MUTATES.when(writes && scope.is("", "pods"))
    }

    fn attach(&self, listers: &dyn Listers, _verbs: &Arc<Verbs>) {
        self.classes.attach(listers, GROUP, CLASSES);
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        now(match attributes.operation {
            Operation::Create => self.admit_new(attributes),
            _ => {
                keep(attributes);
                Ok(())
            }
        })
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        now(match attributes.typed::<PriorityClass>() {
            Some(class) => self.check_class(attributes, class),
            None => Ok(()),
        })
    }
}

impl Priority {
    fn admit_new(&self, attributes: &mut Attributes<'_>) -> Result<(), StatusError> {
        let Some(pod) = attributes.typed::<Pod>() else {
            return Ok(());
        };
        let established = match pod.spec.priority_class_name.as_str() {
            "" => self.of_no_class(),
            name => {
                let class = self.classes.get("", name);
                let class = class.map(|class| Established::of(&class));
                class.ok_or_else(|| attributes.forbidden(format!("no PriorityClass with name {name} was found")))?
            }
        };
        if let Some(why) = fault(pod, &established) {
            return Err(attributes.forbidden(why));
        }
        if let Some(pod) = attributes.typed_mut::<Pod>() {
            pod.spec.priority_class_name = established.class;
            pod.spec.priority = Some(established.value);
            if established.preemption.is_some() {
                pod.spec.preemption_policy = established.preemption;
            }
        }
        Ok(())
    }

    /// That of the class which is marked as the default, of several the one with the lowest value.
    fn of_no_class(&self) -> Established {
        match self.default_class() {
            Some(class) => Established::of(&class),
            None => Established {
                class: String::new(),
                value: 0,
                preemption: Some(PREEMPTS.to_owned()),
            },
        }
    }

    fn default_class(&self) -> Option<Arc<PriorityClass>> {
        let classes = self.classes.all().into_iter().filter(|class| class.global_default);
        classes.min_by_key(|class| class.value)
    }

    fn check_class(&self, attributes: &Attributes<'_>, class: &PriorityClass) -> Result<(), StatusError> {
        let Some(default) = self.default_class().filter(|_| class.global_default) else {
            return Ok(());
        };
        let name = &default.metadata.name;
        if attributes.operation == Operation::Update && *name == class.metadata.name {
            return Ok(());
        }
        let why = format!("PriorityClass {name} is already marked as default. Only one default can exist");
        Err(attributes.forbidden(why))
    }
}

/// Why a pod may not say what it says of its priority.
fn fault(pod: &Pod, established: &Established) -> Option<String> {
    let value = established.value;
    if let Some(said) = pod.spec.priority.filter(|said| *said != value) {
        return Some(format!(
            "the integer value of priority ({said}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        ));
    }
    let preemption = established.preemption.as_ref()?;
    let said = pod.spec.preemption_policy.as_ref().filter(|said| *said != preemption)?;
    Some(format!(
        "the string value of PreemptionPolicy ({said}) must not be provided in pod spec; priority admission controller \
         computed {preemption} from the given PriorityClass name"
    ))
}

/// A client that does not know of priorities does not take them away.
fn keep(attributes: &mut Attributes<'_>) {
    let old = attributes.old_typed::<Pod>();
    let Some((priority, preemption)) = old.map(|old| (old.spec.priority, old.spec.preemption_policy.clone())) else {
        return;
    };
    if let Some(pod) = attributes.typed_mut::<Pod>() {
        pod.spec.priority = pod.spec.priority.or(priority);
        if pod.spec.preemption_policy.is_none() {
            pod.spec.preemption_policy = preemption;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn a_pod_says_nothing_else_than_its_class() {
        let established = Established {
            class: "c".to_owned(),
            value: 7,
            preemption: Some("Never".to_owned()),
        };
        for (spec, expected) in [
            ("{}", None),
            (r#"{"priority":7,"preemptionPolicy":"Never"}"#, None),
            (
                r#"{"priority":8}"#,
                Some(
                    "the integer value of priority (8) must not be provided in pod spec; priority admission controller \
                     computed 7 from the given PriorityClass name",
                ),
            ),
            (
                r#"{"preemptionPolicy":"PreemptLowerPriority"}"#,
                Some(
                    "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; \
                     priority admission controller computed Never from the given PriorityClass name",
                ),
            ),
        ] {
            let pod: Pod = read(&format!(r#"{{"spec":{spec}}}"#));
            assert_eq!(fault(&pod, &established).as_deref(), expected, "{spec}");
        }
    }

    #[test]
    fn without_classes_pods_have_no_priority() {
        let expected = Established {
            class: String::new(),
            value: 0,
            preemption: Some(PREEMPTS.to_owned()),
        };
        assert_eq!(Priority::default().of_no_class(), expected);
    }
}
