//! `x-kubernetes-validations` of a schema: their texts, what they evaluate to and what they cost at most.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::keywords::{Around, Walk};
use super::place::Place;
use super::{convertible, display};
use crate::field::{BadValue, FieldError, Path};
use crate::structural::decl::Decl;
use crate::structural::rules::{Compiled, compile, weight};
use crate::structural::schema::{JsonSchema, Keywords, Rule, SchemaType};

/// Cost of one rule on all values that a request may have of it.
const MAX_COST: u64 = 10_000_000;
/// Cost of all rules of a schema.
const MAX_TOTAL: u64 = 100_000_000;
/// How many rules are named that are too expensive together.
const MAX_NAMED: usize = 4;
/// What of rules is compiled for one definition, in bytes of their texts, each of which takes one to two microseconds.
/// kube-apiserver compiles as long as it takes; the rules of Gateway API's routes have a tenth of this.
const MAX_TO_COMPILE: usize = 128 << 10;
const RULES: &str = "x-kubernetes-validations";

/// What expressions see of a schema.
#[derive(Clone)]
pub(super) struct Scope {
    seen: Seen,
    /// How many values of the schema there may be at most; `None`: nothing bounds that.
    cardinality: Option<u64>,
}

#[derive(Clone)]
enum Seen {
    /// There are no rules at it or around it.
    Nothing,
    Declared(Arc<Decl>),
    /// It has no type that expressions know.
    Unknown,
}

impl Scope {
    pub fn root(schema: &JsonSchema) -> Scope {
        let seen = match schema.rules().is_empty() {
            true => Seen::Nothing,
            false => Seen::of(schema, true),
        };
        let cardinality = Some(1);
        Scope { seen, cardinality }
    }

    /// What they see of a part of it, which `of` finds in what they see of the whole.
    pub fn below(&self, schema: &JsonSchema, part: &JsonSchema, of: impl Fn(&Decl) -> Option<&Arc<Decl>>) -> Scope {
        let inside = !matches!(self.seen, Seen::Nothing) || !part.rules().is_empty();
        let seen = match &self.seen {
            _ if !inside || !part.has(Keywords::RULES_BELOW) => Seen::Nothing,
            Seen::Unknown => Seen::Unknown,
            Seen::Declared(decl) if let Some(found) = of(decl) => Seen::Declared(found.clone()),
            _ => Seen::of(part, part.has(Keywords::EMBEDDED)),
        };
        let cardinality = self.cardinality.zip(most(schema)).map(|(a, b)| a.saturating_mul(b));
        Scope { seen, cardinality }
    }
}

impl Seen {
    fn of(schema: &JsonSchema, root: bool) -> Seen {
        Decl::of(schema, root).map_or(Seen::Unknown, Seen::Declared)
    }
}

/// How many values of its parts one value of the schema has at most.
fn most(schema: &JsonSchema) -> Option<u64> {
    let limits = schema.limits();
    let count = |n: i64| u64::try_from(n).unwrap_or_default();
    match schema.ty {
        SchemaType::Object if schema.additional_properties.is_some() => limits.max_properties.map(count),
        SchemaType::Array => limits.max_items.map(count),
        _ => Some(1),
    }
}

/// What all rules of a schema cost together.
#[derive(Default)]
pub(super) struct TotalCost {
    total: u64,
    /// Those that take at least a hundredth of what all may take, the most expensive first.
    expensive: Vec<(Path, u64)>,
}

impl TotalCost {
    fn add(&mut self, path: At<'_>, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost >= MAX_TOTAL / 100 {
            let at = self.expensive.iter().take_while(|(_, other)| *other >= cost).count();
            self.expensive.insert(at, (path(), cost));
            self.expensive.truncate(MAX_NAMED);
        }
    }

    /// What is wrong with it; `root` is the path of the schema.
    pub fn errors(self, root: &Path) -> Vec<FieldError> {
        if self.total <= MAX_TOTAL {
            return Vec::new();
        }
        let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let named = self
            .expensive
            .iter()
            .map(|(path, _)| FieldError::forbidden(path, detail));
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let whole = FieldError::forbidden(root, too_expensive(name, self.total, MAX_TOTAL));
        named.chain([whole]).collect()
    }
}

fn too_expensive(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    let advice = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, \
        and strings are declared";
    format!("{name} exceeds budget by factor of {factor} ({advice})")
}

/// Checks what rules say beside their expressions.
pub(super) fn check_texts(walk: &mut Walk<'_>, schema: &JsonSchema, place: &Place<'_>) {
    for (index, rule) in schema.rules().iter().enumerate() {
        let path = || place.at(RULES).index(index);
        text_of_rule(walk, rule, &path);
        if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            walk.push(FieldError::required(&path().child("messageExpression"), detail));
        }
        const REASONS: [&str; 4] = [
            "FieldValueDuplicate",
            "FieldValueForbidden",
            "FieldValueInvalid",
            "FieldValueRequired",
        ];
        if let Some(reason) = rule.reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
            walk.push(FieldError::not_supported(&path().child("reason"), reason, &REASONS));
        }
        field_path(walk, (rule, schema), &path);
    }
}

fn text_of_rule(walk: &mut Walk<'_>, rule: &Rule, path: &dyn Fn() -> Path) {
    let (text, message) = (rule.rule.trim(), rule.message.trim());
    if text.is_empty() {
        walk.push(FieldError::required(&path().child("rule"), "rule is not specified"));
    } else if !rule.message.is_empty() && message.is_empty() {
        let path = path().child("message");
        walk.push(FieldError::invalid(
            &path,
            rule.message.as_str(),
            "must be non-empty if specified",
        ));
    } else if has_line_breaks(message) {
        let path = path().child("message");
        walk.push(FieldError::invalid(
            &path,
            rule.message.as_str(),
            "must not contain line breaks",
        ));
    } else if has_line_breaks(text) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        walk.push(FieldError::required(&path().child("message"), detail));
    }
}

fn field_path(walk: &mut Walk<'_>, (rule, schema): (&Rule, &JsonSchema), path: &dyn Fn() -> Path) {
    let text = rule.field_path.as_str();
    if text.is_empty() {
        return;
    }
    let path = path().child("fieldPath");
    if text.trim().is_empty() {
        walk.push(FieldError::invalid(&path, text, "must be non-empty if specified"));
    }
    if has_line_breaks(text) {
        walk.push(FieldError::invalid(&path, text, "must not contain line breaks"));
    }
    let known = walk.convertible || convertible::obstacle(schema).is_none();
    if known && schema.field_at(text, true).is_err() {
        walk.push(FieldError::invalid(&path, text, "must be a valid path"));
    }
}

fn has_line_breaks(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// Checks the expressions of a schema that has rules.
pub(super) fn check_expressions(walk: &mut Walk<'_>, schema: &JsonSchema, place: &Place<'_>, around: &Around<'_>) {
    let (Some(scope), Some(rules)) = (&around.scope, &schema.rules) else {
        return;
    };
    let Seen::Declared(decl) = &scope.seen else {
        let why = "internal error: failed to construct type information for x-kubernetes-validations rules: \
            unable to convert structural schema to CEL declarations";
        return walk.rule_errors.push(FieldError::internal(&place.at(RULES), why));
    };
    let before = walk.requirements.to_compile.load(Ordering::Relaxed);
    let is_spent = before > MAX_TO_COMPILE && !walk.unchanged;
    if is_spent || walk.rule_errors.is_full() {
        return;
    }
    let together = before.saturating_add(weight(schema, decl));
    walk.requirements.to_compile.store(together, Ordering::Relaxed);
    if together > MAX_TO_COMPILE && !walk.unchanged {
        let detail = format!("the rules of a definition must have at most {MAX_TO_COMPILE} bytes together");
        return walk.rule_errors.push(FieldError::forbidden(&place.at(RULES), detail));
    }
    let cardinality = scope.cardinality.unwrap_or(decl.max_cardinality());
    let compiled: Option<&Vec<Compiled>> = rules.compiled.get_or_make(|| compile(schema, decl));
    for (index, (rule, compiled)) in rules.list.iter().zip(compiled.into_iter().flatten()).enumerate() {
        if walk.rule_errors.is_full() {
            return;
        }
        let path = || place.at(RULES).index(index);
        expression(walk, (rule, compiled), cardinality, &path);
        message(walk, (rule, compiled), &path);
        old_value(walk, (rule, compiled), &path, around);
    }
}

/// Where a rule stands; made where something is said of it.
type At<'a> = &'a dyn Fn() -> Path;

fn expression(walk: &mut Walk<'_>, (rule, compiled): (&Rule, &Compiled), cardinality: u64, path: At<'_>) {
    let path = || path().child("rule");
    let cost = compiled.max_cost.saturating_mul(cardinality);
    if cost > MAX_COST && !walk.unchanged {
        let detail = too_expensive("estimated rule cost", cost, MAX_COST);
        walk.rule_errors.push(FieldError::forbidden(&path(), detail));
    }
    walk.cost.add(&path, cost);
    if let Some(error) = &compiled.error {
        let shown = BadValue::json(display::rule(rule));
        walk.rule_errors
            .push(FieldError::invalid(&path(), shown, error.to_string()));
    }
}

fn message(walk: &mut Walk<'_>, (rule, compiled): (&Rule, &Compiled), path: At<'_>) {
    let path = || path().child("messageExpression");
    if let Some(error) = &compiled.message_error {
        let shown = BadValue::json(display::rule(rule));
        walk.rule_errors
            .push(FieldError::invalid(&path(), shown, error.to_string()));
    } else if compiled.message.is_some() {
        let cost = compiled.message_max_cost;
        if cost > MAX_COST && !walk.unchanged {
            let detail = too_expensive("estimated messageExpression cost", cost, MAX_COST);
            walk.rule_errors.push(FieldError::forbidden(&path(), detail));
        }
        walk.cost.add(&path, cost);
    }
}

fn old_value(walk: &mut Walk<'_>, (rule, compiled): (&Rule, &Compiled), path: At<'_>, around: &Around<'_>) {
    if compiled.transition {
        if let Some(place) = around.uncorrelated {
            let within = place.path();
            let detail = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
            let path = path().child("rule");
            walk.rule_errors
                .push(FieldError::invalid(&path, rule.rule.as_str(), detail));
        }
    } else if let Some(optional) = rule.optional_old_self {
        let detail = "may not be set if oldSelf is not used in rule";
        let path = path().child("optionalOldSelf");
        walk.rule_errors.push(FieldError::invalid(&path, optional, detail));
    }
}
