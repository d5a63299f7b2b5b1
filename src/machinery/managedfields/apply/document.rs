//! The document of an apply request: an object, and the fields that it says something about.
//!
//! The object alone would not do: that a field is null, zero or empty says something too. So the fields are gathered
//! from the text, which is checked against the field tables as kube-apiserver checks it against its schema.

use std::collections::BTreeSet;

use super::normal_form::{is_unshown, shows_more};
use super::view::{Shape, absent_key, scalar_of_json};
use crate::decode::DecodeError;
use crate::field::text::quote;
use crate::fieldset::{Entry, FieldSet, Growing, KeyField, Name, PathElement};
use crate::json::route::{Route, Seen, find};
use crate::json::{self, Cursor};
use crate::managedfields::untracked;
use crate::reflect::budget::{self, Budget};
use crate::reflect::{FieldDesc, ListType, MessageDesc, Names, Reflect, Type, Unknown};

/// How deep a document may nest.
const MAX_DEPTH: usize = 200;
/// Problems that are kept of one document.
const MAX_PROBLEMS: usize = 256;
/// Bytes of a problem's path that nothing more is put in front of.
const MAX_PATH: usize = 4 * 1024;

/// What an apply request says.
#[derive(Debug, Default)]
pub struct Document {
    /// The fields that its writer will own.
    pub fields: FieldSet,
    /// Fields that are written otherwise than the server writes the same value: `1000m`, a zero that it leaves out, a
    /// whole without what it always shows. They differ from any.
    pub restated: FieldSet,
    /// Maps, lists and messages that are null or empty where the server would write nothing: they differ from nothing,
    /// but not from content.
    pub hollow: FieldSet,
    /// Why the document can't be made an object although the schema lets it pass.
    pub unfit: Option<String>,
}

/// Why a document can't be taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DocumentError {
    /// It does not fit the schema; the text that follows `failed to create typed patch object (…): `.
    Schema(String),
    /// Some key stands twice in an object. Which of them counts, and whether that matters, is for the caller to say.
    Duplicate,
    /// It becomes more than the [`Budget`] of a request.
    TooLarge,
}

/// Reads a document into an empty message. The text must be valid JSON, of an object.
pub fn read_document(text: &[u8], message: &mut dyn Reflect) -> Result<Document, DocumentError> {
    let mut gather = Gather::new(text);
    let desc = message.handle().clone();
    let fields = gather.members(&desc, Place::top(), &Names::NONE).set;
    if gather.budget.is_exhausted() {
        return Err(DocumentError::TooLarge);
    }
    if gather.duplicate {
        return Err(DocumentError::Duplicate);
    }
    if !gather.problems.is_empty() {
        return Err(DocumentError::Schema(schema_text(&gather.problems)));
    }
    let (mut restated, mut hollow) = (FieldSet::EMPTY, FieldSet::EMPTY);
    gather.odd.iter_mut().for_each(|odd| odd.path.reverse());
    // A set that is not built in order takes time that grows with the square of its size.
    gather.odd.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    for odd in &gather.odd {
        let set = if odd.hollow { &mut hollow } else { &mut restated };
        set.insert(&odd.path);
    }
    let restated = restated.difference(untracked());
    // Also where it can't be read to the end: failures name the object.
    let edited = gather.edits.apply(text);
    let outcome = json::read_applied(edited.as_deref().unwrap_or(text), message, &Budget::of_request());
    let unfit = match outcome {
        Err(DecodeError::TooLarge) => return Err(DocumentError::TooLarge),
        Err(error) => Some(match error.to_string() {
            text if text.starts_with("illegal base64") => format!("error decoding from json: {text}"),
            text => text,
        }),
        Ok(()) => None,
    };
    Ok(Document {
        fields,
        restated,
        hollow,
        unfit: gather.unfit.or(unfit),
    })
}

/// What the schema objects to in an object whose JSON this is, if it does; what stands twice in a list is let pass.
pub(super) fn objections(text: &[u8], desc: &MessageDesc) -> Option<String> {
    let mut gather = Gather::new(text);
    gather.may_repeat = true;
    gather.members(desc, Place::top(), &Names::NONE);
    (!gather.problems.is_empty()).then(|| schema_text(&gather.problems))
}

fn schema_text(problems: &[Problem]) -> String {
    match problems {
        [only] => only.to_string(),
        several => {
            let lines: Vec<String> = several.iter().map(|p| format!("\n  {p}")).collect();
            format!("errors:{}", lines.concat())
        }
    }
}

/// Something that the schema objects to.
struct Problem {
    path: String,
    text: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.text)
    }
}

/// A value that the server would write otherwise.
#[derive(Default)]
struct Odd {
    /// Last element first.
    path: Vec<PathElement>,
    /// See [`Document::hollow`].
    hollow: bool,
}

/// Values that have to be written otherwise before they are read.
#[derive(Default)]
pub(super) struct Edits(pub(super) Vec<(std::ops::Range<usize>, String)>);

impl Edits {
    fn apply(&self, text: &[u8]) -> Option<Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
        for (range, new) in &self.0 {
            out.extend_from_slice(text.get(at..range.start).unwrap_or_default());
            out.extend_from_slice(new.as_bytes());
            at = range.end;
        }
        out.extend_from_slice(text.get(at..).unwrap_or_default());
        Some(out)
    }
}

/// Where the walk is.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    /// Within something that is owned as a whole.
    atomic: bool,
    /// Among the fields of a dynamic message, which shows what was said.
    dynamic: bool,
}

impl Place {
    fn top() -> Place {
        Place {
            depth: 0,
            atomic: false,
            dynamic: false,
        }
    }

    fn below(self, shape: Shape<'_>) -> Place {
        Place {
            depth: self.depth + 1,
            atomic: self.atomic || matches!(shape, Shape::Leaf),
            dynamic: self.dynamic,
        }
    }
}

/// What a value says.
#[derive(Default)]
struct Said {
    member: bool,
    set: FieldSet,
    /// Of a message that is an item: the values of the keys asked for.
    keys: Vec<KeyField>,
}

impl Said {
    fn member() -> Said {
        Said {
            member: true,
            ..Said::default()
        }
    }
}

pub(super) struct Gather<'a> {
    pub(super) cursor: Cursor<'a>,
    /// Of the items and entries that are gathered. When it is used up, the rest of a document is passed over.
    budget: Budget,
    problems: Vec<Problem>,
    odd: Vec<Odd>,
    pub(super) unfit: Option<String>,
    pub(super) edits: Edits,
    duplicate: bool,
    /// Items of sets and maps may stand there twice.
    may_repeat: bool,
}

impl<'a> Gather<'a> {
    fn new(text: &'a [u8]) -> Gather<'a> {
        Gather {
            cursor: Cursor::new(text),
            budget: Budget::of_request(),
            problems: Vec::new(),
            odd: Vec::new(),
            unfit: None,
            edits: Edits::default(),
            duplicate: false,
            may_repeat: false,
        }
    }

    /// Whether there is another item or entry, of which each costs so many bytes, and room for it. Where there is no
    /// room, the walk ends everywhere.
    fn more(&mut self, cost: usize) -> bool {
        self.cursor.more() && self.affords(cost)
    }

    fn affords(&mut self, cost: usize) -> bool {
        let affords = self.budget.take(cost);
        if !affords {
            self.cursor.end();
        }
        affords
    }

    /// Walks a value below the element that `element` makes.
    fn step(&mut self, element: impl FnOnce() -> PathElement, walk: impl FnOnce(&mut Self) -> Said) -> Said {
        let (problems, odd) = (self.problems.len(), self.odd.len());
        let said = walk(self);
        self.prefix(problems, odd, element);
        said
    }

    /// Puts an element in front of what was found since.
    fn prefix(&mut self, problems: usize, odd: usize, element: impl FnOnce() -> PathElement) {
        if self.problems.len() == problems && self.odd.len() == odd {
            return;
        }
        let element = element();
        for problem in self.problems.iter_mut().skip(problems) {
            if problem.path.len() > MAX_PATH {
                continue;
            }
            problem.path.insert_str(0, &element.to_string());
        }
        for odd in self.odd.iter_mut().skip(odd) {
            odd.path.push(element.clone());
        }
    }

    pub(super) fn problem(&mut self, text: String) {
        if self.problems.len() < MAX_PROBLEMS {
            let path = String::new();
            self.problems.push(Problem { path, text });
        }
    }

    /// The object at hand as a message of `desc`; `keys` are the fields whose values the caller wants.
    fn members(&mut self, desc: &MessageDesc, place: Place, keys: &Names) -> Said {
        if place.depth > MAX_DEPTH {
            self.cursor.skip();
            self.problem("nested too deep".to_owned());
            return Said::default();
        }
        let place = Place {
            dynamic: desc.is_dynamic(),
            ..place
        };
        let mut said = Said::member();
        said.keys.reserve_exact(keys.len());
        let (mut seen, mut next, mut entries) = (Seen::default(), 0, Vec::new());
        let mut others: BTreeSet<Name> = BTreeSet::new();
        self.cursor.open();
        while self.cursor.more() {
            said.member = false;
            let key = self.cursor.key();
            let mut route = Route::default();
            let found = find(desc, &key.bytes(), next, &mut route);
            let Some(field) = route.field(desc).filter(|_| found) else {
                if !self.affords(budget::ENTRY) {
                    break;
                }
                let key = Name::from(key.decode());
                if let Some(entry) = self.undeclared(desc, &key, place) {
                    self.duplicate |= !others.insert(key);
                    entries.push(entry);
                }
                continue;
            };
            self.duplicate |= seen.insert(&route);
            next = route.next();
            let start = self.cursor.position_of_next();
            let shape = Shape::of(field);
            let element = || PathElement::Field(field.json.clone());
            let value = self.step(element, |g| {
                let said = g.value(&field.ty, shape, place);
                if !place.dynamic && is_unshown(field, g.cursor.since(start)) {
                    g.odd(!place.below(shape).atomic);
                }
                said
            });
            if keys.contains(&field.json) {
                let text = self.cursor.since(start);
                said.keys.push((field.json.clone(), scalar_of_json(text)));
            }
            entries.push(Entry {
                element: element(),
                member: value.member,
                children: value.set,
            });
        }
        if place.atomic && shows_more(desc, &seen, &mut Vec::new()) {
            self.restate();
        }
        // What stands twice has been seen to.
        said.set = FieldSet::from_unsorted(entries);
        said
    }

    /// The value at hand, of a key that is no field: of one that is kept beside the fields, what it says.
    fn undeclared(&mut self, desc: &MessageDesc, key: &Name, place: Place) -> Option<Entry> {
        let first = self.cursor.peek();
        let element = PathElement::Field(key.clone());
        let may_be_type = matches!(key.as_str(), "apiVersion" | "kind");
        if desc.unknown == Unknown::Kept && !(place.depth == 0 && may_be_type && first == Some(b'"')) {
            let said = self.step(|| element.clone(), |g| g.value(&Type::Any, Shape::Any, place));
            // As every key of a map.
            return Some(Entry {
                element,
                member: true,
                children: said.set,
            });
        }
        let value = self.cursor.skip();
        if !(place.depth == 0 && is_type_meta(key, value)) {
            self.step(
                || element,
                |g| {
                    g.problem("field not declared in schema".to_owned());
                    Said::default()
                },
            );
        }
        None
    }

    /// The value at hand.
    fn value(&mut self, ty: &Type, shape: Shape<'_>, place: Place) -> Said {
        let first = self.cursor.peek();
        if first == Some(b'n') {
            self.cursor.skip();
            return Said::member();
        }
        let shape = match (shape, first) {
            (Shape::Any, Some(b'{')) => Shape::Map(FieldDesc::ANY),
            (Shape::Any, _) => Shape::Leaf,
            (shape, _) => shape,
        };
        let (place, odd) = (place.below(shape), self.odd.len());
        let said = match (ty, first) {
            (Type::Message(desc), Some(b'{')) => self.members(desc, place, &Names::NONE),
            (Type::Map(element), Some(b'{')) => self.entries(&element.ty, shape, place),
            (Type::List(element), Some(b'[')) => self.items(&element.ty, shape, place),
            (Type::Any | Type::Untyped, Some(b'{')) if !place.atomic => self.entries(&Type::Any, shape, place),
            _ => {
                self.scalar(ty, place.dynamic);
                Said::member()
            }
        };
        if !place.atomic {
            return said;
        }
        self.restated_as_whole(odd);
        Said::member()
    }

    /// The value at hand is not written as the server writes any: it leaves out what the server always shows, or shows
    /// what the server leaves out.
    pub(super) fn restate(&mut self) {
        self.odd(false);
    }

    fn odd(&mut self, hollow: bool) {
        self.odd.push(Odd {
            path: Vec::new(),
            hollow,
        });
    }

    /// What was found since counts for the value at hand, which is owned as a whole.
    fn restated_as_whole(&mut self, since: usize) {
        if self.odd.len() > since {
            self.odd.truncate(since);
            self.restate();
        }
    }

    fn entries(&mut self, element_type: &Type, shape: Shape<'_>, place: Place) -> Said {
        let below = match shape {
            Shape::Map(field) => Shape::of_entry(field),
            _ => Shape::Leaf,
        };
        let (mut said, mut set) = (Said::member(), Growing::default());
        self.cursor.open();
        while self.more(budget::ENTRY) {
            let key = Name::from(self.cursor.key().decode());
            let element = PathElement::Field(key);
            let value = self.step(
                || element.clone(),
                |g| {
                    // Go has no null among the values of a map: it reads a zero.
                    if g.cursor.peek() == Some(b'n') && !place.dynamic {
                        g.restate();
                    }
                    g.value(element_type, below, place)
                },
            );
            said.member = false;
            self.duplicate |= set.add_new(element, value.set).is_err();
        }
        said.set = set.into_set();
        said
    }

    fn items(&mut self, element_type: &Type, shape: Shape<'_>, place: Place) -> Said {
        let mut set = Growing::default();
        self.cursor.open();
        // Nothing is said of what follows an item that has no name.
        let (mut index, mut named) = (0, true);
        let cost = match shape {
            Shape::List(field) if field.list == ListType::Map => budget::OWNED_ITEM,
            Shape::List(_) => budget::ENTRY,
            _ => budget::ITEM,
        };
        while self.more(cost) {
            match shape {
                _ if !named => drop(self.cursor.skip()),
                Shape::List(field) => {
                    named = self.item(field, element_type, place, index, &mut set);
                }
                _ => {
                    let at = PathElement::Index(index);
                    self.step(|| at, |g| g.value(element_type, Shape::Leaf, place));
                }
            }
            index += 1;
        }
        Said {
            set: set.into_set(),
            ..Said::default()
        }
    }

    /// An item of a list whose items have owners of their own. False: there is nothing that it is known by.
    fn item(&mut self, field: &FieldDesc, ty: &Type, place: Place, index: i64, set: &mut Growing) -> bool {
        let (problems, odd) = (self.problems.len(), self.odd.len());
        let keyed = field.list == ListType::Map;
        let first = self.cursor.peek();
        let wrong = match (keyed, first) {
            (true, Some(b'n')) => "associative list with keys may not have a null element",
            (false, Some(b'n')) => "associative list without keys has an element that's an explicit null",
            (false, Some(b'{')) => "associative list without keys has an element that's a map type",
            (false, Some(b'[')) => "not supported: associative list with lists as elements",
            (true, Some(b'{')) | (false, _) => "",
            (true, _) => "associative list with keys may not have non-map elements",
        };
        if !wrong.is_empty() {
            self.cursor.skip();
            self.problem(format!("element {index}: {wrong}"));
            return false;
        }
        let shape = Shape::of_item(field);
        let (element, said) = match ty {
            Type::Message(desc) if keyed => {
                let mut said = self.members(desc, place.below(shape), field.map_keys());
                match key_element(field, desc, std::mem::take(&mut said.keys)) {
                    Some(element) => (element, said),
                    None => {
                        let keys: Vec<String> = field.map_keys().names().map(|key| quote(&key)).collect();
                        self.problems.truncate(problems);
                        self.problem(format!(
                            "element {index}: associative list with keys has an element that omits all key fields \
                             [{}] (and doesn't have default values for any key fields)",
                            keys.join(" ")
                        ));
                        return false;
                    }
                }
            }
            _ => {
                let start = self.cursor.position_of_next();
                let said = self.value(ty, Shape::Leaf, place);
                let value = scalar_of_json(self.cursor.since(start));
                (PathElement::Value(value), said)
            }
        };
        if matches!(shape, Shape::Leaf) {
            self.restated_as_whole(odd);
        }
        self.prefix(problems, odd, || element.clone());
        let children = if matches!(shape, Shape::Leaf) {
            FieldSet::EMPTY
        } else {
            said.set
        };
        match set.add_new(element, children) {
            Err(element) if !self.may_repeat => self.problem(format!("duplicate entries for key {element}")),
            _ => {}
        }
        true
    }
}

/// `apiVersion` and `kind` are no fields of the tables, but strings.
fn is_type_meta(key: &str, value: &[u8]) -> bool {
    matches!(key, "apiVersion" | "kind") && value.first() == Some(&b'"')
}

/// What an item is known by, of which `keys` were found; `None`: by nothing.
fn key_element(field: &FieldDesc, message: &MessageDesc, mut keys: Vec<KeyField>) -> Option<PathElement> {
    for name in field.map_keys().names() {
        if !keys.iter().any(|(found, _)| *found == name)
            && let Some(value) = absent_key(message, &name)
        {
            keys.push((name, value));
        }
    }
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    (!keys.is_empty()).then(|| PathElement::Key(keys.into()))
}
