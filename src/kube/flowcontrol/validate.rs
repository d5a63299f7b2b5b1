//! Faults of flow schemas and priority levels.

use std::collections::HashSet;

use keelson_access::flowcontrol::dealer::has_enough_bits;
use keelson_access::flowcontrol::spec::{ANY, CATCH_ALL, Discipline, EXEMPT, LevelSpec, Schema};
use keelson_api::flowcontrol_apiserver_k8s_io::v1::{
    ExemptPriorityLevelConfiguration, FlowSchema, LimitResponse, LimitedPriorityLevelConfiguration,
    NonResourcePolicyRule, PolicyRulesWithSubjects, PriorityLevelConfiguration, QueuingConfiguration,
    ResourcePolicyRule, Subject,
};
use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path, text};
use keelson_machinery::validation::names;

use super::{go, reader};

/// Schemas are asked up to this precedence.
const MAX_PRECEDENCE: i32 = 10_000;
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

pub fn schema(schema: &FlowSchema) -> ErrorList {
    let (spec, path) = (&schema.spec, Path::new("spec"));
    let mut errors = ErrorList::new();
    let precedence = spec.matching_precedence;
    let invalid = |why: &str| FieldError::invalid(&path.child("matchingPrecedence"), precedence, why);
    match precedence {
        ..=0 => errors.push(invalid("must be a positive value")),
        1 if schema.metadata.name != EXEMPT => {
            errors.push(invalid("only the schema named 'exempt' may have matchingPrecedence 1"));
        }
        _ if precedence > MAX_PRECEDENCE => errors.push(invalid("must not be greater than 10000")),
        _ => {}
    }
    let level = &spec.priority_level_configuration.name;
    let level_path = path.child("priorityLevelConfiguration").child("name");
    match level.is_empty() {
        true => errors.push(FieldError::required(&level_path, "must reference a priority level")),
        false => errors.extend(faults(names::dns_subdomain(level), &level_path, level)),
    }
    if let Some(method) = &spec.distinguisher_method
        && !matches!(method.r#type.as_str(), "ByUser" | "ByNamespace")
    {
        let shown = BadValue::json(serde_json::json!({"Type": method.r#type}).to_string());
        let path = path.child("distinguisherMethod").child("type");
        errors.push(FieldError::not_supported(&path, shown, &["ByNamespace", "ByUser"]));
    }
    for (place, one) in spec.rules.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        errors.extend(rule(one, &path.child("rules").index(place)));
    }
    let fixed = Schema::mandatory()
        .into_iter()
        .find(|fixed| fixed.name == schema.metadata.name);
    if let Some(fixed) = fixed {
        let given = Schema {
            uid: String::new(),
            ..reader::schema(schema)
        };
        if given != fixed {
            let why = format!("spec of '{}' must equal the fixed value", fixed.name);
            errors.push(FieldError::invalid(&path, go::schema(spec), why));
        }
    }
    errors
}

/// Each fault of a name as an error of its field.
fn faults(faults: Vec<String>, path: &Path, value: &str) -> Vec<FieldError> {
    let error = |fault| FieldError::invalid(path, value, fault);
    faults.into_iter().map(error).collect()
}

fn rule(rule: &PolicyRulesWithSubjects, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let subjects = path.child("subjects");
    if rule.subjects.is_empty() {
        errors.push(FieldError::required(
            &subjects,
            "subjects must contain at least one value",
        ));
    }
    for (place, one) in rule.subjects.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        errors.extend(subject(one, &subjects.index(place)));
    }
    if rule.resource_rules.is_empty() && rule.non_resource_rules.is_empty() {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(path, why));
    }
    for (place, one) in rule.resource_rules.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        errors.extend(resource_rule(one, &path.child("resourceRules").index(place)));
    }
    for (place, one) in rule.non_resource_rules.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        errors.extend(path_rule(one, &path.child("nonResourceRules").index(place)));
    }
    errors
}

fn subject(subject: &Subject, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut kinds = [
        ("ServiceAccount", "serviceAccount", subject.service_account.is_some()),
        ("User", "user", subject.user.is_some()),
        ("Group", "group", subject.group.is_some()),
    ];
    // What it is comes first.
    kinds.sort_by_key(|(kind, _, _)| *kind != subject.kind);
    if !kinds.iter().any(|(kind, _, _)| *kind == subject.kind) {
        let known = ["Group", "ServiceAccount", "User"];
        errors.push(FieldError::not_supported(
            &path.child("kind"),
            subject.kind.as_str(),
            &known,
        ));
        return errors;
    }
    for (kind, field, given) in kinds {
        let path = path.child(field);
        match (subject.kind == kind, given) {
            (true, false) => {
                let why = format!("{field} is required when subject kind is '{kind}'");
                errors.push(FieldError::required(&path, why));
            }
            (true, true) => errors.extend(named(subject, &path)),
            (false, true) => {
                let why = format!("{field} is forbidden when subject kind is not '{kind}'");
                errors.push(FieldError::forbidden(&path, why));
            }
            (false, false) => {}
        }
    }
    errors
}

/// Names of the subject that its kind says.
fn named(subject: &Subject, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let path_of = |field: &'static str| path.child(field);
    let simple = match subject.kind.as_str() {
        "User" => subject.user.as_ref().map(|user| &user.name),
        "Group" => subject.group.as_ref().map(|group| &group.name),
        _ => None,
    };
    if simple.is_some_and(String::is_empty) {
        errors.push(FieldError::required(&path_of("name"), ""));
    }
    let Some(account) = subject.service_account.as_ref().filter(|_| simple.is_none()) else {
        return errors;
    };
    match account.namespace.as_str() {
        "" => {
            let why = "must specify namespace for service account";
            errors.push(FieldError::required(&path_of("namespace"), why));
        }
        namespace => errors.extend(faults(names::dns_label(namespace), &path_of("namespace"), namespace)),
    }
    match account.name.as_str() {
        "" => errors.push(FieldError::required(&path_of("name"), "")),
        ANY => {}
        name => errors.extend(faults(names::dns_subdomain(name), &path_of("name"), name)),
    }
    errors
}

/// A list that has something, and nothing beside a star.
fn listed(list: &[String], path: &Path, missing: &str, others: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    if list.is_empty() {
        errors.push(FieldError::required(path, missing));
    } else if list.len() > 1 && list.iter().any(|one| one == ANY) {
        let why = format!("if '*' is present, must not specify other {others}");
        errors.push(FieldError::invalid(path, shown(list), why));
    }
    errors
}

fn shown(list: &[String]) -> BadValue {
    BadValue::json(text::json_list(list.iter().map(String::as_str)))
}

fn verbs(verbs: &[String], path: &Path) -> ErrorList {
    let mut errors = listed(verbs, path, "verbs must contain at least one value", "verbs");
    let is_known = |verb: &String| VERBS.contains(&verb.as_str());
    if errors.is_empty() && verbs != [ANY] && !verbs.iter().all(is_known) {
        errors.push(FieldError::not_supported(path, shown(verbs), &VERBS));
    }
    errors
}

fn resource_rule(rule: &ResourcePolicyRule, path: &Path) -> ErrorList {
    let mut errors = verbs(&rule.verbs, &path.child("verbs"));
    let missing = "resource rules must supply at least one api group";
    errors.extend(listed(
        &rule.api_groups,
        &path.child("apiGroups"),
        missing,
        "api groups",
    ));
    let missing = "resource rules must supply at least one resource";
    errors.extend(listed(&rule.resources, &path.child("resources"), missing, "resources"));
    let (namespaces, path) = (&rule.namespaces, path.child("namespaces"));
    if namespaces.is_empty() && rule.cluster_scope {
        return errors;
    }
    let missing = "resource rules that are not cluster scoped must supply at least one namespace";
    let unfit = listed(namespaces, &path, missing, "namespaces");
    let is_fit = unfit.is_empty();
    errors.extend(unfit);
    for (place, namespace) in namespaces.iter().enumerate().filter(|(_, n)| is_fit && *n != ANY) {
        if errors.is_full() {
            break;
        }
        for fault in names::dns_label(namespace) {
            let why = format!("each member of this list must be '*' or a DNS-1123 label; {fault}");
            errors.push(FieldError::invalid(&path.index(place), namespace.as_str(), why));
        }
    }
    errors
}

fn path_rule(rule: &NonResourcePolicyRule, path: &Path) -> ErrorList {
    let mut errors = verbs(&rule.verbs, &path.child("verbs"));
    let (urls, path) = (&rule.non_resource_urls, path.child("nonResourceURLs"));
    let unfit = listed(
        urls,
        &path,
        "nonResourceURLs must contain at least one value",
        "non-resource URLs",
    );
    let is_fit = unfit.is_empty();
    errors.extend(unfit);
    for (place, url) in urls.iter().enumerate().filter(|(_, url)| is_fit && *url != ANY) {
        if errors.is_full() {
            break;
        }
        if let Some(why) = unfit_path(url) {
            errors.push(FieldError::invalid(&path.index(place), url.as_str(), why));
        }
    }
    errors
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

pub fn level(level: &PriorityLevelConfiguration) -> ErrorList {
    let (name, spec, path) = (level.metadata.name.as_str(), &level.spec, Path::new("spec"));
    let mut errors = ErrorList::new();
    let type_path = path.child("type");
    if (name == EXEMPT) != (spec.r#type == "Exempt") && matches!(spec.r#type.as_str(), "Exempt" | "Limited") {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid(&type_path, spec.r#type.as_str(), why));
    }
    match (spec.r#type.as_str(), &spec.exempt, spec.limited.as_deref()) {
        ("Exempt", given, limited) => {
            if let Some(given) = given {
                errors.extend(exempt(given, &path.child("exempt")));
            }
            if limited.is_some() {
                let why = "must be nil if the type is not Limited";
                errors.push(FieldError::forbidden(&path.child("limited"), why));
            }
        }
        ("Limited", exempt, given) => {
            if exempt.is_some() {
                errors.push(FieldError::forbidden(
                    &path.child("exempt"),
                    "must be nil if the type is Limited",
                ));
            }
            match given {
                Some(given) => errors.extend(limited(given, &path.child("limited"))),
                None => {
                    let why = "must not be empty when type is Limited";
                    errors.push(FieldError::required(&path.child("limited"), why));
                }
            }
        }
        ("", _, _) => errors.push(FieldError::required(&type_path, "")),
        (other, _, _) => errors.push(FieldError::not_supported(&type_path, other, &["Exempt", "Limited"])),
    }
    errors.extend(fixed_level(level));
    errors
}

/// What the mandatory levels must be.
fn fixed_level(level: &PriorityLevelConfiguration) -> Option<FieldError> {
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
        _ => return None,
    };
    let shown = || go::level(&level.spec);
    (!fits).then(|| {
        FieldError::invalid(
            &Path::new("spec"),
            shown(),
            format!("{what} must equal the fixed value"),
        )
    })
}

fn shares(number: Option<i32>, path: &Path) -> Option<FieldError> {
    let negative = number.filter(|number| *number < 0)?;
    let path = path.child("nominalConcurrencyShares");
    Some(FieldError::invalid(&path, negative, "must be a non-negative integer"))
}

fn lendable(percent: Option<i32>, path: &Path) -> Option<FieldError> {
    let wrong = percent.filter(|percent| !(0..=100).contains(percent))?;
    let path = path.child("lendablePercent");
    Some(FieldError::invalid(
        &path,
        wrong,
        "must be between 0 and 100, inclusive",
    ))
}

fn exempt(exempt: &ExemptPriorityLevelConfiguration, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(shares(exempt.nominal_concurrency_shares, path));
    errors.extend(lendable(exempt.lendable_percent, path));
    errors
}

fn limited(limited: &LimitedPriorityLevelConfiguration, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(shares(limited.nominal_concurrency_shares, path));
    errors.extend(response(&limited.limit_response, &path.child("limitResponse")));
    errors.extend(lendable(limited.lendable_percent, path));
    if let Some(percent) = limited.borrowing_limit_percent.filter(|percent| *percent < 0) {
        let why = "if specified, must be a non-negative integer";
        errors.push(FieldError::invalid(&path.child("borrowingLimitPercent"), percent, why));
    }
    errors
}

fn response(response: &LimitResponse, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (kind, queuing_path) = (path.child("type"), path.child("queuing"));
    match (response.r#type.as_str(), response.queuing.as_deref()) {
        ("Queue", Some(given)) => errors.extend(queuing(given, &queuing_path)),
        ("Queue", None) => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            errors.push(FieldError::required(&queuing_path, why));
        }
        ("Reject", Some(_)) => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            errors.push(FieldError::forbidden(&queuing_path, why));
        }
        ("Reject", None) => {}
        ("", _) => errors.push(FieldError::required(&kind, "")),
        (other, _) => errors.push(FieldError::not_supported(&kind, other, &["Queue", "Reject"])),
    }
    errors
}

fn queuing(queuing: &QueuingConfiguration, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (queues, hand, length) = (queuing.queues, queuing.hand_size, queuing.queue_length_limit);
    let positive = "must be positive";
    if length <= 0 {
        errors.push(FieldError::invalid(&path.child("queueLengthLimit"), length, positive));
    }
    if queues <= 0 {
        errors.push(FieldError::invalid(&path.child("queues"), queues, positive));
    } else if queues > MAX_QUEUES {
        let why = format!("must not be greater than {MAX_QUEUES}");
        errors.push(FieldError::invalid(&path.child("queues"), queues, why));
    }
    let unfit = |why: String| FieldError::invalid(&path.child("handSize"), hand, why);
    let unsigned = |number: i32| u32::try_from(number).unwrap_or(0);
    if hand <= 0 {
        errors.push(unfit(positive.to_owned()));
    } else if hand > queues {
        errors.push(unfit(format!("should not be greater than queues ({queues})")));
    } else if !has_enough_bits(unsigned(queues), unsigned(hand)) {
        errors.push(unfit(format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than 60"
        )));
    }
    errors
}

pub fn schema_status(schema: &FlowSchema) -> ErrorList {
    conditions(
        schema
            .status
            .conditions
            .iter()
            .map(|condition| condition.r#type.as_str()),
    )
}

pub fn level_status(level: &PriorityLevelConfiguration) -> ErrorList {
    conditions(
        level
            .status
            .conditions
            .iter()
            .map(|condition| condition.r#type.as_str()),
    )
}

/// Each condition has a type, and no two the same.
fn conditions<'a>(types: impl Iterator<Item = &'a str>) -> ErrorList {
    let (mut errors, mut seen) = (ErrorList::new(), HashSet::new());
    for (place, kind) in types.enumerate() {
        let path = Path::new("status").child("conditions").index(place).child("type");
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path, kind));
        }
        if kind.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
    }
    errors
}
