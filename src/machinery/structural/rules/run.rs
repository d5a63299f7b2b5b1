//! Rules that are evaluated on an object, within a budget for each call and for all of them.

use std::rc::Rc;

use super::values::value;
use super::{Compiled, compile};
use crate::cel::{self, CALL_LIMIT, Fault, Value};
use crate::field::{BadValue, ErrorList, FieldError, Path};
use crate::structural::correlate::{self, OldItems, unchanged};
use crate::structural::decl::Decl;
use crate::structural::schema::{JsonSchema, Keywords, Rule, Rules, SchemaType};
use crate::structural::spot::Spot;
use crate::structural::view::{View, item};

/// Bytes that the text of a `messageExpression` may have.
const MAX_MESSAGE: usize = 5 * 1024;
const UNDECLARED: &str = "rule compiler initialization error: failed to convert to declType for CEL validation rules";
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What a rule that is broken says where nothing more can be evaluated.
struct Ended(String);

/// What the rules of a value and of all below it say. Errors of what did not change become warnings.
pub(in crate::structural) struct Outcome {
    pub errors: ErrorList,
    pub warnings: Vec<String>,
    /// What is left of the budget; `None`: more was needed, or a rule took too much by itself.
    pub left: Option<u64>,
}

/// How rules are evaluated.
pub(in crate::structural) struct Evaluation<'a> {
    /// The path of the value.
    pub root: &'a Path,
    /// It has a type and names, whether the schema says so or not.
    pub is_resource: bool,
    /// Cost that all rules may take together.
    pub budget: u64,
    /// What did not change is not objected to.
    pub ratchets: bool,
}

/// Evaluates the rules of a value against the one that it takes the place of.
pub(in crate::structural) fn check(
    schema: &JsonSchema,
    new: &View<'_>,
    old: Option<&View<'_>>,
    evaluation: &Evaluation<'_>,
) -> Outcome {
    let mut run = Run {
        root: evaluation.root,
        errors: ErrorList::new(),
        warnings: Vec::new(),
        budget: evaluation.budget,
        ended: false,
    };
    if schema.has(Keywords::RULES_BELOW) {
        let current = old.filter(|_| evaluation.ratchets).map(|old| Pair {
            schema,
            new: new.clone(),
            old: old.clone(),
        });
        let known = Known {
            current: current.as_ref(),
            parent: None,
        };
        let old = old.filter(|old| !old.is_null());
        run.value((schema, evaluation.is_resource), new, old, known, &Spot::Here);
    }
    Outcome {
        left: (!run.ended).then_some(run.budget),
        errors: run.errors,
        warnings: run.warnings,
    }
}

/// A value and the one that was known as the same before.
struct Pair<'s, 'a> {
    schema: &'s JsonSchema,
    new: View<'a>,
    old: View<'a>,
}

impl Pair<'_, '_> {
    fn is_unchanged(&self) -> bool {
        unchanged(self.schema, &self.new, &self.old)
    }
}

/// What is known of the old value.
#[derive(Clone, Copy)]
struct Known<'p, 's, 'a> {
    current: Option<&'p Pair<'s, 'a>>,
    /// The nearest value around this one of which something is known.
    parent: Option<&'p Pair<'s, 'a>>,
}

impl<'s, 'a> Known<'_, 's, 'a> {
    /// Whether this value, or else the one around it, is what it was.
    fn is_unchanged(&self) -> bool {
        let pair = self.current.or(self.parent);
        pair.is_some_and(Pair::is_unchanged)
    }

    /// The pair of a member.
    fn member(&self, name: &str, new: &View<'a>) -> Option<Pair<'s, 'a>> {
        let current = self.current?;
        if self.parent.is_none() && matches!(name, "apiVersion" | "kind") {
            return None;
        }
        let schema = current.schema;
        let own = schema.property(name).or_else(|| schema.additional())?;
        let old = correlate::member(schema, Some(&current.old), name)?;
        Some(Pair {
            schema: own,
            new: new.clone(),
            old,
        })
    }
}

/// The rules of a schema, compiled now if they are not yet. `None`: there is no room for them.
fn compiled<'a>(schema: &'a JsonSchema, rules: &'a Rules, root: bool) -> Option<&'a Vec<Compiled>> {
    rules.compiled.get_or_make(|| {
        let decl = Decl::of(schema, root);
        decl.map(|decl| compile(schema, &decl)).unwrap_or_default()
    })
}

/// Compiles all rules that validation may need.
pub(in crate::structural) fn compile_all(schema: &JsonSchema, root: bool) {
    if !schema.has(Keywords::RULES_BELOW) {
        return;
    }
    if let Some(rules) = &schema.rules {
        compiled(schema, rules, root);
    }
    for part in schema.parts() {
        compile_all(part, part.has(Keywords::EMBEDDED));
    }
}

struct Run<'e> {
    root: &'e Path,
    errors: ErrorList,
    warnings: Vec<String>,
    budget: u64,
    /// No further rule is evaluated.
    ended: bool,
}

/// A value with its schema and place.
struct Subject<'p, 's, 'a> {
    schema: &'s JsonSchema,
    new: &'p View<'a>,
    spot: &'p Spot<'p>,
    known: Known<'p, 's, 'a>,
}

impl Subject<'_, '_, '_> {
    /// The value as an error shows it.
    fn shown(&self) -> BadValue {
        match self.schema.ty {
            SchemaType::Object | SchemaType::Array => BadValue::Omitted,
            _ => self.new.shown(),
        }
    }
}

impl Run<'_> {
    fn value<'a>(
        &mut self,
        (schema, root): (&'a JsonSchema, bool),
        new: &View<'a>,
        old: Option<&View<'a>>,
        known: Known<'_, 'a, 'a>,
        spot: &Spot<'_>,
    ) {
        if self.ended || new.is_null() || !schema.has(Keywords::RULES_BELOW) {
            return;
        }
        if schema.rules.is_some() {
            let subject = Subject {
                schema,
                new,
                spot,
                known,
            };
            self.rules(&subject, old, root);
        }
        match new {
            View::List(list) => {
                let Some(items) = schema.item().filter(|items| is_seen(items)) else {
                    return;
                };
                let mut before = OldItems::of(schema, old);
                let mut correlated = OldItems::of(schema, known.current.map(|pair| &pair.old));
                for index in 0..list.len() {
                    let Some(new) = item(*list, index) else { continue };
                    let old = before.find(&new, index).filter(|old| !old.is_null());
                    let pair = correlated.find(&new, index).map(|old| Pair {
                        schema: items,
                        new: new.clone(),
                        old,
                    });
                    let below = beneath(known, pair.as_ref());
                    let root = items.has(Keywords::EMBEDDED);
                    self.value((items, root), &new, old.as_ref(), below, &Spot::Index(spot, index));
                }
            }
            View::Object(object) => {
                let old = old.and_then(View::as_object);
                let member = |run: &mut Self, own: &'a JsonSchema, name: &str, new: View<'a>, spot: &Spot<'_>| {
                    let old = old.and_then(|old| old.get(name)).filter(|old| !old.is_null());
                    let pair = known.member(name, &new);
                    let below = beneath(known, pair.as_ref());
                    run.value((own, own.has(Keywords::EMBEDDED)), &new, old.as_ref(), below, spot);
                };
                if let Some(own) = schema.additional().filter(|own| is_seen(own)) {
                    object.for_each(&mut |name, new| member(self, own, name, new, &Spot::Key(spot, name)));
                }
                object.properties(schema, &mut |property, new| {
                    if property.schema.has(Keywords::RULES_BELOW) && is_seen(&property.schema) {
                        let spot = Spot::Property(spot, &property.name);
                        member(self, &property.schema, &property.name, new, &spot);
                    }
                });
            }
            _ => {}
        }
    }

    fn rules<'a>(&mut self, subject: &Subject<'_, 'a, 'a>, old: Option<&View<'a>>, root: bool) {
        let schema = subject.schema;
        let Some(rules) = &schema.rules else { return };
        let compiled = compiled(schema, rules, root);
        if compiled.is_none_or(Vec::is_empty) {
            return self.fault(subject, UNDECLARED.to_owned());
        }
        if self.budget == 0 {
            return self.end(subject, OUT_OF_BUDGET.to_owned());
        }
        let mut bindings = vec![("self", value(schema, subject.new, root))];
        // Messages of rules may look at the old value too, if any rule here does.
        if let Some(old) = old.filter(|_| compiled.is_some_and(|list| list.iter().any(|rule| rule.transition))) {
            bindings.push(("oldSelf", value(schema, old, root)));
        }
        for (rule, compiled) in rules.list.iter().zip(compiled.into_iter().flatten()) {
            if self.ended || self.errors.is_full() {
                return;
            }
            let text = compiled
                .error
                .as_ref()
                .map(|error| format!("rule compile error: {error}"));
            match (text, &compiled.program) {
                (Some(text), _) => self.fault(subject, text),
                (None, Some(program)) => self.rule((rule, compiled, program), subject, &bindings),
                (None, None) => {}
            }
        }
    }

    fn rule<'a>(
        &mut self,
        (rule, compiled, program): (&Rule, &Compiled, &cel::Program),
        subject: &Subject<'_, '_, 'a>,
        bindings: &[(&str, Value<'a>)],
    ) {
        let optional = rule.optional_old_self == Some(true);
        if compiled.transition && bindings.len() < 2 && !optional {
            return;
        }
        let (result, cost) = match (optional, bindings) {
            (true, [own, old @ ..]) => {
                let old = old.first().map(|(_, old)| Rc::new(old.clone()));
                let bindings = [own.clone(), ("oldSelf", Value::Optional(old))];
                program.evaluate_counted(&bindings, CALL_LIMIT)
            }
            _ => program.evaluate_counted(bindings, CALL_LIMIT),
        };
        if cost > self.budget {
            return self.end(subject, OUT_OF_BUDGET.to_owned());
        }
        self.budget -= cost;
        match result {
            Ok(Value::Bool(true)) => {}
            Ok(_) => self.broken((rule, compiled), subject, bindings),
            Err(Fault::Budget) => {
                let why = "no further validation rules will be run due to call cost exceeds limit for rule";
                self.end(subject, format!("'{}': {why}: {}", Fault::Budget, name_of(rule)));
            }
            Err(fault) => {
                let (fault, rule) = (fault.to_string(), name_of(rule));
                let why = "call arguments did not match a supported operator, function or macro signature for rule";
                let text = match fault.starts_with("no such overload") {
                    true => format!("'{fault}': {why}: {rule}"),
                    false => format!("{fault} evaluating rule: {rule}"),
                };
                self.fault(subject, text);
            }
        }
    }

    /// A rule that is false.
    fn broken(
        &mut self,
        (rule, compiled): (&Rule, &Compiled),
        subject: &Subject<'_, '_, '_>,
        bindings: &[(&str, Value<'_>)],
    ) {
        let mut path = subject.spot.path(self.root);
        if !compiled.field_path.is_empty() {
            path = path.child(compiled.field_path.clone());
        }
        let error = match self.text(rule, compiled, bindings) {
            Ok(text) => error(rule, &path, subject.shown(), text),
            Err(Ended(text)) => {
                self.ended = true;
                FieldError::invalid(&path, subject.schema.type_name(), text)
            }
        };
        if !compiled.transition && subject.known.is_unchanged() {
            self.warnings.push(error.to_string());
        } else {
            self.errors.push(error);
        }
    }

    /// What is said of a value that breaks a rule. An error ends the evaluation.
    fn text(&mut self, rule: &Rule, compiled: &Compiled, bindings: &[(&str, Value<'_>)]) -> Result<String, Ended> {
        let usual = || match rule.message.is_empty() {
            true => format!("failed rule: {}", name_of(rule)),
            false => rule.message.trim().to_owned(),
        };
        let Some(program) = &compiled.message else {
            return Ok(usual());
        };
        let (result, cost) = program.evaluate_counted(bindings, CALL_LIMIT);
        if cost > self.budget {
            let why = "messageExpression evaluation failed due to running out of cost budget";
            return Err(Ended(format!("{why}, no further validation rules will be run")));
        }
        if matches!(result, Err(Fault::Budget)) {
            let why = "no further validation rules will be run due to call cost exceeds limit for messageExpression";
            let shown = crate::field::text::quote(&rule.message_expression);
            return Err(Ended(format!("{why}: {shown}")));
        }
        self.budget -= cost;
        let text = result.ok().and_then(|value| Some(value.as_str()?.trim().to_owned()));
        let good = |text: &String| !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
        Ok(text.filter(good).unwrap_or_else(usual))
    }

    fn fault(&mut self, subject: &Subject<'_, '_, '_>, text: String) {
        let path = subject.spot.path(self.root);
        let error = FieldError::invalid(&path, subject.schema.type_name(), text);
        self.errors.push(error);
    }

    fn end(&mut self, subject: &Subject<'_, '_, '_>, text: String) {
        self.fault(subject, text);
        self.ended = true;
    }
}

/// What is known one level further down.
fn beneath<'p, 's, 'a>(known: Known<'p, 's, 'a>, pair: Option<&'p Pair<'s, 'a>>) -> Known<'p, 's, 'a> {
    match known.current {
        None => known,
        parent => Known { current: pair, parent },
    }
}

/// Whether rules see anything of a schema: what they don't see has no rules that count.
fn is_seen(schema: &JsonSchema) -> bool {
    match schema.ty {
        _ if schema.has(Keywords::INT_OR_STRING) => true,
        SchemaType::Array => schema.item().is_some_and(is_seen),
        SchemaType::Object => schema.additional().is_none_or(is_seen),
        SchemaType::Unset | SchemaType::Other => false,
        _ => true,
    }
}

fn name_of(rule: &Rule) -> &str {
    match rule.message.as_str() {
        "" => rule.rule.trim(),
        text => text.trim(),
    }
}

fn error(rule: &Rule, path: &Path, value: BadValue, text: String) -> FieldError {
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(path, text),
        Some("FieldValueRequired") => FieldError::required(path, text),
        Some("FieldValueDuplicate") => FieldError::duplicate(path, value),
        _ => FieldError::invalid(path, value, text),
    }
}
