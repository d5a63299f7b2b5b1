//! Sets of fields that stay text: most owners of an object neither gain nor lose anything by a write.

use super::codec::{MAX_DEPTH, is_plain, read_element};
use super::{FieldSet, PathElement};
use crate::json::{Scanner, Text};

/// Whether the text is FieldsV1 of at least one path, of elements as nearly all are: then it says what
/// [`FieldSet::read`] would find in it. Says no of what would take a closer look.
pub(crate) fn is_usual(text: &[u8]) -> bool {
    let mut scan = Scanner::new(text);
    text.len() > b"{}".len() && usual_level(&mut scan, 0) == Some(true) && scan.end().is_ok()
}

/// The level at hand; whether there is something in it. `None`: it is not as usual.
fn usual_level(scan: &mut Scanner<'_>, depth: usize) -> Option<bool> {
    if depth == MAX_DEPTH || scan.peek() != Some(b'{') {
        return None;
    }
    scan.pos += 1;
    if scan.peek() == Some(b'}') {
        scan.pos += 1;
        return Some(false);
    }
    let mut any = false;
    loop {
        any |= usual_key(scan.key().ok()?)?;
        usual_level(scan, depth + 1)?;
        match scan.peek() {
            Some(b',') => scan.pos += 1,
            Some(b'}') => break,
            _ => return None,
        }
    }
    scan.pos += 1;
    Some(any)
}

/// Whether the key is an element; `.` is none.
fn usual_key(key: Text<'_>) -> Option<bool> {
    match key.written() {
        b"." => Some(false),
        [b'f', b':', name @ ..] if name.iter().all(|b| is_plain(*b)) => Some(true),
        [b'k', b':', fields @ ..] => usual_fields(fields).then_some(true),
        [b'v', b':', b'\\', b'"', text @ .., b'\\', b'"'] if text.iter().all(|b| is_plain(*b)) => Some(true),
        _ => None,
    }
}

/// Whether this is an object of strings and whole numbers, within a string: `{\"name\":\"web\",\"port\":80}`.
fn usual_fields(text: &[u8]) -> bool {
    let Some(mut rest) = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}")) else {
        return false;
    };
    loop {
        let Some(value) = string(rest).and_then(|(_, rest)| rest.strip_prefix(b":")) else {
            return false;
        };
        let Some(behind) = string(value).map(|(_, rest)| rest).or_else(|| number(value)) else {
            return false;
        };
        match behind {
            b"" => return true,
            [b',', more @ ..] => rest = more,
            _ => return false,
        }
    }
}

/// A string in escaped quotes, and what stands behind it.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_prefix(br#"\""#)?;
    let len = inner.iter().take_while(|b| is_plain(**b)).count();
    let (inner, rest) = inner.split_at(len);
    Some((inner, rest.strip_prefix(br#"\""#)?))
}

/// What stands behind a whole number of at most eighteen digits.
fn number(text: &[u8]) -> Option<&[u8]> {
    let len = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let leads_with_zero = len > 1 && text.first() == Some(&b'0');
    (1..=18).contains(&len).then_some(())?;
    (!leads_with_zero).then(|| text.get(len..).unwrap_or_default())
}

/// What a text of fields and a set have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Overlap {
    /// Some path is in both. Also said where it takes a closer look.
    pub(crate) any: bool,
    /// All paths of the set are in the text. Not said where it takes a closer look.
    pub(crate) all: bool,
}

impl Overlap {
    /// Of a text for which [`is_usual`] is true.
    pub(crate) fn of(text: &[u8], set: &FieldSet) -> Overlap {
        let mut any = false;
        match level(&mut Scanner::new(text), set, &mut any) {
            Some((_, all)) => Overlap { any, all },
            None => Overlap { any: true, all: false },
        }
    }
}

/// The level at hand: whether the path to it is in the text, and whether all below it in the set is.
fn level(scan: &mut Scanner<'_>, set: &FieldSet, any: &mut bool) -> Option<(bool, bool)> {
    scan.peek();
    scan.pos += 1;
    if scan.peek() == Some(b'}') {
        scan.pos += 1;
        return Some((true, set.is_empty()));
    }
    let (mut member, mut found) = (false, vec![false; set.entries.len()]);
    loop {
        let key = scan.key().ok()?;
        match place(key, set)? {
            Place::Path => {
                member = true;
                scan.skip_value().ok()?;
            }
            Place::Elsewhere => {
                scan.skip_value().ok()?;
            }
            Place::Entry(index) => {
                let entry = set.entries.get(index)?;
                let (there, below) = level(scan, &entry.children, any)?;
                *any |= there && entry.member;
                let whole = below && (there || !entry.member);
                found.get_mut(index).map(|found| *found |= whole)?;
            }
        }
        match scan.peek() {
            Some(b',') => scan.pos += 1,
            Some(b'}') => break,
            _ => return None,
        }
    }
    scan.pos += 1;
    Some((member, found.iter().all(|found| *found)))
}

/// Where a key of a text stands in a level of a set.
enum Place {
    /// It is the path to the level.
    Path,
    Entry(usize),
    Elsewhere,
}

fn place(key: Text<'_>, set: &FieldSet) -> Option<Place> {
    let found = match key.written() {
        b"." => return Some(Place::Path),
        [b'f', b':', name @ ..] => {
            let name = std::str::from_utf8(name).ok()?;
            set.entries.binary_search_by(|entry| entry.element.cmp_field(name))
        }
        // Sets of what changed have few of the other elements.
        _ if matches!(
            set.entries.last(),
            None | Some(super::Entry {
                element: PathElement::Field(_),
                ..
            })
        ) =>
        {
            Err(0)
        }
        _ => {
            let element = read_element(&key.decode()).ok().flatten()?;
            set.entries.binary_search_by(|entry| entry.element.cmp(&element))
        }
    };
    Some(found.map_or(Place::Elsewhere, Place::Entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 6] = [
        r#"{"f:a":{},"f:b":{".":{},"f:c":{},"f:d":{"f:e":{}}}}"#,
        r#"{"f:list":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:port":{}},"k:{\"name\":\"y\"}":{".":{}}}}"#,
        r#"{"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}}"#,
        r#"{"f:finalizers":{".":{},"v:\"a/b\"":{}},"f:labels":{"f:app.kubernetes.io/name":{}}}"#,
        r#"{"f:b":{".":{}}}"#,
        r#" {"f:b" : {"f:c":{ }} , "f:z":{}}"#,
    ];

    #[test]
    fn usual_texts_are_sets() {
        for text in TEXTS {
            assert!(is_usual(text.as_bytes()), "{text}");
            assert!(!FieldSet::read(text.as_bytes()).unwrap().is_empty());
        }
        for text in [
            "",
            "{}",
            "{",
            "[]",
            "null",
            r#"{".":{}}"#,
            r#"{"f:a":{}} x"#,
            r#"{"f:a":1}"#,
            r#"{"f:a":{}"#,
            r#"{"x:a":{}}"#,
            r#"{"a":{}}"#,
            r#"{"i:3":{}}"#,
            r#"{"f:\u00e9":{}}"#,
            r#"{"k:{\"name\":null}":{}}"#,
            r#"{"k:{\"name\"}":{}}"#,
            r#"{"k:{\"port\":080}":{}}"#,
            r#"{"k:{}":{}}"#,
            r#"{"v:1":{}}"#,
        ] {
            assert!(!is_usual(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn overlaps_are_those_of_the_sets() {
        for text in TEXTS {
            let whole = FieldSet::read(text.as_bytes()).unwrap();
            for other in TEXTS {
                let mut parts = vec![FieldSet::read(other.as_bytes()).unwrap()];
                parts.push(parts[0].leaves());
                let only = |path: &[&PathElement]| {
                    let path: Vec<PathElement> = path.iter().map(|e| (*e).clone()).collect();
                    FieldSet::of(&path)
                };
                parts[0].clone().for_each(&mut |path| parts.push(only(path)));
                for set in parts {
                    let overlap = Overlap::of(text.as_bytes(), &set);
                    assert_eq!(overlap.any, !whole.is_disjoint(&set), "{text} {set:?}");
                    assert_eq!(overlap.all, set.clone().difference(&whole).is_empty(), "{text} {set:?}");
                }
            }
        }
    }
}
