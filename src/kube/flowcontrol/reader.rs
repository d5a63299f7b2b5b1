//! Flow schemas and priority levels as flow control sees them.

use keelson_access::flowcontrol::spec::{
    Discipline, Distinguisher, LevelSpec, PathRule, Queuing, ReadFlowControl, ResourceRule, Rule, Schema, Subject,
};
use keelson_api::flowcontrol_apiserver_k8s_io::v1;
use keelson_machinery::object::Object;

use crate::typed::typed;

/// Reads the kinds of this build.
pub struct Reader;

impl ReadFlowControl for Reader {
    fn schema(&self, object: &dyn Object) -> Option<Schema> {
        typed::<v1::FlowSchema>(object).map(schema)
    }

    fn level(&self, object: &dyn Object) -> Option<LevelSpec> {
        typed::<v1::PriorityLevelConfiguration>(object).map(level)
    }
}

pub fn schema(schema: &v1::FlowSchema) -> Schema {
    let spec = &schema.spec;
    let method = spec.distinguisher_method.as_ref().map(|method| method.r#type.as_str());
    Schema {
        name: schema.metadata.name.clone(),
        uid: schema.metadata.uid.clone(),
        level: spec.priority_level_configuration.name.clone(),
        precedence: spec.matching_precedence,
        distinguisher: match method {
            Some("ByUser") => Distinguisher::User,
            Some("ByNamespace") => Distinguisher::Namespace,
            _ => Distinguisher::None,
        },
        rules: spec.rules.iter().map(rule).collect(),
    }
}

fn rule(rule: &v1::PolicyRulesWithSubjects) -> Rule {
    Rule {
        subjects: rule.subjects.iter().filter_map(subject).collect(),
        resources: rule
            .resource_rules
            .iter()
            .map(|rule| ResourceRule {
                verbs: rule.verbs.clone(),
                groups: rule.api_groups.clone(),
                resources: rule.resources.clone(),
                cluster_scope: rule.cluster_scope,
                namespaces: rule.namespaces.clone(),
            })
            .collect(),
        paths: rule
            .non_resource_rules
            .iter()
            .map(|rule| PathRule {
                verbs: rule.verbs.clone(),
                paths: rule.non_resource_urls.clone(),
            })
            .collect(),
    }
}

/// A subject that is not whole is nobody.
fn subject(subject: &v1::Subject) -> Option<Subject> {
    match subject.kind.as_str() {
        "User" => Some(Subject::User(subject.user.as_ref()?.name.clone())),
        "Group" => Some(Subject::Group(subject.group.as_ref()?.name.clone())),
        "ServiceAccount" => {
            let account = subject.service_account.as_ref()?;
            Some(Subject::ServiceAccount {
                namespace: account.namespace.clone(),
                name: account.name.clone(),
            })
        }
        _ => None,
    }
}

pub fn level(level: &v1::PriorityLevelConfiguration) -> LevelSpec {
    let spec = &level.spec;
    let number = |number: Option<i32>| u32::try_from(number.unwrap_or(0)).unwrap_or(0);
    let mut out = LevelSpec {
        name: level.metadata.name.clone(),
        uid: level.metadata.uid.clone(),
        discipline: Discipline::Reject,
        shares: 0,
        lendable_percent: 0,
        borrowing_percent: None,
    };
    match (spec.r#type.as_str(), &spec.limited, &spec.exempt) {
        ("Limited", Some(limited), _) => {
            out.shares = number(limited.nominal_concurrency_shares);
            out.lendable_percent = number(limited.lendable_percent);
            out.borrowing_percent = limited.borrowing_limit_percent.map(|percent| number(Some(percent)));
            if let Some(queuing) = limited.limit_response.queuing.as_deref() {
                out.discipline = Discipline::Queue(Queuing {
                    queues: number(Some(queuing.queues)),
                    hand_size: number(Some(queuing.hand_size)),
                    length_limit: number(Some(queuing.queue_length_limit)),
                });
            }
        }
        ("Exempt", _, exempt) => {
            let exempt = exempt.as_ref();
            out.discipline = Discipline::Exempt;
            out.shares = number(exempt.and_then(|e| e.nominal_concurrency_shares));
            out.lendable_percent = number(exempt.and_then(|e| e.lendable_percent));
        }
        _ => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    /// The mandatory objects of flow control are those that a server makes.
    #[test]
    fn the_mandatory_ones_are_those_of_a_fresh_server() {
        let lines = |text: &'static str| text.lines();
        let schemas = lines(include_str!("../bootstrap/data/flowschemas.jsonl")).map(|line| schema(&read(line)));
        let levels = lines(include_str!("../bootstrap/data/prioritylevelconfigurations.jsonl"));
        let (schemas, levels): (Vec<_>, Vec<_>) = (schemas.collect(), levels.map(|line| level(&read(line))).collect());
        for mandatory in Schema::mandatory() {
            assert!(schemas.contains(&mandatory), "{mandatory:?}");
        }
        for mandatory in LevelSpec::mandatory() {
            assert!(levels.contains(&mandatory), "{mandatory:?}");
        }
        assert_eq!((schemas.len(), levels.len()), (11, 8));
        let accounts = Subject::ServiceAccount {
            namespace: "kube-system".to_owned(),
            name: "*".to_owned(),
        };
        assert!(
            schemas
                .iter()
                .any(|schema| schema.rules[0].subjects.contains(&accounts))
        );
        let queuing = Queuing {
            queues: 64,
            hand_size: 6,
            length_limit: 50,
        };
        let system = levels.iter().find(|level| level.name == "system").unwrap();
        assert_eq!(system.discipline, Discipline::Queue(queuing));
        assert_eq!((system.shares, system.lendable_percent), (30, 33));
    }
}
