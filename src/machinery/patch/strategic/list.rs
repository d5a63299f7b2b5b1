//! Lists that are merged: scalars as a set, objects by their merge key.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::schema::FieldRule;
use super::{
    Bounds, DIRECTIVE, Members, Node, OBJECT, SCALAR, StatusError, failed, merge_map, order, unknown_directive,
};
use crate::patch::node::MAX_OPEN;

type Elements<'a> = Vec<Node<'a>>;

/// Merges a list whose strategy is `merge`.
pub(super) fn merge_list<'a>(
    original: Elements<'a>,
    patch: Elements<'a>,
    rule: &FieldRule<'_>,
    bounds: Bounds<'_>,
) -> Result<Elements<'a>, StatusError> {
    let Some(kind) = element_kind(&original, &patch)? else {
        return Ok(Vec::new());
    };
    let is_map = kind == "map";
    bounds.pass(original.len() + patch.len(), if is_map { OBJECT } else { SCALAR })?;
    if !is_map {
        let merged = set_of(original.iter().chain(&patch));
        return order::normalize(merged, &patch, &original, "");
    }
    if rule.merge_key.is_empty() {
        return Err(failed("cannot merge lists without merge key"));
    }
    let (mut original, patch) = apply_directives(original, patch, rule.merge_key)?;
    // Opened once, for their keys and for what is merged with them.
    for element in &mut original {
        element.open();
    }
    // Those without a key are told by the merge.
    let place =
        |elements: &Elements<'_>| order::places(elements.iter().map(|element| key_within(element, rule.merge_key)));
    let (server_order, patch_order) = (place(&original), place(&patch));
    let merged = merge_elements(original, patch, rule, bounds)?;
    order::normalize_by(merged, &patch_order, &server_order, rule.merge_key)
}

/// Takes the values of `gone` out of a list of scalars.
pub(super) fn delete_values<'a>(list: Elements<'a>, gone: &Elements<'a>) -> Result<Elements<'a>, StatusError> {
    element_kind(&list, gone)?;
    let gone: HashSet<Cow<'_, [u8]>> = gone.iter().map(Node::comparable).collect();
    let kept = list.into_iter();
    Ok(kept.filter(|element| !gone.contains(&element.comparable())).collect())
}

/// What all elements are; `None` if there are none.
fn element_kind<'a>(original: &Elements<'a>, patch: &Elements<'a>) -> Result<Option<&'static str>, StatusError> {
    let mut kinds = original.iter().chain(patch).map(Node::go_kind);
    let first = kinds.next();
    if kinds.all(|kind| Some(kind) == first) && first != Some("nil") {
        return Ok(first);
    }
    let lists = Node::Array(vec![Node::Array(original.clone()), Node::Array(patch.clone())]);
    Err(failed(format!(
        "list element types are not identical: {}",
        lists.to_go()
    )))
}

fn set_of<'n, 'a: 'n>(elements: impl Iterator<Item = &'n Node<'a>>) -> Elements<'a> {
    let mut known = HashSet::new();
    elements
        .filter(|element| known.insert(element.comparable()))
        .cloned()
        .collect()
}

/// Elements `{"$patch": "delete", key: value}` take the element of that key away; `{"$patch": "replace"}` makes the
/// rest of the patch the whole list.
fn apply_directives<'a>(
    mut original: Elements<'a>,
    patch: Elements<'a>,
    merge_key: &str,
) -> Result<(Elements<'a>, Elements<'a>), StatusError> {
    let (mut rest, mut replace) = (Vec::with_capacity(patch.len()), false);
    let (mut keys, mut deleted) = (None, HashSet::new());
    for mut element in patch {
        let Some(directive) = element.object().and_then(|members| members.get(DIRECTIVE)) else {
            rest.push(element);
            continue;
        };
        match directive.string().as_deref() {
            Some("replace") => replace = true,
            Some("delete") => {
                let key = key_of(&mut element, merge_key)?;
                if keys.is_none() {
                    let all: Result<Vec<_>, _> = original.iter_mut().map(|old| key_of(old, merge_key)).collect();
                    keys = Some(all?);
                }
                deleted.insert(key);
            }
            Some("merge") => return Err(failed("merging lists cannot yet be specified in the patch")),
            _ => return Err(unknown_directive(&directive.clone(), &element)),
        }
    }
    let mut keys = keys.unwrap_or_default().into_iter();
    original.retain(|_| keys.next().is_none_or(|key| !deleted.contains(&key)));
    if replace {
        Ok((rest, Vec::new()))
    } else {
        Ok((original, rest))
    }
}

/// Merges element by element; those that are new are taken as they are, with whatever directives are in them.
fn merge_elements<'a>(
    mut merged: Elements<'a>,
    patch: Elements<'a>,
    rule: &FieldRule<'_>,
    bounds: Bounds<'_>,
) -> Result<Elements<'a>, StatusError> {
    // Of several with one key the first.
    let mut places = HashMap::with_capacity(merged.len() + patch.len());
    for (place, element) in merged.iter_mut().enumerate() {
        places.entry(key_of(element, rule.merge_key)?).or_insert(place);
    }
    for mut change in patch {
        let key = key_of(&mut change, rule.merge_key)?;
        let place = places.get(&key).copied();
        match place.and_then(|index| merged.get_mut(index)) {
            None => {
                places.insert(key, merged.len());
                merged.push(change);
            }
            Some(old) => {
                if let (Some(members), Some(changes)) = (old.object(), change.object()) {
                    *members = merge_map(std::mem::take(members), std::mem::take(changes), rule.schema, bounds)?;
                }
            }
        }
    }
    Ok(merged)
}

/// The text of an element's merge key, without a copy of the element.
pub(super) fn key_within(element: &Node<'_>, merge_key: &str) -> Option<Vec<u8>> {
    element.member(merge_key, |value| {
        let mut text = Vec::new();
        value.write(&mut text);
        Some(text)
    })
}

/// The same of an element that is opened for it.
///
/// Error: the element has none.
pub(super) fn key_of(element: &mut Node<'_>, merge_key: &str) -> Result<Vec<u8>, StatusError> {
    element.open();
    key_within(element, merge_key).ok_or_else(|| no_key(element, merge_key))
}

pub(super) fn no_key(element: &Node<'_>, merge_key: &str) -> StatusError {
    let element = element.to_go();
    failed(format!(
        "map: {element} does not contain declared merge key: {merge_key}"
    ))
}

pub(super) fn same_scalar(a: &Node<'_>, b: &Node<'_>) -> bool {
    match (a, b) {
        (Node::Raw(a), Node::Raw(b)) if a == b => true,
        _ => a.clone().equals(&mut b.clone()),
    }
}

/// A value for a field that the original lacks: nulls have nothing to act on, and what has a directive is dropped.
/// `None`: there is nothing left.
pub(super) fn added(mut value: Node<'_>) -> Option<Node<'_>> {
    value.prune();
    drop_directives(&mut value, MAX_OPEN).then_some(value)
}

/// Returns whether the value may stay.
fn drop_directives(value: &mut Node<'_>, depth: u32) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return true };
    if value.is_flat() {
        return true;
    }
    match value.open() {
        Node::Object(members) => {
            if members.contains_key(DIRECTIVE) {
                return false;
            }
            members.retain(|_, member| drop_directives(member, depth));
        }
        Node::Array(elements) => elements.retain_mut(|element| drop_directives(element, depth)),
        _ => {}
    }
    true
}

/// The members of the map that a directive stands in.
pub(super) fn as_map<'a>(members: &Members<'a>) -> Node<'a> {
    Node::Object(members.clone())
}
