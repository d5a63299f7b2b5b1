//! Addresses of mail, as Go parses them by RFC 5322: an address with or without a name, or a group of one.

use std::net::IpAddr;

/// Whether the text is a single address.
pub(super) fn is_address(text: &str) -> bool {
    let mut parser = Parser(text);
    let addresses = parser.address(true);
    addresses == Some(1) && parser.skip_comments() && parser.0.is_empty()
}

struct Parser<'a>(&'a str);

impl<'a> Parser<'a> {
    /// How many addresses stand here; `None`: none that could be read.
    fn address(&mut self, groups: bool) -> Option<usize> {
        self.skip_space();
        if self.0.is_empty() {
            return None;
        }
        if self.spec() {
            self.skip_space();
            if self.take('(') && !self.comment() {
                return None;
            }
            return Some(1);
        }
        if !self.0.starts_with('<') && !self.phrase() {
            return None;
        }
        self.skip_space();
        if groups && self.take(':') {
            return self.group();
        }
        (self.take('<') && self.spec() && self.take('>')).then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        self.skip_space();
        if self.take(';') {
            return self.skip_comments().then_some(0);
        }
        let mut count = 0;
        loop {
            self.skip_space();
            count += self.address(false)?;
            if !self.skip_comments() {
                return None;
            }
            if self.take(';') {
                return self.skip_comments().then_some(count);
            }
            if !self.take(',') {
                return None;
            }
        }
    }

    /// `local@domain`. What is none leaves the text as it was.
    fn spec(&mut self) -> bool {
        let before = self.0;
        self.skip_space();
        let local = match self.0.starts_with('"') {
            true => self.quoted().is_some_and(|text| text > 0),
            false => self.atom(false),
        };
        if local && self.take('@') {
            self.skip_space();
            let domain = match self.0.starts_with('[') {
                true => self.literal(),
                false => self.atom(false),
            };
            if domain {
                return true;
            }
        }
        self.0 = before;
        false
    }

    /// Words; at least one.
    fn phrase(&mut self) -> bool {
        let mut words = 0;
        loop {
            if words > 0 && !self.skip_comments() {
                return false;
            }
            self.skip_space();
            if self.0.is_empty() {
                break;
            }
            let word = match self.0.starts_with('"') {
                true => self.quoted().is_some(),
                false => self.atom(true),
            };
            if !word {
                return words > 0;
            }
            words += 1;
        }
        // Nothing behind a phrase is no error of the phrase.
        true
    }

    /// A quoted text: how many characters it has.
    fn quoted(&mut self) -> Option<usize> {
        let (mut count, mut escaped) = (0, false);
        for (at, c) in self.0.char_indices().skip(1) {
            match c {
                c if escaped && (is_visible(c) || is_space(c)) => escaped = false,
                _ if escaped => return None,
                '"' => {
                    self.0 = self.0.get(at + 1..)?;
                    return Some(count);
                }
                '\\' => {
                    escaped = true;
                    continue;
                }
                c if is_visible(c) || is_space(c) => {}
                _ => return None,
            }
            count += 1;
        }
        None
    }

    /// An atom with dots; `any_dots`: anywhere in it.
    fn atom(&mut self, any_dots: bool) -> bool {
        let end = self.0.find(|c| !is_atom(c)).unwrap_or(self.0.len());
        let (atom, rest) = self.0.split_at(end);
        if atom.is_empty() {
            return false;
        }
        self.0 = rest;
        any_dots || !(atom.starts_with('.') || atom.contains("..") || atom.ends_with('.'))
    }

    /// `[address]`.
    fn literal(&mut self) -> bool {
        let Some((inner, rest)) = self.0.strip_prefix('[').and_then(|text| text.split_once(']')) else {
            return false;
        };
        self.0 = rest;
        inner.parse::<IpAddr>().is_ok()
    }

    /// The rest of a comment, of which the first parenthesis is taken.
    fn comment(&mut self) -> bool {
        let (mut depth, mut escaped) = (1, false);
        for (at, c) in self.0.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.0 = self.0.get(at + 1..).unwrap_or_default();
                return true;
            }
        }
        false
    }

    fn skip_comments(&mut self) -> bool {
        self.skip_space();
        while self.take('(') {
            if !self.comment() {
                return false;
            }
            self.skip_space();
        }
        true
    }

    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches(is_space);
    }

    fn take(&mut self, c: char) -> bool {
        match self.0.strip_prefix(c) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// What has an image; all characters beyond ASCII count.
fn is_visible(c: char) -> bool {
    matches!(c, '!'..='~') || !c.is_ascii()
}

fn is_atom(c: char) -> bool {
    c == '.' || (is_visible(c) && !"()<>[]:;@\\,\"".contains(c))
}
