//! The text of paths.

use super::{Comparison, Filter, JsonPath, Literal, Part, Step};

/// Most steps of one path, those of filters included.
pub const MAX_STEPS: usize = 64;

/// What is wrong with a path.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    #[error("unexpected {found:?} at byte {at} of the path")]
    Unexpected { found: String, at: usize },
    #[error("the path ends too early")]
    Incomplete,
    #[error("the path has more than {MAX_STEPS} steps")]
    TooLong,
    /// For writing: the path leads to no number, or through a list.
    #[error("the path names no number that can be written")]
    NotWritable,
}

pub(super) fn parse(text: &str) -> Result<JsonPath, PathError> {
    let inner = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
    let inner = inner.strip_prefix('$').unwrap_or(inner);
    let mut parser = Parser {
        text: inner,
        at: 0,
        steps_left: MAX_STEPS,
    };
    // The first dot may be missing.
    let mut steps = Vec::new();
    if !matches!(parser.peek(), None | Some('.' | '[')) {
        steps.push(parser.name()?);
    }
    parser.steps(&mut steps)?;
    match parser.peek() {
        None => Ok(JsonPath { steps }),
        Some(_) => parser.unexpected(),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    steps_left: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    fn spaces(&mut self) {
        while self.take(" ") {}
    }

    fn unexpected<T>(&self) -> Result<T, PathError> {
        match self.peek() {
            None => Err(PathError::Incomplete),
            Some(c) => Err(PathError::Unexpected {
                found: c.to_string(),
                at: self.at,
            }),
        }
    }

    fn expect(&mut self, text: &str) -> Result<(), PathError> {
        if self.take(text) { Ok(()) } else { self.unexpected() }
    }

    fn count_step(&mut self) -> Result<(), PathError> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(PathError::TooLong)?;
        Ok(())
    }

    fn steps(&mut self, steps: &mut Vec<Step>) -> Result<(), PathError> {
        loop {
            match self.peek() {
                Some('.') => {
                    self.at += 1;
                    if self.take(".") {
                        self.count_step()?;
                        steps.push(Step::Descend);
                    }
                    match self.peek() {
                        // A lone dot is the object itself; `.[` is the same as `[`.
                        None | Some('[') => {}
                        Some('*') => {
                            self.at += 1;
                            self.count_step()?;
                            steps.push(Step::All);
                        }
                        Some(_) => steps.push(self.name()?),
                    }
                }
                Some('[') => {
                    self.at += 1;
                    self.count_step()?;
                    steps.push(self.subscript()?);
                    self.expect("]")?;
                }
                _ => return Ok(()),
            }
        }
    }

    /// A field name; a backslash takes the next character as it is.
    fn name(&mut self) -> Result<Step, PathError> {
        self.count_step()?;
        let mut name = String::new();
        while let Some(c) = self.peek() {
            match c {
                '\\' => {
                    self.at += 1;
                    let Some(escaped) = self.peek() else {
                        return Err(PathError::Incomplete);
                    };
                    name.push(escaped);
                    self.at += escaped.len_utf8();
                }
                c if c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | ':' | '$') => {
                    name.push(c);
                    self.at += c.len_utf8();
                }
                _ => break,
            }
        }
        if name.is_empty() {
            self.unexpected()
        } else {
            Ok(Step::Child(name))
        }
    }

    /// What stands in brackets: one thing, or several with commas between them.
    fn subscript(&mut self) -> Result<Step, PathError> {
        let first = self.one_subscript()?;
        if self.peek() != Some(',') {
            return Ok(first);
        }
        let mut steps = vec![first];
        while self.take(",") {
            self.count_step()?;
            steps.push(self.one_subscript()?);
        }
        Ok(Step::Union(steps))
    }

    fn one_subscript(&mut self) -> Result<Step, PathError> {
        self.spaces();
        let step = match self.peek() {
            Some('*') => {
                self.at += 1;
                Step::All
            }
            Some('?') => Step::Filter(self.filter()?),
            Some('\'' | '"') => Step::Child(self.quoted()?),
            _ => self.places()?,
        };
        self.spaces();
        Ok(step)
    }

    /// `0`, `-1`, or a part of a list: `1:3`, `-1:`, `::2`.
    fn places(&mut self) -> Result<Step, PathError> {
        let start = self.index()?;
        if !self.take(":") {
            return start.map_or_else(|| self.unexpected(), |index| Ok(Step::Index(index)));
        }
        let end = self.index()?;
        let step = if self.take(":") { self.index()? } else { None };
        Ok(Step::Slice(Part { start, end, step }))
    }

    /// `None`: there is no number.
    fn index(&mut self) -> Result<Option<i64>, PathError> {
        let rest = self.rest();
        let length = rest
            .find(|c: char| c != '-' && !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let digits = rest.get(..length).unwrap_or_default();
        if digits.is_empty() {
            return Ok(None);
        }
        let Ok(index) = digits.parse() else {
            return self.unexpected();
        };
        self.at += length;
        Ok(Some(index))
    }

    fn quoted(&mut self) -> Result<String, PathError> {
        let Some(quote) = self.peek() else {
            return Err(PathError::Incomplete);
        };
        self.at += 1;
        let mut out = String::new();
        while let Some(c) = self.peek() {
            self.at += c.len_utf8();
            match c {
                c if c == quote => return Ok(out),
                '\\' => {
                    let Some(escaped) = self.peek() else { break };
                    self.at += escaped.len_utf8();
                    out.push(escaped);
                }
                c => out.push(c),
            }
        }
        Err(PathError::Incomplete)
    }

    /// `?(@.type=="Ready")`, or `?(@.type)`.
    fn filter(&mut self) -> Result<Filter, PathError> {
        self.expect("?")?;
        self.expect("(")?;
        self.spaces();
        self.expect("@")?;
        let mut steps = Vec::new();
        self.steps(&mut steps)?;
        self.spaces();
        let path = JsonPath { steps };
        let compare = match self.comparison() {
            None => None,
            Some(comparison) => {
                self.spaces();
                Some((comparison, self.literal()?))
            }
        };
        self.spaces();
        self.expect(")")?;
        Ok(Filter { path, compare })
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let known = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessEqual),
            (">=", Comparison::GreaterEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        known
            .into_iter()
            .find_map(|(text, comparison)| self.take(text).then_some(comparison))
    }

    fn literal(&mut self) -> Result<Literal, PathError> {
        if let Some('\'' | '"') = self.peek() {
            return self.quoted().map(Literal::Text);
        }
        let rest = self.rest();
        let length = rest.find([' ', ')']).ok_or(PathError::Incomplete)?;
        let word = rest.get(..length).unwrap_or_default();
        let literal = match (word, word.parse::<f64>()) {
            ("true", _) => Literal::Bool(true),
            ("false", _) => Literal::Bool(false),
            (_, Ok(number)) => Literal::Number(number),
            _ => return self.unexpected(),
        };
        self.at += length;
        Ok(literal)
    }
}
