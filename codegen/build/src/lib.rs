//! The builder for build scripts: definitions become Rust, and their CEL rules are compiled as servers compile them.
//!
//! ```no_run
//! keelson_build::definitions("api-defs").run_or_exit();
//! ```

#![deny(missing_docs)]

use std::path::PathBuf;

use keelson_codegen::{Builder, Expression, ValueType};
use keelson_machinery::cel::{Environment, Type, identifier};

/// For the definitions below `root` (`<group>/<version>/*.proto`), a path relative to the build script's crate.
pub fn definitions(root: impl Into<PathBuf>) -> Builder {
    Builder::new(root).rules(compile)
}

/// Compiles an expression of a definition as a server does.
///
/// # Errors
/// What is wrong with it, each mistake with its line and column.
pub fn compile(expression: &Expression<'_>) -> Result<(), String> {
    let of = cel_type(&expression.of);
    let old = match expression.optional_old {
        true => Type::optional(of.clone()),
        false => of.clone(),
    };
    let environment = Environment::new().variable("self", of).variable("oldSelf", old);
    match environment.compile_to(expression.text, &cel_type(&expression.result)) {
        Ok(_) => Ok(()),
        Err(error) => Err(one_line(&error.to_string())),
    }
}

/// `1:6: undefined field 'nope'`, of texts of several lines that show the place.
fn one_line(text: &str) -> String {
    let faults: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("ERROR: <input>:"))
        .collect();
    match faults.is_empty() {
        true => text.to_owned(),
        false => faults.join("; "),
    }
}

fn cel_type(ty: &ValueType) -> Type {
    match ty {
        ValueType::Any => Type::Dyn,
        ValueType::Bool => Type::Bool,
        ValueType::Int => Type::Int,
        ValueType::Double => Type::Double,
        ValueType::Text => Type::String,
        ValueType::Bytes => Type::Bytes,
        ValueType::Timestamp => Type::Timestamp,
        ValueType::Duration => Type::Duration,
        ValueType::List(item) => Type::list(cel_type(item)),
        ValueType::Map(item) => Type::map(Type::String, cel_type(item)),
        ValueType::Object(object) => {
            let fields = object.fields.iter();
            let fields = fields.filter_map(|(name, ty)| Some((identifier(name)?, cel_type(ty))));
            let fields: Vec<_> = fields.collect();
            Type::object(&object.name, fields.iter().map(|(name, ty)| (&**name, ty.clone())))
        }
    }
}

#[cfg(test)]
mod tests;
