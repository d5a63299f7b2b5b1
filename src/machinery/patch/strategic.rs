//! Strategic merge patch: a merge patch that knows from the definitions which lists are merged by a key, with the
//! directives `$patch`, `$retainKeys`, `$setElementOrder/<field>` and `$deleteFromPrimitiveList/<field>`.
//!
//! What a patch gets wrong in its directives is an error without a reason (500), as in the API server.

mod order;

use std::collections::{BTreeMap, BTreeSet};

use super::node::Node;
use super::{decode_error, scan, strict};
use crate::reflect::{FieldDesc, Flags, MessageDesc, Patch, Type};
use crate::status::StatusError;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

type Members<'a> = BTreeMap<String, Node<'a>>;

/// Applies `patch` to `document`, an object of the message `desc`. With `strict`, keys that stand twice in the patch are
/// reported beside the result. A patch of `null` changes nothing.
pub fn apply(
    document: &[u8],
    patch: &[u8],
    desc: &'static MessageDesc,
    strict: bool,
) -> Result<(Vec<u8>, Vec<String>), StatusError> {
    scan::check(patch).map_err(|e| decode_error(&e))?;
    scan::check(document).map_err(|_| StatusError::unknown("Invalid JSON Document"))?;
    let patch = scan::trim(patch);
    let mut problems = strict::Problems::default();
    if strict {
        problems.duplicates(patch, &mut String::new());
    }
    let mut node = Node::new(patch);
    if matches!(node, Node::Null) {
        return Ok((document.to_vec(), problems.into_texts()));
    }
    let Some(changes) = node.object() else {
        let text = format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            strict::kind(patch)
        );
        return Err(decode_error(&text));
    };
    let mut original = Node::new(document);
    let members = original
        .object()
        .ok_or_else(|| StatusError::unknown("Invalid JSON Document"))?;
    let merged = merge_map(std::mem::take(members), std::mem::take(changes), Schema(Some(desc)))?;
    let mut out = Vec::with_capacity(document.len());
    Node::Object(merged).write(&mut out);
    Ok((out, problems.into_texts()))
}

/// A patch as the error shows it that its result does not fit its kind: as Go prints a map, without what has been worked
/// off by then, and without nulls.
pub fn shown(patch: &[u8]) -> String {
    let mut node = Node::new(scan::trim(patch));
    worked_off(&mut node);
    let mut out = String::new();
    node.write_go(&mut out);
    out
}

fn worked_off(node: &mut Node<'_>) {
    if let Some(members) = node.object() {
        let ordered: Vec<String> = members
            .keys()
            .filter_map(|k| Some(k.strip_prefix(ELEMENT_ORDER)?.to_owned()))
            .collect();
        members.retain(|key, value| {
            !matches!(value, Node::Null)
                && key != RETAIN_KEYS
                && !key.starts_with(ELEMENT_ORDER)
                && !ordered.contains(key)
        });
        members.values_mut().for_each(worked_off);
    }
}

/// What the definitions say of the fields of an object; nothing of objects that they don't describe.
#[derive(Clone, Copy)]
struct Schema(Option<&'static MessageDesc>);

/// How one field is patched, and the schema of its value or elements.
struct FieldRule {
    schema: Schema,
    patch: Patch,
    merge_key: &'static str,
}

impl Schema {
    fn field(self, name: &str) -> FieldRule {
        let Some(field) = self.0.and_then(|desc| find(desc, name)) else {
            return FieldRule {
                schema: Schema(None),
                patch: Patch::NONE,
                merge_key: "",
            };
        };
        FieldRule {
            schema: Schema(message_in(&field.ty)),
            patch: field.patch,
            merge_key: field.merge_key,
        }
    }
}

/// Looks into inlined messages too.
fn find(desc: &'static MessageDesc, name: &str) -> Option<&'static FieldDesc> {
    desc.field(name).map(|(_, field)| field).or_else(|| {
        let inlined = desc.fields.iter().filter(|f| f.flags.has(Flags::INLINE));
        inlined
            .filter_map(|f| message_in(&f.ty))
            .find_map(|inner| find(inner, name))
    })
}

fn message_in(ty: &Type) -> Option<&'static MessageDesc> {
    match ty {
        Type::Message(desc) => Some(desc()),
        Type::List(element) | Type::Map(element) => message_in(element),
        _ => None,
    }
}

fn failed(text: impl Into<String>) -> StatusError {
    StatusError::unknown(text)
}

fn merge_map<'a>(
    mut original: Members<'a>,
    mut patch: Members<'a>,
    schema: Schema,
) -> Result<Members<'a>, StatusError> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        return match scalar_text(&directive).as_deref() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Members::new()),
            Some(other) => Err(failed(format!("unknown patch type '{other}' in map"))),
            None => Err(failed("$patch must be a string")),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    order::apply_orders(&mut original, &mut patch, schema)?;
    for (key, change) in patch {
        match key.strip_prefix(DELETE_FROM_LIST) {
            Some(field) => delete_from_list(&mut original, field, change)?,
            None => merge_member(&mut original, key, change, schema)?,
        }
    }
    Ok(original)
}

fn merge_member<'a>(
    original: &mut Members<'a>,
    key: String,
    mut change: Node<'a>,
    schema: Schema,
) -> Result<(), StatusError> {
    if matches!(change, Node::Null) {
        original.remove(&key);
        return Ok(());
    }
    change.open();
    let merged = match original.remove(&key) {
        None => added(change)?,
        Some(mut old) => {
            let rule = schema.field(&key);
            old.open();
            match (old, change) {
                (Node::Object(old), Node::Object(new)) if !rule.patch.has(Patch::REPLACE) => {
                    Node::Object(merge_map(old, new, rule.schema)?)
                }
                (Node::Array(old), Node::Array(new)) if rule.patch.has(Patch::MERGE) => {
                    Node::Array(merge_list(old, new, &rule)?)
                }
                (_, new) => new,
            }
        }
    };
    original.insert(key, merged);
    Ok(())
}

/// A value that the original lacks: nulls and directives in it have nothing to act on.
fn added(mut value: Node<'_>) -> Result<Node<'_>, StatusError> {
    match value.open() {
        Node::Object(members) => {
            members.retain(|key, value| !matches!(value, Node::Null) && !key.starts_with('$'));
            for member in members.values_mut() {
                *member = added(std::mem::replace(member, Node::Null))?;
            }
        }
        Node::Array(elements) => {
            let mut kept = Vec::with_capacity(elements.len());
            for mut element in std::mem::take(elements) {
                if directive_of(&mut element).is_none() {
                    kept.push(added(element)?);
                }
            }
            *elements = kept;
        }
        _ => {}
    }
    Ok(value)
}

/// `$retainKeys`: members of the original that it does not name go.
fn retain_keys(original: &mut Members<'_>, patch: &mut Members<'_>) -> Result<(), StatusError> {
    let Some(mut keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let bad = || failed("invalid patch format of retainKeys");
    let Node::Array(keys) = keys.open() else {
        return Err(bad());
    };
    let names: BTreeSet<String> = keys.iter().filter_map(scalar_text).collect();
    if patch.keys().any(|key| !key.starts_with('$') && !names.contains(key)) {
        return Err(bad());
    }
    original.retain(|key, _| names.contains(key));
    Ok(())
}

fn delete_from_list(original: &mut Members<'_>, field: &str, values: Node<'_>) -> Result<(), StatusError> {
    let mut values = values;
    let Node::Array(gone) = values.open() else {
        return Err(failed("invalid patch format of primitive list"));
    };
    let Some(Node::Array(list)) = original.get_mut(field).map(Node::open) else {
        return Ok(());
    };
    list.retain(|element| !gone.iter().any(|g| same_scalar(g, element)));
    Ok(())
}

/// Merges a list whose strategy is `merge`.
fn merge_list<'a>(
    original: Vec<Node<'a>>,
    patch: Vec<Node<'a>>,
    rule: &FieldRule,
) -> Result<Vec<Node<'a>>, StatusError> {
    let (mut original, mut patch) = (original, patch);
    let Some(first) = original.first_mut().or(patch.first_mut()) else {
        return Ok(Vec::new());
    };
    if first.object().is_none() {
        let order = patch.clone();
        let mut merged: Vec<Node<'a>> = Vec::new();
        for element in original.iter().chain(&patch) {
            if !merged.iter().any(|m| same_scalar(m, element)) {
                merged.push(element.clone());
            }
        }
        return order::normalize(merged, &order, &original, "");
    }
    if rule.merge_key.is_empty() {
        return Err(failed("cannot merge lists without merge key"));
    }
    let (original, patch) = apply_element_directives(original, patch, rule.merge_key)?;
    let (server_order, patch_order) = (original.clone(), patch.clone());
    let merged = merge_elements(original, patch, rule)?;
    order::normalize(merged, &patch_order, &server_order, rule.merge_key)
}

/// Elements `{"$patch": "delete", key: value}` take the element of that key away; `{"$patch": "replace"}` makes the
/// rest of the patch the whole list.
fn apply_element_directives<'a>(
    mut original: Vec<Node<'a>>,
    patch: Vec<Node<'a>>,
    merge_key: &str,
) -> Result<(Vec<Node<'a>>, Vec<Node<'a>>), StatusError> {
    let (mut rest, mut replace) = (Vec::with_capacity(patch.len()), false);
    for mut element in patch {
        match directive_of(&mut element).as_deref() {
            None => rest.push(element),
            Some("replace") => replace = true,
            Some("delete") => {
                let key = key_of(&mut element, merge_key)?;
                let mut kept = Vec::with_capacity(original.len());
                for mut old in original {
                    if key_of(&mut old, merge_key)? != key {
                        kept.push(old);
                    }
                }
                original = kept;
            }
            Some("merge") => return Err(failed("merging lists cannot yet be specified in the patch")),
            Some(other) => return Err(failed(format!("unknown patch type '{other}' in list"))),
        }
    }
    if replace {
        Ok((rest, Vec::new()))
    } else {
        Ok((original, rest))
    }
}

fn merge_elements<'a>(
    mut merged: Vec<Node<'a>>,
    patch: Vec<Node<'a>>,
    rule: &FieldRule,
) -> Result<Vec<Node<'a>>, StatusError> {
    for mut change in patch {
        let key = key_of(&mut change, rule.merge_key)?;
        let mut place = None;
        for (index, old) in merged.iter_mut().enumerate() {
            if key_of(old, rule.merge_key)? == key {
                place = Some(index);
                break;
            }
        }
        match place.and_then(|index| merged.get_mut(index)) {
            None => merged.push(added(change)?),
            Some(old) => {
                if let (Some(members), Some(changes)) = (old.object(), change.object()) {
                    *members = merge_map(std::mem::take(members), std::mem::take(changes), rule.schema)?;
                }
            }
        }
    }
    Ok(merged)
}

/// The text of an element's merge key.
fn key_of(element: &mut Node<'_>, merge_key: &str) -> Result<String, StatusError> {
    let value = element
        .object()
        .and_then(|members| members.get(merge_key))
        .map(|value| {
            let mut text = Vec::new();
            value.write(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
    value.ok_or_else(|| {
        let mut text = Vec::new();
        element.write(&mut text);
        failed(format!(
            "map: {} does not contain declared merge key: {merge_key}",
            String::from_utf8_lossy(&text)
        ))
    })
}

fn directive_of(element: &mut Node<'_>) -> Option<String> {
    element
        .object()
        .and_then(|members| members.get(DIRECTIVE))
        .and_then(scalar_text)
}

/// The content of a string.
fn scalar_text(node: &Node<'_>) -> Option<String> {
    match node {
        Node::Raw(text) if text.first() == Some(&b'"') => Some(scan::string(text).into_owned()),
        _ => None,
    }
}

fn same_scalar(a: &Node<'_>, b: &Node<'_>) -> bool {
    a.clone().equals(&mut b.clone())
}

#[cfg(test)]
mod tests;
