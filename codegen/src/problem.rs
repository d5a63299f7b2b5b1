//! Mistakes in definitions: where they are, what is wrong, and what to write instead.

use std::fmt;

/// A line of a definition file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Place {
    /// Path as the build names it: the folder given to the builder and the file's path below it.
    pub file: String,
    /// From 1; 0 where only the file is known.
    pub line: usize,
}

/// One mistake. Shown as `file:line: subject: what is wrong, and what to write instead`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// `Message`, `Message.field`, or empty for a mistake of the whole file.
    pub subject: String,
    /// What is wrong, and what to write instead.
    pub text: String,
}

/// What is made of a part of a definition. The error is the text of a [`Problem`], which nobody tells apart.
pub(crate) type Checked<T> = Result<T, String>;

impl Problem {
    /// A mistake at a place; the fields say what the others are.
    pub fn new(place: &Place, subject: impl Into<String>, text: impl Into<String>) -> Problem {
        Problem {
            place: place.clone(),
            subject: subject.into(),
            text: text.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.place.file)?;
        if self.place.line > 0 {
            write!(f, "{}:", self.place.line)?;
        }
        if !self.subject.is_empty() {
            write!(f, " {}:", self.subject)?;
        }
        write!(f, " {}", self.text)
    }
}

/// Why no code was generated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Mistakes in the definitions, in the order of files and lines.
    #[error("{}", lines(.0))]
    Definitions(Vec<Problem>),
    /// A file or folder can't be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Which one.
        path: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The generator itself went wrong.
    #[error("the generated code is not valid Rust: {0}")]
    Syntax(#[from] syn::Error),
    /// What cargo tells build scripts is missing.
    #[error("{0}")]
    Environment(String),
}

impl Error {
    pub(crate) fn io(path: &std::path::Path, source: std::io::Error) -> Error {
        Error::Io {
            path: path.display().to_string(),
            source,
        }
    }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}
