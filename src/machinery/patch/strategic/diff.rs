//! The strategic merge patch that makes one object of another.

use super::list::{key_of, same_scalar};
use super::schema::{FieldRule, Schema};
use super::{DELETE_FROM_LIST, DIRECTIVE, ELEMENT_ORDER, RETAIN_KEYS};
use crate::patch::check;
use crate::patch::node::{MAX_OPEN, Members, Node};
use crate::reflect::{MessageDesc, Patch};
use crate::status::StatusError;

/// The patch that [`super::apply`] turns `original` into `modified` with: both JSON objects of the message `desc`. `{}`
/// if they are the same.
///
/// What no patch can say is left out: members of `modified` that are null (a patch takes null for "remove"), and
/// elements that stand twice in a list of scalars that merges. Key order and white space do not count.
///
/// Errors: 400 for what is no JSON object, 500 for a list of objects that merge by a key which one of them lacks.
pub fn diff(original: &[u8], modified: &[u8], desc: &MessageDesc) -> Result<Vec<u8>, StatusError> {
    check(original).map_err(|error| StatusError::bad_request(error.to_string()))?;
    check(modified).map_err(|error| StatusError::bad_request(error.to_string()))?;
    let (mut original, mut modified) = (Node::new(original), Node::new(modified));
    let (Some(old), Some(new)) = (original.object(), modified.object()) else {
        return Err(StatusError::bad_request(
            "a strategic merge patch is made of two objects",
        ));
    };
    let patch = diff_maps(old, new, Schema::Message(desc), MAX_OPEN)?;
    let mut out = Vec::new();
    Node::Object(patch).write(&mut out);
    Ok(out)
}

fn text(value: &str) -> Node<'static> {
    match value {
        "replace" => Node::Raw(b"\"replace\""),
        _ => Node::Raw(b"\"delete\""),
    }
}

/// `depth` is how many levels may follow; what differs below them is replaced as a whole.
fn diff_maps<'a>(
    old: &mut Members<'a>,
    new: &mut Members<'a>,
    schema: Schema<'_>,
    depth: u32,
) -> Result<Members<'a>, StatusError> {
    let mut patch = Members::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Node::Null);
    }
    for (key, new) in new.iter_mut() {
        match old.get_mut(key) {
            None => {
                patch.insert(key.clone(), new.clone());
            }
            Some(old) => {
                if !old.equals(new) {
                    diff_member(&mut patch, (key, &schema.field(key)), old, new, depth)?;
                }
            }
        }
    }
    Ok(patch)
}

fn diff_member<'a>(
    patch: &mut Members<'a>,
    (key, rule): (&str, &FieldRule<'_>),
    old: &mut Node<'a>,
    new: &mut Node<'a>,
    depth: u32,
) -> Result<(), StatusError> {
    let Some(depth) = depth.checked_sub(1) else {
        return replace(patch, key, new);
    };
    match (old.open(), new.open()) {
        (Node::Object(old), Node::Object(new)) if !rule.patch.has(Patch::REPLACE) => {
            let mut changes = diff_maps(old, new, rule.schema, depth)?;
            if rule.patch.has(Patch::RETAIN_KEYS) {
                changes.insert(RETAIN_KEYS.to_owned(), names(new));
            }
            patch.insert(key.to_owned(), Node::Object(changes));
            Ok(())
        }
        (Node::Array(old), Node::Array(new)) if rule.patch.has(Patch::MERGE) => {
            diff_lists(patch, (key, rule), old, new, depth)
        }
        (_, new) => replace(patch, key, new),
    }
}

/// The new value as a whole. An object would be merged with the old one, unless it says otherwise.
fn replace<'a>(patch: &mut Members<'a>, key: &str, new: &Node<'a>) -> Result<(), StatusError> {
    let mut new = new.clone();
    if let Some(members) = new.object() {
        members.insert(DIRECTIVE.to_owned(), text("replace"));
    }
    patch.insert(key.to_owned(), new);
    Ok(())
}

/// The keys of an object as a list.
fn names<'a>(members: &Members<'a>) -> Node<'a> {
    Node::Array(members.keys().map(|key| Node::Text(key.clone())).collect())
}

fn diff_lists<'a>(
    patch: &mut Members<'a>,
    (key, rule): (&str, &FieldRule<'_>),
    old: &mut [Node<'a>],
    new: &mut [Node<'a>],
    depth: u32,
) -> Result<(), StatusError> {
    let objects = old
        .iter_mut()
        .chain(new.iter_mut())
        .any(|element| element.object().is_some());
    let changes = if objects && rule.merge_key.is_empty() {
        return replace_list(patch, key, new);
    } else if objects {
        if repeats(new, rule.merge_key)? || repeats(old, rule.merge_key)? {
            return replace_list(patch, key, new);
        }
        diff_elements(old, new, rule, depth)?
    } else {
        diff_scalars(patch, key, old, new)
    };
    let order = new.iter_mut().map(|element| order_of(element, rule.merge_key, objects));
    patch.insert(format!("{ELEMENT_ORDER}{key}"), Node::Array(order.collect()));
    if !changes.is_empty() {
        patch.insert(key.to_owned(), Node::Array(changes));
    }
    Ok(())
}

/// Whether a key stands twice, so that merging by it can't tell the elements apart.
fn repeats(list: &mut [Node<'_>], merge_key: &str) -> Result<bool, StatusError> {
    let mut keys = Vec::with_capacity(list.len());
    for element in list {
        keys.push(key_of(element, merge_key)?);
    }
    keys.sort_unstable();
    Ok(keys.windows(2).any(|pair| pair.first() == pair.last()))
}

fn replace_list<'a>(patch: &mut Members<'a>, key: &str, new: &[Node<'a>]) -> Result<(), StatusError> {
    let directive = Members::from([(DIRECTIVE.to_owned(), text("replace"))]);
    let elements = std::iter::once(Node::Object(directive)).chain(new.iter().cloned());
    patch.insert(key.to_owned(), Node::Array(elements.collect()));
    Ok(())
}

/// What an element is called in the list that says the order.
fn order_of<'a>(element: &mut Node<'a>, merge_key: &str, objects: bool) -> Node<'a> {
    match element.object().and_then(|members| members.get(merge_key)) {
        Some(value) if objects => Node::Object(Members::from([(merge_key.to_owned(), value.clone())])),
        _ => element.clone(),
    }
}

/// Elements that changed or are new, in the new order, then those that go.
fn diff_elements<'a>(
    old: &mut [Node<'a>],
    new: &mut [Node<'a>],
    rule: &FieldRule<'_>,
    depth: u32,
) -> Result<Vec<Node<'a>>, StatusError> {
    let key_name = rule.merge_key;
    let mut changes = Vec::new();
    let mut kept = Vec::new();
    for element in new.iter_mut() {
        let key = key_of(element, key_name)?;
        let mut place = None;
        for (index, other) in old.iter_mut().enumerate() {
            if key_of(other, key_name)? == key {
                place = Some(index);
                break;
            }
        }
        let Some(before) = place.and_then(|index| old.get_mut(index)) else {
            changes.push(element.clone());
            continue;
        };
        kept.push(key);
        if let (false, Some(before), Some(after)) = (before.clone().equals(element), before.object(), element.object())
        {
            let mut change = diff_maps(before, after, rule.schema, depth)?;
            if rule.patch.has(Patch::RETAIN_KEYS) {
                change.insert(RETAIN_KEYS.to_owned(), names(after));
            }
            change.extend(after.get_key_value(key_name).map(|(k, v)| (k.clone(), v.clone())));
            changes.push(Node::Object(change));
        }
    }
    for element in old.iter_mut() {
        if kept.contains(&key_of(element, key_name)?) {
            continue;
        }
        let mut gone = Members::from([(DIRECTIVE.to_owned(), text("delete"))]);
        let key = element.object().and_then(|members| members.get(key_name));
        gone.extend(key.map(|value| (key_name.to_owned(), value.clone())));
        changes.push(Node::Object(gone));
    }
    Ok(changes)
}

/// Returns the scalars that are new; those that go get a directive of their own.
fn diff_scalars<'a>(patch: &mut Members<'a>, key: &str, old: &[Node<'a>], new: &[Node<'a>]) -> Vec<Node<'a>> {
    let missing = |from: &[Node<'a>], in_list: &[Node<'a>]| -> Vec<Node<'a>> {
        let absent = in_list.iter().filter(|e| !from.iter().any(|f| same_scalar(f, e)));
        absent.cloned().collect()
    };
    let gone = missing(new, old);
    if !gone.is_empty() {
        patch.insert(format!("{DELETE_FROM_LIST}{key}"), Node::Array(gone));
    }
    missing(old, new)
}
