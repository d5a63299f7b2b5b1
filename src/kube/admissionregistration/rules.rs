//! Match constraints of configurations and policies: rules of groups, versions, resources and operations, and match
//! conditions.

use std::borrow::Borrow;
use std::collections::HashSet;

use keelson_admission::{Checked, Expressions, Mistake};
use keelson_api::admissionregistration_k8s_io::v1::{
    MatchCondition, MatchResources, NamedRuleWithOperations, Rule, RuleWithOperations,
};
use keelson_machinery::field::ErrorList;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::validation::names::path_segment;
use keelson_registry::LongValidation;

use crate::faults::{Faults, Unique};

/// Expressions that take more than a millisecond to compile.
const MANY_EXPRESSIONS: usize = 16;
const STATIC: &str = ".static.k8s.io";
const ALL: &str = "*";
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];
const MOST_CONDITIONS: usize = 64;

/// The validation of what holds so many expressions, for a thread for such work, where they are many.
pub fn long_validation<T>(
    expressions: usize,
    new: &T,
    old: Option<&T>,
    faults: fn(&T, Option<&T>) -> ErrorList,
) -> Option<LongValidation>
where
    T: ToOwned<Owned: Send> + ?Sized + 'static,
{
    if expressions <= MANY_EXPRESSIONS {
        return None;
    }
    let (new, old) = (new.to_owned(), old.map(ToOwned::to_owned));
    Some(Box::new(move || faults(new.borrow(), old.as_ref().map(Borrow::borrow))))
}

fn has_all(list: &[String]) -> bool {
    list.iter().any(|one| one == ALL)
}

/// Something has to be in a list; what stands for everything stands alone.
fn alone(f: &mut Faults<'_>, list: &[String], what: &str) {
    f.required_if(list.is_empty(), "");
    if list.len() > 1 && has_all(list) {
        f.invalid(list, format!("if '*' is present, must not specify other {what}"));
    }
}

/// What is said of a name that ends as those of configurations do which come with the server's files.
pub fn reserved_name(meta: &ObjectMeta) -> Vec<String> {
    let is_reserved = meta.name.ends_with(STATIC);
    let text = format!(
        "metadata.name: names ending with {STATIC:?} are reserved for static manifest-based configurations and cannot be \
         managed via the API"
    );
    is_reserved.then_some(text).into_iter().collect()
}

/// Checks a rule and its operations, which definitions list.
pub fn rule(f: &mut Faults<'_>, rule: &RuleWithOperations) {
    alone(&mut f.at("operations"), &rule.operations, "operations");
    let Rule {
        api_groups,
        api_versions,
        resources: all,
        scope,
    } = &rule.rule;
    alone(&mut f.at("apiGroups"), api_groups, "API groups");
    alone(&mut f.at("apiVersions"), api_versions, "API versions");
    f.each("apiVersions", api_versions, |f, version| {
        f.filled(version);
    });
    resources(&mut f.at("resources"), all);
    f.some("scope", scope.as_ref(), |f, scope| f.one_of(scope, &SCOPES));
}

/// Resources and subresources, none of them said twice by different words.
fn resources(f: &mut Faults<'_>, list: &[String]) {
    f.required_if(list.is_empty(), "");
    let (mut whole, mut parts): (HashSet<&str>, HashSet<&str>) = Default::default();
    // Of several the last one counts.
    let mut ends_with_plain = false;
    for (place, text) in list.iter().enumerate() {
        if !f.index(place).filled(text) {
            continue;
        }
        let Some((resource, sub)) = text.split_once('/') else {
            ends_with_plain = text != ALL;
            continue;
        };
        for (is_there, other) in [
            (whole.contains(resource), format!("{resource}/*")),
            (parts.contains(sub), format!("*/{sub}")),
        ] {
            if is_there {
                let why = format!("if '{other}' is present, must not specify {text}");
                f.index(place).invalid(text, why);
            }
        }
        if sub == ALL {
            whole.insert(resource);
        }
        if resource == ALL {
            parts.insert(sub);
        }
    }
    if list.len() > 1 && list.iter().any(|text| text == "*/*") {
        f.invalid(list, "if '*/*' is present, must not specify other resources");
    }
    let text = "if '*' is present, must not specify other resources without subresources";
    f.invalid_if(has_all(list) && ends_with_plain, list, text);
}

/// Checks what a policy or its binding means.
pub fn match_resources(f: &mut Faults<'_>, matched: &MatchResources) {
    f.selector("namespaceSelector", matched.namespace_selector.as_deref());
    f.selector("objectSelector", matched.object_selector.as_deref());
    f.each("resourceRules", &matched.resource_rules, named);
    f.each("excludeResourceRules", &matched.exclude_resource_rules, named);
}

fn named(f: &mut Faults<'_>, of: &NamedRuleWithOperations) {
    let mut names = Unique::default();
    f.each("resourceNames", &of.resource_names, |f, name| {
        f.texts(name, path_segment(name));
        names.check(f, name);
    });
    rule(f, &of.rule_with_operations);
}

/// Policies that change objects are not about their deletion.
pub fn mutable(f: &mut Faults<'_>, matched: &MatchResources) {
    let rules = matched.resource_rules.iter();
    let mut f = f.at("resourceRules");
    for operation in rules.flat_map(|rule| &rule.rule_with_operations.operations) {
        f.at("operations")
            .one_of(operation, &["*", "CONNECT", "CREATE", "UPDATE"]);
    }
}

/// Tells what is wrong with an expression.
pub fn compiles(f: &mut Faults<'_>, source: &str, checked: Checked) {
    match checked {
        Ok(()) => {}
        Err(Mistake::Invalid(why)) => f.invalid(source, why),
        Err(Mistake::Internal(why)) => f.internal(why),
    }
}

/// Checks match conditions.
pub fn conditions(f: &mut Faults<'_>, conditions: &[MatchCondition], expressions: &Expressions) {
    f.at("matchConditions").max_items(conditions.len(), MOST_CONDITIONS);
    let mut names = Unique::default();
    f.each("matchConditions", conditions, |f, condition| {
        let source = condition.expression.trim();
        if f.at("expression").filled(source) {
            compiles(&mut f.at("expression"), source, expressions.condition(source));
        }
        if f.at("name").filled(&condition.name) {
            f.at("name").qualified(&condition.name);
            names.check(&mut f.at("name"), &condition.name);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::of_object;
    use crate::testing::{lines, read};

    #[test]
    fn rules_say_things_once() {
        for (resources, expected) in [
            (r#""pods","pods/status""#, ""),
            (r#""*","*/status""#, ""),
            ("", "resources: Required value"),
            (r#""""#, "resources[0]: Required value"),
            (
                r#""pods/*","pods/status""#,
                "resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not specify pods/status",
            ),
            (
                r#""*/status","pods/status""#,
                "resources[1]: Invalid value: \"pods/status\": if '*/status' is present, must not specify pods/status",
            ),
            (
                r#""*","pods""#,
                "resources: Invalid value: [\"*\",\"pods\"]: if '*' is present, must not specify other resources without \
                 subresources",
            ),
            (r#""*","pods","*""#, ""),
        ] {
            let text =
                format!(r#"{{"operations":["*"],"apiGroups":[""],"apiVersions":["*"],"resources":[{resources}]}}"#);
            let of: RuleWithOperations = read(&text);
            assert_eq!(lines(&of_object(|f| rule(f, &of))), expected, "{resources}");
        }
        let of: RuleWithOperations = read(r#"{"operations":["*","CREATE"],"apiVersions":["v1",""],"resources":["a"]}"#);
        assert_eq!(
            lines(&of_object(|f| rule(f, &of))),
            "operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify other operations\n\
             apiGroups: Required value\napiVersions[1]: Required value"
        );
    }

    #[test]
    fn conditions_have_names() {
        let conditions: Vec<MatchCondition> = ["a", "a", "", "A_b!"]
            .map(|name| MatchCondition {
                name: name.to_owned(),
                expression: " ".to_owned(),
            })
            .into();
        let expressions = Expressions::of_webhook();
        assert_eq!(of_object(|f| super::conditions(f, &conditions, &expressions)).len(), 7);
        let condition = |expression: &str| MatchCondition {
            name: "a".to_owned(),
            expression: expression.to_owned(),
        };
        let conditions = [condition(" request.dryRun == true"), condition(" 1")];
        let found = of_object(|f| super::conditions(f, &conditions[..1], &expressions));
        assert_eq!(lines(&found), "");
        let found = of_object(|f| super::conditions(f, &conditions[1..], &expressions));
        assert_eq!(
            lines(&found),
            "matchConditions[0].expression: Invalid value: \"1\": must evaluate to bool but got int"
        );
    }
}
