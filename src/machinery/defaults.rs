//! Defaults that the field tables say.

use crate::json;
use crate::reflect::budget::{self, Budget};
use crate::reflect::equality::is_zero_value;
use crate::reflect::{self, FieldDesc, Flags, List, Map, Reflect, Slot, Value};

/// Gives every field that is absent (or, where it can't be absent, zero or empty) its default, in the whole message and
/// in all messages below it. What a default itself brings is walked through too.
pub fn apply(message: &mut dyn Reflect) {
    fill(message, &Budget::unlimited());
}

/// As [`apply`], as long as what is filled in is in the budget: a schema of its client's own may say a lot of what each
/// item of a list lacks. False: it is not, and some have no defaults.
pub fn apply_within(message: &mut dyn Reflect, budget: &Budget) -> bool {
    fill(message, budget);
    !budget.is_exhausted()
}

fn fill(message: &mut dyn Reflect, budget: &Budget) {
    let desc = message.handle().clone();
    let said: Option<Vec<usize>> = message.sparse().map(|_| {
        let mut said: Vec<usize> = reflect::indexes(message).collect();
        said.extend(desc.missed.iter().map(|index| usize::from(*index)));
        said.sort_unstable();
        said.dedup();
        said
    });
    let defaulted = if said.is_some() { &[][..] } else { &*desc.defaulted };
    let defaulted = defaulted.iter().map(|index| usize::from(*index));
    for index in defaulted.chain(said.into_iter().flatten()) {
        let Some(field) = desc.fields.get(index) else { continue };
        if let Some(default) = field.default()
            && is_missing(field, message.get(index))
            && budget.take(default.len() + budget::DEFAULT)
            && let Some(slot) = message.get_mut(index)
        {
            // A table has no default that does not fit its field.
            let _ = json::read_value(default.as_bytes(), field, slot);
        }
        if field.flags.has(Flags::HAS_DEFAULTS) && !matches!(message.get(index), Value::Absent) {
            message
                .get_mut(index)
                .into_iter()
                .for_each(|slot| fill_below(slot, budget));
        }
    }
}

fn is_missing(field: &FieldDesc, value: Value<'_>) -> bool {
    match value {
        Value::Absent => true,
        Value::Null => !field.flags.has(Flags::NULLABLE),
        value => !field.flags.has(Flags::OPTIONAL) && is_zero_value(value),
    }
}

fn fill_below(slot: Slot<'_>, budget: &Budget) {
    if budget.is_exhausted() {
        return;
    }
    match slot {
        Slot::Message(m) => fill(m, budget),
        Slot::Optional(o) if o.is_some() => fill_below(o.open(), budget),
        Slot::List(l) => fill_list(l, budget),
        Slot::Map(m) => fill_map(m, budget),
        _ => {}
    }
}

fn fill_list(list: &mut dyn List, budget: &Budget) {
    let default = element_default(list.element());
    for index in 0..list.len() {
        if let (Some((element, default)), Value::Null) = (&default, list.get(index))
            && budget.take(default.len() + budget::DEFAULT)
            && let Some(slot) = list.get_mut(index)
        {
            let _ = json::read_value(default.as_bytes(), element, slot);
        }
        list.get_mut(index)
            .into_iter()
            .for_each(|slot| fill_below(slot, budget));
    }
}

/// The default of elements that are null where null is no value.
fn element_default(element: &FieldDesc) -> Option<(FieldDesc, String)> {
    let default = element.default().filter(|_| !element.flags.has(Flags::NULLABLE))?;
    Some((element.clone(), default.to_owned()))
}

fn fill_map(map: &mut dyn Map, budget: &Budget) {
    let default = element_default(map.element());
    let mut keys = Vec::with_capacity(map.len());
    map.for_each(&mut |key, _| keys.push(key.to_owned()));
    for key in keys {
        if let (Some((element, default)), Some(Value::Null)) = (&default, map.get(&key))
            && budget.take(default.len() + budget::DEFAULT)
        {
            let _ = json::read_value(default.as_bytes(), element, map.entry(&key));
        }
        fill_below(map.entry(&key), budget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Part, Widget, WidgetSpec};

    #[test]
    fn absent_and_empty_get_defaults() {
        let mut widget = Widget::default();
        widget.spec.parts = vec![
            Part::default(),
            Part {
                protocol: "UDP".into(),
                args: vec!["x".into()],
                ..Part::default()
            },
        ];
        widget.spec.child = Some(Box::new(WidgetSpec {
            replicas: Some(0),
            ..WidgetSpec::default()
        }));
        widget.spec.source.local = Some(Box::default());
        apply(&mut widget);
        assert_eq!(widget.spec.replicas, Some(2));
        let part = |p: &Part| (p.protocol.clone(), p.args.join(" "));
        assert_eq!(part(&widget.spec.parts[0]), ("TCP".into(), "a b".into()));
        assert_eq!(part(&widget.spec.parts[1]), ("UDP".into(), "x".into()));
        assert_eq!(
            part(widget.spec.source.local.as_ref().unwrap()),
            ("TCP".into(), "a b".into())
        );
        let child = widget.spec.child.as_ref().unwrap();
        // A zero that was said stays; what is absent stays absent where nothing is said of it.
        assert_eq!((child.replicas, child.child.is_none()), (Some(0), true));
    }
}
