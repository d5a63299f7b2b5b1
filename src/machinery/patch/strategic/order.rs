//! The order of merged lists: what the patch names comes in the patch's order, what only the server has keeps its place
//! among its neighbours.

use std::collections::{HashMap, HashSet};

use super::list::{added, delete_values, key_of, key_within, merge_list, no_key, same_scalar};
use super::schema::{FieldRule, Schema};
use super::{
    Bounds, DELETE_FROM_LIST, DIRECTIVE, ELEMENT_ORDER, Members, Node, OBJECT, SCALAR, StatusError, failed,
    merge_directive_text,
};
use crate::reflect::Patch;

/// Works off every `$setElementOrder/<field>` of a patch, together with the field's own change and what is deleted from
/// it.
pub(super) fn apply_orders<'a>(
    original: &mut Members<'a>,
    patch: &mut Members<'a>,
    schema: Schema<'_>,
    bounds: Bounds<'_>,
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
        let cost = if rule.merge_key.is_empty() { SCALAR } else { OBJECT };
        bounds.pass(old.as_ref().map_or(0, Vec::len) + order.len(), cost)?;
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
            (Some(old), Some(new)) if rule.patch.has(Patch::MERGE) => merge_list(old, new, &rule, bounds)?,
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
fn check_elements(order: &mut [Node<'_>], rule: &FieldRule<'_>) -> Result<(), StatusError> {
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
        let directive = directive_of(element);
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

fn directive_of(element: &Node<'_>) -> Option<String> {
    element.member(DIRECTIVE, Node::string)
}

/// The order in which kube-apiserver takes the server's list to be, once a patch has been merged into it. Deletions
/// move the elements behind them up in place, and what the patch adds takes the places that become free: that shows in
/// the result where the patch also says an order.
fn order_after_deletions<'a>(
    old: &[Node<'a>],
    patch: &[Node<'a>],
    merge_key: &str,
) -> Result<Vec<Node<'a>>, StatusError> {
    let mut left = Left::of(old);
    let mut new = Vec::new();
    for element in patch {
        let id = identity(element, merge_key);
        match directive_of(element).as_deref() {
            Some("delete") => left.delete(&id?, merge_key)?,
            Some(_) => {}
            None => new.push(element.clone()),
        }
    }
    let (mut slots, mut used) = left.into_slots();
    if used == old.len() {
        return Ok(slots);
    }
    let known: HashSet<Vec<u8>> = identities(slots.get(..used).unwrap_or_default(), merge_key)?
        .into_iter()
        .collect();
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

/// What deletions leave of a list, and what then stands behind it: after each, a copy of the element that is the last.
struct Left<'n, 'a> {
    old: &'n [Node<'a>],
    is_there: Vec<bool>,
    /// So many elements, from the first, are looked at: those behind them are gone.
    end: usize,
    /// Places by identity, the first one last. Made for the first deletion.
    places: Option<HashMap<Vec<u8>, Vec<usize>>>,
    /// The latest copy last.
    behind: Vec<Node<'a>>,
}

impl<'n, 'a> Left<'n, 'a> {
    fn of(old: &'n [Node<'a>]) -> Self {
        Left {
            old,
            is_there: vec![true; old.len()],
            end: old.len(),
            places: None,
            behind: Vec::new(),
        }
    }

    /// Takes the first element of this identity away, if there is one.
    fn delete(&mut self, id: &[u8], merge_key: &str) -> Result<(), StatusError> {
        let places = match &mut self.places {
            Some(places) => places,
            none => {
                let mut places = HashMap::<_, Vec<usize>>::new();
                for (place, id) in identities(self.old, merge_key)?.into_iter().enumerate().rev() {
                    places.entry(id).or_default().push(place);
                }
                none.insert(places)
            }
        };
        let Some(place) = places.get_mut(id).and_then(Vec::pop) else {
            return Ok(());
        };
        if let Some(there) = self.is_there.get_mut(place) {
            *there = false;
        }
        while self.end > 0 && self.is_there.get(self.end - 1) == Some(&false) {
            self.end -= 1;
        }
        let last = match self.end.checked_sub(1) {
            Some(last) => self.old.get(last),
            None => self.behind.last().or_else(|| self.old.get(place)),
        };
        self.behind.extend(last.cloned());
        Ok(())
    }

    /// All of it, and how many elements are left.
    fn into_slots(self) -> (Vec<Node<'a>>, usize) {
        let there = self.old.iter().zip(&self.is_there).filter(|(_, there)| **there);
        let mut slots: Vec<Node<'a>> = there.map(|(element, _)| element.clone()).collect();
        let used = slots.len();
        slots.extend(self.behind.into_iter().rev());
        (slots, used)
    }
}

fn same(a: &Node<'_>, b: &Node<'_>, merge_key: &str) -> Result<bool, StatusError> {
    match merge_key {
        "" => Ok(same_scalar(a, b)),
        _ => Ok(identity(a, merge_key)? == identity(b, merge_key)?),
    }
}

/// What two elements are compared by.
fn identities(list: &[Node<'_>], merge_key: &str) -> Result<Vec<Vec<u8>>, StatusError> {
    list.iter().map(|element| identity(element, merge_key)).collect()
}

/// Where the first element of each identity stands.
pub(super) type Places = HashMap<Vec<u8>, usize>;

/// The places of elements in a list, by what is known of their identities.
pub(super) fn places(identities: impl ExactSizeIterator<Item = Option<Vec<u8>>>) -> Places {
    let mut places = HashMap::with_capacity(identities.len());
    for (place, id) in identities.enumerate() {
        if let Some(id) = id {
            places.entry(id).or_insert(place);
        }
    }
    places
}

fn identity(element: &Node<'_>, merge_key: &str) -> Result<Vec<u8>, StatusError> {
    if !merge_key.is_empty() {
        return key_within(element, merge_key).ok_or_else(|| no_key(element, merge_key));
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
    let of = |list| Ok(places(identities(list, merge_key)?.into_iter().map(Some)));
    normalize_by(merged, &of(patch_order)?, &of(server_order)?, merge_key)
}

/// The same with the places of both orders.
pub(super) fn normalize_by<'a>(
    merged: Vec<Node<'a>>,
    patch_order: &Places,
    server_order: &Places,
    merge_key: &str,
) -> Result<Vec<Node<'a>>, StatusError> {
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for element in merged {
        let id = identity(&element, merge_key)?;
        let server = server_order.get(&id).copied();
        match patch_order.get(&id).copied() {
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

/// As insertion sorts when what the server does not know is less than everything, and everything is less than it: it
/// ends before what was the least element when its turn came, the latest first.
fn sort_by_server<T>(elements: &mut Vec<(Option<usize>, T)>) {
    let mut least = usize::MAX;
    let ranked = std::mem::take(elements).into_iter().enumerate();
    let mut ranked: Vec<_> = ranked
        .map(|(turn, element)| {
            let rank = match element.0 {
                None => (least, 0, usize::MAX - turn),
                Some(place) => (place, 1, turn),
            };
            least = least.min(element.0.unwrap_or(usize::MAX));
            (rank, element)
        })
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    elements.extend(ranked.into_iter().map(|(_, element)| element));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by insertion.
    fn inserted(mut elements: Vec<(Option<usize>, usize)>) -> Vec<(Option<usize>, usize)> {
        let less = |a: &Option<usize>, b: &Option<usize>| a.zip(*b).is_none_or(|(a, b)| a < b);
        for i in 1..elements.len() {
            let mut j = i;
            while j > 0 && less(&elements[j].0, &elements[j - 1].0) {
                elements.swap(j, j - 1);
                j -= 1;
            }
        }
        elements
    }

    #[test]
    fn the_order_is_that_of_insertion() {
        // Every list of six elements, each unknown or in one of four places.
        for mut number in 0..5_usize.pow(6) {
            let mut elements = Vec::new();
            for turn in 0..6 {
                elements.push(((number % 5).checked_sub(1), turn));
                number /= 5;
            }
            let wanted = inserted(elements.clone());
            sort_by_server(&mut elements);
            assert_eq!(elements, wanted);
        }
    }

    #[test]
    fn deletions_leave_copies_of_the_last() {
        let list = |text: &'static str| array(Node::new(text.as_bytes())).unwrap();
        for (old, deleted, wanted, used) in [
            ("[1,2,3]", vec![], "[1,2,3]", 3),
            ("[1,2,3]", vec!["2"], "[1,3,3]", 2),
            ("[1,2,3]", vec!["3"], "[1,2,2]", 2),
            ("[1,2,3]", vec!["1", "3"], "[2,2,3]", 1),
            ("[1,2,3]", vec!["3", "2", "1"], "[1,1,2]", 0),
            ("[1]", vec!["1", "1"], "[1]", 0),
            ("[1,1,2]", vec!["1", "1"], "[2,2,2]", 1),
        ] {
            let old = list(old);
            let mut left = Left::of(&old);
            for id in deleted {
                left.delete(id.as_bytes(), "").unwrap();
            }
            let (slots, count) = left.into_slots();
            assert_eq!(
                (Node::Array(slots).to_go().replace(' ', ","), count),
                (wanted.to_owned(), used)
            );
        }
    }
}
