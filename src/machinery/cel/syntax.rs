//! From text to a syntax tree, which the crate `cel` makes.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::thread;

use cel::common::ast::{IdedExpr, SourceInfo};
use cel::parser::{ParseErrors, Parser};

use super::error::{CompileError, Misplaced};

/// Bytes of an expression.
const MAX_SOURCE_BYTES: usize = 64 * 1024;
/// Parentheses, brackets and operators within each other. The reference implementation has this bound too.
const MAX_DEPTH: u16 = 250;
/// What the parser's recursion may use, of which only the used part takes memory: up to 60 KiB for each of the levels,
/// and up to 4 KiB for each link of a chain (`a.b.c`), of which the longest text has one for every two bytes.
const STACK_BYTES: usize = 256 * 1024 * 1024;

thread_local! {
    /// This thread has such a stack.
    static HAS_STACK: Cell<bool> = const { Cell::new(false) };
}

/// The tree of an expression, and where its parts stand.
pub(super) struct Parsed<'a> {
    pub expression: &'a IdedExpr,
    source: &'a str,
    info: &'a SourceInfo,
}

impl Parsed<'_> {
    /// Line and column of a part, from 1, in characters.
    pub fn place(&self, id: u64) -> (usize, usize) {
        // Offsets count bytes.
        let start = self.info.offset_for(id).map_or(0, |(start, _)| start as usize);
        let start = sign_before(self.source, start).unwrap_or(start);
        let (mut line, mut column) = (1, 1);
        for (_, c) in self.source.char_indices().take_while(|(at, _)| *at < start) {
            (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        (line, column)
    }
}

/// Reads the text and hands its tree to `then`, whose mistakes count as the text's. Both run on a thread with a stack
/// that is large enough for the deepest tree, where the tree is also dropped.
pub(super) fn parse<T: Send>(
    source: &str,
    then: impl FnOnce(&Parsed<'_>) -> Result<T, Vec<Misplaced>> + Send,
) -> Result<T, CompileError> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(whole(format!("expression is longer than {MAX_SOURCE_BYTES} bytes")));
    }
    if brackets(source) > usize::from(MAX_DEPTH) {
        return Err(whole(too_deep()));
    }
    let work = move || {
        let parser = Parser::new()
            .max_recursion_depth(MAX_DEPTH)
            .enable_optional_syntax(true);
        let result = match parser.parse_with_source_info(source) {
            Ok((expression, info)) => then(&Parsed {
                expression: &expression,
                source,
                info: &info,
            }),
            // An empty text ends before its first character.
            Err(errors) if source.is_empty() => Err(misplaced(&errors).into_iter().map(before_first).collect()),
            Err(errors) => Err(misplaced(&errors)),
        };
        result.map_err(|faults| CompileError::new(source, faults))
    };
    let failed = |_| Err(whole("internal error: the compiler failed".to_owned()));
    if HAS_STACK.get() {
        return panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(failed);
    }
    match on_stack(work) {
        Ok(result) => result.unwrap_or_else(failed),
        Err(error) => Err(whole(format!("internal error: {error}"))),
    }
}

/// Does work that compiles many expressions on one thread with such a stack, instead of one for each.
pub fn many<T: Send>(work: impl Fn() -> T + Sync) -> T {
    if HAS_STACK.get() {
        return work();
    }
    let with_stack = || {
        HAS_STACK.set(true);
        work()
    };
    match on_stack(with_stack) {
        Ok(Ok(done)) => done,
        Ok(Err(panicked)) => panic::resume_unwind(panicked),
        // There is no such thread: they may get one each.
        Err(_) => work(),
    }
}

/// Does work on a thread with such a stack.
fn on_stack<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<thread::Result<T>> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)?;
        Ok(thread.join())
    })
}

fn too_deep() -> String {
    format!("expression recursion limit exceeded: {MAX_DEPTH}")
}

/// How many brackets are open at once, counted before the parser, whose time grows with them. Those in texts count too,
/// which takes nothing from anybody.
fn brackets(source: &str) -> usize {
    let (mut open, mut most) = (0usize, 0);
    for b in source.bytes() {
        match b {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// A mistake of the text as a whole.
fn whole(text: String) -> CompileError {
    let (line, column) = (1, 1);
    CompileError::new("", vec![Misplaced { line, column, text }])
}

/// Where the sign of a number stands whose digits begin at a byte: it belongs to the number if nothing stands before it
/// that something could be taken from.
fn sign_before(source: &str, digits: usize) -> Option<usize> {
    let (before, behind) = source.split_at_checked(digits)?;
    if !behind.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let left = before.trim_end().strip_suffix('-')?;
    let last = left.trim_end().chars().next_back();
    last.is_none_or(|c| "([{,:?=<>!&|+-*/%".contains(c))
        .then_some(left.len())
}

const QUOTED_NAME: &str = "unsupported syntax: '`'";

/// A message of the parser as the reference implementation has it.
fn told(message: &str) -> String {
    if message.contains("Recursion limit of ") {
        return too_deep();
    }
    if message.starts_with("invalid string literal: ") || message.starts_with("invalid bytes literal: ") {
        return match message.contains("InvalidUnicode") {
            true => "invalid unicode code point",
            false => "unable to unescape string",
        }
        .to_owned();
    }
    if let Some((before, _)) = message.split_once(" expecting {<EOF>, ") {
        return format!("{before} expecting <EOF>");
    }
    for literal in ["true", "false", "null"] {
        if message == format!("Syntax error: no viable alternative at input '.{literal}'") {
            return format!("Syntax error: mismatched input '{literal}' expecting IDENTIFIER");
        }
    }
    message.to_owned()
}

fn before_first(fault: Misplaced) -> Misplaced {
    Misplaced { column: 0, ..fault }
}

/// Syntax errors. What the parser says about the gaps that they leave in the tree is left out.
fn misplaced(errors: &ParseErrors) -> Vec<Misplaced> {
    let at_least_one = |n: isize| usize::try_from(n).unwrap_or(1).max(1);
    let faults = errors
        .errors
        .iter()
        .filter(|error| !error.msg.starts_with("Incomplete `"));
    let mut faults: Vec<Misplaced> = faults
        .map(|error| Misplaced {
            line: at_least_one(error.pos.0),
            column: at_least_one(error.pos.1),
            text: told(&error.msg),
        })
        .map(|fault| match fault.text.as_str() {
            // It stands at the character, not before it.
            QUOTED_NAME => Misplaced {
                column: fault.column + 1,
                ..fault
            },
            _ => fault,
        })
        .collect();
    if faults.is_empty() {
        faults.push(Misplaced {
            line: 1,
            column: 1,
            text: "Syntax error".to_owned(),
        });
    }
    faults
}
