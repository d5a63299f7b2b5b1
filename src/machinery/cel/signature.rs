//! Functions: how they are called, what they cost, and the code that runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::Fault;
use super::types::{Inference, Type};
use super::value::Value;

/// The code of a function. The target of a call is the first argument.
pub(super) type Code = for<'a> fn(&[Value<'a>]) -> Result<Value<'a>, Fault>;

/// What a call costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// One.
    One,
    /// A tenth of the first argument's size: texts that are walked through.
    Traverse,
    /// A tenth of the size of all arguments: texts that are made.
    Make,
    /// The product of the tenths of the first two: a search.
    Search,
    /// The size of the list or map that is the last argument.
    Member,
    /// The size of the smaller of two.
    Compare,
    /// A new list as large as the first argument.
    Copy,
    /// A new list, for which all elements of the first argument were compared with each other.
    Square,
    /// The product of two sizes, so many times.
    Pairs(u8),
    /// A search for a long pattern in the second argument.
    Validate,
    /// This.
    Fixed(u32),
}

/// A function with all ways to call it.
#[derive(Debug)]
pub(super) struct Function {
    pub name: &'static str,
    pub overloads: Vec<Overload>,
    pub code: Code,
    pub cost: Cost,
}

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Overload {
    /// Called as `target.name(…)`; the target's type is the first of `parameters`.
    pub member: bool,
    parameters: Vec<Type>,
    result: Type,
    /// Type parameters.
    variables: u32,
}

impl Overload {
    /// The type of a parameter; that of the target comes first.
    pub fn parameter(&self, n: usize) -> Option<&Type> {
        self.parameters.get(n)
    }

    pub fn arity(&self) -> usize {
        self.parameters.len()
    }

    /// The type of the result if the arguments fit.
    pub fn apply(&self, inference: &mut Inference, arguments: &[Type]) -> Option<Type> {
        let own: Vec<Type> = (0..self.variables).map(|_| inference.fresh()).collect();
        let mut wanted = self.parameters.iter().map(|ty| instance(ty, &own));
        let fits = arguments
            .iter()
            .all(|given| wanted.next().is_some_and(|wanted| inference.accept(&wanted, given)));
        fits.then(|| inference.resolve(&instance(&self.result, &own)))
    }
}

/// The type with the variables of a signature replaced.
fn instance(ty: &Type, own: &[Type]) -> Type {
    match ty {
        Type::Variable(n) => own.get(*n as usize).cloned().unwrap_or(Type::Dyn),
        Type::List(of) => Type::list(instance(of, own)),
        Type::Map(of) => Type::map(instance(&of.0, own), instance(&of.1, own)),
        Type::Optional(of) => Type::optional(instance(of, own)),
        Type::Type(of) => Type::Type(std::sync::Arc::new(instance(of, own))),
        other => other.clone(),
    }
}

/// Functions by name.
pub(super) type Functions = BTreeMap<&'static str, Arc<Function>>;

/// Adds a function. Signatures read `string.(string) bool` for members and `(list(A)) int` for others; capital letters
/// are type parameters.
pub(super) fn define(
    functions: &mut Functions,
    name: &'static str,
    cost: Cost,
    code: Code,
    signatures: &[&'static str],
) {
    let overloads = signatures.iter().map(|text| {
        Reader {
            rest: text,
            variables: 0,
        }
        .overload()
    });
    let function = Function {
        name,
        overloads: overloads.collect(),
        code,
        cost,
    };
    functions.insert(name, Arc::new(function));
}

/// Reads signatures. They are written in this crate alone, so that a wrong one is found by the test that reads them
/// all.
struct Reader {
    rest: &'static str,
    variables: u32,
}

impl Reader {
    fn overload(mut self) -> Overload {
        let mut parameters = Vec::new();
        let member = !self.rest.starts_with('(');
        if member {
            parameters.push(self.ty());
            self.skip(".");
        }
        self.skip("(");
        while !self.rest.starts_with(')') && !self.rest.is_empty() {
            parameters.push(self.ty());
            self.skip(",");
        }
        self.skip(")");
        let result = self.ty();
        Overload {
            member,
            parameters,
            result,
            variables: self.variables,
        }
    }

    fn skip(&mut self, token: &str) {
        self.rest = self.rest.trim_start();
        self.rest = self.rest.strip_prefix(token).unwrap_or(self.rest).trim_start();
    }

    fn ty(&mut self) -> Type {
        let end = self.rest.find(['(', ')', ',', '.', ' ']).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        match name {
            "list" => Type::list(self.one()),
            "optional" => Type::optional(self.one()),
            "type" => Type::Type(std::sync::Arc::new(self.one())),
            "map" => {
                self.skip("(");
                let key = self.ty();
                self.skip(",");
                let value = self.ty();
                self.skip(")");
                Type::map(key, value)
            }
            "A" | "B" | "C" => {
                let n = u32::from(name.as_bytes()[0] - b'A');
                self.variables = self.variables.max(n + 1);
                Type::Variable(n)
            }
            name => scalar(name),
        }
    }

    fn one(&mut self) -> Type {
        self.skip("(");
        let of = self.ty();
        self.skip(")");
        of
    }
}

fn scalar(name: &'static str) -> Type {
    match name {
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "quantity" => Type::Opaque("kubernetes.Quantity"),
        "url" => Type::Opaque("kubernetes.URL"),
        "format" => Type::Opaque("kubernetes.NamedFormat"),
        "semver" => Type::Opaque("kubernetes.Semver"),
        "ip" => Type::Opaque("net.IP"),
        "cidr" => Type::Opaque("net.CIDR"),
        "authorizer" => Type::Opaque("kubernetes.authorization.Authorizer"),
        "pathCheck" => Type::Opaque("kubernetes.authorization.PathCheck"),
        "groupCheck" => Type::Opaque("kubernetes.authorization.GroupCheck"),
        "resourceCheck" => Type::Opaque("kubernetes.authorization.ResourceCheck"),
        "decision" => Type::Opaque("kubernetes.authorization.Decision"),
        _ => Type::Dyn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read() {
        let read = |text| {
            let overload = Reader {
                rest: text,
                variables: 0,
            }
            .overload();
            let parameters: Vec<String> = overload.parameters.iter().map(ToString::to_string).collect();
            (
                overload.member,
                parameters.join(" "),
                overload.result.to_string(),
                overload.variables,
            )
        };
        assert_eq!(
            read("string.(string, int) list(string)"),
            (true, "string string int".to_owned(), "list(string)".to_owned(), 0)
        );
        assert_eq!(
            read("(map(A, list(B)), B) bool"),
            (false, "map(dyn, list(dyn)) dyn".to_owned(), "bool".to_owned(), 2)
        );
        assert_eq!(read("() bool").1, "");
    }
}
