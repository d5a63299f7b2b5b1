//! Fit of an object and the table of its kind. Custom objects that were stored before their schema changed may not fit:
//! nothing can be applied to them, and nobody owns any of their fields.

use super::document::objections;
use crate::json;
use crate::reflect::object::Object;
use crate::reflect::{self, FieldDesc, List, ListType, Map, Reflect, Type, Value};

/// What keeps an object from being compared with others, in kube-apiserver's words; `None`: it fits.
pub fn misfit(object: &dyn Object) -> Option<String> {
    if !object.desc().is_dynamic() || fits(object.as_reflect()) {
        return None;
    }
    let mut text = Vec::new();
    json::write_kind(object, &mut text);
    objections(&text, object.desc())
}

/// False: some value may not fit.
fn fits(message: &dyn Reflect) -> bool {
    reflect::fields(message).all(|(_, field, value)| value_fits(field, value))
}

fn value_fits(field: &FieldDesc, value: Value<'_>) -> bool {
    match (&field.ty, value) {
        (_, Value::Absent | Value::Null) | (Type::Any | Type::Untyped | Type::Leaf(_), _) => true,
        (Type::Message(_), Value::Message(message)) => !message.desc().is_dynamic() || fits(message),
        (Type::Map(element), Value::Map(map)) => entries_fit(element, map),
        (Type::List(element), Value::List(list)) => items_fit(field, element, list),
        (Type::String, Value::Str(_)) | (Type::Bytes, Value::Bytes(_)) | (Type::Bool, Value::Bool(_)) => true,
        (Type::Int32 | Type::Int64 | Type::Double, Value::Int32(_) | Value::Int64(_) | Value::Double(_)) => true,
        _ => false,
    }
}

fn entries_fit(element: &FieldDesc, map: &dyn Map) -> bool {
    let mut fit = true;
    map.for_each(&mut |_, value| fit = fit && value_fits(element, value));
    fit
}

fn items_fit(field: &FieldDesc, element: &FieldDesc, list: &dyn List) -> bool {
    (0..list.len()).all(|index| {
        let value = list.get(index);
        let named = match (field.list, value) {
            (ListType::Set, Value::Null | Value::Message(_) | Value::Map(_) | Value::List(_)) => false,
            (ListType::Map, Value::Message(item)) => field.map_keys().names().any(|key| {
                let place = item.desc().field(&key);
                place.is_some_and(|(place, _)| !matches!(item.get(place), Value::Absent))
            }),
            (ListType::Map, _) => false,
            _ => true,
        };
        named && value_fits(element, value)
    })
}
