//! The text of definition files.

use std::fmt::{self, Display};

use serde_json::Value;

/// A message as it is written.
#[derive(Default)]
pub struct Message {
    pub name: String,
    /// Above it; empty: none.
    pub comment: String,
    /// Whole lines, or several.
    pub options: Vec<String>,
    pub fields: Vec<Field>,
}

/// A field of one.
pub struct Field {
    pub comment: String,
    /// With what stands before it: `optional string`.
    pub ty: String,
    pub name: String,
    /// The JSON name, where it does not follow from the name.
    pub json: Option<String>,
    /// Of `(keelson.field)`.
    pub options: Vec<String>,
}

impl Message {
    /// `option (…) = {…};`, each of the options in a line.
    pub fn option_block(name: &str, options: &[String]) -> String {
        let lines: String = options.iter().map(|option| format!("    {option}\n")).collect();
        format!("  option ({name}) = {{\n{lines}  }};\n")
    }
}

impl Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        comment(f, "", &self.comment)?;
        writeln!(f, "message {} {{", self.name)?;
        for option in &self.options {
            f.write_str(option)?;
        }
        for (number, field) in (1..).zip(&self.fields) {
            field.write(f, number)?;
        }
        f.write_str("}\n")
    }
}

impl Field {
    fn write(&self, f: &mut fmt::Formatter<'_>, number: usize) -> fmt::Result {
        comment(f, "  ", &self.comment)?;
        write!(f, "  {} {} = {}", self.ty, self.name, protobuf_number(number))?;
        let json = self.json.as_ref().map(|name| format!("json_name = {}", quoted(name)));
        let options = match self.options.is_empty() {
            true => None,
            false => Some(format!("(keelson.field) = {{{}}}", self.options.join(", "))),
        };
        let all: Vec<String> = json.into_iter().chain(options).collect();
        match all.is_empty() {
            true => f.write_str(";\n"),
            false => writeln!(f, " [{}];", all.join(", ")),
        }
    }
}

/// Numbers from 19 000 to 19 999 are protobuf's own.
fn protobuf_number(number: usize) -> usize {
    if number < 19_000 { number } else { number + 1_000 }
}

fn comment(f: &mut fmt::Formatter<'_>, indent: &str, text: &str) -> fmt::Result {
    for line in text.lines() {
        let line = line.trim_end();
        let space = if line.is_empty() { "" } else { " " };
        writeln!(f, "{indent}//{space}{line}")?;
    }
    Ok(())
}

/// `name: value`
pub fn option(name: &str, value: impl Display) -> String {
    format!("{name}: {value}")
}

/// A list of texts; `None`: it is empty.
pub fn list(name: &str, given: &Value) -> Option<String> {
    let texts = given.as_array()?.iter().filter_map(Value::as_str);
    let texts: Vec<String> = texts.map(quoted).collect();
    (!texts.is_empty()).then(|| option(name, format!("[{}]", texts.join(", "))))
}

/// A text as protobuf's text format has it.
pub fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The rules of a schema.
pub fn rules(schema: &Value) -> Vec<String> {
    let given = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    given.map(rule).collect()
}

fn rule(given: &Value) -> String {
    let texts = [
        ("rule", "rule"),
        ("message", "message"),
        ("message_expression", "messageExpression"),
        ("reason", "reason"),
        ("field_path", "fieldPath"),
    ];
    let texts = texts.into_iter().filter_map(|(name, json)| {
        let text = given[json].as_str().filter(|text| !text.is_empty())?;
        Some(option(name, quoted(text.trim())))
    });
    let old = (given["optionalOldSelf"] == true).then(|| option("optional_old_self", "true"));
    let all: Vec<String> = texts.chain(old).collect();
    option("rules", format!("{{{}}}", all.join(", ")))
}
