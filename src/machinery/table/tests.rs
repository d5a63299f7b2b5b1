use super::*;
use crate::Message;
use crate::meta::v1::{ListMeta, ObjectMeta};
use crate::reflect::object::Object;

#[derive(Clone, Default, Message)]
#[message(
    name = "com.example.v1.Widget",
    group = "example.com",
    version = "v1",
    kind = "Widget",
    object
)]
struct Widget {
    #[field(json = "metadata")]
    metadata: ObjectMeta,
    #[field(json = "spec")]
    spec: Spec,
}

#[derive(Clone, Default, Message)]
#[message(name = "com.example.v1.WidgetSpec")]
struct Spec {
    #[field(json = "size")]
    size: i32,
    #[field(json = "ratio")]
    ratio: Option<f64>,
    #[field(json = "on")]
    on: Option<bool>,
    #[field(json = "tags")]
    tags: Vec<String>,
    #[field(json = "since")]
    since: String,
}

const fn column(name: &'static str, ty: &'static str, path: &'static str, function: &'static str) -> ColumnDesc {
    ColumnDesc {
        name: Name::new_static(name),
        ty: Name::new_static(ty),
        format: Name::new_static(""),
        description: Name::new_static(""),
        priority: 0,
        path: Name::new_static(path),
        function: Name::new_static(function),
        hidden: false,
    }
}

fn columns(columns: &'static [ColumnDesc]) -> TableColumns {
    TableColumns::new("Widget", columns, &CellFunctions::default(), &Descriptions::default()).unwrap()
}

fn widget() -> Widget {
    let metadata = ObjectMeta {
        name: "w".into(),
        namespace: "default".into(),
        resource_version: "7".into(),
        creation_timestamp: Time::from_unix(1_000, 0),
        ..ObjectMeta::default()
    };
    let spec = Spec {
        size: 3,
        ratio: Some(2.5),
        on: Some(false),
        tags: vec!["<a>".into()],
        since: "1970-01-01T00:00:00Z".into(),
    };
    Widget { metadata, spec }
}

const NOW: Time = Time::from_unix(1_123, 0);

#[test]
fn cells_have_the_type_of_their_column() {
    static COLUMNS: &[ColumnDesc] = &[
        column("Size", "integer", ".spec.size", ""),
        column("Size text", "string", ".spec.size", ""),
        column("Size as boolean", "boolean", ".spec.size", ""),
        column("Ratio", "number", ".spec.ratio", ""),
        column("Whole ratio", "integer", ".spec.ratio", ""),
        column("On", "boolean", ".spec.on", ""),
        column("Tags", "string", ".spec.tags", ""),
        column("Tag", "string", ".spec.tags[0]", ""),
        column("Since", "date", ".spec.since", ""),
        column("Tag as date", "date", ".spec.tags[0]", ""),
        column("Created", "date", ".metadata.creationTimestamp", ""),
        column("Gone", "string", ".spec.gone", ""),
        column("Age", "string", "", "age"),
    ];
    let columns = columns(COLUMNS);
    let widget = widget();
    let row = Row::of(&widget);
    let cells = columns.cells(&row).map(|cell| cell.at(NOW));
    let expected: Vec<Cell> = vec![
        "w".into(),
        3i64.into(),
        "3".into(),
        Cell::Null,
        Cell::Number(2.5),
        2i64.into(),
        Cell::Bool(false),
        "[\"\\u003ca\\u003e\"]".into(),
        "<a>".into(),
        "18m".into(),
        "<invalid>".into(),
        "2m3s".into(),
        Cell::Null,
        "2m3s".into(),
    ];
    assert_eq!(cells.collect::<Vec<_>>(), expected);
}

#[test]
fn null_is_text_in_columns_of_texts_alone() {
    assert_eq!(path_cell("string", Value::Null), Cell::from("<no value>"));
    assert_eq!(path_cell("string", Value::Absent), Cell::Null);
    assert_eq!(path_cell("integer", Value::Null), Cell::Null);
    assert_eq!(path_cell("date", Value::Null), Cell::Null);
}

fn table(columns: &TableColumns, include: IncludeObject, headers: bool) -> serde_json::Value {
    let writer = TableWriter {
        columns,
        include,
        headers,
        api_version: "meta.k8s.io/v1",
        now: NOW,
    };
    let mut out = Vec::new();
    let metadata = ListMeta {
        resource_version: "7".into(),
        ..ListMeta::default()
    };
    writer.write(&metadata, [Row::of(&widget())], &mut out);
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn a_kind_without_columns_shows_name_and_age() {
    let table = table(&columns(&[]), IncludeObject::Metadata, true);
    assert_eq!(
        table,
        serde_json::json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": "7"},
            "columnDefinitions": [
                {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
                {"name": "Age", "type": "date", "format": "", "description": "", "priority": 0},
            ],
            "rows": [{
                "cells": ["w", "2m3s"],
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": {
                        "name": "w",
                        "namespace": "default",
                        "resourceVersion": "7",
                        "creationTimestamp": "1970-01-01T00:16:40Z",
                    },
                },
            }],
        })
    );
}

#[test]
fn rows_hold_as_much_of_the_object_as_is_asked_for() {
    static COLUMNS: &[ColumnDesc] = &[column("Size", "integer", ".spec.size", "")];
    let columns = columns(COLUMNS);
    let whole = table(&columns, IncludeObject::Object, true);
    assert_eq!(whole["rows"][0]["object"]["kind"], "Widget");
    assert_eq!(whole["rows"][0]["object"]["apiVersion"], "example.com/v1");
    assert_eq!(whole["rows"][0]["object"]["spec"]["size"], 3);
    assert_eq!(
        whole["columnDefinitions"][1]["description"],
        "Custom resource definition column (in JSONPath format): .spec.size"
    );
    let bare = table(&columns, IncludeObject::None, false);
    assert!(bare["rows"][0]["object"].is_null());
    assert!(bare["columnDefinitions"].is_null());
    assert_eq!(bare["rows"][0]["cells"], serde_json::json!(["w", 3]));
    assert_eq!(IncludeObject::parse(""), Some(IncludeObject::Metadata));
    assert_eq!(IncludeObject::parse("All"), None);
}

#[test]
fn lists_have_rows_in_order_and_their_own_metadata() {
    static COLUMNS: &[ColumnDesc] = &[column("Created At", "date", "", "created")];
    let columns = columns(COLUMNS);
    let writer = TableWriter {
        columns: &columns,
        include: IncludeObject::None,
        headers: true,
        api_version: "meta.k8s.io/v1beta1",
        now: NOW,
    };
    let second = Widget {
        metadata: ObjectMeta {
            name: "x".into(),
            ..ObjectMeta::default()
        },
        ..widget()
    };
    let metadata = ListMeta {
        resource_version: "9".into(),
        r#continue: "c".into(),
        ..ListMeta::default()
    };
    let first = widget();
    let objects: [&dyn Object; 2] = [&first, &second];
    let mut out = Vec::new();
    writer.write(&metadata, objects.map(Row::of), &mut out);
    let table: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(
        table["metadata"],
        serde_json::json!({"resourceVersion": "9", "continue": "c"})
    );
    assert_eq!(
        table["rows"][0]["cells"],
        serde_json::json!(["w", "1970-01-01T00:16:40Z"])
    );
    assert_eq!(table["rows"][1]["cells"][0], "x");
    out.clear();
    writer.write(&metadata, [], &mut out);
    assert!(out.ends_with(b"\"rows\":null}"));
}

#[test]
fn columns_that_cannot_be_made_are_errors() {
    static BROKEN: &[ColumnDesc] = &[column("Size", "integer", ".spec[", "")];
    static UNKNOWN: &[ColumnDesc] = &[column("Size", "integer", "", "sighs")];
    let error = |columns: &'static [ColumnDesc]| {
        TableColumns::new("Widget", columns, &CellFunctions::default(), &Descriptions::default())
            .err()
            .unwrap()
            .to_string()
    };
    assert_eq!(
        error(BROKEN),
        "column \"Size\" of Widget: path \".spec[\": the path ends too early"
    );
    assert_eq!(
        error(UNKNOWN),
        "column \"Size\" of Widget: no cell function is called \"sighs\""
    );
}
