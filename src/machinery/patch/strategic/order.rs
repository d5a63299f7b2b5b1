//! The order of merged lists: what the patch names comes in the patch's order, what only the server has keeps its place
//! among its neighbours.

use super::{
    ELEMENT_ORDER, FieldRule, Members, Node, Schema, StatusError, added, directive_of, failed, key_of, merge_list,
    same_scalar,
};

/// Works off every `$setElementOrder/<field>` of a patch, together with the field's own change.
pub(super) fn apply_orders<'a>(
    original: &mut Members<'a>,
    patch: &mut Members<'a>,
    schema: Schema,
) -> Result<(), StatusError> {
    let directives: Vec<String> = patch.keys().filter(|k| k.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let field = directive.trim_start_matches(ELEMENT_ORDER).to_owned();
        let rule = schema.field(&field);
        let order = list(patch.remove(&directive))?.unwrap_or_default();
        let old = list(original.remove(&field))?;
        let new = list(patch.remove(&field))?;
        if let Some(new) = &new {
            check_order(new, &order, rule.merge_key)?;
        }
        let server_order = old.clone().unwrap_or_default();
        let merged = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => match added(Node::Array(new))? {
                Node::Array(new) => new,
                _ => Vec::new(),
            },
            (Some(old), Some(new)) => merged(old, new, &rule)?,
        };
        let ordered = normalize(merged, &order, &server_order, rule.merge_key)?;
        original.insert(field, Node::Array(ordered));
    }
    Ok(())
}

fn merged<'a>(old: Vec<Node<'a>>, new: Vec<Node<'a>>, rule: &FieldRule) -> Result<Vec<Node<'a>>, StatusError> {
    match rule.patch.has(crate::reflect::Patch::MERGE) {
        true => merge_list(old, new, rule),
        false => Ok(new),
    }
}

fn list(value: Option<Node<'_>>) -> Result<Option<Vec<Node<'_>>>, StatusError> {
    let Some(mut value) = value else { return Ok(None) };
    match value.open() {
        Node::Null => Ok(None),
        Node::Array(elements) => Ok(Some(std::mem::take(elements))),
        _ => Err(failed("expected a list for a field with $setElementOrder")),
    }
}

/// Every element that the patch changes must stand in the order list, in the same relative order.
fn check_order(patch: &[Node<'_>], order: &[Node<'_>], merge_key: &str) -> Result<(), StatusError> {
    let mut rest = order.iter();
    for element in patch {
        if directive_of(&mut element.clone()).as_deref() == Some("delete") {
            continue;
        }
        let mut found = false;
        for candidate in rest.by_ref() {
            if same(candidate, element, merge_key)? {
                found = true;
                break;
            }
        }
        if !found {
            return Err(failed("the order in patch list doesn't match $setElementOrder list"));
        }
    }
    Ok(())
}

fn same(a: &Node<'_>, b: &Node<'_>, merge_key: &str) -> Result<bool, StatusError> {
    match merge_key {
        "" => Ok(same_scalar(a, b)),
        key => Ok(key_of(&mut a.clone(), key)? == key_of(&mut b.clone(), key)?),
    }
}

fn position(list: &[Node<'_>], element: &Node<'_>, merge_key: &str) -> Result<Option<usize>, StatusError> {
    for (index, other) in list.iter().enumerate() {
        if same(other, element, merge_key)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Orders `merged`: elements of `patch_order` in that order, others in `server_order`, the two interleaved so that
/// neighbours of the server stay neighbours.
pub(super) fn normalize<'a>(
    merged: Vec<Node<'a>>,
    patch_order: &[Node<'a>],
    server_order: &[Node<'a>],
    merge_key: &str,
) -> Result<Vec<Node<'a>>, StatusError> {
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for element in merged {
        let server = position(server_order, &element, merge_key)?;
        match position(patch_order, &element, merge_key)? {
            Some(place) => named.push((place, server, element)),
            None => others.push((server.unwrap_or(usize::MAX), server, element)),
        }
    }
    named.sort_by_key(|(place, ..)| *place);
    others.sort_by_key(|(place, ..)| *place);
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut out = Vec::with_capacity(named.len() + others.len());
    loop {
        let take_other = match (named.peek(), others.peek()) {
            (None, None) => return Ok(out),
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (Some((_, named, _)), Some((_, other, _))) => named.zip(*other).is_some_and(|(n, o)| o < n),
        };
        let next = if take_other { others.next() } else { named.next() };
        out.extend(next.map(|(.., element)| element));
    }
}
