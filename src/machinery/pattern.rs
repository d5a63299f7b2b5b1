//! Regular expressions, compiled once: patterns of definitions, of schemas that clients send, and of expressions.
//!
//! The pool is bounded whatever clients send. What is asked for moves to the young half; when that is full it becomes
//! the old half, and what was in there and has not been asked for since is let go.

#[cfg(test)]
#[path = "pattern/tests.rs"]
mod recorded;
mod syntax;

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use regex::{Regex, RegexBuilder};

/// Bytes of a pattern. What is longer would take more than [`MAX_BYTES`] in most cases, and long to find that out.
const MAX_SOURCE: usize = 64 << 10;
/// Bytes that a compiled pattern may take.
const MAX_BYTES: usize = 4 << 20;
/// Bytes that most patterns stay below.
const USUAL_BYTES: usize = 32 << 10;
/// How many usual ones a larger one counts for.
const LARGE: usize = MAX_BYTES / USUAL_BYTES;
/// So many usual ones are kept in each half.
const HALF: usize = 1024;

/// Why a pattern is none, in the words of Go.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("error parsing regexp: {code}: `{part}`")]
pub(crate) struct PatternError {
    code: &'static str,
    part: String,
}

impl PatternError {
    fn new(code: &'static str, part: &str) -> PatternError {
        let part = part.to_owned();
        PatternError { code, part }
    }
}

#[derive(Clone)]
struct Compiled {
    regex: Regex,
    weight: usize,
}

#[derive(Default)]
struct Half {
    patterns: HashMap<Box<str>, Compiled>,
    weight: usize,
}

#[derive(Default)]
struct Pool {
    young: Half,
    old: Half,
}

static POOL: RwLock<Option<Pool>> = RwLock::new(None);

/// The compiled pattern, which is written in Go's syntax. Matching takes time in proportion to the text, whatever the
/// pattern.
pub(crate) fn compiled(pattern: &str) -> Result<Regex, PatternError> {
    let find = |pool: &Pool| pool.young.patterns.get(pattern).map(|c| c.regex.clone());
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
        pool.get_or_insert_default().old.patterns.remove(pattern)
    };
    // Nobody waits while it is compiled.
    let compiled = old.map_or_else(|| compile(pattern), Ok)?;
    let regex = compiled.regex.clone();
    let mut pool = POOL.write().unwrap_or_else(PoisonError::into_inner);
    pool.get_or_insert_default().keep(pattern, compiled);
    Ok(regex)
}

fn compile(pattern: &str) -> Result<Compiled, PatternError> {
    if pattern.len() > MAX_SOURCE {
        return Err(PatternError::new("expression too large", pattern));
    }
    let text = syntax::translate(pattern)?;
    let within = |limit| RegexBuilder::new(&text).size_limit(limit).dfa_size_limit(limit).build();
    match within(USUAL_BYTES) {
        Ok(regex) => Ok(Compiled { regex, weight: 1 }),
        Err(_) => match within(MAX_BYTES) {
            Ok(regex) => Ok(Compiled { regex, weight: LARGE }),
            Err(_) => Err(PatternError::new("expression too large", pattern)),
        },
    }
}

impl Pool {
    fn keep(&mut self, pattern: &str, compiled: Compiled) {
        if self.young.weight + compiled.weight > HALF {
            self.old = std::mem::take(&mut self.young);
        }
        let weight = compiled.weight;
        let before = self.young.patterns.insert(pattern.into(), compiled);
        self.young.weight += weight - before.map_or(0, |before| before.weight);
    }
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
                .any(|half| half.patterns.contains_key(pattern))
        })
    }

    #[test]
    fn a_pattern_is_bounded() {
        assert!(compile(&"a".repeat(MAX_SOURCE)).is_ok());
        let error = compile(&"a".repeat(MAX_SOURCE + 1)).map(drop).unwrap_err();
        assert_eq!(error.code, "expression too large");
    }

    #[test]
    fn the_pool_is_bounded_and_keeps_what_is_used() {
        let often = "^used-often$";
        for n in 0..3 * HALF {
            assert!(n == 0 || is_known(often));
            assert!(compiled(often).unwrap().is_match("used-often"));
            compiled(&format!("^only-once-{n}$")).unwrap();
        }
        assert!(!is_known("^only-once-0$"));
        let kept = |half: &Half| half.patterns.len();
        assert!(with(|pool| kept(&pool.young) + kept(&pool.old)) <= 2 * HALF);
    }

    #[test]
    fn large_patterns_count_for_many() {
        let mut pool = Pool::default();
        for n in 0..2 * HALF / LARGE {
            let large = compile(&format!("{n}[a-z]{{500}}")).unwrap();
            assert_eq!(large.weight, LARGE);
            pool.keep(&n.to_string(), large);
        }
        assert_eq!(pool.young.patterns.len(), HALF / LARGE);
    }

    #[test]
    fn a_pattern_that_is_none_or_too_large_is_an_error() {
        assert!(compiled("(").is_err());
        assert!(compiled("(a{1000}){1000}").is_err());
    }
}
