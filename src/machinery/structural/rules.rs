//! `x-kubernetes-validations`: rules over the values of a schema, compiled by its declared types.
//!
//! Rules are compiled when they are first needed, a schema's all at once: a definition that has them was checked when
//! it was written ([`compile`]).

mod run;
mod values;

pub(super) use run::{Evaluation, check as check_rules};

use super::decl::Decl;
use super::schema::{JsonSchema, Rule};
use crate::cel::{CompileError, Environment, Program, Type};
use crate::reflect::Id;

/// What became of a rule.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    /// `None`: the rule is empty, or there is an error.
    pub program: Option<Program>,
    pub error: Option<String>,
    /// It looks at the old value.
    pub transition: bool,
    /// What it costs at most.
    pub max_cost: u64,
    pub message: Option<Program>,
    pub message_error: Option<String>,
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
    let rules = schema.rules().iter().map(|rule| {
        let environment = match rule.optional_old_self {
            Some(true) => &optional,
            _ => &required,
        };
        compile_one(schema, decl, rule, environment)
    });
    rules.collect()
}

fn compile_one(schema: &JsonSchema, decl: &Decl, rule: &Rule, environment: &Environment) -> Compiled {
    let mut compiled = Compiled::default();
    if rule.rule.trim().is_empty() {
        return compiled;
    }
    match program(environment, &rule.rule, &Type::Bool, decl) {
        Ok((program, cost)) => {
            compiled.transition = program.refers_to("oldSelf");
            compiled.max_cost = cost;
            compiled.program = Some(program);
        }
        Err(failure) => {
            compiled.error = Some(match failure {
                Failure::Compile(error) => format!("compilation failed: {error}"),
                Failure::Type => "cel expression must evaluate to a bool".to_owned(),
                Failure::Program(why) => format!("program instantiation failed: {why}"),
            });
            return compiled;
        }
    }
    if !rule.message_expression.is_empty() {
        match program(environment, &rule.message_expression, &Type::String, decl) {
            Ok((program, cost)) => {
                compiled.message = Some(program);
                compiled.message_max_cost = cost;
            }
            Err(failure) => {
                compiled.message_error = Some(match failure {
                    Failure::Compile(error) => format!("messageExpression compilation failed: {error}"),
                    Failure::Type => "messageExpression must evaluate to a string".to_owned(),
                    Failure::Program(why) => format!("messageExpression instantiation failed: {why}"),
                });
                return compiled;
            }
        }
    }
    if !rule.field_path.is_empty()
        && let Ok(found) = schema.field_at(&rule.field_path, true)
    {
        compiled.field_path = found.path.to_string();
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
