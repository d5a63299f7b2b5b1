//! JSON paths such as `.spec.items[*].name`, followed through the fields of a message.

use crate::model::{FieldType, Message, Model};
use crate::problem::Checked;

/// One step of a path.
#[derive(PartialEq, Debug)]
enum Step {
    Name(String),
    /// `[0]`, `[*]`, `[?(…)]`.
    Index,
}

/// The type at the end of the path; `Ok(None)` where the definitions do not say it (inside raw JSON). `Err`: the part
/// that leads nowhere.
pub fn resolve<'a>(model: &'a Model, message: &'a Message, path: &str) -> Checked<Option<&'a FieldType>> {
    let steps = steps(path)?;
    let mut at = At::Message(message);
    let mut ty = None;
    for step in &steps {
        let next = match (&at, step) {
            (At::Message(m), Step::Name(name))
                if m.kind.is_some() && matches!(name.as_str(), "apiVersion" | "kind") =>
            {
                return Ok(Some(&FieldType::String));
            }
            (At::Message(m), Step::Name(name)) => match model.find_field(m, name) {
                Some(field) => &field.ty,
                None => return Err(format!("{name:?} is no field of {}", m.name)),
            },
            (At::Type(FieldType::List(element)), Step::Index) => element,
            (At::Type(FieldType::Map(value)), Step::Name(_)) => value,
            (At::Type(FieldType::List(_)), Step::Name(name)) => {
                return Err(format!(
                    "{name:?} follows a list without an index such as `[0]` or `[*]`"
                ));
            }
            (_, Step::Index) => return Err("an index follows something that is no list".to_owned()),
            (_, Step::Name(name)) => return Err(format!("{name:?} follows a value that has no fields")),
        };
        ty = Some(next);
        at = match next {
            FieldType::Message(id) => match model.message(*id) {
                Some(m) if m.is_leaf() && m.ty.rust.ends_with("::RawJson") => return Ok(None),
                Some(m) if !m.is_leaf() => At::Message(m),
                _ => At::Type(next),
            },
            other => At::Type(other),
        };
    }
    Ok(ty)
}

enum At<'a> {
    Message(&'a Message),
    Type(&'a FieldType),
}

/// Splits `.a.b[0]['c\.d'].e`.
fn steps(path: &str) -> Checked<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        match first {
            '.' => {
                let (name, after) = name(rest.get(1..).unwrap_or_default());
                if name.is_empty() {
                    return Err(format!("{path:?} has an empty part"));
                }
                steps.push(Step::Name(name));
                rest = after;
            }
            '[' => {
                let end = closing(rest).ok_or_else(|| format!("{path:?} has `[` without `]`"))?;
                let inner = rest.get(1..end).unwrap_or_default();
                let quoted = inner.strip_prefix('\'').and_then(|i| i.strip_suffix('\''));
                steps.push(quoted.map_or(Step::Index, |name| Step::Name(name.replace("\\.", "."))));
                rest = rest.get(end + 1..).unwrap_or_default();
            }
            _ => return Err(format!("{path:?} does not start with a dot")),
        }
    }
    if steps.is_empty() {
        Err("it is empty".to_owned())
    } else {
        Ok(steps)
    }
}

/// The name up to the next `.` or `[`; `\.` is a dot in the name.
fn name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        match c {
            '.' | '[' => return (name, text.get(i..).unwrap_or_default()),
            '\\' if chars.peek().is_some_and(|(_, c)| *c == '.') => {
                name.push('.');
                chars.next();
            }
            c => name.push(c),
        }
    }
    (name, "")
}

/// Index of the bracket that closes the first one; brackets in quotes do not count.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0usize, None);
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 1 => return Some(i),
            (None, ']') => depth = depth.checked_sub(1)?,
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str) -> Result<Vec<String>, String> {
        let show = |step| match step {
            Step::Name(name) => name,
            Step::Index => "[]".to_owned(),
        };
        Ok(steps(path)?.into_iter().map(show).collect())
    }

    #[test]
    fn paths_are_split_at_dots_outside_brackets_and_quotes() {
        assert_eq!(names(".spec.size").unwrap(), ["spec", "size"]);
        assert_eq!(names(".a[?(@.b==\"x.]y\")].c").unwrap(), ["a", "[]", "c"]);
        assert_eq!(
            names(".metadata.labels['example.com/x']").unwrap(),
            ["metadata", "labels", "example.com/x"]
        );
        assert_eq!(
            names(".metadata.labels.example\\.com").unwrap(),
            ["metadata", "labels", "example.com"]
        );
        assert_eq!(names("spec").unwrap_err(), "\"spec\" does not start with a dot");
        assert_eq!(names(".spec..x").unwrap_err(), "\".spec..x\" has an empty part");
        assert_eq!(names(".a[0").unwrap_err(), "\".a[0\" has `[` without `]`");
        assert_eq!(names("").unwrap_err(), "it is empty");
    }
}
