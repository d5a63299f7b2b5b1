//! Values that a field is tried with: zeros, negatives, what is too long, no format's, of no enum, of another type.

use keelson_machinery::reflect::{FieldDesc, LeafKind, Type};
use serde_json::{Value, json};

/// How many values of a scalar are tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Thoroughness {
    All,
    /// Those that most often tell rules apart.
    Few,
}

/// Values of a field that is neither a message nor a list nor a map; none where nothing is known of it.
pub fn of_scalar(field: &FieldDesc, ty: &Type, how: Thoroughness) -> Vec<Value> {
    let all = how == Thoroughness::All;
    match ty {
        Type::String => texts(field, all),
        Type::Int32 | Type::Int64 if all => [0, -1, 1, 70_000, 2_147_483_647].map(Value::from).to_vec(),
        Type::Int32 | Type::Int64 => [0, -1, 70_000].map(Value::from).to_vec(),
        Type::Bool => vec![json!(true), json!(false)],
        Type::Double => vec![json!(0), json!(-1), json!(1.5)],
        Type::Bytes => vec![json!(""), json!("YQ==")],
        Type::Leaf(kind) => leaves(*kind, all),
        Type::Message(_) | Type::List(_) | Type::Map(_) | Type::Any | Type::Untyped => Vec::new(),
    }
}

fn texts(field: &FieldDesc, all: bool) -> Vec<Value> {
    let (long, longer) = ("x".repeat(64), "x".repeat(254));
    let few = ["", "a", "A_b!", longer.as_str()];
    let many = [
        "",
        "a",
        "A_b!",
        "a/b",
        "../x",
        "/abs",
        " x",
        "1",
        long.as_str(),
        longer.as_str(),
        "10.1.2.3",
        "::1",
        "10.1.0.0/16",
        "a.b/c",
    ];
    let enums = field.rules.enum_values.iter().chain(field.rules.item_enum.iter());
    let texts = if all { many.iter() } else { few.iter() };
    let mut texts: Vec<String> = texts.map(|text| (*text).to_owned()).collect();
    for value in enums.map(ToString::to_string) {
        if !texts.contains(&value) {
            texts.push(value);
        }
    }
    texts.into_iter().map(Value::from).collect()
}

fn leaves(kind: LeafKind, all: bool) -> Vec<Value> {
    let texts: &[&str] = match kind {
        LeafKind::Quantity if all => &["0", "-1", "1", "1500m", "1u", "10Gi", "x"],
        LeafKind::Quantity => &["0", "-1", "1u"],
        LeafKind::IntOrString => &["", "http", "50%", "150%", "-5%", "bad%", "aaaaaaaaaaaaaaaaaaaa"],
        LeafKind::Time => &["2026-01-01T00:00:00Z", "yesterday"],
        LeafKind::MicroTime => &["2026-01-01T00:00:00.000000Z", "yesterday"],
        LeafKind::Duration => &["0s", "-1s", "1h"],
        LeafKind::Raw | LeafKind::Union => &[],
    };
    let numbers: &[i32] = if kind == LeafKind::IntOrString {
        &[0, -1, 70_000, 1]
    } else {
        &[]
    };
    let numbers = numbers.iter().map(|number| json!(number));
    numbers.chain(texts.iter().map(|text| json!(text))).collect()
}

/// A value of another type.
pub fn of_wrong_type(ty: &Type) -> Option<Value> {
    Some(match ty {
        Type::String | Type::Bytes => json!(7),
        Type::Int32 | Type::Int64 | Type::Double | Type::Message(_) => json!("7"),
        Type::Bool => json!("true"),
        Type::List(_) => json!({"a": "b"}),
        Type::Map(_) => json!(["a"]),
        Type::Leaf(LeafKind::Raw | LeafKind::Union) | Type::Any | Type::Untyped => return None,
        Type::Leaf(_) => json!([true]),
    })
}

/// Contents of a map.
pub fn of_map(item: &Type) -> Vec<Value> {
    let (long, longer) = ("x".repeat(64), "y".repeat(64));
    match item {
        Type::String => vec![
            json!({"a": "b"}),
            json!({"A b!": "c"}),
            json!({"a": "bad value!"}),
            json!({"": ""}),
            json!({long: longer}),
            json!({"a.b/c": ""}),
        ],
        Type::Leaf(LeafKind::Quantity) => amounts(),
        Type::Bytes => vec![
            json!({"a": "YQ=="}),
            json!({"A b!": ""}),
            json!({"..": ""}),
            json!({"": ""}),
        ],
        _ => vec![json!({"a": null})],
    }
}

fn amounts() -> Vec<Value> {
    let one = [
        ("cpu", "1"),
        ("cpu", "-1"),
        ("cpu", "0"),
        ("foo", "1"),
        ("example.com/x", "1"),
        ("example.com/x", "1500m"),
        ("memory", "1500m"),
        ("storage", "1"),
        ("ephemeral-storage", "1"),
        ("hugepages-2Mi", "1Mi"),
        ("pods", "1"),
        ("requests.cpu", "1"),
        ("A_b!", "1"),
        ("kubernetes.io/x", "1"),
        ("requests.example.com/x", "1"),
    ];
    let mut all: Vec<Value> = one.iter().map(|(name, amount)| json!({ (*name): amount })).collect();
    all.push(json!({"hugepages-2Mi": "4Mi", "cpu": "1"}));
    all
}
