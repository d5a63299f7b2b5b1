//! The text form of label selectors. Grammar and error texts are those of the Kubernetes API, corner cases included:
//! `in` and `notin` are identifiers where no operator may stand, and an absent value is the empty one.

use super::{Operator, Requirement, SelectorError, check_key};
use crate::field::Path;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token {
    End,
    Identifier,
    Open,
    Close,
    Comma,
    Not,
    Operator(Operator),
    /// `in` or `notin`.
    Word(Operator),
}

struct Scanner<'a> {
    rest: &'a str,
}

fn special(b: u8) -> bool {
    matches!(b, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<')
}

impl<'a> Scanner<'a> {
    /// The next token and its text; the text of the end is empty. A NUL ends the selector.
    fn next(&mut self) -> (Token, &'a str) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let (token, length) = match self.rest.as_bytes() {
            [] | [0, ..] => (Token::End, 0),
            [b'(', ..] => (Token::Open, 1),
            [b')', ..] => (Token::Close, 1),
            [b',', ..] => (Token::Comma, 1),
            [b'=', b'=', ..] => (Token::Operator(Operator::DoubleEquals), 2),
            [b'!', b'=', ..] => (Token::Operator(Operator::NotEquals), 2),
            [b'=', ..] => (Token::Operator(Operator::Equals), 1),
            [b'>', ..] => (Token::Operator(Operator::Greater), 1),
            [b'<', ..] => (Token::Operator(Operator::Less), 1),
            [b'!', ..] => (Token::Not, 1),
            bytes => {
                let ends = |b: &u8| special(*b) || matches!(b, 0 | b' ' | b'\t' | b'\r' | b'\n');
                let length = bytes.iter().position(ends).unwrap_or(bytes.len());
                let token = match &bytes[..length] {
                    b"in" => Token::Word(Operator::In),
                    b"notin" => Token::Word(Operator::NotIn),
                    _ => Token::Identifier,
                };
                (token, length)
            }
        };
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        (token, text)
    }

    /// The next token where a key or value may stand.
    fn next_value(&mut self) -> (Token, &'a str) {
        match self.next() {
            (Token::Word(_), text) => (Token::Identifier, text),
            other => other,
        }
    }

    /// The next token where a key or value may stand, left in place.
    fn peek(&self) -> (Token, &'a str) {
        Scanner { rest: self.rest }.next_value()
    }
}

pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut scanner = Scanner { rest: text };
    let mut requirements = Vec::new();
    loop {
        match scanner.peek() {
            (Token::End, _) => return Ok(requirements),
            (Token::Identifier | Token::Not, _) => {}
            (_, text) => return Err(found(text, "!, identifier, or 'end of string'")),
        }
        let one =
            requirement(&mut scanner).map_err(|e| SelectorError(format!("unable to parse requirement: {}", e.0)))?;
        requirements.push(one);
        match scanner.next_value() {
            (Token::End, _) => return Ok(requirements),
            (Token::Comma, _) => match scanner.peek() {
                (Token::Identifier | Token::Not, _) => {}
                (_, text) => return Err(found(text, "identifier after ','")),
            },
            (_, text) => return Err(found(text, "',' or 'end of string'")),
        }
    }
}

fn found(text: &str, expected: &str) -> SelectorError {
    SelectorError(format!("found '{text}', expected: {expected}"))
}

fn requirement(scanner: &mut Scanner<'_>) -> Result<Requirement, SelectorError> {
    let negated = scanner.peek().0 == Token::Not;
    if negated {
        scanner.next();
    }
    let key = match scanner.next_value() {
        (Token::Identifier, key) => key,
        (_, text) => return Err(found(text, "identifier")),
    };
    if let Some(error) = check_key(key, &Path::root()) {
        return Err(SelectorError(error.to_string()));
    }
    let (operator, values) = if negated {
        (Operator::DoesNotExist, Vec::new())
    } else if matches!(scanner.peek().0, Token::End | Token::Comma) {
        (Operator::Exists, Vec::new())
    } else {
        operator_and_values(scanner)?
    };
    Requirement::new(key, operator, values).map_err(|e| SelectorError(e.to_string()))
}

fn operator_and_values(scanner: &mut Scanner<'_>) -> Result<(Operator, Vec<String>), SelectorError> {
    match scanner.next() {
        (Token::Word(operator), _) => Ok((operator, value_set(scanner)?)),
        (Token::Operator(operator), _) => Ok((operator, vec![single_value(scanner)?])),
        (_, text) => Err(found(text, "in, notin, =, ==, !=, gt, lt")),
    }
}

fn single_value(scanner: &mut Scanner<'_>) -> Result<String, SelectorError> {
    if matches!(scanner.peek().0, Token::End | Token::Comma) {
        return Ok(String::new());
    }
    match scanner.next_value() {
        (Token::Identifier, text) => Ok(text.to_owned()),
        (_, text) => Err(found(text, "identifier")),
    }
}

/// `(a,b)`. A place without a value stands for the empty one; each value counts once.
fn value_set(scanner: &mut Scanner<'_>) -> Result<Vec<String>, SelectorError> {
    if let (token, text) = scanner.next_value()
        && token != Token::Open
    {
        return Err(SelectorError(format!("found '{text}' expected: '('")));
    }
    if !matches!(scanner.peek().0, Token::Identifier | Token::Comma | Token::Close) {
        return Err(found(scanner.peek().1, "',', ')' or identifier"));
    }
    let mut values = Vec::new();
    loop {
        match scanner.peek() {
            (Token::Identifier, text) => {
                values.push(text.to_owned());
                scanner.next();
            }
            (Token::Comma | Token::Close, _) => values.push(String::new()),
            (_, text) => return Err(found(text, "',', or identifier")),
        }
        match scanner.next_value() {
            (Token::Comma, _) => {}
            (Token::Close, _) => {
                values.sort();
                values.dedup();
                return Ok(values);
            }
            (_, text) => return Err(found(text, "',' or ')'")),
        }
    }
}
