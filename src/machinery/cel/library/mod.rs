//! The functions that expressions may call.

mod addresses;
mod authorizer;
mod conversions;
mod formats;
mod formatting;
mod lists;
mod maps;
mod operators;
mod optional;
mod patches;
mod quantities;
mod strings;
mod times;
mod urls;
mod versions;

use std::sync::{Arc, OnceLock};

use cel::common::ast::{Expr, IdedExpr, LiteralValue};
use regex::Regex;

use super::error::Fault;
use super::signature::Functions;
use super::value::Value;
use crate::pattern;

pub use authorizer::{AccessCheck, AccessDecision, AccessTarget, Authorizer, ResourceTarget};
pub(super) use formatting::{Clause, Part as FormatPart, parts as format_parts};
pub(super) use lists::SORT_BY_KEYS;
pub(super) use maps::{MAP_INSERT, map_insert};

/// All functions by name.
#[derive(Debug)]
pub(super) struct Library {
    pub functions: Functions,
}

impl Library {
    /// The one library, made when it is first asked for.
    pub fn standard() -> Arc<Library> {
        static LIBRARY: OnceLock<Arc<Library>> = OnceLock::new();
        LIBRARY.get_or_init(|| Arc::new(Library::new())).clone()
    }

    /// The same with what those who write patches need.
    pub fn with_patches() -> Arc<Library> {
        static LIBRARY: OnceLock<Arc<Library>> = OnceLock::new();
        let make = || {
            let mut library = Library::new();
            patches::define(&mut library.functions);
            Arc::new(library)
        };
        LIBRARY.get_or_init(make).clone()
    }

    fn new() -> Library {
        let mut functions = Functions::new();
        for define in [
            operators::define,
            conversions::define,
            strings::define,
            lists::define,
            times::define,
            optional::define,
            quantities::define,
            urls::define,
            addresses::define,
            formats::define,
            formatting::define,
            maps::define,
            versions::define,
            authorizer::define,
        ] {
            define(&mut functions);
        }
        Library { functions }
    }
}

type Result<'a> = std::result::Result<Value<'a>, Fault>;

/// A pattern, compiled. Matching takes time in proportion to the text, whatever the pattern.
pub(super) fn regex(pattern: &str) -> std::result::Result<Regex, Fault> {
    pattern::compiled(pattern).map_err(|error| Fault::function(error.to_string()))
}

/// Whether a text can be read. What is no text at all has no answer.
fn is_readable<'a, T>(read: std::result::Result<T, Fault>) -> Result<'a> {
    match read {
        Err(Fault::NoSuchOverload) => Err(Fault::NoSuchOverload),
        read => Ok(Value::Bool(read.is_ok())),
    }
}

/// Literals that can't be read are mistakes of the expression: the part and what is wrong.
pub(super) fn literal_argument(function: &str, member: bool, arguments: &[IdedExpr]) -> Option<(u64, String)> {
    let [argument] = arguments else { return None };
    let text = match &argument.expr {
        Expr::Literal(LiteralValue::String(text)) => text.inner(),
        Expr::Literal(LiteralValue::Int(n)) if !member => {
            let wrong = match function {
                "timestamp" => !times::SECONDS.contains(n.inner()),
                "duration" => true,
                _ => false,
            };
            return wrong.then(|| (argument.id, format!("invalid {function} argument")));
        }
        _ => return None,
    };
    let wrong = match (function, member) {
        ("matches", true) => regex(text).is_err(),
        ("duration", false) => times::parse_duration(text).is_err(),
        ("timestamp", false) => times::parse_timestamp(text).is_err(),
        _ => false,
    };
    wrong.then(|| (argument.id, format!("invalid {function} argument")))
}
