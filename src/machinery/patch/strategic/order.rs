//! The order of merged lists: what the patch names comes in the patch's order, what only the server has keeps its place
//! among its neighbours.

use super::list::{added, delete_values, key_of, merge_list, same_scalar};
use super::schema::{FieldRule, Schema};
use super::{DELETE_FROM_LIST, DIRECTIVE, ELEMENT_ORDER, Members, Node, StatusError, failed, merge_directive_text};
use crate::reflect::Patch;

/// Works off every `$setElementOrder/<field>` of a patch, together with the field's own change and what is deleted from
/// it.
pub(super) fn apply_orders<'a>(
    original: &mut Members<'a>,
    patch: &mut Members<'a>,
    schema: Schema,
    depth: u32,
) -> Result<(), StatusError> {
    let directives: Vec<String> = patch.keys().filter(|k| k.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let field = directive.trim_start_matches(ELEMENT_ORDER).to_owned();
        let order = list(patch.remove(&directive))?.unwrap_or_default();
        let new = list(patch.remove(&field))?;
        let rule = schema.find(&field).ok_or_else(|| {
            failed(format!(
                "unable to find api field in struct {} for the json field {field:?}",
                schema.struct_name()
            ))
        })?;
        if !rule.list {
            return Err(failed("expected slice or array type, but got: struct"));
        }
        let mut order = order;
        check_elements(&mut order, &rule)?;
        if let Some(new) = &new {
            check_order(new, &order, rule.merge_key)?;
        }
        let old = match original.remove(&field) {
            Some(old) => list(Some(old))?,
            None => None,
        };
        let deletes = patch.remove(&format!("{DELETE_FROM_LIST}{field}"));
        let old = match (old, deletes.and_then(array)) {
            (Some(old), Some(gone)) => Some(delete_values(old, &gone)?),
            (old, _) => old,
        };
        let server_order = match (&old, &new) {
            (Some(old), Some(new)) if rule.patch.has(Patch::MERGE) && !rule.merge_key.is_empty() => {
                order_after_deletions(old, new, rule.merge_key)?
            }
            (old, _) => old.clone().unwrap_or_default(),
        };
        let merged = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => added(Node::Array(new)).and_then(array).unwrap_or_default(),
            (Some(old), Some(new)) if rule.patch.has(Patch::MERGE) => merge_list(old, new, &rule, depth)?,
            (Some(_), Some(new)) => new,
        };
        let ordered = normalize(merged, &order, &server_order, rule.merge_key)?;
        original.insert(field, Node::Array(ordered));
    }
    Ok(())
}

fn array(mut value: Node<'_>) -> Option<Vec<Node<'_>>> {
    match value.open() {
        Node::Array(elements) => Some(std::mem::take(elements)),
        _ => None,
    }
}

fn list(value: Option<Node<'_>>) -> Result<Option<Vec<Node<'_>>>, StatusError> {
    let Some(mut value) = value else { return Ok(None) };
    match value.open() {
        Node::Array(elements) => Ok(Some(std::mem::take(elements))),
        other => Err(failed(format!(
            "expected a []interface {{}}, but received a {}",
            match other {
                Node::Object(_) => "map[string]interface {}".to_owned(),
                Node::Null => merge_directive_text(other),
                other => other.go_kind().to_owned(),
            }
        ))),
    }
}

/// Elements of the order list have the merge key.
fn check_elements(order: &mut [Node<'_>], rule: &FieldRule) -> Result<(), StatusError> {
    if rule.merge_key.is_empty() {
        return Ok(());
    }
    for (index, element) in order.iter_mut().enumerate() {
        if element.object().is_none() {
            return Err(failed(format!("value for key {index} is not a map")));
        }
        key_of(element, rule.merge_key)?;
    }
    Ok(())
}

/// Every element that the patch changes must stand in the order list, in the same relative order. Directives have no
/// place in it, but behind the last that has one only deletions may follow.
fn check_order(patch: &[Node<'_>], order: &[Node<'_>], merge_key: &str) -> Result<(), StatusError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter().peekable();
    for element in patch {
        let directive = directive_of(&mut element.clone());
        if directive.as_deref() == Some("delete") || directive.is_some() && rest.peek().is_some() {
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
            let shown = |list: &[Node<'_>]| Node::Array(list.to_vec()).to_go();
            return Err(failed(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                shown(patch),
                shown(order)
            )));
        }
    }
    Ok(())
}

fn directive_of(element: &mut Node<'_>) -> Option<String> {
    element.object()?.get(DIRECTIVE)?.string()
}

/// The order in which kube-apiserver takes the server's list to be, once a patch has been merged into it. Deletions move
/// the elements behind them up in place, and what the patch adds takes the places that become free: that shows in the
/// result where the patch also says an order.
fn order_after_deletions<'a>(
    old: &[Node<'a>],
    patch: &[Node<'a>],
    merge_key: &str,
) -> Result<Vec<Node<'a>>, StatusError> {
    let mut slots = old.to_vec();
    let mut used = slots.len();
    let mut new = Vec::new();
    for element in patch {
        let id = identity(element, merge_key);
        match directive_of(&mut element.clone()).as_deref() {
            Some("delete") => {
                let id = id?;
                let place = identities(slots.get(..used).unwrap_or_default(), merge_key)?
                    .iter()
                    .position(|other| *other == id);
                if let Some(place) = place {
                    let gone = slots.remove(place);
                    used -= 1;
                    let last = slots.get(used.saturating_sub(1)).cloned();
                    slots.insert(used, last.unwrap_or(gone));
                }
            }
            Some(_) => {}
            None => new.push(element.clone()),
        }
    }
    if used == old.len() {
        return Ok(slots);
    }
    let known = identities(slots.get(..used).unwrap_or_default(), merge_key)?;
    for element in new {
        if !known.contains(&identity(&element, merge_key)?)
            && let Some(slot) = slots.get_mut(used)
        {
            *slot = element;
            used += 1;
        }
    }
    Ok(slots)
}

fn same(a: &Node<'_>, b: &Node<'_>, merge_key: &str) -> Result<bool, StatusError> {
    match merge_key {
        "" => Ok(same_scalar(a, b)),
        key => Ok(key_of(&mut a.clone(), key)? == key_of(&mut b.clone(), key)?),
    }
}

/// What two elements are compared by.
fn identities(list: &[Node<'_>], merge_key: &str) -> Result<Vec<Vec<u8>>, StatusError> {
    list.iter().map(|element| identity(element, merge_key)).collect()
}

fn identity(element: &Node<'_>, merge_key: &str) -> Result<Vec<u8>, StatusError> {
    if !merge_key.is_empty() {
        return key_of(&mut element.clone(), merge_key);
    }
    let mut text = Vec::new();
    element.write(&mut text);
    Ok(text)
}

/// Orders `merged`: elements of `patch_order` in that order, others in `server_order`, the two interleaved so that
/// neighbours of the server stay neighbours.
pub(super) fn normalize<'a>(
    merged: Vec<Node<'a>>,
    patch_order: &[Node<'a>],
    server_order: &[Node<'a>],
    merge_key: &str,
) -> Result<Vec<Node<'a>>, StatusError> {
    let (patch_order, server_order) = (
        identities(patch_order, merge_key)?,
        identities(server_order, merge_key)?,
    );
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for element in merged {
        let id = identity(&element, merge_key)?;
        let server = server_order.iter().position(|other| *other == id);
        match patch_order.iter().position(|other| *other == id) {
            Some(place) => named.push((place, server, element)),
            None => others.push((server, element)),
        }
    }
    named.sort_by_key(|(place, ..)| *place);
    sort_by_server(&mut others);
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut out = Vec::with_capacity(named.len() + others.len());
    loop {
        let take_other = match (named.peek(), others.peek()) {
            (None, None) => return Ok(out),
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (Some((_, named, _)), Some((other, _))) => named.zip(*other).is_some_and(|(n, o)| o < n),
        };
        let next = if take_other {
            others.next().map(|(_, element)| element)
        } else {
            named.next().map(|(.., element)| element)
        };
        out.extend(next);
    }
}

/// Sorts by insertion: what the server does not know goes before everything that it meets.
fn sort_by_server(elements: &mut [(Option<usize>, Node<'_>)]) {
    let less = |a: &Option<usize>, b: &Option<usize>| a.zip(*b).is_none_or(|(a, b)| a < b);
    for i in 1..elements.len() {
        let mut j = i;
        while j > 0 && less(&elements[j].0, &elements[j - 1].0) {
            elements.swap(j, j - 1);
            j -= 1;
        }
    }
}
