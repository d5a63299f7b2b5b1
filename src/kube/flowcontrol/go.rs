//! Specifications as messages show them: by kube-apiserver's own field names, every field of them.

use keelson_api::flowcontrol_apiserver_k8s_io::v1::{
    FlowSchemaSpec, LimitedPriorityLevelConfiguration, PolicyRulesWithSubjects, PriorityLevelConfigurationSpec, Subject,
};
use keelson_machinery::field::BadValue;
use serde_json::{Value, json};

pub fn schema(spec: &FlowSchemaSpec) -> BadValue {
    let method = spec.distinguisher_method.as_ref();
    let shown = json!({
        "PriorityLevelConfiguration": {"Name": spec.priority_level_configuration.name},
        "MatchingPrecedence": spec.matching_precedence,
        "DistinguisherMethod": method.map(|method| json!({"Type": method.r#type})),
        "Rules": spec.rules.iter().map(rule).collect::<Vec<_>>(),
    });
    BadValue::json(shown.to_string())
}

fn rule(rule: &PolicyRulesWithSubjects) -> Value {
    let resources = rule.resource_rules.iter().map(|rule| {
        json!({
            "Verbs": rule.verbs, "APIGroups": rule.api_groups, "Resources": rule.resources,
            "ClusterScope": rule.cluster_scope, "Namespaces": rule.namespaces,
        })
    });
    let paths = rule
        .non_resource_rules
        .iter()
        .map(|rule| json!({"Verbs": rule.verbs, "NonResourceURLs": rule.non_resource_urls}));
    json!({
        "Subjects": rule.subjects.iter().map(subject).collect::<Vec<_>>(),
        "ResourceRules": list(resources.collect()),
        "NonResourceRules": list(paths.collect()),
    })
}

fn list(items: Vec<Value>) -> Value {
    match items.is_empty() {
        true => Value::Null,
        false => items.into(),
    }
}

fn subject(subject: &Subject) -> Value {
    let account = subject.service_account.as_ref();
    json!({
        "Kind": subject.kind,
        "User": subject.user.as_ref().map(|user| json!({"Name": user.name})),
        "Group": subject.group.as_ref().map(|group| json!({"Name": group.name})),
        "ServiceAccount": account.map(|account| json!({"Namespace": account.namespace, "Name": account.name})),
    })
}

pub fn level(spec: &PriorityLevelConfigurationSpec) -> BadValue {
    let exempt = spec.exempt.as_ref().map(|exempt| {
        json!({
            "NominalConcurrencyShares": exempt.nominal_concurrency_shares, "LendablePercent": exempt.lendable_percent,
        })
    });
    let shown = json!({
        "Type": spec.r#type,
        "Limited": spec.limited.as_deref().map(limited),
        "Exempt": exempt,
    });
    BadValue::json(shown.to_string())
}

fn limited(limited: &LimitedPriorityLevelConfiguration) -> Value {
    let queuing = limited.limit_response.queuing.as_ref().map(|queuing| {
        json!({
            "Queues": queuing.queues, "HandSize": queuing.hand_size, "QueueLengthLimit": queuing.queue_length_limit,
        })
    });
    json!({
        "NominalConcurrencyShares": limited.nominal_concurrency_shares.unwrap_or(0),
        "LimitResponse": {"Type": limited.limit_response.r#type, "Queuing": queuing},
        "LendablePercent": limited.lendable_percent,
        "BorrowingLimitPercent": limited.borrowing_limit_percent,
    })
}
