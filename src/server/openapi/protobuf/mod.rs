//! The protobuf forms of the documents, in which clients of Kubernetes ask for them: written from the JSON forms piece
//! by piece, since a document as one tree of messages would take many times its size.

mod v2;
mod v3;

use std::io;

use prost::Message;
use serde_json::{Map, Value};

pub(super) use self::v2::{definition as v2_definition, encode as v2, path as v2_path};
pub(super) use self::v3::encode as v3;

/// Puts another piece of a message behind what is there: encoded messages that stand in a row are one.
fn append(out: &mut Vec<u8>, piece: &impl Message) -> io::Result<()> {
    piece.encode(out).map_err(io::Error::other)
}

/// JSON is YAML.
fn yaml(value: &Value) -> String {
    format!("{value}\n")
}

fn object<'a>(value: &'a Value, key: &str) -> Option<&'a Map<String, Value>> {
    value.get(key).and_then(Value::as_object)
}

fn member_text(object: Option<&Map<String, Value>>, key: &str) -> String {
    object
        .and_then(|o| o.get(key))
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn text(value: &Value, key: &str) -> String {
    member_text(value.as_object(), key)
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn number(value: &Value, key: &str) -> f64 {
    value.get(key).and_then(Value::as_f64).unwrap_or_default()
}

fn count(value: &Value, key: &str) -> i64 {
    value.get(key).and_then(Value::as_i64).unwrap_or_default()
}

fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    items(value, key).filter_map(Value::as_str).map(str::to_owned).collect()
}

fn entries<T>(value: &Value, key: &str, make: impl Fn(String, &Value) -> T) -> Vec<T> {
    object(value, key)
        .into_iter()
        .flatten()
        .map(|(name, v)| make(name.clone(), v))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// The build of a server needs no generator of code for them. `UPDATE=1 cargo test -p keelson-server protobuf` writes
    /// them anew.
    #[test]
    fn types_are_those_of_the_definitions() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/protobuf");
        let out = tempfile::tempdir().unwrap();
        let files = protox::compile(["v2.proto", "v3.proto"], [&folder]).unwrap();
        prost_build::Config::new()
            .out_dir(out.path())
            .compile_fds(files)
            .unwrap();
        for package in ["keelson.swagger.rs", "keelson.openapi3.rs"] {
            let generated = fs::read_to_string(out.path().join(package)).unwrap();
            if std::env::var_os("UPDATE").is_some() {
                fs::write(folder.join(package), &generated).unwrap();
            }
            let here = fs::read_to_string(folder.join(package)).unwrap();
            assert!(generated == here, "{package} is not that of its definition");
        }
    }
}
