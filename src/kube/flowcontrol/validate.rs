//! Faults of flow schemas and priority levels.

use keelson_access::flowcontrol::dealer::has_enough_bits;
use keelson_access::flowcontrol::spec::{ANY, CATCH_ALL, Discipline, EXEMPT, LevelSpec, Schema};
use keelson_api::flowcontrol_apiserver_k8s_io::v1::{
    ExemptPriorityLevelConfiguration, FlowSchema, LimitResponse, LimitedPriorityLevelConfiguration,
    NonResourcePolicyRule, PolicyRulesWithSubjects, PriorityLevelConfiguration, QueuingConfiguration,
    ResourcePolicyRule, Subject,
};
use keelson_machinery::field::{BadValue, text};
use keelson_machinery::validation::names;

use super::{go, reader};
use crate::faults::{Faults, Unique};

/// Schemas are asked up to this precedence.
const MAX_PRECEDENCE: i32 = 10_000;
const POSITIVE: &str = "must be positive";
/// The most queues of a level.
const MAX_QUEUES: i32 = 10_000_000;
/// What a request can be asked by a schema's rules.
const VERBS: [&str; 9] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];

/// Checks a flow schema.
pub fn schema(f: &mut Faults<'_>, schema: &FlowSchema) {
    let spec = &schema.spec;
    let mut f = f.at("spec");
    precedence(
        &mut f.at("matchingPrecedence"),
        spec.matching_precedence,
        schema.metadata.name == EXEMPT,
    );
    match spec.priority_level_configuration.name.as_str() {
        "" => f
            .at("priorityLevelConfiguration")
            .at("name")
            .required("must reference a priority level"),
        level => f.at("priorityLevelConfiguration").at("name").subdomain(level),
    }
    if let Some(method) = &spec.distinguisher_method
        && !matches!(method.r#type.as_str(), "ByUser" | "ByNamespace")
    {
        let shown = BadValue::json(serde_json::json!({"Type": method.r#type}).to_string());
        f.at("distinguisherMethod")
            .at("type")
            .not_supported(shown, &["ByNamespace", "ByUser"]);
    }
    f.each("rules", &spec.rules, rule);
    let mut mandatory = Schema::mandatory().into_iter();
    let Some(fixed) = mandatory.find(|fixed| fixed.name == schema.metadata.name) else {
        return;
    };
    let given = Schema {
        uid: String::new(),
        ..reader::schema(schema)
    };
    if given != fixed {
        f.invalid(
            go::schema(spec),
            format!("spec of '{}' must equal the fixed value", fixed.name),
        );
    }
}

fn precedence(f: &mut Faults<'_>, precedence: i32, is_exempt: bool) {
    let why = match precedence {
        ..=0 => "must be a positive value",
        1 if !is_exempt => "only the schema named 'exempt' may have matchingPrecedence 1",
        _ if precedence > MAX_PRECEDENCE => "must not be greater than 10000",
        _ => return,
    };
    f.invalid(precedence, why);
}

fn rule(f: &mut Faults<'_>, rule: &PolicyRulesWithSubjects) {
    f.at("subjects")
        .required_if(rule.subjects.is_empty(), "subjects must contain at least one value");
    f.each("subjects", &rule.subjects, subject);
    let is_empty = rule.resource_rules.is_empty() && rule.non_resource_rules.is_empty();
    f.required_if(
        is_empty,
        "at least one of resourceRules and nonResourceRules has to be non-empty",
    );
    f.each("resourceRules", &rule.resource_rules, resource_rule);
    f.each("nonResourceRules", &rule.non_resource_rules, path_rule);
}

fn subject(f: &mut Faults<'_>, subject: &Subject) {
    let mut kinds = [
        ("ServiceAccount", "serviceAccount", subject.service_account.is_some()),
        ("User", "user", subject.user.is_some()),
        ("Group", "group", subject.group.is_some()),
    ];
    // What it is comes first.
    kinds.sort_by_key(|(kind, _, _)| *kind != subject.kind);
    if !kinds.iter().any(|(kind, _, _)| *kind == subject.kind) {
        let known = ["Group", "ServiceAccount", "User"];
        return f.at("kind").not_supported(&subject.kind, &known);
    }
    for (kind, field, given) in kinds {
        let mut f = f.at(field);
        match (subject.kind == kind, given) {
            (true, false) => f.required(format!("{field} is required when subject kind is '{kind}'")),
            (true, true) => named(&mut f, subject),
            (false, true) => f.forbidden(format!("{field} is forbidden when subject kind is not '{kind}'")),
            (false, false) => {}
        }
    }
}

/// Names of the subject that its kind says.
fn named(f: &mut Faults<'_>, subject: &Subject) {
    let simple = match subject.kind.as_str() {
        "User" => subject.user.as_ref().map(|user| &user.name),
        "Group" => subject.group.as_ref().map(|group| &group.name),
        _ => None,
    };
    let account = subject.service_account.as_ref();
    match (simple, account) {
        (Some(name), _) => f.at("name").required_if(name.is_empty(), ""),
        (None, Some(account)) => {
            match account.namespace.as_str() {
                "" => f.at("namespace").required("must specify namespace for service account"),
                namespace => f.at("namespace").label(namespace),
            }
            if account.name != ANY {
                f.at("name").filled_subdomain(&account.name);
            }
        }
        (None, None) => {}
    }
}

/// Whether a list has something, and nothing beside a star.
fn listed(f: &mut Faults<'_>, list: &[String], missing: &str, others: &str) -> bool {
    let has_others = list.len() > 1 && list.iter().any(|one| one == ANY);
    f.required_if(list.is_empty(), missing);
    if has_others {
        f.invalid(
            shown(list),
            format!("if '*' is present, must not specify other {others}"),
        );
    }
    !list.is_empty() && !has_others
}

fn shown(list: &[String]) -> BadValue {
    BadValue::json(text::json_list(list.iter().map(String::as_str)))
}

fn verbs(f: &mut Faults<'_>, verbs: &[String]) {
    let mut f = f.at("verbs");
    let is_known = |verb: &String| VERBS.contains(&verb.as_str());
    if listed(&mut f, verbs, "verbs must contain at least one value", "verbs")
        && verbs != [ANY]
        && !verbs.iter().all(is_known)
    {
        f.not_supported(shown(verbs), &VERBS);
    }
}

fn resource_rule(f: &mut Faults<'_>, rule: &ResourcePolicyRule) {
    verbs(f, &rule.verbs);
    let missing = "resource rules must supply at least one api group";
    listed(&mut f.at("apiGroups"), &rule.api_groups, missing, "api groups");
    let missing = "resource rules must supply at least one resource";
    listed(&mut f.at("resources"), &rule.resources, missing, "resources");
    let namespaces = &rule.namespaces;
    if namespaces.is_empty() && rule.cluster_scope {
        return;
    }
    let missing = "resource rules that are not cluster scoped must supply at least one namespace";
    if !listed(&mut f.at("namespaces"), namespaces, missing, "namespaces") {
        return;
    }
    f.each("namespaces", namespaces, |f, namespace| {
        for fault in names::dns_label(namespace).into_iter().filter(|_| namespace != ANY) {
            let why = format!("each member of this list must be '*' or a DNS-1123 label; {fault}");
            f.invalid(namespace, why);
        }
    });
}

fn path_rule(f: &mut Faults<'_>, rule: &NonResourcePolicyRule) {
    verbs(f, &rule.verbs);
    let missing = "nonResourceURLs must contain at least one value";
    let urls = &rule.non_resource_urls;
    if listed(&mut f.at("nonResourceURLs"), urls, missing, "non-resource URLs") {
        f.each("nonResourceURLs", urls, |f, url| match unfit_path(url) {
            Some(why) if url != ANY => f.invalid(url, why),
            _ => {}
        });
    }
}

fn unfit_path(path: &str) -> Option<&'static str> {
    let begin = path.strip_suffix("/*").unwrap_or(path);
    match path {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !path.starts_with('/') => Some("must start with slash"),
        _ if path.contains(' ') => Some("must not contain white-space"),
        _ if path.contains("//") => Some("must not contain double slash"),
        _ if begin.contains('*') => Some("wildcard can only do suffix matching"),
        _ => None,
    }
}

/// Checks a priority level.
pub fn level(f: &mut Faults<'_>, level: &PriorityLevelConfiguration) {
    let (name, spec) = (level.metadata.name.as_str(), &level.spec);
    let (kind, mut f) = (spec.r#type.as_str(), f.at("spec"));
    let is_odd = (name == EXEMPT) != (kind == "Exempt") && matches!(kind, "Exempt" | "Limited");
    f.at("type")
        .invalid_if(is_odd, kind, "must be 'Exempt' if and only if `name` is 'exempt'");
    match kind {
        "Exempt" => {
            f.some("exempt", spec.exempt.as_deref(), exempt);
            f.at("limited")
                .forbidden_if(spec.limited.is_some(), "must be nil if the type is not Limited");
        }
        "Limited" => {
            f.at("exempt")
                .forbidden_if(spec.exempt.is_some(), "must be nil if the type is Limited");
            f.at("limited")
                .required_if(spec.limited.is_none(), "must not be empty when type is Limited");
            f.some("limited", spec.limited.as_deref(), limited);
        }
        kind => f.at("type").one_of_filled(kind, &["Exempt", "Limited"]),
    }
    fixed_level(&mut f, level);
}

/// What the mandatory levels must be.
fn fixed_level(f: &mut Faults<'_>, level: &PriorityLevelConfiguration) {
    let is_whole = level.spec.limited.is_none() && level.spec.r#type == "Exempt";
    let (fits, what) = match level.metadata.name.as_str() {
        // What is exempt may have shares to lend.
        EXEMPT => (is_whole, "spec of 'exempt' except the 'spec.exempt' field"),
        CATCH_ALL => {
            let given = LevelSpec {
                uid: String::new(),
                ..reader::level(level)
            };
            let rejects = given.discipline == Discipline::Reject;
            let fixed = LevelSpec::mandatory().into_iter().any(|fixed| fixed == given);
            (rejects && fixed && level.spec.exempt.is_none(), "spec of 'catch-all'")
        }
        _ => return,
    };
    if !fits {
        f.invalid(go::level(&level.spec), format!("{what} must equal the fixed value"));
    }
}

fn shares(f: &mut Faults<'_>, number: Option<i32>) {
    f.at("nominalConcurrencyShares")
        .number(number, |number| number >= 0, "must be a non-negative integer");
}

fn exempt(f: &mut Faults<'_>, exempt: &ExemptPriorityLevelConfiguration) {
    shares(f, exempt.nominal_concurrency_shares);
    f.at("lendablePercent").within(exempt.lendable_percent, (0, 100));
}

fn limited(f: &mut Faults<'_>, limited: &LimitedPriorityLevelConfiguration) {
    shares(f, limited.nominal_concurrency_shares);
    response(&mut f.at("limitResponse"), &limited.limit_response);
    f.at("lendablePercent").within(limited.lendable_percent, (0, 100));
    let text = "if specified, must be a non-negative integer";
    f.at("borrowingLimitPercent")
        .number(limited.borrowing_limit_percent, |percent| percent >= 0, text);
}

fn response(f: &mut Faults<'_>, response: &LimitResponse) {
    match (response.r#type.as_str(), response.queuing.as_deref()) {
        ("Queue", Some(given)) => queuing(&mut f.at("queuing"), given),
        ("Queue", None) => f
            .at("queuing")
            .required("must not be empty if limited.limitResponse.type is Limited"),
        ("Reject", Some(_)) => f
            .at("queuing")
            .forbidden("must be nil if limited.limitResponse.type is not Limited"),
        (kind, _) => f.at("type").one_of_filled(kind, &["Queue", "Reject"]),
    }
}

fn queuing(f: &mut Faults<'_>, queuing: &QueuingConfiguration) {
    let (queues, hand) = (queuing.queues, queuing.hand_size);
    f.at("queueLengthLimit")
        .number(queuing.queue_length_limit, |length| length > 0, POSITIVE);
    match queues {
        ..=0 => f.at("queues").invalid(queues, POSITIVE),
        _ if queues > MAX_QUEUES => f
            .at("queues")
            .invalid(queues, format!("must not be greater than {MAX_QUEUES}")),
        _ => {}
    }
    let unsigned = |number: i32| u32::try_from(number).unwrap_or(0);
    let mut f = f.at("handSize");
    if hand <= 0 {
        f.invalid(hand, POSITIVE);
    } else if hand > queues {
        f.invalid(hand, format!("should not be greater than queues ({queues})"));
    } else if !has_enough_bits(unsigned(queues), unsigned(hand)) {
        let bits = format!("required entropy bits of deckSize {queues} and handSize {hand}");
        f.invalid(hand, format!("{bits} should not be greater than 60"));
    }
}

pub fn schema_status(f: &mut Faults<'_>, schema: &FlowSchema) {
    let mut seen = Unique::default();
    let conditions = &schema.status.conditions;
    f.at("status").each("conditions", conditions, |f, condition| {
        condition_type(&mut f.at("type"), &condition.r#type, &mut seen);
    });
}

pub fn level_status(f: &mut Faults<'_>, level: &PriorityLevelConfiguration) {
    let mut seen = Unique::default();
    let conditions = &level.status.conditions;
    f.at("status").each("conditions", conditions, |f, condition| {
        condition_type(&mut f.at("type"), &condition.r#type, &mut seen);
    });
}

/// Each condition has a type, and no two the same.
fn condition_type<'a>(f: &mut Faults<'_>, kind: &'a str, seen: &mut Unique<'a>) {
    seen.check(f, kind);
    f.filled(kind);
}
