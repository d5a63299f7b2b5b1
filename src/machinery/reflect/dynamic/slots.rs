//! The values of a dynamic message, by the index of their field.

use std::collections::BTreeMap;

use super::DynamicValue;

/// Messages with more fields than these hold those that were said alone: a list may have very many items of a type of
/// which each says next to nothing.
const MANY: usize = 64;

/// The values that were said of many fields.
pub type Sparse = BTreeMap<u16, DynamicValue>;

/// The values of all fields.
#[derive(Clone)]
pub(super) enum Slots {
    /// One for each field, or none as long as there is no value.
    Dense(Box<[DynamicValue]>),
    Sparse(Sparse),
}

impl Slots {
    /// Of a message of so many fields, without any value.
    pub fn of(fields: usize) -> Slots {
        match fields > MANY {
            true => Slots::Sparse(Sparse::new()),
            false => Slots::Dense(Box::default()),
        }
    }

    /// Bytes that they take, about, of a message that says something.
    pub const fn size(fields: usize) -> usize {
        let held = if fields > MANY { MANY / 4 } else { fields };
        held * size_of::<DynamicValue>()
    }

    #[inline]
    pub fn get(&self, index: usize) -> Option<&DynamicValue> {
        match self {
            Slots::Dense(slots) => slots.get(index),
            Slots::Sparse(slots) => slots.get(&u16::try_from(index).ok()?),
        }
    }

    /// The place of a value, absent if there was none. `fields`: how many there are.
    #[inline]
    pub fn get_mut(&mut self, index: usize, fields: usize) -> Option<&mut DynamicValue> {
        match self {
            Slots::Dense(slots) => {
                if slots.is_empty() {
                    *slots = (0..fields).map(|_| DynamicValue::Absent).collect();
                }
                slots.get_mut(index)
            }
            Slots::Sparse(slots) if index < fields => Some(slots.entry(u16::try_from(index).ok()?).or_default()),
            Slots::Sparse(_) => None,
        }
    }
}
