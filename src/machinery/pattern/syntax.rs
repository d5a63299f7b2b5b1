//! The syntax of patterns: that of Go, which the API means everywhere, read and said in the syntax of the crate that
//! matches. What differs: `\d` and its like are of ASCII alone, brackets and operators within a class are characters, a
//! brace that is no repetition is one too, `\Q…\E`, flags before a repetition.

mod class;
mod escape;

use std::fmt::Write;

use super::PatternError;
use class::class;
use escape::{Escape, escape};

/// Repetitions within repetitions multiply up to this.
const MAX_REPEAT: u32 = 1000;
/// A number of a repetition that is larger than any that may stand there.
const TOO_LARGE: u32 = u32::MAX;

type Result<T> = std::result::Result<T, PatternError>;

/// The pattern in the syntax of the crate `regex`.
pub(super) fn translate(pattern: &str) -> Result<String> {
    let mut parser = Parser {
        whole: pattern,
        rest: pattern,
        out: String::with_capacity(pattern.len() + 16),
        groups: Vec::new(),
        flags: Flags::default(),
        atom: None,
        factor: 1,
    };
    let mut repeated = None;
    while !parser.rest.is_empty() {
        repeated = parser.step(repeated)?;
    }
    match parser.groups.is_empty() {
        true => Ok(parser.out),
        false => Err(PatternError::new("missing closing )", pattern)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Flags {
    fold_case: bool,
    multi_line: bool,
    dot_newline: bool,
    swap_greed: bool,
}

impl Flags {
    fn set(&mut self, flag: char, on: bool) -> bool {
        match flag {
            'i' => self.fold_case = on,
            'm' => self.multi_line = on,
            's' => self.dot_newline = on,
            'U' => self.swap_greed = on,
            _ => return false,
        }
        true
    }

    /// All of them, as the crate writes them: `i-msU`.
    fn text(self) -> String {
        let flags = [
            ('i', self.fold_case),
            ('m', self.multi_line),
            ('s', self.dot_newline),
            ('U', self.swap_greed),
        ];
        let mut text: String = flags.iter().filter(|(_, on)| *on).map(|(flag, _)| *flag).collect();
        text.push('-');
        text.extend(flags.iter().filter(|(_, on)| !*on).map(|(flag, _)| *flag));
        text.trim_end_matches('-').to_owned()
    }
}

/// What a repetition that follows is of: a part of the output.
#[derive(Clone, Copy)]
struct Atom {
    start: usize,
    end: usize,
    /// How often the innermost part of it is repeated.
    factor: u32,
    repeated: bool,
    /// What repetitions behind it take by themselves, as [`Flags::swap_greed`].
    swap_greed: bool,
}

/// A group that is open.
struct Group {
    start: usize,
    flags: Flags,
    /// Of what stands before it in the group around it.
    factor: u32,
}

struct Parser<'a> {
    whole: &'a str,
    rest: &'a str,
    out: String,
    groups: Vec<Group>,
    flags: Flags,
    atom: Option<Atom>,
    /// The largest of the group so far.
    factor: u32,
}

impl<'a> Parser<'a> {
    /// Reads one part; returns the text from a repetition on, if it was one.
    fn step(&mut self, repeated: Option<&'a str>) -> Result<Option<&'a str>> {
        let before = self.rest;
        match self.next() {
            '(' => self.open(before)?,
            '|' => {
                self.out.push('|');
                self.atom = None;
            }
            ')' => self.close()?,
            c @ ('^' | '$' | '.') => self.push(c.encode_utf8(&mut [0; 4])),
            '[' => {
                let (class, rest) = class(before)?;
                self.push(&class);
                self.rest = rest;
            }
            c @ ('*' | '+' | '?') => {
                self.repeat(c.encode_utf8(&mut [0; 4]), 1, before, repeated)?;
                return Ok(Some(before));
            }
            '{' => match bounds(before) {
                Some((least, most, rest)) => {
                    self.rest = rest;
                    self.repeat_counted(least, most, before, repeated)?;
                    return Ok(Some(before));
                }
                None => self.push(r"\{"),
            },
            '\\' => self.escape(before)?,
            c => self.push(&literal(c)),
        }
        Ok(None)
    }

    /// The next character.
    fn next(&mut self) -> char {
        let mut chars = self.rest.chars();
        let c = chars.next().unwrap_or_default();
        self.rest = chars.as_str();
        c
    }

    /// What was read since `before`.
    fn since(&self, before: &'a str) -> &'a str {
        before.get(..before.len() - self.rest.len()).unwrap_or_default()
    }

    fn push(&mut self, text: &str) {
        let start = self.out.len();
        self.out.push_str(text);
        self.atom = Some(Atom {
            start,
            end: self.out.len(),
            factor: 1,
            repeated: false,
            swap_greed: self.flags.swap_greed,
        });
    }

    fn escape(&mut self, before: &'a str) -> Result<()> {
        if let Some(quoted) = before.strip_prefix(r"\Q") {
            let (text, rest) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
            text.chars().for_each(|c| self.push(&literal(c)));
            self.rest = rest;
            return Ok(());
        }
        let assertions = [
            (r"\A", r"\A"),
            (r"\b", r"(?-u:\b)"),
            (r"\B", r"(?-u:\B)"),
            (r"\z", r"\z"),
        ];
        for (own, text) in assertions {
            if let Some(rest) = before.strip_prefix(own) {
                self.push(text);
                self.rest = rest;
                return Ok(());
            }
        }
        if before.starts_with(r"\C") {
            return Err(PatternError::new("invalid escape sequence", r"\C"));
        }
        let (escape, rest) = escape(before)?;
        self.rest = rest;
        match escape {
            Escape::Class(class) => self.push(&format!("[{class}]")),
            Escape::Char(Some(c)) => self.push(&literal(c)),
            // Half of a character, which no text has.
            Escape::Char(None) => self.push(r"[^\x00-\x{10FFFF}]"),
        }
        Ok(())
    }

    fn open(&mut self, before: &'a str) -> Result<()> {
        let named = before.starts_with("(?P<") && before.len() > 4 || before.starts_with("(?<") && before.len() > 3;
        if named {
            self.name(before)?;
        } else if before.starts_with("(?") {
            return self.flags(before);
        }
        self.open_group("(");
        Ok(())
    }

    fn open_group(&mut self, text: &str) {
        self.groups.push(Group {
            start: self.out.len(),
            flags: self.flags,
            factor: self.factor,
        });
        self.out.push_str(text);
        self.atom = None;
        self.factor = 1;
    }

    /// Reads the name of a group, which nothing refers to.
    fn name(&mut self, before: &'a str) -> Result<()> {
        const CODE: &str = "invalid named capture";
        let Some(end) = before.find('>') else {
            return Err(PatternError::new(CODE, before));
        };
        let (head, rest) = before.split_at(end + 1);
        let name = head.split_once('<').map_or("", |(_, name)| name.trim_end_matches('>'));
        if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
            return Err(PatternError::new(CODE, head));
        }
        self.rest = rest;
        Ok(())
    }

    /// Reads flags, and opens a group if there is one.
    fn flags(&mut self, before: &'a str) -> Result<()> {
        self.next();
        let (mut flags, mut on, mut seen) = (self.flags, true, false);
        while !self.rest.is_empty() {
            match self.next() {
                '-' if on => (on, seen) = (false, false),
                ':' if on || seen => {
                    self.open_group("");
                    self.flags = flags;
                    let _ = write!(self.out, "(?{}:", flags.text());
                    return Ok(());
                }
                ')' if on || seen => {
                    if flags != self.flags {
                        self.flags = flags;
                        let _ = write!(self.out, "(?{})", flags.text());
                    }
                    return Ok(());
                }
                c if flags.set(c, on) => seen = true,
                _ => break,
            }
        }
        Err(PatternError::new(
            "invalid or unsupported Perl syntax",
            self.since(before),
        ))
    }

    fn close(&mut self) -> Result<()> {
        let Some(group) = self.groups.pop() else {
            return Err(PatternError::new("unexpected )", self.whole));
        };
        self.settle();
        self.out.push(')');
        self.flags = group.flags;
        self.atom = Some(Atom {
            start: group.start,
            end: self.out.len(),
            factor: self.factor,
            repeated: false,
            swap_greed: self.flags.swap_greed,
        });
        self.factor = group.factor;
        Ok(())
    }

    /// Notes how often the last part repeats.
    fn settle(&mut self) {
        let last = self.atom.map_or(1, |atom| atom.factor);
        self.factor = self.factor.max(last);
    }

    /// A repetition, which is to be read up to the mark for its greed.
    fn repeat(&mut self, operator: &str, times: u32, before: &'a str, repeated: Option<&'a str>) -> Result<()> {
        let lazy = self.rest.strip_prefix('?');
        self.rest = lazy.unwrap_or(self.rest);
        if let Some(first) = repeated {
            return Err(PatternError::new(
                "invalid nested repetition operator",
                self.since(first),
            ));
        }
        let Some(atom) = self.atom else {
            let code = "missing argument to repetition operator";
            return Err(PatternError::new(code, self.since(before)));
        };
        // It is written before flags that stand between.
        let lazy = lazy.is_some() != (atom.swap_greed != self.flags.swap_greed);
        let mut suffix = format!("{operator}{}", if lazy { "?" } else { "" });
        let mut added = suffix.len();
        if atom.repeated {
            self.out.insert_str(atom.start, "(?:");
            suffix.insert(0, ')');
            added += 1;
        }
        let end = atom.end + if atom.repeated { 3 } else { 0 };
        self.out.insert_str(end, &suffix);
        let atom = Atom {
            end: end + added,
            factor: atom.factor.saturating_mul(times),
            repeated: true,
            ..atom
        };
        self.factor = self.factor.max(atom.factor);
        self.atom = Some(atom);
        Ok(())
    }

    /// A repetition with bounds.
    fn repeat_counted(
        &mut self,
        least: u32,
        most: Option<u32>,
        before: &'a str,
        repeated: Option<&'a str>,
    ) -> Result<()> {
        const CODE: &str = "invalid repeat count";
        let wrong = least > MAX_REPEAT || most.is_some_and(|most| most > MAX_REPEAT || most < least);
        if wrong {
            return Err(PatternError::new(CODE, self.since(before)));
        }
        let operator = match most {
            Some(most) => format!("{{{least},{most}}}"),
            None => format!("{{{least},}}"),
        };
        let times = most.unwrap_or(least).max(1);
        self.repeat(&operator, times, before, repeated)?;
        let factor = self.atom.map_or(1, |atom| atom.factor);
        if factor > MAX_REPEAT && most != Some(0) {
            return Err(PatternError::new(CODE, self.since(before)));
        }
        Ok(())
    }
}

/// The numbers of a repetition and what follows it. `None`: it is none.
fn bounds(text: &str) -> Option<(u32, Option<u32>, &str)> {
    let (least, rest) = number(text.strip_prefix('{')?)?;
    let (most, rest) = match rest.strip_prefix(',') {
        None => (Some(least), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => {
            let (most, rest) = number(rest)?;
            (Some(most), rest)
        }
    };
    Some((least, most, rest.strip_prefix('}')?))
}

/// A number without leading zeros.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().unwrap_or(TOO_LARGE), rest))
}

/// A character that means itself.
fn literal(c: char) -> String {
    regex::escape(c.encode_utf8(&mut [0; 4]))
}
