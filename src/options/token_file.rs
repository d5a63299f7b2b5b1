//! The CSV files of static tokens and of passwords.

use std::collections::BTreeMap;

use keelson_access::user::User;

/// Why a file can't be used, in kube-apiserver's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TokenFileError {
    /// A record of too few fields.
    #[error("{what} file '{path}' must have at least 3 columns ({what}, user name, user uid), found {found}")]
    Columns {
        /// `token` or `password`.
        what: &'static str,
        /// The file.
        path: String,
        /// How many fields the record has.
        found: usize,
    },
    /// A text that is no CSV.
    #[error(transparent)]
    Csv(#[from] CsvError),
}

/// Where a text is no CSV, in the words of Go's encoding/csv.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CsvError {
    /// The record's first line, counted from 1.
    start: usize,
    line: usize,
    /// Byte of the line, counted from 1.
    column: usize,
    what: CsvMistake,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
enum CsvMistake {
    #[error("bare \" in non-quoted field")]
    BareQuote,
    #[error("extraneous or missing \" in quoted-field")]
    Quote,
}

impl std::error::Error for CsvError {}

impl std::fmt::Display for CsvError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line != self.start {
            write!(f, "record on line {}; ", self.start)?;
        }
        write!(
            f,
            "parse error on line {}, column {}: {}",
            self.line, self.column, self.what
        )
    }
}

/// What a file of tokens says.
#[derive(Default, Clone, PartialEq)]
pub struct Tokens {
    /// Token → user.
    pub users: BTreeMap<String, User>,
    /// Records that are odd but no errors, one line each.
    pub warnings: Vec<String>,
}

/// Tokens must not reach a log.
impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens")
            .field("count", &self.users.len())
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

/// Passwords and their users.
#[derive(Default, Clone)]
pub struct Passwords(pub Vec<(String, User)>);

/// Passwords must not reach a log.
impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Passwords").field(&self.0.len()).finish()
    }
}

/// Reads `password,user,uid[,"group,group"]` records. `path` only names the file in messages.
///
/// # Errors
/// A record that is too short or no CSV.
pub fn parse_passwords(path: &str, text: &str) -> Result<Passwords, TokenFileError> {
    let mut passwords = Passwords::default();
    for record in records(text)? {
        let [password, name, uid, rest @ ..] = record.as_slice() else {
            return Err(columns("password", path, &record));
        };
        passwords.0.push((password.clone(), user(name, uid, rest)));
    }
    Ok(passwords)
}

fn columns(what: &'static str, path: &str, record: &[String]) -> TokenFileError {
    TokenFileError::Columns {
        what,
        path: path.to_owned(),
        found: record.len(),
    }
}

fn user(name: &str, uid: &str, rest: &[String]) -> User {
    let groups = rest
        .first()
        .map(|groups| groups.split(',').map(str::to_owned).collect());
    User {
        name: name.to_owned(),
        uid: uid.to_owned(),
        groups: groups.unwrap_or_default(),
        ..User::default()
    }
}

/// Reads `token,user,uid[,"group,group"]` records. `path` only names the file in messages.
///
/// # Errors
/// kube-apiserver's text for a record that is too short or no CSV.
pub fn parse(path: &str, text: &str) -> Result<Tokens, TokenFileError> {
    let mut tokens = Tokens::default();
    for (index, record) in records(text)?.into_iter().enumerate() {
        let [token, name, uid, rest @ ..] = record.as_slice() else {
            return Err(columns("token", path, &record));
        };
        let number = index + 1;
        if token.is_empty() {
            tokens.warnings.push(format!(
                "empty token has been found in token file '{path}', record number '{number}'"
            ));
            continue;
        }
        if tokens.users.insert(token.clone(), user(name, uid, rest)).is_some() {
            tokens.warnings.push(format!(
                "duplicate token has been found in token file '{path}', record number '{number}'"
            ));
        }
    }
    Ok(tokens)
}

/// The records of a CSV text as Go's encoding/csv reads them: empty lines are skipped, a field in quotes may hold
/// commas, line ends and doubled quotes.
fn records(text: &str) -> Result<Vec<Vec<String>>, CsvError> {
    let mut records = Vec::new();
    let mut lines = text
        .split_inclusive('\n')
        .enumerate()
        .map(|(index, line)| (index + 1, line));
    while let Some((number, line)) = lines.next() {
        if line.trim_end_matches(['\n', '\r']).is_empty() {
            continue;
        }
        let mut reader = RecordReader {
            lines: &mut lines,
            line,
            number,
            start: number,
            at: 0,
        };
        records.push(reader.record()?);
    }
    Ok(records)
}

/// Reads one record, which may go on over several lines.
struct RecordReader<'a, 'b, I: Iterator<Item = (usize, &'a str)>> {
    lines: &'b mut I,
    line: &'a str,
    /// The line, counted from 1.
    number: usize,
    /// The record's first line.
    start: usize,
    /// Byte in the line.
    at: usize,
}

impl<'a, I: Iterator<Item = (usize, &'a str)>> RecordReader<'a, '_, I> {
    fn record(&mut self) -> Result<Vec<String>, CsvError> {
        let mut fields = Vec::new();
        loop {
            let field = match self.rest().starts_with('"') {
                true => self.quoted()?,
                false => self.bare()?,
            };
            fields.push(field);
            match self.rest().starts_with(',') {
                true => self.at += 1,
                false => return Ok(fields),
            }
        }
    }

    fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    fn bare(&mut self) -> Result<String, CsvError> {
        let rest = self.rest().trim_end_matches('\n').trim_end_matches('\r');
        let field = &rest[..rest.find(',').unwrap_or(rest.len())];
        if let Some(quote) = field.find('"') {
            return Err(self.error(self.at + quote + 1, CsvMistake::BareQuote));
        }
        self.at += field.len();
        Ok(field.to_owned())
    }

    fn quoted(&mut self) -> Result<String, CsvError> {
        let mut field = String::new();
        self.at += 1;
        loop {
            let rest = self.rest();
            let Some(quote) = rest.find('"') else {
                field.push_str(rest);
                let Some((number, line)) = self.lines.next() else {
                    return Err(self.error(self.line.len() + 1, CsvMistake::Quote));
                };
                (self.number, self.line, self.at) = (number, line, 0);
                continue;
            };
            field.push_str(&rest[..quote]);
            self.at += quote + 1;
            match self.rest().chars().next() {
                Some('"') => {
                    field.push('"');
                    self.at += 1;
                }
                None | Some(',' | '\n') => return Ok(field),
                Some('\r') if self.rest().trim_end_matches('\n') == "\r" => return Ok(field),
                Some(_) => return Err(self.error(self.at, CsvMistake::Quote)),
            }
        }
    }

    fn error(&self, column: usize, what: CsvMistake) -> CsvError {
        CsvError {
            start: self.start,
            line: self.number,
            column,
            what,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_may_be_the_same_and_are_not_shown() {
        let passwords = parse_passwords("f", "canary,ann,1\ncanary,bob,2,\"a,b\"\n").unwrap();
        let names: Vec<_> = passwords.0.iter().map(|(_, user)| user.name.as_str()).collect();
        assert_eq!(names, ["ann", "bob"]);
        assert_eq!(passwords.0[1].1.groups, ["a", "b"]);
        assert_eq!(format!("{passwords:?}"), "Passwords(2)");
        let tokens = parse("f", "canary,ann,1").unwrap();
        assert!(!format!("{tokens:?}").contains("canary"));
        let error = parse_passwords("f", "a,b").unwrap_err().to_string();
        assert!(error.ends_with("(password, user name, user uid), found 2"), "{error}");
    }

    #[test]
    fn records_become_users() {
        let text = "admintoken,admin,uid-admin,\"system:masters\"\r\n\n\
                    alicetoken,alice,uid-alice,\"devs,ops\"\nbobtoken,bob,uid-bob";
        let tokens = parse("f", text).unwrap();
        assert_eq!(tokens.users["alicetoken"].groups, ["devs", "ops"]);
        assert_eq!(tokens.users["admintoken"].groups, ["system:masters"]);
        assert_eq!(
            (
                tokens.users["bobtoken"].name.as_str(),
                tokens.users["bobtoken"].uid.as_str()
            ),
            ("bob", "uid-bob")
        );
        assert!(tokens.users["bobtoken"].groups.is_empty() && tokens.warnings.is_empty());
    }

    #[test]
    fn odd_records_are_told() {
        let tokens = parse("f", "t,a,1\n,b,2\nt,c,3\n").unwrap();
        assert_eq!(tokens.users["t"].name, "c");
        assert_eq!(
            tokens.warnings,
            [
                "empty token has been found in token file 'f', record number '2'",
                "duplicate token has been found in token file 'f', record number '3'"
            ]
        );
    }

    #[test]
    fn errors_are_those_of_kube_apiserver() {
        for (text, error) in [
            (
                "t,u\n",
                "token file 'f' must have at least 3 columns (token, user name, user uid), found 2",
            ),
            (
                "t,u\"x,1\n",
                "parse error on line 1, column 4: bare \" in non-quoted field",
            ),
            (
                "t,\"u\"x,1\n",
                "parse error on line 1, column 5: extraneous or missing \" in quoted-field",
            ),
            (
                "t,\"u\n1",
                "record on line 1; parse error on line 2, column 2: extraneous or missing \" in quoted-field",
            ),
        ] {
            assert_eq!(parse("f", text).unwrap_err().to_string(), error, "{text:?}");
        }
    }

    #[test]
    fn quoted_fields_hold_anything() {
        assert_eq!(records("\"a\"\"b\",\"c\nd\",\n").unwrap(), [["a\"b", "c\nd", ""]]);
    }
}
