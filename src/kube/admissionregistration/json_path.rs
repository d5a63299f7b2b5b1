//! JSON paths as kubectl's templates have them: whether one can be read, and why not.

/// Why a path can't be read; what a path means is looked at nowhere.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    #[error("unclosed action")]
    OpenAction,
    #[error("unrecognized character in action: U+{code:04X} '{0}'", code = u32::from(*.0))]
    Character(char),
    #[error("invalid multiple recursive descent")]
    Recursion,
    #[error("cannot parse number {0}")]
    Number(String),
    #[error("unterminated array")]
    OpenArray,
    #[error("invalid array index {0}")]
    Index(String),
    #[error("array index {0} is not a number")]
    Slice(String),
    #[error("unterminated filter")]
    OpenFilter,
    #[error("unclosed array expect ]")]
    OpenBracket,
    #[error("unterminated quoted string")]
    OpenQuote,
}

/// How deep parts are looked at that stand in others.
const DEEPEST: usize = 32;

/// Checks a path that stands within braces.
pub fn check(path: &str) -> Result<(), PathFault> {
    within(path, 0)
}

fn within(path: &str, depth: usize) -> Result<(), PathFault> {
    let mut reader = Reader {
        text: format!("{{{path}}}").chars().collect(),
        at: 0,
        depth,
        descends: false,
    };
    while reader.skip_to_action() {
        while reader.part()? {}
    }
    Ok(())
}

struct Reader {
    text: Vec<char>,
    at: usize,
    depth: usize,
    /// Whether the last part is a recursive descent.
    descends: bool,
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

impl Reader {
    /// Whether there is another text within braces.
    fn skip_to_action(&mut self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let found = rest.iter().position(|c| *c == '{');
        self.at += found.map_or(rest.len(), |place| place + 1);
        self.descends = false;
        found.is_some()
    }

    fn starts_with(&self, text: &str) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        rest.len() >= text.len() && text.chars().zip(rest).all(|(a, b)| a == *b)
    }

    fn text(&self, from: usize) -> String {
        self.text.get(from..self.at).unwrap_or_default().iter().collect()
    }

    /// Reads the next part; false at the end of the action.
    fn part(&mut self) -> Result<bool, PathFault> {
        if self.starts_with("}") {
            self.at += 1;
            return Ok(false);
        }
        if self.starts_with("[?(") {
            self.filter()?;
        } else if self.starts_with("..") {
            return self.descent().map(|()| true);
        } else {
            let first = self.text.get(self.at).copied().ok_or(PathFault::OpenAction)?;
            match first {
                '\r' | '\n' => return Err(PathFault::OpenAction),
                ' ' | '@' | '$' => {
                    self.at += 1;
                    return Ok(true);
                }
                '[' => self.array()?,
                '"' | '\'' => self.quote(first)?,
                '.' => {
                    self.at += 1;
                    self.field();
                }
                '+' | '-' => self.number()?,
                c if c.is_numeric() => self.number()?,
                c if is_word(c) => self.field(),
                c => return Err(PathFault::Character(c)),
            }
        }
        self.descends = false;
        Ok(true)
    }

    fn descent(&mut self) -> Result<(), PathFault> {
        if self.descends {
            return Err(PathFault::Recursion);
        }
        self.at += 2;
        self.descends = true;
        if self.text.get(self.at).copied().is_some_and(is_word) {
            self.field();
            self.descends = false;
        }
        Ok(())
    }

    fn field(&mut self) {
        while let Some(c) = self.text.get(self.at).copied().filter(|c| !ends_word(*c)) {
            self.at += if c == '\\' { 2 } else { 1 };
        }
        self.at = self.at.min(self.text.len());
    }

    fn number(&mut self) -> Result<(), PathFault> {
        let from = self.at;
        self.at += usize::from(matches!(self.text.get(self.at), Some('+' | '-')));
        while self.text.get(self.at).is_some_and(|c| *c == '.' || c.is_numeric()) {
            self.at += 1;
        }
        let text = self.text(from);
        match text.parse::<f64>() {
            Ok(_) => Ok(()),
            Err(_) => Err(PathFault::Number(text)),
        }
    }

    fn array(&mut self) -> Result<(), PathFault> {
        let from = self.at + 1;
        let rest = self.text.get(from..).unwrap_or_default();
        let end = rest.iter().position(|c| matches!(c, ']' | '\n'));
        let Some(end) = end.filter(|end| rest.get(*end) == Some(&']')) else {
            return Err(PathFault::OpenArray);
        };
        self.at = from + end;
        let text = self.text(from);
        self.at += 1;
        self.index(&text)
    }

    /// What stands in brackets.
    fn index(&self, text: &str) -> Result<(), PathFault> {
        if text.contains(',') {
            let mut parts = text.split(',');
            return parts.try_for_each(|part| self.below(&format!("[{}]", part.trim_matches(' '))));
        }
        let quoted = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        if let Some(key) = quoted.filter(|key| !key.contains('\'')) {
            return self.below(&format!(".{key}"));
        }
        let bounds: Vec<&str> = text.split(':').collect();
        let digits = |bound: &&str| {
            bound
                .strip_prefix('-')
                .unwrap_or(bound)
                .bytes()
                .all(|b| b.is_ascii_digit())
        };
        if text != "*" && (bounds.len() > 3 || !bounds.iter().all(digits)) {
            return Err(PathFault::Index(text.to_owned()));
        }
        let mut said = bounds.iter().filter(|bound| !bound.is_empty() && text != "*");
        match said.find(|bound| bound.parse::<i64>().is_err()) {
            Some(bound) => Err(PathFault::Slice((*bound).to_owned())),
            None => Ok(()),
        }
    }

    fn below(&self, path: &str) -> Result<(), PathFault> {
        match self.depth < DEEPEST {
            true => within(path, self.depth + 1),
            false => Ok(()),
        }
    }

    fn filter(&mut self) -> Result<(), PathFault> {
        self.at += "[?(".len();
        let (from, mut quote, mut closed) = (self.at, None, false);
        loop {
            let c = self.text.get(self.at).copied().filter(|c| *c != '\n');
            let c = c.ok_or(PathFault::OpenFilter)?;
            let before = self.text.get(self.at - 1).copied();
            match c {
                '"' | '\'' if quote.is_none() => quote = Some(c),
                '"' | '\'' if quote == Some(c) && before != Some('\\') => closed = true,
                ')' if quote.is_some() == closed => break,
                _ => {}
            }
            self.at += 1;
        }
        let text = self.text(from);
        if self.text.get(self.at + 1) != Some(&']') {
            return Err(PathFault::OpenBracket);
        }
        self.at += 2;
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        match text.find(is_operator).filter(|place| *place > 0) {
            Some(place) => {
                let (left, rest) = text.split_at(place);
                self.below(left)?;
                self.below(rest.trim_start_matches(is_operator))
            }
            None => self.below(&text),
        }
    }

    fn quote(&mut self, end: char) -> Result<(), PathFault> {
        loop {
            self.at += 1;
            match self.text.get(self.at).copied() {
                None | Some('\n') => return Err(PathFault::OpenQuote),
                Some(c) if c == end && self.text.get(self.at - 1) != Some(&'\\') => break,
                Some(_) => {}
            }
        }
        self.at += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_templates_are() {
        for (path, expected) in [
            (".spec.replicas", ""),
            ("spec.validations[0].expression", ""),
            (".a['b.c'][1:2,*]", ""),
            (".items[?(@.name==\"x\")]", ""),
            ("/abs", "unrecognized character in action: U+002F '/'"),
            ("10.1.2.3", "cannot parse number 10.1.2.3"),
            ("a[", "unterminated array"),
            ("a[x]", "invalid array index x"),
            ("a[-]", "array index - is not a number"),
            (".....", "invalid multiple recursive descent"),
            ("a[?(@.b", "unterminated filter"),
            ("'a", "unterminated quoted string"),
        ] {
            let found = check(path).map_or_else(|why| why.to_string(), |()| String::new());
            assert_eq!(found, expected, "{path}");
        }
    }
}
