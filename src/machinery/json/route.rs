//! From the key of an object to the field that it names.

use crate::reflect::{FieldDesc, Flags, MessageDesc, Type};

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
    pub(crate) fn field(&self, desc: &'static MessageDesc) -> Option<&'static FieldDesc> {
        let (last, inlined) = self.steps().split_last()?;
        let step = |desc: &'static MessageDesc, index: u16| desc.fields.get(usize::from(index));
        let owner = inlined
            .iter()
            .try_fold(desc, |desc, index| match step(desc, *index)?.ty {
                Type::Message(inlined) => Some(inlined()),
                _ => None,
            })?;
        step(owner, *last)
    }
}

/// Which fields of one object have been read.
#[derive(Default)]
pub(crate) struct Seen {
    direct: [u64; 2],
    other: Vec<[u16; MAX_INLINE]>,
}

impl Seen {
    /// Returns whether it was there already.
    pub(crate) fn insert(&mut self, route: &Route) -> bool {
        let index = usize::from(route.steps[0]);
        if let (1, Some(word)) = (route.len, self.direct.get_mut(index / 64)) {
            let bit = 1 << (index % 64);
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

    /// Whether the field was there to which these indexes lead.
    pub(crate) fn has(&self, steps: &[u16]) -> bool {
        if let [index] = steps
            && let Some(word) = self.direct.get(usize::from(*index) / 64)
        {
            return word & (1 << (*index % 64)) != 0;
        }
        let same = |other: &[u16; MAX_INLINE]| {
            let (begin, rest) = other.split_at(steps.len().min(MAX_INLINE));
            begin == steps && rest.iter().all(|step| *step == u16::MAX)
        };
        self.other.iter().any(same)
    }
}

/// Finds a key among the fields and those of inlined messages; `next` is where it probably is.
pub(crate) fn find(desc: &'static MessageDesc, key: &[u8], next: usize, route: &mut Route) -> bool {
    let matches = |f: &FieldDesc| f.is_named(key);
    // Writers follow the order of the fields and leave some out.
    let (before, after) = desc.fields.split_at(next.min(desc.fields.len()));
    let ahead = after.iter().position(matches).map(|index| before.len() + index);
    let direct = ahead.or_else(|| before.iter().position(matches));
    let Some(step) = route.steps.get_mut(route.len) else {
        return false;
    };
    route.len += 1;
    if let Some(index) = direct {
        *step = index as u16;
        return true;
    }
    let len = route.len;
    for (index, field) in desc.fields.iter().enumerate() {
        if let (true, Type::Message(inlined)) = (field.flags.has(Flags::INLINE), field.ty) {
            route.steps[len - 1] = index as u16;
            if find(inlined(), key, 0, route) {
                return true;
            }
        }
    }
    route.len = len - 1;
    false
}
