//! Order of causes: what definitions find wrong stands among what the code of a kind finds, by the order of fields.
//!
//! kube-apiserver has one function for each message, which looks at its fields in their order, mostly. Here definitions
//! say some of its rules, and code the others.

use keelson_machinery::field::{ErrorList, FieldError};
use keelson_machinery::reflect::{FieldDesc, Flags, MessageDesc, Type};
use keelson_machinery::validation::meta::IMMUTABLE;

/// One step of a path: the place of a field in its message, or an index; `None`: a key, no field, or any item of a list
/// whose index is not told.
type Step = Option<usize>;
/// More fields than a message has, so that those of an inlined one stand in its place.
const MANY: usize = 1 << 16;

/// What the definition of a message found, put into its places among what code found.
///
/// `order`: names of fields that kube-apiserver looks at first, in this order; the others follow in that of the
/// definition.
pub(super) fn merged(desc: &MessageDesc, order: &[&str], declared: ErrorList, coded: ErrorList) -> ErrorList {
    if declared.is_empty() {
        return coded;
    }
    let declared = sorted(desc, order, declared);
    let mut all = ErrorList::new();
    if coded.is_empty() || declared.is_full() || coded.is_full() {
        all.extend(declared);
        all.extend(coded);
        return all;
    }
    // What changed and may not is told last.
    let path = |error: &FieldError| match error.detail == IMMUTABLE {
        true => Vec::new(),
        false => steps(desc, order, &error.field),
    };
    let paths: Vec<Vec<Step>> = coded.iter().map(path).collect();
    let places = declared
        .iter()
        .map(|error| place(&steps(desc, order, &error.field), &paths));
    let mut declared: Vec<_> = places.collect::<Vec<_>>().into_iter().zip(declared).collect();
    declared.sort_by_key(|(place, _)| *place);
    let mut declared = declared.into_iter().peekable();
    for (index, error) in coded.into_iter().enumerate() {
        while let Some((_, before)) = declared.next_if(|(place, _)| *place <= index) {
            all.push(before);
        }
        all.push(error);
    }
    all.extend(declared.map(|(_, error)| error));
    all
}

/// What the definition found, in the order of the kind where it has one of its own.
fn sorted(desc: &MessageDesc, order: &[&str], declared: ErrorList) -> ErrorList {
    if order.is_empty() || declared.is_full() {
        return declared;
    }
    let mut declared: Vec<FieldError> = declared.into_iter().collect();
    declared.sort_by_cached_key(|error| steps(desc, order, &error.field));
    declared.into_iter().collect()
}

/// Which of the others an error stands before: of those about the nearest message around it, it follows the last one
/// about a field before its own.
fn place(path: &[Step], others: &[Vec<Step>]) -> usize {
    for depth in (0..path.len()).rev() {
        let Some(own) = path[depth] else { continue };
        let beside = |other: &Vec<Step>| match (other.get(..depth) == path.get(..depth), other.get(depth)) {
            (true, Some(Some(step))) => Some(*step),
            _ => None,
        };
        let beside = others
            .iter()
            .enumerate()
            .filter_map(|(index, other)| Some((index, beside(other)?)));
        let beside: Vec<(usize, usize)> = beside.collect();
        let Some((first, _)) = beside.first() else { continue };
        let before = beside.iter().rev().find(|(_, step)| *step < own);
        return before.map_or(*first, |(index, _)| index + 1);
    }
    0
}

/// The steps of a path as errors show it: `spec.containers[0].name`.
fn steps(desc: &MessageDesc, order: &[&str], path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = Some(desc);
    let mut parts = path.split('.').peekable();
    while let Some(part) = parts.next() {
        let (name, keys) = part.split_once('[').unwrap_or((part, ""));
        let found = at.and_then(|desc| field(desc, name));
        let early = order.iter().position(|early| *early == name);
        steps.push(found.map(|(place, _)| early.unwrap_or(order.len() + place)));
        let is_list = found.is_some_and(|(_, field)| matches!(field.ty, Type::List(_)));
        if is_list && keys.is_empty() && parts.peek().is_some() {
            steps.push(None);
        }
        for key in keys.split('[').filter(|key| !key.is_empty()) {
            steps.push(key.trim_end_matches(']').parse().ok());
        }
        at = found.and_then(|(_, field)| message(&field.ty));
    }
    steps
}

/// A field by its JSON name, and its place among all of the message and of those that stand in it.
fn field<'d>(desc: &'d MessageDesc, name: &str) -> Option<(usize, &'d FieldDesc)> {
    desc.fields
        .iter()
        .enumerate()
        .find_map(|(place, field)| match &field.ty {
            Type::Message(inner) if field.flags.has(Flags::INLINE) => {
                let (inner, field) = self::field(inner, name)?;
                Some((place * MANY + inner, field))
            }
            _ => (field.json == name).then_some((place * MANY, field)),
        })
}

fn message(ty: &Type) -> Option<&MessageDesc> {
    match ty {
        Type::Message(desc) => Some(desc),
        Type::List(item) | Type::Map(item) => message(&item.ty),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use keelson_machinery::field::Path;
    use keelson_machinery::meta::v1::OwnerReference;
    use keelson_machinery::reflect::Reflect;

    use super::*;

    #[test]
    fn an_error_follows_those_about_fields_before_its_own() {
        let path = |steps: &[usize]| -> Vec<Step> { steps.iter().copied().map(Some).collect() };
        let others = [path(&[1, 2, 0]), path(&[1, 2, 5]), path(&[1, 3]), path(&[1])];
        for (own, expected) in [
            (vec![1, 2, 3], 1),
            (vec![1, 2, 6], 2),
            (vec![1, 2, 5, 1], 1),
            (vec![1, 1, 9], 0),
            (vec![1, 4, 0], 3),
            (vec![0], 0),
            (vec![2, 0], 4),
        ] {
            assert_eq!(place(&path(&own), &others), expected, "{own:?}");
        }
        let told_of_all = [path(&[1, 3, 0]), vec![Some(1), Some(2), None, Some(7)]];
        assert_eq!(
            place(&path(&[1, 2, 0, 7]), &told_of_all),
            0,
            "an item is none of its fields"
        );
    }

    #[test]
    fn what_a_definition_finds_has_the_order_of_its_kind() {
        let object = OwnerReference::default();
        let found = |order: &[&str]| {
            let path = |field: &'static str| FieldError::required(&Path::new(field), "");
            let errors: ErrorList = ["apiVersion", "kind", "name"].map(path).into_iter().collect();
            let all = merged(object.desc(), order, errors, ErrorList::new());
            all.into_iter().map(|error| error.field).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found(&[]), "apiVersion kind name", "as they were found");
        assert_eq!(found(&["name", "kind"]), "name kind apiVersion");
    }
}
