//! Compile errors and faults of expressions.

use std::fmt;

/// Mistakes that were found while an expression was compiled, one or more, each with its line and a mark under its
/// place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CompileError(String);

/// So many mistakes are told.
const MOST: usize = 100;
/// Bytes of a line that is shown.
const MAX_LINE: usize = 16_384;

impl CompileError {
    pub(super) fn new(source: &str, mut faults: Vec<Misplaced>) -> CompileError {
        faults.sort_by_key(|fault| (fault.line, fault.column));
        let mut shown: Vec<String> = faults.iter().take(MOST).map(|fault| fault.show(source)).collect();
        if let Some(others @ 1..) = faults.len().checked_sub(MOST) {
            shown.push(format!("{others} more errors were truncated"));
        }
        CompileError(shown.join("\n"))
    }

    pub(super) fn wrong_type(wanted: &super::Type) -> CompileError {
        CompileError(format!("cel expression must evaluate to a {wanted}"))
    }
}

/// One mistake and its place.
#[derive(Clone, Debug)]
pub(super) struct Misplaced {
    /// From 1.
    pub line: usize,
    /// From 1, in characters; 0: before the first.
    pub column: usize,
    pub text: String,
}

impl Misplaced {
    fn show(&self, source: &str) -> String {
        let head = format!("ERROR: <input>:{}:{}: {}", self.line, self.column, self.text);
        match source.lines().nth(self.line - 1).filter(|line| line.len() <= MAX_LINE) {
            None => head,
            Some(line) => {
                // What is longer than a byte counts as wide.
                let before = self.column.saturating_sub(1);
                let is_wide = |at: usize| line.chars().nth(at).is_some_and(|c| c.len_utf8() > 1);
                let dots: String = (0..before).map(|at| if is_wide(at) { '．' } else { '.' }).collect();
                let mark = if is_wide(before) { '＾' } else { '^' };
                format!("{head}\n | {}\n | {dots}{mark}", line.replace('\t', " "))
            }
        }
    }
}

/// What a function makes of a text. The error is the text of [`Fault::Function`] or of a mistake of the expression, in
/// Go's words, and nobody tells it apart.
pub(crate) type FunctionResult<T> = std::result::Result<T, String>;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    NoSuchKey(String),
    NoSuchOverload,
    NoSuchVariable(String),
    DivisionByZero,
    ModulusByZero,
    Overflow,
    Index(String),
    /// It cost more than it may.
    Budget,
    /// What a function says of its arguments.
    Function(String),
}

impl Fault {
    pub(super) fn uint_overflow() -> Fault {
        Fault::function("unsigned integer overflow")
    }

    pub(super) fn function(text: impl Into<String>) -> Fault {
        Fault::Function(text.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoSuchKey(key) => write!(f, "no such key: {key}"),
            Fault::NoSuchOverload => f.write_str("no such overload"),
            Fault::NoSuchVariable(name) => write!(f, "no such attribute(s): {name}"),
            Fault::DivisionByZero => f.write_str("division by zero"),
            Fault::ModulusByZero => f.write_str("modulus by zero"),
            Fault::Overflow => f.write_str("integer overflow"),
            Fault::Index(index) => write!(f, "index out of bounds: {index}"),
            Fault::Budget => f.write_str("operation cancelled: actual cost limit exceeded"),
            Fault::Function(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(source: &str, columns: impl IntoIterator<Item = usize>) -> String {
        let fault = |column| Misplaced {
            line: 1,
            column,
            text: "no".to_owned(),
        };
        CompileError::new(source, columns.into_iter().map(fault).collect()).to_string()
    }

    #[test]
    fn marks_stand_below_their_places() {
        assert_eq!(told("a\tb", [3]), "ERROR: <input>:1:3: no\n | a b\n | ..^");
        assert_eq!(
            told("\u{fc}b\u{fc}", [2]),
            "ERROR: <input>:1:2: no\n | \u{fc}b\u{fc}\n | \u{ff0e}^"
        );
        assert_eq!(
            told("\u{fc}b\u{fc}", [3]),
            "ERROR: <input>:1:3: no\n | \u{fc}b\u{fc}\n | \u{ff0e}.\u{ff3e}"
        );
        assert_eq!(told(&"x".repeat(MAX_LINE + 1), [1]), "ERROR: <input>:1:1: no");
    }

    #[test]
    fn a_hundred_mistakes_are_told() {
        assert!(told("x", 1..=100).ends_with("^"));
        let more = told("x", 1..=102);
        assert!(more.ends_with("\n2 more errors were truncated"), "{more}");
        assert_eq!(more.matches("ERROR").count(), MOST);
    }
}
