//! Regular expressions, compiled once: patterns of definitions, of schemas that clients send, and of expressions.
//!
//! The pool is bounded whatever clients send. What is asked for moves to the young half; when that is full it becomes the
//! old half, and what was in there and has not been asked for since is let go.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use regex::{Error, Regex, RegexBuilder};

/// Bytes that a compiled pattern may take.
const MAX_BYTES: usize = 1 << 20;
/// Bytes that most patterns stay below.
const USUAL_BYTES: usize = 32 << 10;
/// How many usual ones a larger one counts for.
const LARGE: usize = MAX_BYTES / USUAL_BYTES;
/// So many usual ones are kept in each half.
const HALF: usize = 1024;

/// What a pattern means by `\d`, `\w`, `\s` and `\b`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Classes {
    /// Those of all scripts, as in expressions.
    Unicode,
    /// Those of ASCII alone, as in definitions.
    Ascii,
}

#[derive(Clone)]
struct Compiled {
    regex: Regex,
    weight: usize,
}

#[derive(Default)]
struct Half {
    /// For each meaning of the classes.
    patterns: [HashMap<Box<str>, Compiled>; 2],
    weight: usize,
}

#[derive(Default)]
struct Pool {
    young: Half,
    old: Half,
}

static POOL: RwLock<Option<Pool>> = RwLock::new(None);

/// The compiled pattern. Matching takes time in proportion to the text, whatever the pattern.
pub(crate) fn compiled(pattern: &str, classes: Classes) -> Result<Regex, Error> {
    let find = |pool: &Pool| {
        pool.young.patterns[classes as usize]
            .get(pattern)
            .map(|c| c.regex.clone())
    };
    let young = POOL
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .as_ref()
        .and_then(find);
    if let Some(regex) = young {
        return Ok(regex);
    }
    let old = {
        let mut pool = POOL.write().unwrap_or_else(PoisonError::into_inner);
        pool.get_or_insert_default().old.patterns[classes as usize].remove(pattern)
    };
    // Nobody waits while it is compiled.
    let compiled = old.map_or_else(|| compile(pattern, classes), Ok)?;
    let regex = compiled.regex.clone();
    let mut pool = POOL.write().unwrap_or_else(PoisonError::into_inner);
    pool.get_or_insert_default().keep(pattern, classes, compiled);
    Ok(regex)
}

fn compile(pattern: &str, classes: Classes) -> Result<Compiled, Error> {
    let text = match classes {
        Classes::Unicode => Cow::Borrowed(pattern),
        Classes::Ascii => Cow::Owned(ascii_classes(pattern)),
    };
    let within = |limit| RegexBuilder::new(&text).size_limit(limit).dfa_size_limit(limit).build();
    match within(USUAL_BYTES) {
        Ok(regex) => Ok(Compiled { regex, weight: 1 }),
        Err(_) => within(MAX_BYTES).map(|regex| Compiled { regex, weight: LARGE }),
    }
}

impl Pool {
    fn keep(&mut self, pattern: &str, classes: Classes, compiled: Compiled) {
        if self.young.weight + compiled.weight > HALF {
            self.old = std::mem::take(&mut self.young);
        }
        let weight = compiled.weight;
        let before = self.young.patterns[classes as usize].insert(pattern.into(), compiled);
        self.young.weight += weight - before.map_or(0, |before| before.weight);
    }
}

/// The pattern with `\d`, `\w`, `\s`, `\b` and their opposites spelled out for ASCII alone, as the API means them.
fn ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('s') => out.push_str("[\\t\\n\\f\\r ]"),
            Some('S') => out.push_str("[^\\t\\n\\f\\r ]"),
            Some('b') => out.push_str("(?-u:\\b)"),
            Some('B') => out.push_str("(?-u:\\B)"),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(look: impl Fn(&Pool) -> T) -> T {
        look(POOL.write().unwrap().get_or_insert_default())
    }

    fn is_known(pattern: &str) -> bool {
        with(|pool| {
            [&pool.young, &pool.old]
                .iter()
                .any(|half| half.patterns[1].contains_key(pattern))
        })
    }

    #[test]
    fn the_pool_is_bounded_and_keeps_what_is_used() {
        let often = "^used-often$";
        for n in 0..3 * HALF {
            assert!(n == 0 || is_known(often));
            assert!(compiled(often, Classes::Ascii).unwrap().is_match("used-often"));
            compiled(&format!("^only-once-{n}$"), Classes::Ascii).unwrap();
        }
        assert!(!is_known("^only-once-0$"));
        let kept = |half: &Half| half.patterns.iter().map(HashMap::len).sum::<usize>();
        assert!(with(|pool| kept(&pool.young) + kept(&pool.old)) <= 2 * HALF);
    }

    #[test]
    fn large_patterns_count_for_many() {
        let mut pool = Pool::default();
        for n in 0..2 * HALF / LARGE {
            let large = compile(&format!("{n}[a-z]{{500}}"), Classes::Ascii).unwrap();
            assert_eq!(large.weight, LARGE);
            pool.keep(&n.to_string(), Classes::Ascii, large);
        }
        assert_eq!(pool.young.patterns[1].len(), HALF / LARGE);
    }

    #[test]
    fn a_pattern_that_is_none_or_too_large_is_an_error() {
        assert!(compiled("(", Classes::Unicode).is_err());
        assert!(compiled("(a{1000}){1000}", Classes::Unicode).is_err());
    }
}
