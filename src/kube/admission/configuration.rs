//! Configuration of plug-ins: documents of a kind of their own within the file of all plug-ins, as JSON.

use serde_json::Value;

/// A kind of configuration.
pub struct Known {
    /// Its name.
    pub kind: &'static str,
    /// API versions that it is read from.
    pub versions: &'static [&'static str],
}

/// Whether a document says that it is of this kind.
///
/// # Errors
/// It says something else, or nothing.
pub fn is_of(document: &Value, known: &Known) -> Result<(), String> {
    let said = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (said("kind"), said("apiVersion"));
    match (kind, version) {
        ("", _) => Err(format!("Object 'Kind' is missing in '{document}'")),
        (_, "") => Err(format!("Object 'apiVersion' is missing in '{document}'")),
        _ if kind == known.kind && known.versions.contains(&version) => Ok(()),
        _ => Err(format!("no kind {kind:?} is registered for version {version:?}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_say_what_they_are() {
        let known = Known {
            kind: "A",
            versions: &["g/v1"],
        };
        for (document, expected) in [
            (json!({"kind": "A", "apiVersion": "g/v1"}), Ok(())),
            (
                json!({"kind": "B", "apiVersion": "g/v1"}),
                Err("no kind \"B\" is registered for version \"g/v1\""),
            ),
            (
                json!({"kind": "A", "apiVersion": "v1"}),
                Err("no kind \"A\" is registered for version \"v1\""),
            ),
            (
                json!({"kind": "A"}),
                Err("Object 'apiVersion' is missing in '{\"kind\":\"A\"}'"),
            ),
            (json!([]), Err("Object 'Kind' is missing in '[]'")),
        ] {
            assert_eq!(is_of(&document, &known), expected.map_err(str::to_owned), "{document}");
        }
    }
}
