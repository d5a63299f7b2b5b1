//! Values that are kept as they came, after an apply: kube-apiserver reads them to change the object, so that keys are
//! sorted and numbers short afterwards.

use crate::json::sorted;
use crate::reflect::{Flags, LeafKind, Reflect, Slot, Type};

/// Sorts the keys of all such values of an object but for those in its metadata, which hold what others wrote.
pub fn sort_raw_values(object: &mut dyn Reflect) {
    let desc = object.handle().clone();
    if desc.is_dynamic() {
        // It is written in this order anyway.
        return;
    }
    let fields = desc.fields.iter().enumerate();
    for (index, _) in fields.filter(|(_, f)| f.json != "metadata" || f.flags.has(Flags::INLINE)) {
        object.get_mut(index).into_iter().for_each(sort);
    }
}

fn sort(slot: Slot<'_>) {
    match slot {
        Slot::Leaf(leaf) if leaf.kind() == LeafKind::Raw && !leaf.is_zero() => {
            let mut text = Vec::new();
            leaf.write_json(&mut text);
            // It is JSON already.
            let _ = leaf.read_json(&sorted(&text));
        }
        Slot::Message(message) => {
            for index in 0..message.desc().fields.len() {
                message.get_mut(index).into_iter().for_each(sort);
            }
        }
        Slot::Optional(o) if o.is_some() => sort(o.open()),
        Slot::List(list) if is_composed(&list.element().ty) => {
            for index in 0..list.len() {
                list.get_mut(index).into_iter().for_each(sort);
            }
        }
        Slot::Map(map) if is_composed(&map.element().ty) => {
            let mut keys = Vec::with_capacity(map.len());
            map.for_each(&mut |key, _| keys.push(key.to_owned()));
            for key in keys {
                sort(map.entry(&key));
            }
        }
        _ => {}
    }
}

fn is_composed(ty: &Type) -> bool {
    matches!(ty, Type::Message(_) | Type::Leaf(LeafKind::Raw))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use crate::reflect::raw::RawJson;

    #[derive(Clone, Default, keelson_machinery::Message)]
    #[message(name = "io.example.api.v1.Kept")]
    struct Kept {
        #[field(json = "metadata", number = 1)]
        metadata: RawJson,
        #[field(json = "data", number = 2)]
        data: RawJson,
        #[field(json = "below", number = 3)]
        below: Vec<Kept>,
    }

    #[test]
    fn keys_are_sorted_but_in_metadata() {
        let mut kept = Kept::default();
        let text = br#"{"metadata":{"b":1,"a":2},"data":{"b":1.0,"a":"<"},"below":[{"data":{"d":1e3,"c":2}}]}"#;
        json::read(text, &mut kept).unwrap();
        sort_raw_values(&mut kept);
        let mut out = Vec::new();
        json::write(&kept, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"metadata":{"b":1,"a":2},"data":{"a":"\u003c","b":1},"below":[{"metadata":null,"data":{"c":2,"d":1000}}]}"#
        );
    }
}
