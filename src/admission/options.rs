//! The options of an operation, as reviews and expressions show them.

use keelson_machinery::json;
use keelson_machinery::reflect::Reflect;
use keelson_registry::admission::{Operation, Options, WriteOptions};
use serde_json::json as json_value;

const API_VERSION: &str = "meta.k8s.io/v1";

/// As JSON text; `null`: there are none.
pub(crate) fn text(operation: Operation, options: Options<'_>, dry_run: bool) -> Vec<u8> {
    let kind = match (operation, options) {
        (Operation::Connect, _) => return b"null".to_vec(),
        (Operation::Delete, Options::Delete(options)) => {
            let mut text = Vec::new();
            json::write_kind_as(options as &dyn Reflect, API_VERSION, "DeleteOptions", &mut text);
            return text;
        }
        (Operation::Delete, _) => "DeleteOptions",
        (Operation::Create, _) => "CreateOptions",
        (Operation::Update, _) => "UpdateOptions",
    };
    let said = match options {
        Options::Create(said) | Options::Update(said) | Options::Patch(said) => Some(said),
        Options::None | Options::Delete(_) => None,
    };
    write_options(kind, said, dry_run).into_bytes()
}

/// In the order in which kube-apiserver writes them.
fn write_options(kind: &str, said: Option<WriteOptions<'_>>, dry_run: bool) -> String {
    let mut text = format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{API_VERSION}\"");
    if dry_run {
        text.push_str(",\"dryRun\":[\"All\"]");
    }
    let said = said.map(|said| {
        [
            ("fieldManager", said.field_manager),
            ("fieldValidation", said.field_validation),
        ]
    });
    for (name, value) in said.into_iter().flatten().filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!(",\"{name}\":{}", json_value!(value)));
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_that_were_sent() {
        let said = WriteOptions {
            field_manager: "a\"b",
            field_validation: "",
            force: Some(true),
        };
        assert_eq!(
            write_options("UpdateOptions", Some(said), true),
            r#"{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1","dryRun":["All"],"fieldManager":"a\"b"}"#
        );
        assert_eq!(
            write_options("CreateOptions", None, false),
            r#"{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}"#
        );
    }
}
