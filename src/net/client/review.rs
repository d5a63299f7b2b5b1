//! The document that a webhook answers with: which kind it is, in Go's words where it is none.

use std::collections::BTreeMap;

use http::header::CONTENT_TYPE;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Answer;

/// What Go's decoder reads the version and kind into, as its messages name it.
const GO_TYPE: &str =
    "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// Why an answer is no document of the kind that was asked for, in Go's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DocumentError {
    /// Nothing was answered.
    #[error("0-length response with status code: {status} and content type: {content_type}")]
    Empty {
        /// Of HTTP.
        status: u16,
        /// As the header has it.
        content_type: String,
    },
    /// JSON that ends too early.
    #[error("couldn't get version/kind; json parse error: unexpected end of JSON input")]
    End,
    /// A value of this type, not an object.
    #[error("couldn't get version/kind; json parse error: json: cannot unmarshal {0} into Go value of type {GO_TYPE}")]
    Type(&'static str),
    /// An object of another kind.
    #[error("converting ({given}) to ({wanted}): unknown conversion")]
    Kind {
        /// `v1.Pod`.
        given: String,
        /// `v1.TokenReview`.
        wanted: String,
    },
}

/// The object that a successful answer holds. One that does not say of which version or kind it is, is of the expected.
///
/// # Errors
/// Nothing was answered, it is no object, or one of another kind: `converting (v1.Pod) to (v1.TokenReview): …`.
pub fn document(answer: &Answer, group: &str, version: &str, kind: &str) -> Result<Map<String, Value>, DocumentError> {
    if answer.body.is_empty() {
        let given = answer.headers.get(CONTENT_TYPE);
        let given = given.and_then(|given| given.to_str().ok()).unwrap_or_default();
        return Err(DocumentError::Empty {
            status: answer.status,
            content_type: given.to_owned(),
        });
    }
    let object = match serde_json::from_slice::<Value>(&answer.body) {
        Ok(Value::Object(object)) => object,
        Ok(Value::Null) => Map::new(),
        Ok(Value::Array(_)) => return Err(DocumentError::Type("array")),
        Ok(Value::Number(_)) => return Err(DocumentError::Type("number")),
        Ok(Value::Bool(_)) => return Err(DocumentError::Type("bool")),
        Ok(Value::String(_)) => return Err(DocumentError::Type("string")),
        Err(error) if error.is_eof() => return Err(DocumentError::End),
        // Anything else is a text in YAML.
        Err(_) => return Err(DocumentError::Type("string")),
    };
    let given = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    check_kind(given("apiVersion"), given("kind"), (group, version, kind))?;
    Ok(object)
}

/// The members of the same object, as they are written: of one that may be large.
///
/// # Errors
/// As with [`document`].
pub fn members<'a>(
    answer: &'a Answer,
    group: &str,
    version: &str,
    kind: &str,
) -> Result<BTreeMap<String, &'a RawValue>, DocumentError> {
    let Ok(members) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(&answer.body) else {
        return document(answer, group, version, kind).map(|_| BTreeMap::new());
    };
    let given = |name: &str| -> String {
        let text = members.get(name).map(|text| serde_json::from_str(text.get()));
        text.and_then(Result::ok).unwrap_or_default()
    };
    check_kind(&given("apiVersion"), &given("kind"), (group, version, kind))?;
    Ok(members)
}

fn check_kind(api_version: &str, given: &str, (group, version, kind): (&str, &str, &str)) -> Result<(), DocumentError> {
    let expected = format!("{group}/{version}");
    if (api_version.is_empty() || api_version == expected) && (given.is_empty() || given == kind) {
        return Ok(());
    }
    let shown = api_version.rsplit('/').next().unwrap_or_default();
    Err(DocumentError::Kind {
        given: format!("{shown}.{given}"),
        wanted: format!("{version}.{kind}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_of_the_expected_kind_or_none() {
        let read = |body: &str| {
            let answer = Answer {
                status: 200,
                headers: http::HeaderMap::new(),
                body: bytes::Bytes::copy_from_slice(body.as_bytes()),
            };
            let members = members(&answer, "g", "v1", "Review").map(|members| members.len());
            let document = document(&answer, "g", "v1", "Review").map(|object| object.len());
            assert_eq!(members, document);
            document
        };
        assert_eq!(read(r#"{"apiVersion":"g/v1","kind":"Review","status":{}}"#), Ok(3));
        assert_eq!(read(r#"{"status":{}}"#), Ok(1));
        assert_eq!(read("null"), Ok(0));
        for (body, want) in [
            ("", "0-length response with status code: 200 and content type: "),
            (
                "{",
                "couldn't get version/kind; json parse error: unexpected end of JSON input",
            ),
            ("[]", "cannot unmarshal array into"),
            ("hello", "cannot unmarshal string into"),
            (
                r#"{"apiVersion":"g/v1beta1","kind":"Review"}"#,
                "converting (v1beta1.Review) to (v1.Review): unknown conversion",
            ),
            (
                r#"{"apiVersion":"v1","kind":"Pod"}"#,
                "converting (v1.Pod) to (v1.Review): unknown conversion",
            ),
        ] {
            let error = read(body).unwrap_err().to_string();
            assert!(error.contains(want), "{body}: {error}");
        }
    }
}
