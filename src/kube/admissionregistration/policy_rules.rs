//! Rules of policies: their parameters, variables, validations and mutations; and what their bindings name.

use keelson_admission::Expressions;
use keelson_api::admissionregistration_k8s_io::v1::{
    AuditAnnotation, MatchCondition, MatchResources, MutatingAdmissionPolicySpec, Mutation, ParamKind, ParamRef,
    ValidatingAdmissionPolicySpec, Validation, Variable,
};
use keelson_machinery::cel;
use keelson_machinery::validation::names;

use super::rules;
use crate::faults::{Faults, Unique};
use crate::typed::{same, same_list};

const MOST_ANNOTATIONS: usize = 20;
/// Longest expression of an annotation, in bytes.
const ANNOTATION_MAX: usize = 5 * 1024;
const NOT_BOTH: &str = "name and selector are mutually exclusive";
const NOTHING: &str = "validations or auditAnnotations must contain at least one item";
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// Checks a validating policy of a name. What `old` has is let through.
pub fn validating(
    f: &mut Faults<'_>,
    name: &str,
    spec: &ValidatingAdmissionPolicySpec,
    old: Option<&ValidatingAdmissionPolicySpec>,
) {
    parameters(f, spec.param_kind.as_deref());
    constraints(f, spec.match_constraints.as_deref());
    let were = old.map(|old| (old.param_kind.as_deref(), old.match_conditions.as_slice()));
    let composed = (!spec.variables.is_empty()).then_some(spec.variables.as_slice());
    let expressions = Expressions::new(spec.param_kind.is_some(), composed);
    conditions(
        f,
        (spec.param_kind.as_deref(), &spec.match_conditions),
        were,
        &expressions,
    );
    variables(f, &spec.variables, &expressions);
    if spec.validations.is_empty() && spec.audit_annotations.is_empty() {
        f.at("validations").required(NOTHING);
        f.at("auditAnnotations").required(NOTHING);
        return;
    }
    f.each("validations", &spec.validations, |f, one| {
        validation(f, one, &expressions);
    });
    let annotations = &spec.audit_annotations;
    if annotations.len() > MOST_ANNOTATIONS {
        let value = keelson_machinery::validation::list_value(annotations.iter().map(|a| a as _));
        let text = format!("must not have more than {MOST_ANNOTATIONS} auditAnnotations");
        f.at("auditAnnotations").invalid(value, text);
    }
    let mut keys = Unique::default();
    f.each("auditAnnotations", annotations, |f, one| {
        annotation(f, name, one, &expressions);
        keys.check(&mut f.at("key"), &one.key);
    });
}

/// Checks a mutating policy. What `old` has is let through.
pub fn mutating(f: &mut Faults<'_>, spec: &MutatingAdmissionPolicySpec, old: Option<&MutatingAdmissionPolicySpec>) {
    parameters(f, spec.param_kind.as_deref());
    constraints(f, spec.match_constraints.as_deref());
    if let Some(matched) = spec.match_constraints.as_deref() {
        rules::mutable(&mut f.at("matchConstraints"), matched);
    }
    let were = old.map(|old| (old.param_kind.as_deref(), old.match_conditions.as_slice()));
    let expressions = Expressions::new(spec.param_kind.is_some(), Some(&spec.variables));
    conditions(
        f,
        (spec.param_kind.as_deref(), &spec.match_conditions),
        were,
        &expressions,
    );
    variables(f, &spec.variables, &expressions);
    f.at("mutations")
        .required_if(spec.mutations.is_empty(), "mutations must contain at least one item");
    f.each("mutations", &spec.mutations, |f, one| mutation(f, one, &expressions));
    f.at("reinvocationPolicy").filled(&spec.reinvocation_policy);
}

/// `[group/]version` and a kind.
fn parameters(f: &mut Faults<'_>, kind: Option<&ParamKind>) {
    let Some(kind) = kind else { return };
    let mut f = f.at("paramKind");
    api_version(&mut f.at("apiVersion"), &kind.api_version);
    if f.at("kind").filled(&kind.kind) {
        let texts = names::dns_1035_label(&kind.kind.to_lowercase());
        if !texts.is_empty() {
            let text = format!("may have mixed case, but should otherwise match: {}", texts.join(","));
            f.at("kind").invalid(&kind.kind, text);
        }
    }
}

fn api_version(f: &mut Faults<'_>, text: &str) {
    if !f.filled(text) {
        return;
    }
    let (group, version) = match text.split_once('/') {
        _ if text == "/" => ("", ""),
        Some((_, rest)) if rest.contains('/') => {
            return f.invalid(text, format!("unexpected GroupVersion string: {text}"));
        }
        Some(parts) => parts,
        None => ("", text),
    };
    let of_group = names::dns_subdomain(group);
    if !group.is_empty() && !of_group.is_empty() {
        f.invalid(group, of_group.join(","));
    }
    let of_version = names::dns_1035_label(version);
    if version.is_empty() {
        f.invalid(text, "version must be specified");
    } else if !of_version.is_empty() {
        f.invalid(version, of_version.join(","));
    }
}

fn constraints(f: &mut Faults<'_>, matched: Option<&MatchResources>) {
    let Some(matched) = matched else {
        return f.at("matchConstraints").required("");
    };
    let mut f = f.at("matchConstraints");
    rules::match_resources(&mut f, matched);
    f.at("resourceRules").required_if(matched.resource_rules.is_empty(), "");
}

/// A kind of parameters, and conditions that may name them.
type Conditions<'a> = (Option<&'a ParamKind>, &'a [MatchCondition]);

fn conditions(f: &mut Faults<'_>, are: Conditions<'_>, were: Option<Conditions<'_>>, expressions: &Expressions) {
    let is_same = were.is_some_and(|were| same(are.0, were.0) && same_list(are.1, were.1));
    if !is_same {
        rules::conditions(f, are.1, expressions);
    }
}

fn variables(f: &mut Faults<'_>, variables: &[Variable], expressions: &Expressions) {
    let mut number = 0;
    f.each("variables", variables, |f, one| {
        variable(f, one);
        if !one.expression.trim().is_empty() {
            rules::compiles(&mut f.at("expression"), &one.expression, expressions.variable(number));
        }
        number += 1;
    });
}

fn variable(f: &mut Faults<'_>, variable: &Variable) {
    let name = variable.name.as_str();
    if name.trim().is_empty() {
        f.at("name").required("name is not specified");
    } else if !is_identifier(name) {
        f.at("name").invalid(name, "must be a valid CEL identifier");
    }
    f.at("expression")
        .required_if(variable.expression.trim().is_empty(), "expression is not specified");
}

fn is_identifier(name: &str) -> bool {
    let fits = |b: u8| b == b'_' || b.is_ascii_alphanumeric();
    let is_word = name.bytes().all(fits) && !name.bytes().next().is_none_or(|b| b.is_ascii_digit());
    is_word && !cel::is_reserved(name)
}

fn validation(f: &mut Faults<'_>, validation: &Validation, expressions: &Expressions) {
    const EMPTY: &str = "must be non-empty if specified";
    let source = validation.expression.as_str();
    if source.trim().is_empty() {
        f.at("expression").required("expression is not specified");
    } else {
        rules::compiles(&mut f.at("expression"), source, expressions.validation(source));
    }
    let said = validation.message_expression.as_str();
    if !said.trim().is_empty() {
        rules::compiles(&mut f.at("messageExpression"), said, expressions.message(said));
    } else if !said.is_empty() {
        f.at("messageExpression").invalid(said, EMPTY);
    }
    let message = validation.message.as_str();
    if !message.is_empty() && message.trim().is_empty() {
        f.at("message").invalid(message, EMPTY);
    } else if message.trim().contains(['\n', '\r']) {
        f.at("message").invalid(message, "must not contain line breaks");
    }
    if let Some(reason) = validation.reason.as_deref() {
        f.at("reason").one_of(reason, &REASONS);
    }
}

/// What is written to the audit log below the name of the policy.
fn annotation(f: &mut Faults<'_>, name: &str, annotation: &AuditAnnotation, expressions: &Expressions) {
    match name {
        "" => f
            .at("key")
            .invalid(&annotation.key, "requires metadata.name be non-empty"),
        name => f.at("key").qualified(&format!("{name}/{}", annotation.key)),
    }
    let source = annotation.value_expression.trim();
    match source.len() {
        0 => f.at("valueExpression").required("valueExpression is not specified"),
        length if length > ANNOTATION_MAX => f
            .at("valueExpression")
            .required(format!("must not exceed {ANNOTATION_MAX} bytes in length")),
        _ => rules::compiles(
            &mut f.at("valueExpression"),
            &annotation.value_expression,
            expressions.annotation(source),
        ),
    }
}

fn mutation(f: &mut Faults<'_>, mutation: &Mutation, expressions: &Expressions) {
    let apply = mutation
        .apply_configuration
        .as_ref()
        .map(|apply| apply.expression.as_str());
    let patch = mutation.json_patch.as_ref().map(|patch| patch.expression.as_str());
    let mut all = [
        ("ApplyConfiguration", "applyConfiguration", apply),
        ("JSONPatch", "jsonPatch", patch),
    ];
    let kind = mutation.patch_type.as_str();
    // What the type asks for is looked at first.
    all.sort_by_key(|(own, ..)| *own != kind);
    if !f.at("patchType").filled(kind) || !all.iter().any(|(known, ..)| *known == kind) {
        return;
    }
    for (own, field, expression) in all {
        match expression {
            None if own == kind => f
                .at(field)
                .required(format!("must be specified when patchType is {kind}")),
            Some(expression) if own == kind => {
                let source = expression.trim();
                if f.at(field).at("expression").filled(source) {
                    let checked = match own == "ApplyConfiguration" {
                        true => expressions.apply_configuration(source),
                        false => expressions.json_patch(source),
                    };
                    rules::compiles(&mut f.at(field).at("expression"), source, checked);
                }
            }
            Some(_) => f.at(field).invalid(
                format!("{{{field}}}"),
                format!("must not be specified when patchType is {kind}"),
            ),
            None => {}
        }
    }
}

/// Checks what a binding names.
pub fn binding(f: &mut Faults<'_>, (policy, parameters): (&str, Option<&ParamRef>), matched: Option<&MatchResources>) {
    f.at("policyName").filled_subdomain(policy);
    f.some("paramRef", parameters, reference);
    f.some("matchResources", matched, rules::match_resources);
}

/// Parameters by their name, or all that a selector selects.
fn reference(f: &mut Faults<'_>, reference: &ParamRef) {
    let (name, selector) = (reference.name.as_str(), reference.selector.as_deref());
    if !name.is_empty() {
        f.at("name").texts(name, names::path_segment(name));
        f.at("name").forbidden_if(selector.is_some(), NOT_BOTH);
    }
    f.selector("selector", selector);
    match (name.is_empty(), selector.is_some()) {
        (false, true) => f.at("selector").forbidden(NOT_BOTH),
        (true, false) => f.required("one of name or selector must be specified"),
        _ => {}
    }
    let action = reference.parameter_not_found_action.as_deref().unwrap_or_default();
    f.at("parameterNotFoundAction")
        .one_of_filled(action, &["Deny", "Allow"]);
}

/// Checks what a validating binding does with a refusal; definitions list what it may do.
pub fn actions(f: &mut Faults<'_>, actions: &[String]) {
    let mut seen = Unique::default();
    f.each("validationActions", actions, |f, action| {
        seen.check(f, action);
    });
    let mut f = f.at("validationActions");
    let text = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                response and headers serves no purpose)";
    f.invalid_if(seen.has("Deny") && seen.has("Warn"), actions, text);
    f.required_if(actions.is_empty(), "at least one validation action is required");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::of_object;
    use crate::testing::{lines, read};

    const MATCH: &str = r#""matchConstraints":{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]}"#;

    fn fields(check: impl FnOnce(&mut Faults<'_>)) -> String {
        let found = lines(&of_object(check));
        let fields: Vec<&str> = found.lines().filter_map(|line| line.split(": ").next()).collect();
        fields.join(" ")
    }

    #[test]
    fn validating_policies_validate_something() {
        for (spec, expected) in [
            (r#""validations":[{"expression":"true"}]"#, ""),
            ("", "validations auditAnnotations"),
            (
                r#""validations":[{"expression":" ","message":" ","messageExpression":" ","reason":"x"}]"#,
                "validations[0].expression validations[0].messageExpression validations[0].message validations[0].reason",
            ),
            (
                r#""validations":[{"expression":"1","messageExpression":"1"}]"#,
                "validations[0].expression validations[0].messageExpression",
            ),
            (
                r#""auditAnnotations":[{"key":"a","valueExpression":"'b'"},{"key":"a"}]"#,
                "auditAnnotations[1].valueExpression auditAnnotations[1].key",
            ),
            (
                r#""validations":[{"expression":"true"}],"variables":[{"name":"in","expression":"1"},{}]"#,
                "variables[0].name variables[1].name variables[1].expression",
            ),
            (
                r#""validations":[{"expression":"true"}],"paramKind":{"apiVersion":"a/b/c","kind":"a b"}"#,
                "paramKind.apiVersion paramKind.kind",
            ),
        ] {
            let comma = if spec.is_empty() { "" } else { "," };
            let of: ValidatingAdmissionPolicySpec = read(&format!("{{{MATCH}{comma}{spec}}}"));
            assert_eq!(fields(|f| validating(f, "p", &of, None)), expected, "{spec}");
        }
        let of: ValidatingAdmissionPolicySpec = read(r#"{"validations":[{"expression":"true"}]}"#);
        assert_eq!(fields(|f| validating(f, "p", &of, None)), "matchConstraints");
    }

    #[test]
    fn mutations_are_of_one_kind() {
        for (mutation, expected) in [
            (
                r#"{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: 'remove', path: '/a'}]"}}"#,
                "",
            ),
            (
                r#"{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"1"}}"#,
                "mutations[0].applyConfiguration.expression",
            ),
            (r#"{"patchType":"JSONPatch"}"#, "mutations[0].jsonPatch"),
            (
                r#"{"patchType":"ApplyConfiguration","applyConfiguration":{},"jsonPatch":{"expression":"[]"}}"#,
                "mutations[0].applyConfiguration.expression mutations[0].jsonPatch",
            ),
            ("{}", "mutations[0].patchType"),
        ] {
            let text = format!(r#"{{{MATCH},"reinvocationPolicy":"Never","mutations":[{mutation}]}}"#);
            let of: MutatingAdmissionPolicySpec = read(&text);
            assert_eq!(fields(|f| mutating(f, &of, None)), expected, "{mutation}");
        }
    }

    #[test]
    fn bindings_name_parameters_one_way() {
        for (reference, expected) in [
            (r#"{"name":"a","parameterNotFoundAction":"Deny"}"#, ""),
            (r#"{"selector":{},"parameterNotFoundAction":"Allow"}"#, ""),
            (r#"{"parameterNotFoundAction":"Allow"}"#, "paramRef"),
            (
                r#"{"name":"a","selector":{}}"#,
                "paramRef.name paramRef.selector paramRef.parameterNotFoundAction",
            ),
        ] {
            let of: ParamRef = read(reference);
            assert_eq!(fields(|f| binding(f, ("p", Some(&of)), None)), expected, "{reference}");
        }
        let both = ["Deny".to_owned(), "Warn".to_owned(), "Warn".to_owned()];
        assert_eq!(fields(|f| actions(f, &both)), "validationActions[2] validationActions");
        assert_eq!(fields(|f| actions(f, &[])), "validationActions");
    }
}
