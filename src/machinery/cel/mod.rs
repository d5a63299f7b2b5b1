//! CEL, the expression language of rules that users write: match conditions, claim mappings, validation rules,
//! policies.
//!
//! An [`Environment`] declares the variables of an expression; [`Environment::compile`] reads and checks it, with the
//! error texts of kube-apiserver; [`Program::evaluate`] computes it within a budget of cost. Checked types make most
//! mistakes errors of whoever writes a rule, not of whoever sends a request.
//!
//! The crate `cel` reads the text: its grammar is the one of the reference implementation, which fixes the messages of
//! syntax errors. What follows is ours, because rules need what its interpreter does not have: types that are checked
//! before anything runs, a cost that is counted while it runs, values that are borrowed rather than copied
//! ([`Entries`], [`Elements`]), and Kubernetes' functions. The parts:
//!
//! * `syntax`: text → syntax tree, on a stack of its own, with bounds on length and nesting;
//! * `check`: syntax tree and declarations → [`Program`] and its type;
//! * `macros`: those of two variables and of optional values, which the parser leaves as calls;
//! * `eval`: program and values → value, counting cost;
//! * `cost`: program and sizes of values → bounds of its cost;
//! * `library`: the functions, each with its signatures, its code and its cost;
//! * `schema`: the types of messages and fields;
//! * `messages`: those that expressions write;
//! * `borrowed`: JSON and reflected objects as values.
//!
//! The functions are those of the standard library and of Kubernetes' libraries for strings, lists, sets, regular
//! expressions, quantities, URLs, addresses (`ip`, `cidr`), versions (`semver`), named formats, optional values and
//! authorization checks; where patches are written, also objects (`Object{…}`, `JSONPatch{…}`).

mod borrowed;
mod check;
mod cost;
mod error;
mod eval;
mod library;
mod macros;
mod messages;
mod moment;
mod openapi;
mod schema;
mod signature;
mod syntax;
#[cfg(test)]
mod tests;
mod types;
mod value;

use std::sync::Arc;

pub(crate) use borrowed::is_shown;
pub use cost::{Declared, Range, Step};
pub use error::{CompileError, Fault};
pub use eval::Evaluated;
pub use library::{AccessCheck, AccessDecision, AccessTarget, Authorizer, ResourceTarget};
pub use moment::Moment;
pub use openapi::Definitions;
pub use schema::escape as identifier;
pub use schema::is_reserved;
pub(crate) use schema::{escape, unescape, word};
pub use syntax::many;
pub use types::{ObjectType, Type};
pub use value::{Elements, Entries, List, Map, Matching, Opaque, Text, Value};

use eval::Node;
use library::Library;

/// Cost that the evaluation of one expression may have in kube-apiserver.
pub const CALL_LIMIT: u64 = 1_000_000;
/// Cost that all match conditions of one webhook may have together.
pub const MATCH_CONDITIONS_LIMIT: u64 = 2_500_000;

/// What an expression may refer to.
#[derive(Clone)]
pub struct Environment {
    variables: Vec<(String, Type)>,
    library: Arc<Library>,
    /// Expressions may write objects and patches.
    messages: bool,
}

impl Default for Environment {
    fn default() -> Self {
        Environment::new()
    }
}

impl Environment {
    /// The functions, and no variables.
    pub fn new() -> Environment {
        Environment {
            variables: Vec::new(),
            library: Library::standard(),
            messages: false,
        }
    }

    /// Declares a variable. One that was declared before under this name no longer counts.
    #[must_use]
    pub fn variable(mut self, name: &str, ty: Type) -> Environment {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), ty));
        self
    }

    /// Expressions may write objects (`Object{…}`) and patches (`JSONPatch{…}`).
    #[must_use]
    pub fn with_patches(self) -> Environment {
        Environment {
            library: Library::with_patches(),
            messages: true,
            ..self
        }
    }

    /// Reads and checks an expression.
    ///
    /// # Errors
    /// Every mistake with its place, as kube-apiserver shows them after `compilation failed: `.
    pub fn compile(&self, source: &str) -> Result<Program, CompileError> {
        let (root, ty) = syntax::parse(source, |parsed| check::check(self, parsed))?;
        Ok(Program {
            root,
            ty,
            source: source.to_owned(),
        })
    }
}

impl Environment {
    /// As [`Environment::compile`], of an expression that evaluates to a type.
    ///
    /// # Errors
    /// Also that it evaluates to another one.
    pub fn compile_to(&self, source: &str, ty: &Type) -> Result<Program, CompileError> {
        let program = self.compile(source)?;
        match program.result_type() {
            Type::Dyn => Ok(program),
            found if found == ty => Ok(program),
            _ => Err(CompileError::wrong_type(ty)),
        }
    }
}

/// A checked expression. It can be evaluated any number of times, by several threads at once.
#[derive(Debug)]
pub struct Program {
    root: Node,
    ty: Type,
    source: String,
}

impl Program {
    /// The type of what it evaluates to; [`Type::Dyn`]: anything.
    pub fn result_type(&self) -> &Type {
        &self.ty
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the expression reads this variable.
    pub fn refers_to(&self, variable: &str) -> bool {
        self.root.refers_to(variable)
    }

    /// Whether the expression reads this path, `["request", "resourceAttributes", "fieldSelector"]`.
    pub fn selects(&self, path: &[&str]) -> bool {
        self.root.selects(path)
    }

    /// Computes what is known before any variable is: conversions of literals.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn fold(&mut self) -> Result<(), Fault> {
        self.root.fold()
    }

    /// What an evaluation costs at least and at most, if the variables are of a type that says how large values are.
    pub fn estimate<D: Declared>(&self, variables: D) -> Range {
        cost::estimate(&self.root, variables)
    }

    /// Computes the value. `bindings` are the values of the declared variables; `budget` is the cost that it may have.
    ///
    /// # Errors
    /// What went wrong, in the words of the reference implementation.
    pub fn evaluate<'a>(&self, bindings: &[(&str, Value<'a>)], budget: u64) -> Result<Evaluated<'a>, Fault> {
        let (value, cost) = self.evaluate_counted(bindings, budget);
        Ok(Evaluated { value: value?, cost })
    }

    /// As [`Program::evaluate`], with the cost of what went wrong too.
    pub fn evaluate_counted<'a>(&self, bindings: &[(&str, Value<'a>)], budget: u64) -> (Result<Value<'a>, Fault>, u64) {
        eval::evaluate(&self.root, bindings, budget)
    }
}
