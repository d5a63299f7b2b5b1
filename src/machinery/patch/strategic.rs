//! Strategic merge patch: a merge patch that knows from the definitions which lists are merged by a key, with the
//! directives `$patch`, `$retainKeys`, `$setElementOrder/<field>` and `$deleteFromPrimitiveList/<field>`.
//!
//! What a patch gets wrong in its directives is an error without a reason (500), as in the API server. There the
//! members of a patch are worked off in no certain order; here deletions from a list come before what is added to it.

mod diff;
mod display;
mod list;
mod order;
mod schema;

use std::cell::Cell;
use std::collections::BTreeSet;

pub use diff::diff;
pub use display::shown;
use list::{added, as_map, delete_values, merge_list};
use schema::Schema;

use super::node::{MAX_OPEN, Members, Node, add};
use super::{check, strict, text};
use crate::reflect::{MessageDesc, Patch};
use crate::status::StatusError;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

/// What it costs to go through a list, for each of its elements: about the bytes of an object with a merge key, and of
/// a scalar.
const OBJECT: usize = 12;
const SCALAR: usize = 2;
/// What may be gone through beside each list of both documents once.
const SPARE_WORK: usize = 1 << 17;

/// What a patch may still do.
#[derive(Clone, Copy)]
struct Bounds<'w> {
    /// How many levels may follow.
    depth: u32,
    /// What may still be gone through: elements of a patch that name the same one of the object go through the lists in
    /// it again and again.
    work: &'w Cell<usize>,
}

impl Bounds<'_> {
    fn below(self) -> Option<Self> {
        let depth = self.depth.checked_sub(1)?;
        Some(Bounds { depth, ..self })
    }

    /// Goes through so many elements.
    ///
    /// Error: 413 for a patch that does more than its length lets expect.
    fn pass(self, elements: usize, cost: usize) -> Result<(), StatusError> {
        let left = self.work.get().checked_sub(elements.saturating_mul(cost));
        let left = left.ok_or_else(|| {
            StatusError::entity_too_large("the elements of the patch change the same lists too many times")
        })?;
        self.work.set(left);
        Ok(())
    }
}

/// Applies `patch` to `document`, an object of the message `desc`. With `strict`, keys that stand twice in the patch
/// are reported beside the result. A patch of `null` changes nothing.
///
/// Errors: 400 for a patch that is no JSON object or has a wrong `$retainKeys`, 500 for other wrong directives. A patch
/// that does not fit the type of the object is found when the result is read, see [`crate::json::restore`].
pub fn apply(
    document: &[u8],
    patch: &[u8],
    desc: &MessageDesc,
    strict: bool,
) -> Result<(Vec<u8>, Vec<String>), StatusError> {
    check(patch).map_err(|error| StatusError::bad_request(error.to_string()))?;
    check(document).map_err(|_| StatusError::unknown("Invalid JSON Document"))?;
    let patch = text::trim(patch);
    let mut problems = strict::Problems::default();
    if strict {
        problems.duplicates(patch, "");
    }
    let mut node = Node::new(patch);
    if matches!(node, Node::Null) {
        return Ok((document.to_vec(), problems.into_texts()));
    }
    let Some(changes) = node.object() else {
        return Err(StatusError::bad_request(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            strict::kind(patch)
        )));
    };
    let mut original = Node::new(document);
    let members = original
        .object()
        .ok_or_else(|| StatusError::unknown("Invalid JSON Document"))?;
    let (members, changes) = (std::mem::take(members), std::mem::take(changes));
    let work = Cell::new(document.len() + patch.len() + SPARE_WORK);
    let bounds = Bounds {
        depth: MAX_OPEN,
        work: &work,
    };
    let merged = merge_map(members, changes, Schema::Message(desc), bounds)?;
    let mut out = Vec::with_capacity(document.len() + patch.len());
    Node::Object(merged).write(&mut out);
    Ok((out, problems.into_texts()))
}

fn failed(text: impl std::fmt::Display) -> StatusError {
    StatusError::unknown(text)
}

/// The error for a directive that nobody knows.
fn unknown_directive(directive: &Node<'_>, map: &Node<'_>) -> StatusError {
    failed(format!(
        "unknown patch type: {} in map: {}",
        merge_directive_text(directive),
        map.to_go()
    ))
}

/// A value as Go's `%s` prints it.
fn merge_directive_text(value: &Node<'_>) -> String {
    match value.go_kind() {
        "nil" => "%!s(<nil>)".to_owned(),
        kind @ ("int64" | "float64" | "bool") => format!("%!s({kind}={})", value.to_go()),
        _ => value.to_go(),
    }
}

/// Below the last level that may follow the patch takes the place of what was there.
fn merge_map<'a>(
    mut original: Members<'a>,
    mut patch: Members<'a>,
    schema: Schema<'_>,
    bounds: Bounds<'_>,
) -> Result<Members<'a>, StatusError> {
    let Some(bounds) = bounds.below() else {
        return Ok(patch);
    };
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.string().as_deref() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Members::new()),
            _ => Err(unknown_directive(directive, &as_map(&patch))),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    order::apply_orders(&mut original, &mut patch, schema, bounds)?;
    let mut fresh = Vec::new();
    for (key, change) in patch {
        if let Some(field) = key.strip_prefix(DELETE_FROM_LIST) {
            delete_from_list(&mut original, field, change, bounds)?;
        } else if matches!(change, Node::Null) {
            original.remove(&key);
        } else if let Some(old) = original.get_mut(&key) {
            *old = merge_member(&key, std::mem::replace(old, Node::Null), change, schema, bounds)?;
        } else if let Some(value) = added(change) {
            fresh.push((key, value));
        }
    }
    add(&mut original, fresh);
    Ok(original)
}

/// What becomes of a member that is there.
fn merge_member<'a>(
    key: &str,
    mut old: Node<'a>,
    mut change: Node<'a>,
    schema: Schema<'_>,
    bounds: Bounds<'_>,
) -> Result<Node<'a>, StatusError> {
    let rule = schema.field(key);
    old.open();
    change.open();
    Ok(match (old, change) {
        // Content without a schema can be replaced as a whole alone.
        (Node::Object(_), Node::Object(_)) | (Node::Array(_), Node::Array(_)) if schema.is_raw() => {
            return Err(failed(format!(
                "unable to find api field in struct RawExtension for the json field {key:?}"
            )));
        }
        (Node::Object(old), Node::Object(new)) if !rule.patch.has(Patch::REPLACE) => {
            Node::Object(merge_map(old, new, rule.schema, bounds)?)
        }
        (Node::Array(old), Node::Array(new)) if rule.patch.has(Patch::MERGE) => {
            Node::Array(merge_list(old, new, &rule, bounds)?)
        }
        (_, new) => new,
    })
}

/// `$retainKeys`: members of the original that it does not name go.
fn retain_keys(original: &mut Members<'_>, patch: &mut Members<'_>) -> Result<(), StatusError> {
    let Some(mut keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let bad = || StatusError::bad_request("invalid patch format of retainKeys");
    let Node::Array(keys) = keys.open() else {
        return Err(bad());
    };
    let names: BTreeSet<String> = keys.iter().filter_map(Node::string).collect();
    if patch.keys().any(|key| !key.starts_with('$') && !names.contains(key)) {
        return Err(bad());
    }
    original.retain(|key, _| names.contains(key));
    Ok(())
}

/// What is no list, on either side, is passed over; `null` takes the whole field away.
fn delete_from_list<'a>(
    original: &mut Members<'a>,
    field: &str,
    mut values: Node<'a>,
    bounds: Bounds<'_>,
) -> Result<(), StatusError> {
    match values.open() {
        Node::Null => {
            original.remove(field);
        }
        Node::Array(gone) => {
            if let Some(Node::Array(list)) = original.get_mut(field).map(Node::open) {
                bounds.pass(list.len(), SCALAR)?;
                *list = delete_values(std::mem::take(list), gone)?;
            }
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests;
