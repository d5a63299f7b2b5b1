//! Objects that a webhook converted: they are what they were, in another version.

use std::collections::BTreeMap;

use keelson_machinery::field::Path;
use keelson_machinery::json::read_within;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::Object;
use keelson_machinery::reflect::budget::Budget;
use keelson_machinery::scheme::KindRef;
use keelson_machinery::validation::labels::{validate_annotations, validate_labels};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What comes of a check. The error is the text that clients are told, which nobody tells apart.
pub type Checked<T> = Result<T, String>;

/// The members of an object, as they are written.
type Members<'a> = BTreeMap<String, &'a RawValue>;

/// The object that `text` is, which `original` became: all its metadata but labels and annotations is as it was.
///
/// # Errors
/// What clients are told.
pub fn checked(original: &dyn Object, text: &RawValue, to: &KindRef) -> Checked<Box<dyn Object>> {
    let of = format!("conversion webhook for {} returned", original.gvk());
    let members = members(text)?;
    check_kind(&members, to).map_err(|why| format!("{of} invalid object at index 0: {why}"))?;
    let metadata = members.get("metadata").map(|text| value(text));
    check_identity(original, metadata.as_ref()).map_err(|why| format!("{of} invalid object: {why}"))?;
    let metadata = restored(original.meta(), metadata.as_ref());
    let metadata = metadata.map_err(|why| format!("{of} invalid metadata: {why}"))?;
    let mut converted = to.new_object();
    let read = read_within(text.get().as_bytes(), converted.as_reflect_mut(), &Budget::of_request());
    read.map_err(|error| format!("{of} invalid object: {error}"))?;
    *converted.meta_mut() = metadata;
    Ok(converted)
}

fn members(text: &RawValue) -> Checked<Members<'_>> {
    if text.get() == "null" {
        return Err("unexpected end of JSON input".to_owned());
    }
    let wrong = || {
        let found = go_type(&value(text)).0;
        format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
    };
    let members: Members<'_> = serde_json::from_str(text.get()).map_err(|_| wrong())?;
    match word(&members, "kind").is_empty() {
        true => Err(format!("Object 'Kind' is missing in '{}'", text.get())),
        false => Ok(members),
    }
}

/// What an object says of its version and kind; "": nothing.
fn word(members: &Members<'_>, name: &str) -> String {
    let text = members.get(name).map(|text| serde_json::from_str(text.get()));
    text.and_then(Result::ok).unwrap_or_default()
}

fn value(text: &RawValue) -> Value {
    serde_json::from_str(text.get()).unwrap_or_default()
}

fn check_kind(members: &Members<'_>, to: &KindRef) -> Checked<()> {
    let (expected, got) = (to.gvk().api_version(), word(members, "apiVersion"));
    if expected != got {
        return Err(format!("invalid groupVersion (expected {expected}, received {got})"));
    }
    let (expected, got) = (to.kind.as_str(), word(members, "kind"));
    if expected != got {
        return Err(format!("invalid kind (expected {expected}, received {got})"));
    }
    Ok(())
}

fn check_identity(original: &dyn Object, metadata: Option<&Value>) -> Checked<()> {
    let meta = original.meta();
    let same = [
        ("name", "name", &meta.name),
        ("namespace", "namespace", &meta.namespace),
        ("UID", "uid", &meta.uid),
    ];
    for (shown, name, expected) in same {
        let got = metadata.and_then(|metadata| metadata.get(name)).and_then(Value::as_str);
        let got = got.unwrap_or_default();
        if expected != got {
            return Err(format!("must have the same {shown}: {expected} != {got}"));
        }
    }
    Ok(())
}

/// The metadata of the original, with the labels and annotations of what it became.
fn restored(original: &ObjectMeta, metadata: Option<&Value>) -> Checked<ObjectMeta> {
    let metadata = match metadata {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => {
            return Err(format!(
                "invalid metadata of type {} in converted object",
                go_type(other).1
            ));
        }
    };
    let mut restored = original.clone();
    restored.labels = texts(metadata, "labels")?;
    if restored.labels != original.labels {
        let path = Path::new("metadata").child("labels");
        validate_labels(&restored.labels, &path)
            .into_result()
            .map_err(|errors| errors.to_string())?;
    }
    restored.annotations = texts(metadata, "annotations")?;
    if restored.annotations != original.annotations {
        let path = Path::new("metadata").child("annotation");
        validate_annotations(&restored.annotations, &path)
            .into_result()
            .map_err(|errors| errors.to_string())?;
    }
    Ok(restored)
}

fn texts(metadata: &Map<String, Value>, name: &str) -> Checked<BTreeMap<String, String>> {
    let given = match metadata.get(name) {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(given)) => given,
        Some(other) => {
            let found = go_type(other).1;
            return Err(format!("invalid metadata.{name} of type {found} in converted object"));
        }
    };
    let text = |(key, value): (&String, &Value)| match value {
        Value::String(text) => Ok((key.clone(), text.clone())),
        other => {
            let found = go_type(other).1;
            Err(format!(
                "metadata.{name}[{key}] must be a string, but is {found} in converted object"
            ))
        }
    };
    given.iter().map(text).collect()
}

/// What Go's decoder calls a value, and its type.
fn go_type(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", "<nil>"),
        Value::Bool(_) => ("bool", "bool"),
        Value::Number(number) if number.is_f64() => ("number", "float64"),
        Value::Number(_) => ("number", "int64"),
        Value::String(_) => ("string", "string"),
        Value::Array(_) => ("array", "[]interface {}"),
        Value::Object(_) => ("object", "map[string]interface {}"),
    }
}
