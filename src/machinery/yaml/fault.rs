//! Faults of YAML documents, in the words of go-yaml, with the lines that it names.

use granit_parser::{ErrorKind, ScanError};

use crate::decode::DecodeError;

/// An error without a place.
pub(super) fn failure(reason: &str) -> DecodeError {
    DecodeError::Yaml(format!("yaml: {reason}"))
}

/// The error for a document that nests deeper than this.
pub(super) fn too_deep(limit: usize) -> DecodeError {
    failure(&format!("exceeded max depth of {limit}"))
}

/// How a place becomes the line of a message: go-yaml counts from 0, adds one to what its scanner finds, and names no
/// line for the very first.
enum Place {
    Scanner(usize),
    Parser(usize),
}

fn at(place: Place, reason: &str) -> DecodeError {
    let line = match place {
        Place::Scanner(0) | Place::Parser(0) => return failure(reason),
        Place::Scanner(line) => line + 1,
        Place::Parser(line) => line,
    };
    failure(&format!("line {line}: {reason}"))
}

/// The error of the parser in go-yaml's words.
pub(super) fn of_parser(error: &ScanError, text: &str, max_depth: usize) -> DecodeError {
    // From 0.
    let line = error.marker().line().saturating_sub(1);
    let scanner = |reason: &str| at(Place::Scanner(line), reason);
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => too_deep(max_depth),
        ErrorKind::UnknownAnchor => {
            let name = name_at(text, error.marker().index());
            failure(&format!("unknown anchor '{name}' referenced"))
        }
        ErrorKind::UnexpectedCharacter { .. } | ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation => {
            scanner("found character that cannot start any token")
        }
        ErrorKind::SimpleKeyExpected => at(
            Place::Scanner(next_token_line(text, line)),
            "could not find expected ':'",
        ),
        ErrorKind::UnknownQuotedScalarEscape => scanner("found unknown escape character"),
        ErrorKind::InvalidQuotedScalarHexEscape => scanner("did not find expected hexdecimal number"),
        ErrorKind::UnclosedQuotedScalar => at(
            Place::Scanner(text.matches('\n').count()),
            "found unexpected end of stream",
        ),
        ErrorKind::DocumentIndicatorInQuotedScalar => scanner("found unexpected document indicator"),
        ErrorKind::MappingValueNotAllowed => scanner("mapping values are not allowed in this context"),
        ErrorKind::MappingKeyNotAllowed => scanner("mapping keys are not allowed in this context"),
        ErrorKind::BlockSequenceEntryNotAllowed => scanner("block sequence entries are not allowed in this context"),
        ErrorKind::UnclosedFlowCollection { open } => unclosed(text, *open),
        ErrorKind::UnexpectedEofFlowMapping | ErrorKind::UnexpectedEofImplicitFlowMapping => unclosed(text, '{'),
        ErrorKind::UnexpectedEofFlowSequence => unclosed(text, '['),
        other => match in_parser(other) {
            Some(reason) => at(Place::Parser(line), reason),
            None => at(Place::Scanner(line), &error.info()),
        },
    }
}

fn in_parser(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::ExpectedBlockMappingKey => "did not find expected key",
        ErrorKind::ExpectedFlowMappingSeparator => "did not find expected ',' or '}'",
        ErrorKind::ExpectedFlowSequenceSeparator => "did not find expected ',' or ']'",
        ErrorKind::ExpectedNodeContent => "did not find expected node content",
        ErrorKind::ExpectedBlockSequenceEntry => "did not find expected '-' indicator",
        ErrorKind::ExpectedDocumentStart => "did not find expected <document start>",
        ErrorKind::UndeclaredTagHandle => "found undefined tag handle",
        ErrorKind::DuplicateVersionDirective => "found duplicate %YAML directive",
        ErrorKind::DuplicateTagDirective => "found duplicate %TAG directive",
        _ => return None,
    })
}

/// A flow collection that the text ends in.
fn unclosed(text: &str, open: char) -> DecodeError {
    let reason = match (text.trim_end().chars().next_back(), open) {
        (Some('[' | '{' | ','), _) => "did not find expected node content",
        (_, '{') => "did not find expected ',' or '}'",
        _ => "did not find expected ',' or ']'",
    };
    // The end stands on a line of its own.
    at(Place::Parser(text.lines().count()), reason)
}

/// The first line behind `line` with something on it, or the end.
fn next_token_line(text: &str, line: usize) -> usize {
    let behind = text.lines().enumerate().skip(line + 1);
    let mut filled = behind.filter(|(_, l)| !l.trim_start().is_empty() && !l.trim_start().starts_with('#'));
    filled.next().map_or(text.lines().count(), |(number, _)| number)
}

/// The name of the anchor or alias at a place, counted in characters.
pub(super) fn name_at(text: &str, index: usize) -> String {
    let from = text.chars().skip(index).skip_while(|c| matches!(c, '*' | '&' | ' '));
    from.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
        .collect()
}

/// What granit lets pass at the beginning of a stream, and go-yaml does not: tabs in front of the first token, versions
/// but 1.1, and an end without a beginning.
pub(super) fn check_beginning(text: &str) -> Result<(), DecodeError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in text.lines().enumerate() {
        let blanks = line.trim_start_matches([' ', '\t']);
        if line.len() > blanks.len() && line.trim_start_matches(' ').starts_with('\t') {
            return Err(at(
                Place::Scanner(number),
                "found character that cannot start any token",
            ));
        }
        if blanks.is_empty() || blanks.starts_with('#') {
            continue;
        }
        if line == "..." || line.starts_with("... ") {
            return Err(at(Place::Parser(number), "did not find expected node content"));
        }
        let Some(directive) = line.strip_prefix('%') else { break };
        let mut words = directive.split_whitespace();
        if words.next() == Some("YAML") && words.next().is_some_and(|version| version != "1.1") {
            return Err(at(Place::Parser(number), "found incompatible YAML document"));
        }
    }
    Ok(())
}
