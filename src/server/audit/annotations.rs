//! Audit annotations: names and texts, bounded.

use std::borrow::Cow;

/// Notes of one event; further ones are left out.
pub const MAX_ANNOTATIONS: usize = 128;
/// Bytes of a note's name; a longer one is left out.
pub const MAX_NAME_BYTES: usize = 512;
/// Bytes of a note's text; more is cut off.
pub const MAX_TEXT_BYTES: usize = 32 * 1024;

/// The notes on one request, by name.
#[derive(Debug, Default)]
pub struct Annotations {
    /// In order of names.
    notes: Vec<(Cow<'static, str>, Cow<'static, str>)>,
}

impl Annotations {
    /// Notes `text` under `name`. What is there stays: whoever comes first knows best.
    pub fn set(&mut self, name: impl Into<Cow<'static, str>>, text: impl Into<Cow<'static, str>>) {
        let name = name.into();
        if self.notes.len() >= MAX_ANNOTATIONS || name.len() > MAX_NAME_BYTES {
            tracing::warn!("an audit annotation is left out: too many, or its name is too long");
            return;
        }
        let Err(place) = self.notes.binary_search_by(|(n, _)| n.cmp(&name)) else {
            return;
        };
        let mut text = text.into();
        if text.len() > MAX_TEXT_BYTES {
            let end = text.floor_char_boundary(MAX_TEXT_BYTES);
            text.to_mut().truncate(end);
        }
        self.notes.insert(place, (name, text));
    }

    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// Names and texts, in order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.notes.iter().map(|(name, text)| (name.as_ref(), text.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_sorted_and_the_first_stays() {
        let mut notes = Annotations::default();
        notes.set("b", "1");
        notes.set("a", "2");
        notes.set("b", "3");
        assert_eq!(notes.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "1")]);
    }

    #[test]
    fn notes_are_bounded() {
        let mut notes = Annotations::default();
        notes.set("long", "é".repeat(MAX_TEXT_BYTES));
        assert_eq!(notes.iter().next().unwrap().1.len(), MAX_TEXT_BYTES);
        notes.set("n".repeat(MAX_NAME_BYTES + 1), "");
        assert_eq!(notes.iter().count(), 1);
        for n in 0..2 * MAX_ANNOTATIONS {
            notes.set(n.to_string(), "");
        }
        assert_eq!(notes.iter().count(), MAX_ANNOTATIONS);
    }
}
