//! Sets of fields that stay text: most owners of an object neither gain nor lose anything by a write.

use super::codec::{MAX_DEPTH, is_plain, read_element};
use super::{FieldSet, PathElement};
use crate::json_text::{Text, string_len};

/// Whether the text is FieldsV1 of at least one path, of elements as nearly all are and without white space: then it
/// says what [`FieldSet::read`] would find in it. Says no of what would take a closer look.
pub(crate) fn is_usual(text: &[u8]) -> bool {
    usual(text).unwrap_or(false)
}

/// Whether there is something in it. `None`: it is not as usual.
fn usual(text: &[u8]) -> Option<bool> {
    let (mut rest, mut depth, mut any) = (text.strip_prefix(b"{")?, 1, false);
    loop {
        let (is_element, behind) = usual_key(rest.strip_prefix(b"\"")?)?;
        any |= is_element && depth == 1;
        rest = behind.strip_prefix(b":{")?;
        depth += 1;
        if depth > MAX_DEPTH {
            return None;
        }
        let mut closed = false;
        while let Some(behind) = rest.strip_prefix(b"}") {
            (rest, closed) = (behind, true);
            depth -= 1;
            if depth == 0 {
                return rest.is_empty().then_some(any);
            }
        }
        if closed {
            rest = rest.strip_prefix(b",")?;
        }
    }
}

/// The key that a text begins with, behind its first quote: whether it is an element, which `.` is not, and what stands
/// behind its last quote.
fn usual_key(text: &[u8]) -> Option<(bool, &[u8])> {
    let (is_element, rest) = match text {
        [b'.', rest @ ..] => (false, rest),
        [b'f', b':', rest @ ..] => (true, plain(rest)),
        [b'k', b':', b'{', rest @ ..] => (true, usual_fields(rest)?),
        [b'v', b':', rest @ ..] => (true, string(rest)?),
        _ => return None,
    };
    Some((is_element, rest.strip_prefix(b"\"")?))
}

/// What stands behind the members of an object of strings and whole numbers, within a string:
/// `\"name\":\"web\",\"port\":80}`.
fn usual_fields(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        let value = string(rest)?.strip_prefix(b":")?;
        match string(value).or_else(|| number(value))? {
            [b'}', behind @ ..] => return Some(behind),
            [b',', more @ ..] => rest = more,
            _ => return None,
        }
    }
}

/// What stands behind bytes that JSON shows as they are.
fn plain(text: &[u8]) -> &[u8] {
    let len = text.iter().position(|b| !is_plain(*b)).unwrap_or(text.len());
    text.get(len..).unwrap_or_default()
}

/// What stands behind a string in escaped quotes.
fn string(text: &[u8]) -> Option<&[u8]> {
    plain(text.strip_prefix(br#"\""#)?).strip_prefix(br#"\""#)
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
        let found = text
            .strip_prefix(b"{")
            .and_then(|text| level(&mut Walk(text), set, &mut any));
        match found {
            Some((_, all)) => Overlap { any, all },
            None => Overlap { any: true, all: false },
        }
    }
}

/// A walk over a text for which [`is_usual`] is true: what is left of it.
struct Walk<'t>(&'t [u8]);

impl<'t> Walk<'t> {
    /// Passes over a key and the brace behind it; the key as it is written.
    fn enter(&mut self) -> Option<&'t [u8]> {
        let text = self.0.strip_prefix(b"\"")?;
        let (key, rest) = text.split_at_checked(string_len(text))?;
        self.0 = rest.strip_prefix(b"\":{")?;
        Some(key)
    }

    /// Passes over what is left of the object at hand.
    fn leave(&mut self) -> Option<()> {
        let mut depth = 1;
        loop {
            match self.0 {
                [b'"', ..] => {
                    self.enter()?;
                    depth += 1;
                }
                [b',', rest @ ..] => self.0 = rest,
                [b'}', rest @ ..] => {
                    self.0 = rest;
                    depth -= 1;
                    if depth == 0 {
                        return Some(());
                    }
                }
                _ => return None,
            }
        }
    }
}

/// The level at hand, behind its brace: whether the path to it is in the text, and whether all below it in the set is.
fn level(walk: &mut Walk<'_>, set: &FieldSet, any: &mut bool) -> Option<(bool, bool)> {
    if let Some(rest) = walk.0.strip_prefix(b"}") {
        walk.0 = rest;
        return Some((true, set.is_empty()));
    }
    let (mut member, mut found) = (false, vec![false; set.entries.len()]);
    loop {
        let key = walk.enter()?;
        match place(key, set)? {
            Place::Path => {
                member = true;
                walk.leave()?;
            }
            Place::Elsewhere => walk.leave()?,
            Place::Entry(index) => {
                let entry = set.entries.get(index)?;
                let (there, below) = level(walk, &entry.children, any)?;
                *any |= there && entry.member;
                let whole = below && (there || !entry.member);
                found.get_mut(index).map(|found| *found |= whole)?;
            }
        }
        let (more, rest) = walk.0.split_first()?;
        walk.0 = rest;
        match more {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
    }
    Some((member, found.iter().all(|found| *found)))
}

/// Where a key of a text stands in a level of a set.
enum Place {
    /// It is the path to the level.
    Path,
    Entry(usize),
    Elsewhere,
}

fn place(key: &[u8], set: &FieldSet) -> Option<Place> {
    let found = match key {
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
            let (inner, plain) = (key, false);
            let element = read_element(&Text { inner, plain }.decode()).ok().flatten()?;
            set.entries.binary_search_by(|entry| entry.element.cmp(&element))
        }
    };
    Some(found.map_or(Place::Elsewhere, Place::Entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 5] = [
        r#"{"f:a":{},"f:b":{".":{},"f:c":{},"f:d":{"f:e":{}}}}"#,
        r#"{"f:list":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:port":{}},"k:{\"name\":\"y\"}":{".":{}}}}"#,
        r#"{"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}}"#,
        r#"{"f:finalizers":{".":{},"v:\"a/b\"":{}},"f:labels":{"f:app.kubernetes.io/name":{}}}"#,
        r#"{"f:b":{".":{}}}"#,
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
            r#"{"f:a":{},}"#,
            r#"{"f:a":{}"f:b":{}}"#,
            r#"{"f:a":{"f:b":{},"f:c"}}"#,
            r#" {"f:b" : {"f:c":{ }} , "f:z":{}}"#,
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
