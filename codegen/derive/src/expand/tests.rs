//! Tests of the derive: its output, and its errors with their places.

use std::fs;

use syn::{DeriveInput, parse_str};

/// `UPDATE=1 cargo test -p keelson-derive` writes the file anew.
#[test]
fn expansion_is_that_of_the_file() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/expand");
    let input: DeriveInput = parse_str(&fs::read_to_string(format!("{folder}/widget.in.rs")).unwrap()).unwrap();
    let found = prettyplease::unparse(&syn::parse2(super::message(&input).unwrap()).unwrap());
    let path = format!("{folder}/widget.out.rs");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &found).unwrap();
    }
    assert_eq!(found, fs::read_to_string(&path).unwrap());
}

/// Input, the text that the error points at, and the error.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "struct A;",
        "A",
        "`#[message(name = \"…\")]` is missing: the name of the OpenAPI definition",
    ),
    (
        "#[message(name = 3)] struct A;",
        "name",
        "`name` takes a string: write `name = \"…\"`",
    ),
    (
        "#[message(nmae = \"a\")] struct A;",
        "nmae",
        "unknown attribute `nmae`: name, group, version, kind and object are known",
    ),
    (
        "#[message(name = \"a\", name = \"b\")] struct A;",
        "name",
        "`name` is given twice",
    ),
    (
        "#[message(name = \"a\", kind = \"A\")] struct A;",
        "\"A\"",
        "a kind has a version: write `version = \"v1\"`",
    ),
    (
        "#[message(name = \"a\", object)] struct A;",
        "object",
        "an object is a kind: write `kind = \"…\"`",
    ),
    (
        "#[message(name = \"a\", version = \"v1\", kind = \"A\", object)] struct A;",
        "object",
        "an object has a field `metadata` of type `ObjectMeta`",
    ),
    ("#[message(name = \"a\")] enum A {}", "A", "a message is a struct"),
    (
        "#[message(name = \"a\")] struct A(i32);",
        "(i32)",
        "the fields of a message have names",
    ),
    (
        "#[message(name = \"a\")] struct A<T> { t: T }",
        "T",
        "a message has no type parameters",
    ),
];

/// Attributes of the second of two fields, the text that the error points at, and the error.
const FIELD_MISTAKES: &[(&str, &str, &str)] = &[
    ("", "b", "`#[field(json = \"…\")]` is missing: the key in JSON"),
    ("json = \"a\"", "\"a\"", "the JSON key \"a\" is already that of `a`"),
    ("json = \"b\", number = 1", "b", "the number 1 is already that of `a`"),
    (
        "json = \"b\", number = -1",
        "number",
        "`number` takes a whole number from 0: write `number = 3`",
    ),
    (
        "json = \"b\", always = true",
        "always",
        "`always` takes no value: write `always`",
    ),
    (
        "json = \"b\", list = \"bag\"",
        "\"bag\"",
        "a list is \"atomic\", \"set\" or \"map\"",
    ),
    (
        "json = \"b\", keys = \"k\"",
        "keys",
        "`keys` takes strings: write `keys(\"…\", \"…\")`",
    ),
    (
        "json = \"b\", patch(\"mrege\")",
        "\"mrege\"",
        "a patch is \"merge\", \"replace\" or \"retainKeys\"",
    ),
    (
        "json = \"b\", minimum = \"1\"",
        "minimum",
        "`minimum` takes a number: write `minimum = 1.5`",
    ),
    (
        "json = \"b\", requierd",
        "requierd",
        "unknown attribute `requierd` of a field",
    ),
];

fn check(input: &str, place: &str, text: &str) {
    let parsed: DeriveInput = parse_str(input).unwrap();
    let error = super::message(&parsed).expect_err(input);
    assert_eq!(error.to_string(), text, "{input}");
    assert_eq!(error.span().source_text().unwrap_or_default(), place, "{input}");
}

#[test]
fn errors_point_at_the_mistake() {
    for (input, place, text) in MISTAKES {
        check(input, place, text);
    }
    for (attributes, place, text) in FIELD_MISTAKES {
        let input = format!(
            "#[message(name = \"m\")] struct M {{ #[field(json = \"a\", number = 1)] a: i32, #[field({attributes})] b: i32 }}"
        );
        check(&input, place, text);
    }
}
