//! The text of a record: one line for each kind, message and field, so that a change is a change of few lines.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::types::{Line, Record, SCALARS, StoredType};

const HEAD: &str = "\
# What stored objects are made of: the numbers, types and names of all fields. The build writes this file and compares
# the definitions with it; commit it with them. See \"Changing a definition\" in the manual of definitions.
";

/// The text of a record.
pub fn write(record: &Record) -> String {
    let mut out = HEAD.to_owned();
    for (kind, message) in &record.kinds {
        let _ = writeln!(out, "\nkind {kind} {message}");
    }
    for (name, fields) in &record.messages {
        let _ = writeln!(out, "\nmessage {name}");
        for (number, field) in fields {
            let _ = write!(out, "  {number} {} {}", field.name, field.ty);
            for (on, word) in [(field.optional, OPTIONAL), (field.is_gone, GONE)] {
                if on {
                    let _ = write!(out, " {word}");
                }
            }
            for (rule, value) in &field.rules {
                let _ = write!(out, " {rule}={}", serde_json::Value::from(value.as_str()));
            }
            out.push('\n');
        }
    }
    out
}

const OPTIONAL: &str = "optional";
const GONE: &str = "removed";

/// Reads one; an error has its line.
pub fn parse(text: &str) -> Result<Record, (usize, String)> {
    let mut record = Record::default();
    let mut current: Option<String> = None;
    for (index, line) in text.lines().enumerate() {
        let wrong = |why: &str| (index + 1, format!("{why}: undo the change of this line"));
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(kind) = line.strip_prefix("kind ") {
            let (kind, message) = kind.split_once(' ').ok_or_else(|| wrong("a kind needs its message"))?;
            record.kinds.insert(kind.to_owned(), message.to_owned());
        } else if let Some(message) = line.strip_prefix("message ") {
            record.messages.entry(message.to_owned()).or_default();
            current = Some(message.to_owned());
        } else {
            let message = current.as_ref().and_then(|name| record.messages.get_mut(name));
            let message = message.ok_or_else(|| wrong("a field stands below its message"))?;
            let (number, field) = field(line.trim()).ok_or_else(|| wrong("this is no field"))?;
            message.insert(number, field);
        }
    }
    Ok(record)
}

/// `<number> <name> <type> [optional] [removed] [<rule>=<JSON text> …]`
fn field(line: &str) -> Option<(u32, Line)> {
    let (number, rest) = line.split_once(' ')?;
    let (name, rest) = rest.split_once(' ')?;
    let (ty, mut rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let mut line = Line {
        name: name.to_owned(),
        ty: stored_type(ty)?,
        optional: false,
        is_gone: false,
        rules: BTreeMap::new(),
    };
    while !rest.is_empty() {
        let word = rest.split([' ', '=']).next().unwrap_or_default();
        match word {
            OPTIONAL => line.optional = true,
            GONE => line.is_gone = true,
            rule => {
                let value = rest.get(rule.len()..)?.strip_prefix('=')?;
                let mut values = serde_json::Deserializer::from_str(value).into_iter::<String>();
                line.rules.insert(rule.to_owned(), values.next()?.ok()?);
                rest = value.get(values.byte_offset()..)?.trim_start();
                continue;
            }
        }
        rest = rest.get(word.len()..)?.trim_start();
    }
    Some((number.parse().ok()?, line))
}

fn stored_type(text: &str) -> Option<StoredType> {
    let inner = |prefix: &str| text.strip_prefix(prefix)?.strip_suffix('>');
    if let Some(inner) = inner("list<") {
        return Some(StoredType::List(Box::new(stored_type(inner)?)));
    }
    if let Some(inner) = inner("map<") {
        return Some(StoredType::Map(Box::new(stored_type(inner)?)));
    }
    let scalar = SCALARS.iter().find(|scalar| **scalar == text);
    Some(match scalar {
        Some(scalar) => StoredType::Scalar(scalar),
        None if text.is_empty() || text.contains(['<', '>']) => return None,
        None => StoredType::Message(text.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let text = format!(
            "{HEAD}\nkind Booking com.example.v1.Booking\n\nmessage com.example.v1.Booking\n  1 metadata M\n  2 room string \
             enum=\"a|b c\" pattern=\"^\\\"x\\\\d$\"\n  3 seats int32 optional\n  4 guests list<com.example.v1.Guest> removed\n  \
             5 labels map<list<string>> optional removed default=\"{{}}\"\n"
        );
        let record = parse(&text).unwrap();
        assert_eq!(write(&record), text);
        let fields = record.messages.values().next().unwrap();
        assert_eq!(fields[&2].rules["pattern"], "^\"x\\d$");
        assert!(fields[&4].is_gone && !fields[&4].optional);
    }

    #[test]
    fn lines_that_are_none_are_named() {
        for (text, line) in [
            ("kind A", 1),
            ("  1 a string", 1),
            ("message M\n  x a string", 2),
            ("message M\n  1 a", 2),
            ("message M\n  1 a list<string", 2),
            ("message M\n\n  1 a string enum=x", 3),
        ] {
            assert_eq!(parse(text).map_err(|(line, _)| line), Err(line), "{text}");
        }
    }
}
