//! YAML to JSON and back, with the meaning that Kubernetes gives it: the scalars of YAML 1.1 as go-yaml reads them
//! (`yes` and `on` are booleans, `0o17` and `017` numbers, dates strings), merge keys, anchors; of a stream only the
//! first document. Written with sorted keys and go-yaml's quotes.

mod emit;
mod expand;
mod fault;
mod load;
mod scalar;
mod style;

use crate::decode::DecodeError;

pub use emit::from_json;

/// The first document as JSON text with sorted keys; of a repeated key the last one counts. No document reads as
/// `null`.
pub fn to_json(yaml: &[u8]) -> Result<Vec<u8>, DecodeError> {
    to_json_strict(yaml).map(|(json, _)| json)
}

/// As [`to_json`]; also returns what a strict decoder says of repeated keys, if there are any.
pub fn to_json_strict(yaml: &[u8]) -> Result<(Vec<u8>, Option<String>), DecodeError> {
    let text = std::str::from_utf8(yaml).map_err(|_| DecodeError::Yaml("yaml: invalid UTF-8".to_owned()))?;
    let document = load::load(text)?;
    let (json, repeated) = expand::expand(&document)?;
    let problems = repeated.map(|lines| format!("yaml: unmarshal errors:\n{lines}"));
    Ok((json, problems))
}

#[cfg(test)]
mod tests;
