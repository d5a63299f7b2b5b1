//! JSON values as Go prints them: clients see them in the errors about documents that don't fit the schema.

use crate::field::text::quote;
use crate::json::{Shape, parse_shape};

/// As `%v` prints it: `x`, `[1 a]`, `map[a:b]`.
pub(super) fn plain(json: &[u8]) -> String {
    print(json, false)
}

/// As `%#v` prints it: `"x"`, `[]interface {}{1, "a"}`, `map[string]interface {}{"a":"b"}`.
pub(super) fn syntax(json: &[u8]) -> String {
    print(json, true)
}

/// The type of a decoded value: `string`, `[]interface {}`.
pub(super) fn type_name(json: &[u8]) -> &'static str {
    match json.first() {
        Some(b'"') => "string",
        Some(b'{') => "map[string]interface {}",
        Some(b'[') => "[]interface {}",
        Some(b't' | b'f') => "bool",
        Some(b'n') => "<nil>",
        _ if json.iter().any(|b| matches!(b, b'.' | b'e' | b'E')) => "float64",
        _ => "int64",
    }
}

fn print(json: &[u8], syntax: bool) -> String {
    let join = |items: Vec<String>, separator: &str| items.join(separator);
    match parse_shape(json) {
        Ok(Shape::String(text)) if syntax => quote(&text.decode()),
        Ok(Shape::String(text)) => text.decode().into_owned(),
        Ok(Shape::Literal("null")) if syntax => "interface {}(nil)".to_owned(),
        Ok(Shape::Literal("null")) => "<nil>".to_owned(),
        Ok(Shape::Literal(word)) => word.to_owned(),
        Ok(Shape::Number(digits)) => digits.to_owned(),
        Ok(Shape::Array(items)) => {
            let items = items.into_iter().map(|item| print(item, syntax)).collect();
            if syntax {
                format!("[]interface {{}}{{{}}}", join(items, ", "))
            } else {
                format!("[{}]", join(items, " "))
            }
        }
        Ok(Shape::Object(members)) => {
            let mut members: Vec<(String, String)> = members
                .into_iter()
                .map(|(key, value)| (key.decode().into_owned(), print(value, syntax)))
                .collect();
            members.sort();
            let items = members.into_iter();
            if syntax {
                let items = items.map(|(k, v)| format!("{}:{v}", quote(&k))).collect();
                format!("map[string]interface {{}}{{{}}}", join(items, ", "))
            } else {
                format!("map[{}]", join(items.map(|(k, v)| format!("{k}:{v}")).collect(), " "))
            }
        }
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_go_prints() {
        let json = br#"{"b":[1,"x",null,1.5],"a":{"c":true}}"#;
        assert_eq!(plain(json), "map[a:map[c:true] b:[1 x <nil> 1.5]]");
        assert_eq!(
            syntax(json),
            r#"map[string]interface {}{"a":map[string]interface {}{"c":true}, "b":[]interface {}{1, "x", interface {}(nil), 1.5}}"#
        );
        assert_eq!(type_name(b"1.5"), "float64");
    }
}
