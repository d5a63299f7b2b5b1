//! A patch as errors show it.

use super::list::key_of;
use super::schema::{FieldRule, Schema};
use super::{DELETE_FROM_LIST, DIRECTIVE, ELEMENT_ORDER, RETAIN_KEYS};
use crate::patch::node::{MAX_OPEN, Members, Node};
use crate::patch::text;
use crate::reflect::{MessageDesc, Patch};

/// A patch as the error shows it that its result does not fit its kind: as Go prints a map, without the directives that
/// have been worked off on the document by then.
pub fn shown(patch: &[u8], document: &[u8], desc: &MessageDesc) -> String {
    let mut node = Node::new(text::trim(patch));
    let mut original = Node::new(document);
    if let (Some(patch), Some(original)) = (node.object(), original.object()) {
        worked_off(patch, original, Schema::Message(desc), MAX_OPEN);
    }
    node.to_go()
}

/// `original`: what the members were merged into.
fn worked_off<'a>(patch: &mut Members<'a>, original: &mut Members<'a>, schema: Schema<'_>, depth: u32) {
    let Some(depth) = depth.checked_sub(1) else { return };
    if patch.remove(DIRECTIVE).is_some() {
        // The rest took the place of what was there.
        return;
    }
    patch.remove(RETAIN_KEYS);
    let ordered: Vec<String> = patch
        .keys()
        .filter_map(|k| Some(k.strip_prefix(ELEMENT_ORDER)?.to_owned()))
        .collect();
    for field in ordered {
        patch.remove(&format!("{ELEMENT_ORDER}{field}"));
        patch.remove(&format!("{DELETE_FROM_LIST}{field}"));
        patch.remove(&field);
    }
    for (key, change) in patch.iter_mut() {
        let rule = schema.field(key);
        match (change.open(), original.get_mut(key).map(Node::open)) {
            (change, None) => change.prune(),
            (Node::Object(change), Some(Node::Object(old))) => worked_off(change, old, rule.schema, depth),
            (Node::Array(change), Some(Node::Array(old))) if rule.patch.has(Patch::MERGE) => {
                elements_worked_off(change, old, &rule, depth);
            }
            _ => {}
        }
    }
}

fn elements_worked_off<'a>(patch: &mut [Node<'a>], original: &mut [Node<'a>], rule: &FieldRule<'_>, depth: u32) {
    for change in patch {
        let Ok(key) = key_of(change, rule.merge_key) else {
            continue;
        };
        let place = original
            .iter_mut()
            .position(|old| key_of(old, rule.merge_key).is_ok_and(|k| k == key));
        let old = place.and_then(|index| original.get_mut(index));
        if let (Some(change), Some(old)) = (change.object(), old.and_then(Node::object))
            && !change.contains_key(DIRECTIVE)
        {
            worked_off(change, old, rule.schema, depth);
        }
    }
}
