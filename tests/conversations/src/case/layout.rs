//! The layout of files of cases: JSON in which everything that fits on a line is on one line.

use serde_json::Value;

const WIDTH: usize = 120;

/// A value as it is written to a file.
pub fn layout(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, 0, &mut text);
    text.push('\n');
    text
}

/// `indent`: blanks before lines of this value; `column`: characters that are on its first line already, and one that
/// may follow.
fn write(value: &Value, indent: usize, column: usize, text: &mut String) {
    let line = spaced(value);
    let fits = column + line.chars().count() < WIDTH;
    let deeper = " ".repeat(indent + 1);
    match value {
        Value::Object(fields) if !fits && !fields.is_empty() => {
            text.push('{');
            for (number, (key, value)) in fields.iter().enumerate() {
                let key = format!("{}: ", Value::from(key.as_str()));
                text.push_str(if number == 0 { "\n" } else { ",\n" });
                text.push_str(&deeper);
                text.push_str(&key);
                write(value, indent + 1, indent + 1 + key.chars().count(), text);
            }
            text.push_str(&format!("\n{}}}", " ".repeat(indent)));
        }
        Value::Array(items) if !fits && !items.is_empty() => {
            text.push('[');
            for (number, value) in items.iter().enumerate() {
                text.push_str(if number == 0 { "\n" } else { ",\n" });
                text.push_str(&deeper);
                write(value, indent + 1, indent + 1, text);
            }
            text.push_str(&format!("\n{}]", " ".repeat(indent)));
        }
        _ => text.push_str(&line),
    }
}

/// On one line.
fn spaced(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let pair = |(key, value): (&String, &Value)| format!("{}: {}", Value::from(key.as_str()), spaced(value));
            let pairs: Vec<String> = fields.iter().map(pair).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_is_on_one_line() {
        let long = "x".repeat(80);
        let value = json!({"a": [1, {"b": null}], "c": {"d": [long, {}], "e": "é"}});
        let text =
            format!("{{\n \"a\": [1, {{\"b\": null}}],\n \"c\": {{\"d\": [\"{long}\", {{}}], \"e\": \"é\"}}\n}}\n");
        assert_eq!(layout(&value), text);
        let longer = "x".repeat(110);
        let text = format!("{{\n \"c\": {{\n  \"d\": [\n   \"{longer}\"\n  ],\n  \"e\": 1\n }}\n}}\n");
        assert_eq!(layout(&json!({"c": {"d": [longer], "e": 1}})), text);
    }
}
