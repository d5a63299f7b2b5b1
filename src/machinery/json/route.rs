//! Field lookup: from the key of an object to the field that it names.

use crate::reflect::{FieldDesc, MessageDesc, Type};

/// The deepest nesting of inlined messages.
const MAX_INLINE: usize = 4;

/// Where a key belongs: the index of a field, behind those of the inlined messages that lead to it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Route {
    steps: [u16; MAX_INLINE],
    len: usize,
}

impl Route {
    pub(super) fn steps(&self) -> &[u16] {
        self.steps.get(..self.len).unwrap_or_default()
    }

    /// Where a writer that follows the order of the fields goes on.
    pub(crate) fn next(&self) -> usize {
        usize::from(self.steps[0]) + 1
    }

    /// The field that the route leads to from a message.
    pub(crate) fn field<'d>(&self, desc: &'d MessageDesc) -> Option<&'d FieldDesc> {
        let (last, inlined) = self.steps().split_last()?;
        let step = |desc: &'d MessageDesc, index: u16| desc.fields.get(usize::from(index));
        let owner = inlined
            .iter()
            .try_fold(desc, |desc, index| match &step(desc, *index)?.ty {
                Type::Message(inlined) => Some(&**inlined),
                _ => None,
            })?;
        step(owner, *last)
    }
}

/// Fields of one object that are told apart by a bit without an allocation.
const DIRECT: usize = 128;

/// Which fields of one object have been read.
#[derive(Default)]
pub(crate) struct Seen {
    direct: [u64; DIRECT / 64],
    /// The bits of the fields behind those.
    more: Vec<u64>,
    /// Fields of inlined messages.
    other: Vec<[u16; MAX_INLINE]>,
}

impl Seen {
    /// Returns whether it was there already.
    pub(crate) fn insert(&mut self, route: &Route) -> bool {
        let index = usize::from(route.steps[0]);
        if route.len == 1 {
            let bit = 1 << (index % 64);
            let word = self.word(index);
            let before = *word & bit != 0;
            *word |= bit;
            return before;
        }
        let mut steps = route.steps;
        steps[route.len..].fill(u16::MAX);
        let before = self.other.contains(&steps);
        if !before {
            self.other.push(steps);
        }
        before
    }

    /// The word that has the bit of a field.
    fn word(&mut self, index: usize) -> &mut u64 {
        let at = index / 64;
        if at < self.direct.len() {
            return &mut self.direct[at];
        }
        let at = at - self.direct.len();
        if at >= self.more.len() {
            self.more.resize(at + 1, 0);
        }
        &mut self.more[at]
    }

    /// Whether the field was there to which these indexes lead.
    pub(crate) fn has(&self, steps: &[u16]) -> bool {
        if let [index] = steps {
            let at = usize::from(*index) / 64;
            let word = self.direct.get(at).or_else(|| self.more.get(at - self.direct.len()));
            return word.is_some_and(|word| word & (1 << (*index % 64)) != 0);
        }
        let same = |other: &[u16; MAX_INLINE]| {
            let (begin, rest) = other.split_at(steps.len().min(MAX_INLINE));
            begin == steps && rest.iter().all(|step| *step == u16::MAX)
        };
        self.other.iter().any(same)
    }
}

/// So many fields behind the last one found are looked at one by one.
const AHEAD: usize = 12;

/// Finds a key among the fields and those of inlined messages; `next` is where it probably is.
pub(crate) fn find(desc: &MessageDesc, key: &[u8], next: usize, route: &mut Route) -> bool {
    // Writers follow the order of the fields and leave some out.
    let after = desc.fields.get(next..).unwrap_or_default();
    let mut near = after.iter().take(AHEAD);
    let direct = match near.position(|field| field.is_named(key)) {
        Some(index) => Some(next + index),
        None if next == 0 && desc.fields.len() <= AHEAD => None,
        None => desc.position(key),
    };
    let Some(step) = route.steps.get_mut(route.len) else {
        return false;
    };
    route.len += 1;
    if let Some(index) = direct {
        *step = index as u16;
        return true;
    }
    let len = route.len;
    for (index, inlined) in desc.inlined() {
        route.steps[len - 1] = index as u16;
        if find(inlined, key, 0, route) {
            return true;
        }
    }
    route.len = len - 1;
    false
}
