//! Field types of structs: scalars, lists, maps and options.

use std::collections::BTreeMap;

use super::{Bytes, FieldDesc, Flags, List, Map, Optional, OptionalSlot, Ref, Slot, Type, Value};

/// Whatever may stand in a field of a message. Implemented here for scalars, lists, maps and options; by the derive for
/// messages; by hand for leaves.
pub trait Field: Send + Sync + Sized + 'static {
    const TYPE: Type;
    /// Whether `None` exists.
    const OPTIONAL: bool = false;
    /// It as the element of a list or the value of a map.
    const ELEMENT: &'static FieldDesc = &FieldDesc::new::<Self>("", 0, Flags::NONE);
    /// Whether it certainly is the zero of its type, which JSON shows only of fields that are always written.
    #[inline]
    fn is_bare(&self) -> bool {
        false
    }
    fn value(&self) -> Value<'_>;
    fn slot(&mut self) -> Slot<'_>;
}

macro_rules! scalar {
    ($($ty:ty => $variant:ident, $is_bare:expr);*) => {$(
        impl Field for $ty {
            const TYPE: Type = Type::$variant;
            #[inline]
            fn is_bare(&self) -> bool { $is_bare(*self) }
            fn value(&self) -> Value<'_> { Value::$variant(*self) }
            fn slot(&mut self) -> Slot<'_> { Slot::$variant(self) }
        }
    )*};
}
scalar! {
    bool => Bool, |value: bool| !value;
    i32 => Int32, |value| value == 0;
    i64 => Int64, |value| value == 0;
    // Minus nothing is something else to who compares.
    f64 => Double, |value: f64| value.to_bits() == 0
}

impl Field for String {
    const TYPE: Type = Type::String;
    #[inline]
    fn is_bare(&self) -> bool {
        self.is_empty()
    }
    fn value(&self) -> Value<'_> {
        Value::Str(self)
    }
    fn slot(&mut self) -> Slot<'_> {
        Slot::Str(self)
    }
}

impl Field for Bytes {
    const TYPE: Type = Type::Bytes;
    #[inline]
    fn is_bare(&self) -> bool {
        self.is_empty()
    }
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
    fn slot(&mut self) -> Slot<'_> {
        Slot::Bytes(self)
    }
}

impl<T: Field> Field for Box<T> {
    const TYPE: Type = T::TYPE;
    const OPTIONAL: bool = T::OPTIONAL;
    #[inline]
    fn is_bare(&self) -> bool {
        (**self).is_bare()
    }
    fn value(&self) -> Value<'_> {
        (**self).value()
    }
    fn slot(&mut self) -> Slot<'_> {
        (**self).slot()
    }
}

impl<T: Field + Default> Field for Option<T> {
    const TYPE: Type = T::TYPE;
    const OPTIONAL: bool = true;
    #[inline]
    fn is_bare(&self) -> bool {
        self.is_none()
    }
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Absent, Field::value)
    }
    fn slot(&mut self) -> Slot<'_> {
        Slot::Optional(OptionalSlot::Typed(self))
    }
}

impl<T: Field + Default> Optional for Option<T> {
    fn is_some(&self) -> bool {
        Option::is_some(self)
    }
    fn fill(&mut self) -> Slot<'_> {
        self.get_or_insert_with(T::default).slot()
    }
    fn clear(&mut self) {
        *self = None;
    }
}

impl<T: Field + Default> Field for Vec<T> {
    const TYPE: Type = Type::List(Ref::Static(T::ELEMENT));
    #[inline]
    fn is_bare(&self) -> bool {
        self.is_empty()
    }
    fn value(&self) -> Value<'_> {
        Value::List(self)
    }
    fn slot(&mut self) -> Slot<'_> {
        Slot::List(self)
    }
}

impl<T: Field + Default> List for Vec<T> {
    fn len(&self) -> usize {
        Vec::len(self)
    }
    fn get(&self, index: usize) -> Value<'_> {
        <[T]>::get(self, index).map_or(Value::Absent, Field::value)
    }
    fn get_mut(&mut self, index: usize) -> Option<Slot<'_>> {
        <[T]>::get_mut(self, index).map(Field::slot)
    }
    fn push(&mut self) -> Slot<'_> {
        self.push_mut(T::default()).slot()
    }
    fn clear(&mut self) {
        Vec::clear(self);
    }
    fn remove(&mut self, index: usize) {
        if index < Vec::len(self) {
            Vec::remove(self, index);
        }
    }
    fn reorder(&mut self, order: &[usize]) {
        let mut old: Vec<Option<T>> = std::mem::take(self).into_iter().map(Some).collect();
        self.extend(
            order
                .iter()
                .filter_map(|&i| old.as_mut_slice().get_mut(i).and_then(Option::take)),
        );
        self.extend(old.into_iter().flatten());
    }
    fn element(&self) -> &FieldDesc {
        T::ELEMENT
    }
}

impl<T: Field + Default> Field for BTreeMap<String, T> {
    const TYPE: Type = Type::Map(Ref::Static(T::ELEMENT));
    #[inline]
    fn is_bare(&self) -> bool {
        self.is_empty()
    }
    fn value(&self) -> Value<'_> {
        Value::Map(self)
    }
    fn slot(&mut self) -> Slot<'_> {
        Slot::Map(self)
    }
}

impl<T: Field + Default> Map for BTreeMap<String, T> {
    fn len(&self) -> usize {
        BTreeMap::len(self)
    }
    fn get(&self, key: &str) -> Option<Value<'_>> {
        BTreeMap::get(self, key).map(Field::value)
    }
    fn entry(&mut self, key: &str) -> Slot<'_> {
        BTreeMap::entry(self, key.to_owned()).or_default().slot()
    }
    fn remove(&mut self, key: &str) {
        BTreeMap::remove(self, key);
    }
    fn clear(&mut self) {
        BTreeMap::clear(self);
    }
    fn for_each<'a>(&'a self, f: &mut dyn FnMut(&'a str, Value<'a>)) {
        for (k, v) in self {
            f(k, v.value());
        }
    }
    fn element(&self) -> &FieldDesc {
        T::ELEMENT
    }
}
