//! `apiVersion` and `kind` of a JSON document, found without reading the rest into anything.

use crate::decode::{DecodeError, StrictKind, StrictProblem, TypeMeta};
use crate::json_text::scan::{AFTER_PAIR, Failure, Scanner, Shape, parse_shape};
use crate::json_text::{self as text, validate};
use crate::reflect::leaf::GO_VALUE;

/// What the two are read into in Go; it shows in one error text.
const TYPE_META_STRUCT: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// `apiVersion` and `kind` of a document. Looks no further than it must: it stops behind the two, so that errors in the
/// syntax of the rest are left to [`super::read`], and it takes the keys in their exact case. Where that may matter,
/// [`type_meta_of_all`] tells what kube-apiserver sees.
pub fn type_meta(json: &[u8]) -> Result<TypeMeta, DecodeError> {
    Found::scan(json, false)?.checked()
}

/// As [`type_meta`]; a part that is no text is empty, and so are both of what is no object.
pub fn type_texts(json: &[u8]) -> TypeMeta {
    Found::scan(json, false).map_or_else(|_| TypeMeta::default(), |found| found.meta)
}

/// As [`type_meta`], from the whole document: its syntax is checked to the end, the case of the two keys does not
/// matter, and of several the last one counts.
pub fn type_meta_of_all(json: &[u8]) -> Result<TypeMeta, DecodeError> {
    validate(json)?;
    Found::scan(json, true)?.checked()
}

/// Whether a top-level key names the type of a document for one who does not look at its case.
pub fn names_type(key: &str) -> bool {
    same_folded(key, API_VERSION) || same_folded(key, KIND)
}

/// What a strict decoder says of a document that it reads into a kind without fields: every key but the type's is
/// unknown.
pub fn no_fields(json: &[u8]) -> Result<Vec<StrictProblem>, DecodeError> {
    validate(json)?;
    let Shape::Object(members) = parse_shape(json)? else {
        return Ok(Vec::new());
    };
    let keys = members.iter().map(|(key, _)| key.decode().into_owned());
    let unknown = |path: String| StrictProblem {
        kind: StrictKind::UnknownField,
        path,
    };
    Ok(keys
        .filter(|key| key != API_VERSION && key != KIND)
        .map(unknown)
        .collect())
}

const API_VERSION: &str = "apiVersion";
const KIND: &str = "kind";

/// Equality but for case, with the two letters outside ASCII whose lower case is an ASCII letter.
fn same_folded(key: &str, name: &str) -> bool {
    let folded = |c: char| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    key.len() <= 3 * name.len() && key.chars().map(folded).eq(name.chars().map(folded))
}

/// The type that a document names.
#[derive(Default)]
struct Found {
    meta: TypeMeta,
    /// What is said of the first of its parts that is no text.
    wrong: Option<String>,
}

impl Found {
    fn checked(self) -> Result<TypeMeta, DecodeError> {
        self.wrong.map_or(Ok(self.meta), |text| Err(DecodeError::Value(text)))
    }

    fn scan(json: &[u8], all: bool) -> Result<Found, DecodeError> {
        scan(json, all).map_err(|e| *e)
    }
}

fn scan(json: &[u8], all: bool) -> Result<Found, Failure> {
    let mut meta = TypeMeta::default();
    let mut scan = Scanner::new(json);
    if scan.peek() != Some(b'{') {
        let value = scan.skip_value()?;
        scan.end()?;
        return match text::kind_name(value) {
            "null" => Ok(Found::default()),
            name => Err(Box::new(DecodeError::Value(format!(
                "json: cannot unmarshal {name}{GO_VALUE}{TYPE_META_STRUCT}"
            )))),
        };
    }
    let (mut version_seen, mut kind_seen) = (false, false);
    let mut wrong = None;
    scan.pos += 1;
    if scan.peek() == Some(b'}') {
        return Ok(Found::default());
    }
    loop {
        let key = scan.key()?;
        let name = match key.inner {
            b"apiVersion" => Some(API_VERSION),
            b"kind" => Some(KIND),
            _ if all => {
                let key = key.decode();
                [API_VERSION, KIND].into_iter().find(|name| same_folded(&key, name))
            }
            _ => None,
        };
        let place = match name {
            Some(KIND) => Some((&mut kind_seen, &mut meta.kind, KIND)),
            Some(name) => Some((&mut version_seen, &mut meta.api_version, name)),
            None => None,
        };
        match (place, scan.peek()) {
            (Some((seen, place, _)), Some(b'"')) => {
                *place = scan.string()?.decode().into_owned();
                *seen = true;
            }
            (Some((_, _, name)), _) => {
                let found = text::kind_name(scan.skip_value()?);
                let error = format!("json: cannot unmarshal {found} into Go struct field .{name} of type string");
                wrong = wrong.or((found != "null").then_some(error));
            }
            (None, _) => drop(scan.skip_value()?),
        }
        match scan.peek() {
            Some(b',') if version_seen && kind_seen && !all => break,
            Some(b',') => scan.pos += 1,
            Some(b'}') => break,
            _ => return Err(scan.fail(AFTER_PAIR)),
        }
    }
    Ok(Found { meta, wrong })
}
