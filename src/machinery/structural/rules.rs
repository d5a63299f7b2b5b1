//! `x-kubernetes-validations`: rules over the values of a schema, compiled by its declared types.
//!
//! Rules are compiled when they are first needed, a schema's all at once: a definition that has them was checked when
//! it was written ([`compile`]). What several of them say is compiled once.

mod run;
mod values;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(super) use run::{Evaluation, check as check_rules, compile_all};

use super::decl::Decl;
use super::schema::{JsonSchema, Rule};
use crate::cel::{CompileError, Environment, Program, Type};
use crate::reflect::Id;

/// What became of a rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Compiled {
    /// `None`: the rule is empty, or there is an error.
    pub program: Option<Arc<Program>>,
    pub error: Option<Arc<str>>,
    /// It looks at the old value.
    pub transition: bool,
    /// What it costs at most.
    pub max_cost: u64,
    pub message: Option<Arc<Program>>,
    pub message_error: Option<Arc<str>>,
    pub message_max_cost: u64,
    /// Where its errors are, below the value.
    pub field_path: String,
}

/// Compiles the rules of a schema, in their order.
pub(super) fn compile(schema: &JsonSchema, decl: &Decl) -> Vec<Compiled> {
    let ty = decl.cel_type(&format!("selfType{}", Id::fresh()));
    let environment = |old: Type| Environment::new().variable("self", ty.clone()).variable("oldSelf", old);
    let required = environment(ty.clone());
    let optional = environment(Type::optional(ty.clone()));
    let mut known: HashMap<Texts<'_>, Compiled> = HashMap::new();
    let rules = schema.rules().iter().map(|rule| {
        let environment = match rule.optional_old_self {
            Some(true) => &optional,
            _ => &required,
        };
        let made = known.entry(texts(rule));
        let mut compiled = made.or_insert_with(|| compile_one(decl, rule, environment)).clone();
        if compiled.error.is_none()
            && compiled.message_error.is_none()
            && !rule.field_path.is_empty()
            && let Ok(found) = schema.field_at(&rule.field_path, true)
        {
            compiled.field_path = found.path.to_string();
        }
        compiled
    });
    rules.collect()
}

/// What is compiled of a rule, by which rules are the same.
type Texts<'a> = (&'a str, &'a str, bool);

fn texts(rule: &Rule) -> Texts<'_> {
    (
        &rule.rule,
        &rule.message_expression,
        rule.optional_old_self == Some(true),
    )
}

/// What the compiler of an expression does beside its text: as long as so many bytes of it take.
const EACH: usize = 32;

/// How much there is to compile in the rules of a schema, in bytes of their texts: each that is not the same as
/// another, and the types of all that they see.
pub(super) fn weight(schema: &JsonSchema, decl: &Decl) -> usize {
    let mut known = HashSet::new();
    let new = schema.rules().iter().filter(|rule| known.insert(texts(rule)));
    let texts = new.map(|rule| EACH + rule.rule.len() + rule.message_expression.len());
    texts.sum::<usize>() + decl.fields()
}

fn compile_one(decl: &Decl, rule: &Rule, environment: &Environment) -> Compiled {
    let mut compiled = Compiled::default();
    if rule.rule.trim().is_empty() {
        return compiled;
    }
    match program(environment, &rule.rule, &Type::Bool, decl) {
        Ok((program, cost)) => {
            compiled.transition = program.refers_to("oldSelf");
            compiled.max_cost = cost;
            compiled.program = Some(Arc::new(program));
        }
        Err(failure) => {
            let text = match failure {
                Failure::Compile(error) => format!("compilation failed: {error}"),
                Failure::Type => "cel expression must evaluate to a bool".to_owned(),
                Failure::Program(why) => format!("program instantiation failed: {why}"),
            };
            compiled.error = Some(text.into());
            return compiled;
        }
    }
    if !rule.message_expression.is_empty() {
        match program(environment, &rule.message_expression, &Type::String, decl) {
            Ok((program, cost)) => {
                compiled.message = Some(Arc::new(program));
                compiled.message_max_cost = cost;
            }
            Err(failure) => {
                let text = match failure {
                    Failure::Compile(error) => format!("messageExpression compilation failed: {error}"),
                    Failure::Type => "messageExpression must evaluate to a string".to_owned(),
                    Failure::Program(why) => format!("messageExpression instantiation failed: {why}"),
                };
                compiled.message_error = Some(text.into());
            }
        }
    }
    compiled
}

/// Why there is no program.
enum Failure {
    Compile(CompileError),
    /// It evaluates to something else.
    Type,
    Program(String),
}

/// A program and what it costs at most.
fn program(environment: &Environment, source: &str, ty: &Type, decl: &Decl) -> Result<(Program, u64), Failure> {
    let mut program = environment.compile(source).map_err(Failure::Compile)?;
    if program.result_type() != ty {
        return Err(Failure::Type);
    }
    let cost = program.estimate(decl).max;
    match program.fold() {
        Ok(()) => Ok((program, cost)),
        Err(fault) => Err(Failure::Program(fault.to_string())),
    }
}
