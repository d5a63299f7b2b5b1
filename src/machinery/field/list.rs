//! Lists of wrong fields. They are bounded: three bytes of a request make an error, which costs hundreds to tell.

use std::fmt;
use std::ops::Deref;

use super::error::{BadValue, ErrorType, FieldError};
use super::path::Path;

/// Errors that a list keeps.
const MAX_ERRORS: usize = 256;
/// Bytes of the texts of its errors from which on a list takes no more.
const MAX_BYTES: usize = 24 * 1024;

/// What is wrong with an object, in the order in which it was found. Where there is no room for an error, one that says
/// so ends the list, so it never looks as if all was told, and what is refused stays refused.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ErrorList {
    errors: Vec<FieldError>,
    bytes: usize,
    full: bool,
}

impl ErrorList {
    pub fn new() -> ErrorList {
        ErrorList::default()
    }

    /// Whether there was an error too many. What walks over many items may end then: nothing that it finds is taken.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Appends an error if there is room for it.
    pub fn push(&mut self, error: FieldError) {
        if self.full {
            return;
        }
        self.full = self.errors.len() >= MAX_ERRORS || self.bytes >= MAX_BYTES;
        self.bytes += error.size();
        self.errors.push(if self.full { too_many() } else { error });
    }

    /// Appends errors as far as there is room; those beyond are not even made.
    pub fn extend(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        let mut errors = errors.into_iter();
        while !self.full
            && let Some(error) = errors.next()
        {
            self.push(error);
        }
    }

    /// Takes the errors from an index on out.
    pub fn truncate(&mut self, len: usize) {
        if len < self.errors.len() {
            self.errors.truncate(len);
            self.bytes = self.errors.iter().map(FieldError::size).sum();
            self.full = false;
        }
    }

    /// `Ok` if nothing is wrong.
    pub fn into_result(self) -> Result<(), ErrorList> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }
}

/// The last one of a full list.
fn too_many() -> FieldError {
    let detail = "there are more than are shown";
    FieldError::new(
        ErrorType::TooMany,
        &Path::root(),
        BadValue::Text("errors".into()),
        detail,
    )
}

impl Deref for ErrorList {
    type Target = [FieldError];
    fn deref(&self) -> &[FieldError] {
        &self.errors
    }
}

impl From<FieldError> for ErrorList {
    fn from(error: FieldError) -> ErrorList {
        ErrorList::from_iter([error])
    }
}

impl FromIterator<FieldError> for ErrorList {
    fn from_iter<I: IntoIterator<Item = FieldError>>(errors: I) -> ErrorList {
        let mut list = ErrorList::new();
        list.extend(errors);
        list
    }
}

impl IntoIterator for ErrorList {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;
    fn into_iter(self) -> Self::IntoIter {
        self.errors.into_iter()
    }
}

/// One error as it is; several as `[a, b]`, each text once.
impl fmt::Display for ErrorList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts: Vec<String> = Vec::with_capacity(self.len());
        let mut seen = std::collections::BTreeSet::new();
        for error in &self.errors {
            let text = error.to_string();
            if seen.insert(text.clone()) {
                texts.push(text);
            }
        }
        match texts.as_slice() {
            [one] => f.write_str(one),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

impl std::error::Error for ErrorList {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_each_text_once() {
        let (a, b) = (
            FieldError::required(&Path::new("a"), ""),
            FieldError::required(&Path::new("b"), ""),
        );
        let list = |errors: &[&FieldError]| ErrorList::from_iter(errors.iter().copied().cloned()).to_string();
        assert_eq!(ErrorList::from(a.clone()).to_string(), "a: Required value");
        assert_eq!(list(&[&a, &a]), "a: Required value");
        assert_eq!(list(&[&a, &b, &a]), "[a: Required value, b: Required value]");
    }

    #[test]
    fn lists_take_so_many_errors_and_say_that_there_were_more() {
        let (error, long) = (
            FieldError::required(&Path::new("a"), ""),
            FieldError::invalid(&Path::new("a"), "x".repeat(6_000), ""),
        );
        for (error, room) in [(&error, MAX_ERRORS), (&long, 5)] {
            let exactly = ErrorList::from_iter(vec![error.clone(); room]);
            assert_eq!((exactly.len(), exactly.is_full()), (room, false));
            let mut made = 0;
            let more = std::iter::from_fn(|| {
                made += 1;
                Some(error.clone())
            });
            let mut full = ErrorList::from_iter(more);
            assert_eq!((full.len(), full.is_full(), made), (room + 1, true, room + 1));
            assert_eq!(full.last(), Some(&too_many()));
            full.push(error.clone());
            // A list that takes over another one says so too, once.
            let mut outer = ErrorList::from_iter(full.clone());
            outer.extend(full.clone());
            assert_eq!(*outer, *full);
        }
        assert_eq!(
            too_many().to_string(),
            "<nil>: Too many: errors: there are more than are shown"
        );
    }
}
