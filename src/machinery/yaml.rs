//! YAML to and from JSON text.

use crate::decode::DecodeError;

/// The first document as JSON. Anchors, merge keys and nesting are bounded by the parser's budget.
pub fn to_json(yaml: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let error = |e: &dyn std::fmt::Display| DecodeError::Value(format!("error converting YAML to JSON: yaml: {e}"));
    let text = std::str::from_utf8(yaml).map_err(|e| error(&e))?;
    let value: serde_json::Value = serde_saphyr::from_str(text).map_err(|e| error(&e))?;
    Ok(value.to_string().into_bytes())
}

/// JSON text as YAML.
pub fn from_json(json: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let error = |e: &dyn std::fmt::Display| DecodeError::Value(e.to_string());
    let value: serde_json::Value = serde_json::from_slice(json).map_err(|e| error(&e))?;
    serde_saphyr::to_string(&value)
        .map(String::into_bytes)
        .map_err(|e| error(&e))
}
