//! Field errors: reasons and wording are those of the Kubernetes API, which clients compare with.

use std::fmt;

use super::Path;
use super::text;

/// Why a field is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorType {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooShort,
    TooMany,
    TooFew,
    Internal,
    TypeInvalid,
}

impl ErrorType {
    /// The reason in `details.causes` of a Status.
    pub const fn reason(self) -> &'static str {
        match self {
            ErrorType::NotFound => "FieldValueNotFound",
            ErrorType::Required => "FieldValueRequired",
            ErrorType::Duplicate => "FieldValueDuplicate",
            ErrorType::Invalid => "FieldValueInvalid",
            ErrorType::NotSupported => "FieldValueNotSupported",
            ErrorType::Forbidden => "FieldValueForbidden",
            ErrorType::TooLong => "FieldValueTooLong",
            ErrorType::TooShort => "FieldValueTooShort",
            ErrorType::TooMany => "FieldValueTooMany",
            ErrorType::TooFew => "FieldValueTooFew",
            ErrorType::Internal => "InternalError",
            ErrorType::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// The start of the message.
    const fn label(self) -> &'static str {
        match self {
            ErrorType::NotFound => "Not found",
            ErrorType::Required => "Required value",
            ErrorType::Duplicate => "Duplicate value",
            ErrorType::Invalid | ErrorType::TypeInvalid => "Invalid value",
            ErrorType::NotSupported => "Unsupported value",
            ErrorType::Forbidden => "Forbidden",
            ErrorType::TooLong => "Too long",
            ErrorType::TooShort => "Too short",
            ErrorType::TooMany => "Too many",
            ErrorType::TooFew => "Too few",
            ErrorType::Internal => "Internal error",
        }
    }

    /// Whether the message shows the value.
    const fn shows_value(self) -> bool {
        !matches!(
            self,
            ErrorType::Required | ErrorType::Forbidden | ErrorType::TooLong | ErrorType::TooShort | ErrorType::Internal
        )
    }
}

/// The value that was refused, as the message shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadValue {
    /// Nothing is shown.
    Omitted,
    /// Shown in double quotes.
    Str(String),
    /// Shown as it is: a number, a boolean, JSON.
    Text(String),
}

impl BadValue {
    /// Absent: `null`.
    pub fn null() -> BadValue {
        BadValue::Text("null".to_owned())
    }

    /// A value in its JSON form.
    pub fn json(json: impl Into<String>) -> BadValue {
        BadValue::Text(json.into())
    }

    /// A value that is made when an error takes it: a fault that nobody is told costs no text.
    pub fn made_by<F: FnOnce() -> BadValue>(make: F) -> impl Into<BadValue> {
        Made(make)
    }
}

/// A value that is not made yet.
struct Made<F>(F);

impl<F: FnOnce() -> BadValue> From<Made<F>> for BadValue {
    fn from(v: Made<F>) -> Self {
        (v.0)()
    }
}

impl From<&str> for BadValue {
    fn from(v: &str) -> Self {
        BadValue::Str(v.to_owned())
    }
}

impl From<&String> for BadValue {
    fn from(v: &String) -> Self {
        BadValue::Str(v.clone())
    }
}

impl From<String> for BadValue {
    fn from(v: String) -> Self {
        BadValue::Str(v)
    }
}

impl From<f64> for BadValue {
    fn from(v: f64) -> Self {
        BadValue::Text(text::float(v))
    }
}

impl From<&[String]> for BadValue {
    fn from(v: &[String]) -> Self {
        BadValue::Text(text::json_list(v.iter().map(String::as_str)))
    }
}

impl<T: Into<BadValue>> From<Option<T>> for BadValue {
    fn from(v: Option<T>) -> Self {
        v.map_or_else(BadValue::null, Into::into)
    }
}

macro_rules! shown_plain {
    ($($ty:ty),*) => {$(
        impl From<$ty> for BadValue {
            fn from(v: $ty) -> Self {
                BadValue::Text(v.to_string())
            }
        }
    )*};
}
shown_plain!(bool, i32, i64, u32, u64, usize);

/// One wrong field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldError {
    pub kind: ErrorType,
    /// The path in text form.
    pub field: String,
    pub value: BadValue,
    pub detail: String,
}

/// Bytes of a path, of a refused value and of a detail that an error keeps. Longer ones are cut: an error is for
/// people, and what a client sends is up to a thousand times as long.
const MAX_FIELD: usize = 1024;
const MAX_VALUE: usize = 8 * 1024;
const MAX_DETAIL: usize = 16 * 1024;

impl FieldError {
    /// An error of any type; the functions below are the usual way. Long texts are cut.
    pub fn new(kind: ErrorType, path: &Path, value: impl Into<BadValue>, detail: impl Into<String>) -> FieldError {
        let (mut field, mut value, mut detail) = (path.to_string(), value.into(), detail.into());
        text::cut(&mut field, MAX_FIELD);
        text::cut(&mut detail, MAX_DETAIL);
        if let BadValue::Str(shown) | BadValue::Text(shown) = &mut value {
            text::cut(shown, MAX_VALUE);
        }
        FieldError {
            kind,
            field,
            value,
            detail,
        }
    }

    /// Bytes of its texts.
    pub(super) fn size(&self) -> usize {
        let value = match &self.value {
            BadValue::Omitted => 0,
            BadValue::Str(shown) | BadValue::Text(shown) => shown.len(),
        };
        self.field.len() + value + self.detail.len()
    }

    /// The value is malformed or out of bounds.
    pub fn invalid(path: &Path, value: impl Into<BadValue>, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorType::Invalid, path, value, detail)
    }

    /// The value is of the wrong type.
    pub fn type_invalid(path: &Path, value: impl Into<BadValue>, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorType::TypeInvalid, path, value, detail)
    }

    /// The value is absent; the detail may be empty.
    pub fn required(path: &Path, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorType::Required, path, "", detail)
    }

    /// The value names something that does not exist.
    pub fn not_found(path: &Path, value: impl Into<BadValue>) -> FieldError {
        FieldError::new(ErrorType::NotFound, path, value, "")
    }

    /// The value stands there twice.
    pub fn duplicate(path: &Path, value: impl Into<BadValue>) -> FieldError {
        FieldError::new(ErrorType::Duplicate, path, value, "")
    }

    /// The value would be fine elsewhere or at another time.
    pub fn forbidden(path: &Path, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorType::Forbidden, path, "", detail)
    }

    /// The value is none of those that are known.
    pub fn not_supported<S: AsRef<str>>(path: &Path, value: impl Into<BadValue>, supported: &[S]) -> FieldError {
        let quoted: Vec<String> = supported.iter().map(|s| text::quote(s.as_ref())).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        FieldError::new(ErrorType::NotSupported, path, value, detail)
    }

    /// Longer than `max` bytes.
    pub fn too_long(path: &Path, max: usize) -> FieldError {
        let detail = format!("may not be more than {max} byte{}", plural(max));
        FieldError::new(ErrorType::TooLong, path, BadValue::Omitted, detail)
    }

    /// Longer than `max` characters.
    pub fn too_long_characters(path: &Path, max: usize) -> FieldError {
        let detail = format!("may not be more than {max} character{}", plural(max));
        FieldError::new(ErrorType::TooLong, path, BadValue::Omitted, detail)
    }

    /// Shorter than `min` characters.
    pub fn too_short(path: &Path, value: impl Into<BadValue>, min: usize) -> FieldError {
        let detail = format!("must be at least {min} character{}", plural(min));
        FieldError::new(ErrorType::TooShort, path, value, detail)
    }

    /// `actual` items where `max` may be.
    pub fn too_many(path: &Path, actual: usize, max: usize) -> FieldError {
        let detail = format!("must have at most {max} item{}", plural(max));
        FieldError::new(ErrorType::TooMany, path, actual, detail)
    }

    /// `actual` items where `min` must be.
    pub fn too_few(path: &Path, actual: usize, min: usize) -> FieldError {
        let detail = format!("must have at least {min} item{}", plural(min));
        FieldError::new(ErrorType::TooFew, path, actual, detail)
    }

    /// The check itself failed.
    pub fn internal(path: &Path, error: impl fmt::Display) -> FieldError {
        FieldError::new(ErrorType::Internal, path, BadValue::Omitted, error.to_string())
    }

    /// The message without the field: that of a cause in a Status.
    pub fn body(&self) -> String {
        let mut out = self.kind.label().to_owned();
        if self.kind.shows_value() {
            match &self.value {
                BadValue::Omitted => {}
                BadValue::Str(s) => out = format!("{out}: {}", text::quote(s)),
                BadValue::Text(s) => out = format!("{out}: {s}"),
            }
        }
        if !self.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for FieldError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_has_its_text() {
        let p = Path::new("spec").child("x");
        for (error, text) in [
            (FieldError::required(&p, ""), "spec.x: Required value"),
            (
                FieldError::required(&p, "must be set"),
                "spec.x: Required value: must be set",
            ),
            (
                FieldError::invalid(&p, "a\"b", "no"),
                r#"spec.x: Invalid value: "a\"b": no"#,
            ),
            (FieldError::invalid(&p, 5, "no"), "spec.x: Invalid value: 5: no"),
            (FieldError::invalid(&p, true, "no"), "spec.x: Invalid value: true: no"),
            (FieldError::invalid(&p, 1.5, "no"), "spec.x: Invalid value: 1.5: no"),
            (
                FieldError::invalid(&p, None::<i64>, "no"),
                "spec.x: Invalid value: null: no",
            ),
            (
                FieldError::invalid(&p, Some(7i64), "no"),
                "spec.x: Invalid value: 7: no",
            ),
            (
                FieldError::invalid(&p, ["a".to_owned(), "b".to_owned()].as_slice(), "no"),
                r#"spec.x: Invalid value: ["a","b"]: no"#,
            ),
            (
                FieldError::type_invalid(&p, "a", "bad"),
                r#"spec.x: Invalid value: "a": bad"#,
            ),
            (FieldError::not_found(&p, "a"), r#"spec.x: Not found: "a""#),
            (FieldError::duplicate(&p, "a"), r#"spec.x: Duplicate value: "a""#),
            (FieldError::forbidden(&p, "not now"), "spec.x: Forbidden: not now"),
            (
                FieldError::not_supported(&p, "c", &["a", "b"]),
                r#"spec.x: Unsupported value: "c": supported values: "a", "b""#,
            ),
            (
                FieldError::too_long(&p, 63),
                "spec.x: Too long: may not be more than 63 bytes",
            ),
            (
                FieldError::too_long(&p, 1),
                "spec.x: Too long: may not be more than 1 byte",
            ),
            (
                FieldError::too_long_characters(&p, 3),
                "spec.x: Too long: may not be more than 3 characters",
            ),
            (
                FieldError::too_short(&p, "a", 3),
                "spec.x: Too short: must be at least 3 characters",
            ),
            (
                FieldError::too_many(&p, 5, 3),
                "spec.x: Too many: 5: must have at most 3 items",
            ),
            (
                FieldError::too_few(&p, 0, 1),
                "spec.x: Too few: 0: must have at least 1 item",
            ),
            (FieldError::internal(&p, "boom"), "spec.x: Internal error: boom"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "é".repeat(1 << 20);
        let error = FieldError::invalid(&Path::new("spec").key(&long), &long, &long);
        assert!(error.field.len() <= MAX_FIELD + 3 && error.field.ends_with("..."));
        assert!(error.size() <= MAX_FIELD + MAX_VALUE + MAX_DETAIL + 9);
        let whole = "x".repeat(MAX_VALUE);
        assert_eq!(
            FieldError::invalid(&Path::root(), &whole, "").value,
            BadValue::Str(whole)
        );
    }
}
