//! CEL rules of definitions and schemas: `x-kubernetes-validations`.

use super::identity::Before;
use super::values::shown;
use super::{Place, message_of};
use crate::cel::{self, CALL_LIMIT, CompileError, Environment, Fault, Program, Type, Value as Cel};
use crate::field::{BadValue, ErrorList, ErrorType, FieldError, Path};
use crate::reflect::equality;
use crate::reflect::{self, FieldDesc, Flags, List, ListType, MessageDesc, Reflect, ValidationRule, Value};

/// Cost of all rules of one object together.
const BUDGET: u64 = 10_000_000;
/// Bytes that the text of a `messageExpression` may have.
const MAX_MESSAGE: usize = 5 * 1024;
/// What is said where rules can't be looked at.
const BLOCKED: &str = "some validation rules were not checked because the object was invalid; \
    correct the existing errors to complete validation";
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// A rule that does not compile.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{name}: the rule {rule:?} does not compile: {error}")]
pub struct RuleError {
    /// Of the message or field that has it.
    pub name: String,
    /// As it is written.
    pub rule: String,
    /// The compiler's words.
    pub error: String,
}

/// What a rule that is broken says where nothing more can be evaluated.
struct Ended(String);

/// Compiles the rules of a table and of those below it, which otherwise happens when they are first needed.
///
/// # Errors
/// The first that does not compile.
pub fn compile(desc: &MessageDesc) -> Result<(), RuleError> {
    compile_below(desc, &mut Vec::new())
}

fn compile_below(desc: &MessageDesc, seen: &mut Vec<u64>) -> Result<(), RuleError> {
    if seen.contains(&desc.id.get()) || !has_validations(desc) {
        return Ok(());
    }
    seen.push(desc.id.get());
    let compiled = |rule: &ValidationRule, name: &str, ty: &dyn Fn() -> Type| match Programs::of(rule, ty) {
        Some(Err(error)) => Err(RuleError {
            name: name.to_owned(),
            rule: rule.rule.to_string(),
            error: error.to_string(),
        }),
        _ => Ok(()),
    };
    for rule in &desc.rules.validations {
        compiled(rule, &desc.name, &|| Type::of_message(desc))?;
    }
    for field in desc.fields.iter().filter(|f| f.flags.has(Flags::HAS_VALIDATIONS)) {
        let name = format!("{}.{}", desc.name, field.json);
        for rule in &field.rules.validations {
            compiled(rule, &name, &|| Type::of_field(field))?;
        }
        if let Some(below) = field.message() {
            compile_below(below, seen)?;
        }
    }
    Ok(())
}

fn has_validations(desc: &MessageDesc) -> bool {
    !desc.rules.validations.is_empty() || desc.fields.iter().any(|f| f.flags.has(Flags::HAS_VALIDATIONS))
}

/// Evaluates the rules of an object and of all that is in it, unless `errors` has some that keep expressions from being
/// evaluated.
pub(super) fn evaluate(new: &dyn Reflect, old: Option<&dyn Reflect>, path: &Path, errors: &mut ErrorList) {
    if !has_validations(new.desc()) {
        return;
    }
    let blocks = |error: &FieldError| {
        matches!(
            error.kind,
            ErrorType::NotSupported
                | ErrorType::Required
                | ErrorType::TooLong
                | ErrorType::TooMany
                | ErrorType::TypeInvalid
        )
    };
    if errors.iter().any(blocks) {
        errors.push(FieldError::invalid(&Path::root(), BadValue::null(), BLOCKED));
        return;
    }
    let mut run = Run {
        errors,
        budget: BUDGET,
        ended: false,
    };
    run.message(new, old, &Place::Path(path));
}

/// The programs of a rule.
struct Programs {
    rule: Program,
    message: Option<Program>,
    /// It compares with the old value.
    transition: bool,
}

impl Programs {
    /// Those of a rule whose value has this type. `None`: the rule was compiled for something else.
    fn of<'r>(rule: &'r ValidationRule, ty: &dyn Fn() -> Type) -> Option<Result<&'r Programs, &'r CompileError>> {
        let made: &Result<Programs, CompileError> = rule.compiled.get_or_make(|| Programs::make(rule, ty()))?;
        Some(made.as_ref())
    }

    fn make(rule: &ValidationRule, ty: Type) -> Result<Programs, CompileError> {
        let old = match rule.optional_old_self {
            true => Type::optional(ty.clone()),
            false => ty.clone(),
        };
        let environment = Environment::new().variable("self", ty).variable("oldSelf", old);
        let program = environment.compile_to(&rule.rule, &Type::Bool)?;
        let message = match rule.message_expression.as_str() {
            "" => None,
            text => Some(environment.compile_to(text, &Type::String)?),
        };
        let transition = program.refers_to("oldSelf");
        Ok(Programs {
            rule: program,
            message,
            transition,
        })
    }
}

struct Run<'e> {
    errors: &'e mut ErrorList,
    budget: u64,
    /// No further rule is evaluated.
    ended: bool,
}

/// A value with its type, and the one before.
struct Subject<'a, 't> {
    new: Cel<'a>,
    old: Option<Cel<'a>>,
    ty: &'t dyn Fn() -> Type,
    /// As an error shows it.
    shown: &'t dyn Fn() -> BadValue,
    /// Whether it is as it was.
    unchanged: &'t dyn Fn() -> bool,
}

impl Run<'_> {
    fn message(&mut self, new: &dyn Reflect, old: Option<&dyn Reflect>, place: &Place<'_>) {
        let desc = new.desc();
        if !desc.rules.validations.is_empty() {
            let subject = Subject {
                new: Cel::message(new),
                old: old.map(Cel::message),
                ty: &|| Type::of_message(desc),
                shown: &|| BadValue::Omitted,
                unchanged: &|| old.is_some_and(|old| equality::equal(old, new)),
            };
            self.rules(&desc.rules.validations, &subject, place);
        }
        for (index, field, value) in reflect::fields(new) {
            if self.ended || self.errors.is_full() {
                return;
            }
            if !field.flags.has(Flags::HAS_VALIDATIONS) {
                continue;
            }
            let before = old.map(|old| old.get(index));
            match value {
                Value::Message(message) if field.flags.has(Flags::INLINE) => {
                    self.message(message, before.and_then(message_of), place);
                }
                value => self.value(field, value, before, &Place::Field(place, &field.json)),
            }
        }
    }

    fn value(&mut self, field: &FieldDesc, value: Value<'_>, old: Option<Value<'_>>, place: &Place<'_>) {
        // What JSON does not show is not there; elements always are.
        let element = field.json.is_empty();
        let there = |value: &Value<'_>| !matches!(value, Value::Null) && (element || cel::is_shown(field, *value));
        if !there(&value) || self.ended {
            return;
        }
        let old = old.filter(there);
        if !field.rules.validations.is_empty() {
            let subject = Subject {
                new: Cel::field(field, value),
                old: old.map(|old| Cel::field(field, old)),
                ty: &|| Type::of_field(field),
                shown: &|| match value {
                    Value::Message(_) | Value::List(_) | Value::Map(_) => BadValue::Omitted,
                    value => shown(value),
                },
                unchanged: &|| old.is_some_and(|old| equality::equal_values(old, value)),
            };
            self.rules(&field.rules.validations, &subject, place);
        }
        match value {
            Value::Message(message) => self.message(message, old.and_then(message_of), place),
            Value::List(list) => self.list(field, list, old, place),
            Value::Map(map) => map.for_each(&mut |key, value| {
                let before = match old {
                    Some(Value::Map(old)) => old.get(key),
                    _ => None,
                };
                self.value(map.element(), value, before, &Place::Key(place, key));
            }),
            _ => {}
        }
    }

    /// Items of lists of type map have an item before them, others none.
    fn list(&mut self, field: &FieldDesc, list: &dyn List, old: Option<Value<'_>>, place: &Place<'_>) {
        let mut before = Before::of(old.filter(|_| field.list == ListType::Map));
        for index in 0..list.len() {
            let item = list.get(index);
            let before = before.find(field, item, index);
            self.value(list.element(), item, before, &Place::Index(place, index));
        }
    }

    fn rules(&mut self, rules: &[ValidationRule], subject: &Subject<'_, '_>, place: &Place<'_>) {
        for rule in rules {
            if self.ended {
                return;
            }
            if self.budget == 0 {
                return self.end(place, OUT_OF_BUDGET.to_owned(), subject);
            }
            match Programs::of(rule, subject.ty) {
                Some(Ok(programs)) => self.rule(rule, programs, subject, place),
                Some(Err(error)) => self.fault(place, format!("rule compile error: {error}"), subject),
                None => self.fault(
                    place,
                    "rule compile error: the rule belongs to another type".to_owned(),
                    subject,
                ),
            }
        }
    }

    fn rule(&mut self, rule: &ValidationRule, programs: &Programs, subject: &Subject<'_, '_>, place: &Place<'_>) {
        if programs.transition && subject.old.is_none() && !rule.optional_old_self {
            return;
        }
        let old = match (rule.optional_old_self, &subject.old) {
            (true, old) => Cel::Optional(old.clone().map(std::rc::Rc::new)),
            (false, Some(old)) => old.clone(),
            (false, None) => Cel::Null,
        };
        let bindings = [("self", subject.new.clone()), ("oldSelf", old)];
        let (result, cost) = programs.rule.evaluate_counted(&bindings, CALL_LIMIT);
        if cost > self.budget {
            return self.end(place, OUT_OF_BUDGET.to_owned(), subject);
        }
        self.budget -= cost;
        let name = name_of(rule);
        match result {
            Ok(Cel::Bool(true)) => {}
            // What was stored and stays passes, unless the rule is about its change.
            Ok(_) if !programs.transition && (subject.unchanged)() => {}
            Ok(_) => {
                let place = match field_path(&rule.field_path) {
                    path if path.is_empty() => place.path(),
                    path => place.path().child(path),
                };
                match self.text(rule, programs, &bindings) {
                    Ok(text) => self.errors.push(error(rule, &place, (subject.shown)(), text)),
                    Err(Ended(text)) => {
                        self.errors.push(FieldError::invalid(&place, (subject.shown)(), text));
                        self.ended = true;
                    }
                }
            }
            Err(Fault::Budget) => {
                let why = "no further validation rules will be run due to call cost exceeds limit for rule";
                self.end(place, format!("'{}': {why}: {name}", Fault::Budget), subject);
            }
            Err(fault @ Fault::NoSuchOverload) => {
                let why = "call arguments did not match a supported operator, function or macro signature for rule";
                self.fault(place, format!("'{fault}': {why}: {name}"), subject);
            }
            Err(fault) => self.fault(place, format!("{fault} evaluating rule: {name}"), subject),
        }
    }

    /// What is said of a value that breaks a rule. An error ends the evaluation.
    fn text(
        &mut self,
        rule: &ValidationRule,
        programs: &Programs,
        bindings: &[(&str, Cel<'_>)],
    ) -> Result<String, Ended> {
        let usual = || match rule.message.trim() {
            "" => format!("failed rule: {}", rule.rule.trim()),
            text => text.to_owned(),
        };
        let Some(program) = &programs.message else {
            return Ok(usual());
        };
        let (result, cost) = program.evaluate_counted(bindings, CALL_LIMIT);
        if cost > self.budget {
            let why = "messageExpression evaluation failed due to running out of cost budget";
            return Err(Ended(format!("{why}, no further validation rules will be run")));
        }
        self.budget -= cost;
        if matches!(result, Err(Fault::Budget)) {
            let why = "no further validation rules will be run due to call cost exceeds limit for messageExpression";
            return Err(Ended(format!("{why}: {:?}", rule.message_expression)));
        }
        let text = result
            .ok()
            .and_then(|value| value.as_str().map(|text| text.trim().to_owned()));
        let good = |text: &String| !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains(['\n', '\r']);
        Ok(text.filter(good).unwrap_or_else(usual))
    }

    fn fault(&mut self, place: &Place<'_>, text: String, subject: &Subject<'_, '_>) {
        self.errors
            .push(FieldError::invalid(&place.path(), type_name(&subject.new), text));
    }

    fn end(&mut self, place: &Place<'_>, text: String, subject: &Subject<'_, '_>) {
        self.fault(place, text, subject);
        self.ended = true;
    }
}

fn name_of(rule: &ValidationRule) -> &str {
    match rule.message.trim() {
        "" => rule.rule.trim(),
        text => text,
    }
}

fn error(rule: &ValidationRule, path: &Path, value: BadValue, text: String) -> FieldError {
    match rule.reason.as_str() {
        "FieldValueForbidden" => FieldError::forbidden(path, text),
        "FieldValueRequired" => FieldError::required(path, text),
        "FieldValueDuplicate" => FieldError::duplicate(path, value),
        _ => FieldError::invalid(path, value, text),
    }
}

/// `.spec.map['key']` as paths of errors have it: `spec.map[key]`.
fn field_path(path: &str) -> String {
    path.trim_start_matches('.').replace("['", "[").replace("']", "]")
}

/// The type of a schema, as errors of evaluation show it in place of the value.
fn type_name(value: &Cel<'_>) -> &'static str {
    match value {
        Cel::Bool(_) => "boolean",
        Cel::Int(_) | Cel::Uint(_) => "integer",
        Cel::Double(_) => "number",
        Cel::List(_) => "array",
        Cel::Map(_) => "object",
        Cel::String(_) | Cel::Bytes(_) | Cel::Timestamp(_) | Cel::Duration(_) => "string",
        Cel::Null | Cel::Opaque(_) | Cel::Optional(_) | Cel::Type(_) | Cel::Invalid(_) => "",
    }
}
