//! JSON text to messages, in one pass led by the field tables.
//!
//! The rules are those of the decoder that kube-apiserver uses: keys match in their case, `null` leaves plain scalars
//! and messages alone and empties everything else, of a repeated key the last one wins. Unknown and repeated keys are
//! collected. A value of a wrong type is an error, but one in the syntax further on goes before it.

mod collection;
mod dynamic;
mod fault;
mod scalar;

use super::route::{Route, Seen, find};
use super::validate;
use crate::decode::{DecodeError, StrictKind, StrictProblem};
use crate::json_text::scan::{AFTER_PAIR, Failure, Scanner, Text};
use crate::reflect::budget::Budget;
use crate::reflect::copy;
use crate::reflect::{Bytes, FieldDesc, Flags, MessageDesc, OptionalSlot, Reflect, Slot, Type, Unknown};

/// The most strict problems that are kept of one document.
const MAX_PROBLEMS: usize = 100;
/// How deep messages may nest. Only those that contain themselves get deeper than twenty.
const MAX_MESSAGE_DEPTH: u32 = 200;

/// Reads a JSON object into `message`, over what it holds. `apiVersion` and `kind` of the top level are passed over,
/// and those of messages within that are kinds themselves.
/// `null` reads like `{}`.
///
/// Returns what a strict decoder objects to, in the order of the document; of types that are known at run time alone in
/// kube-apiserver's order for these.
pub fn read(json: &[u8], message: &mut dyn Reflect) -> Result<Vec<StrictProblem>, DecodeError> {
    read_within(json, message, &Budget::unlimited())
}

/// As [`read`], of a document that somebody sent: [`DecodeError::TooLarge`] as soon as it becomes more than the budget.
pub fn read_within(json: &[u8], message: &mut dyn Reflect, budget: &Budget) -> Result<Vec<StrictProblem>, DecodeError> {
    let desc = message.handle().clone();
    let mut reader = Reader::new(json, Style::Decode, budget);
    reader.prunes = desc.unknown != Unknown::Kept;
    let outcome = reader.run(&desc, message);
    let mut problems = reader.finish(json, outcome)?;
    if desc.is_dynamic() {
        problems.sort_by_cached_key(place_in_tree);
    }
    Ok(problems)
}

/// As [`read`], of an object that a store holds: it was read and written before, so that its lazy parts are left unread
/// as long as nobody looks at them.
pub fn read_stored(json: &[u8], message: &mut dyn Reflect) -> Result<(), DecodeError> {
    let desc = message.handle().clone();
    let budget = Budget::unlimited();
    let mut reader = Reader::new(json, Style::Decode, &budget);
    reader.is_stored = true;
    reader.prunes = desc.unknown != Unknown::Kept;
    let outcome = reader.run(&desc, message);
    reader.finish(json, outcome).map(drop)
}

/// As [`read_within`], of the object that a text begins with: how long that is.
pub(crate) fn read_prefix(text: &[u8], message: &mut dyn Reflect, budget: &Budget) -> Result<usize, DecodeError> {
    let desc = message.handle().clone();
    let mut reader = Reader::new(text, Style::Decode, budget);
    reader.prunes = desc.unknown != Unknown::Kept;
    reader.object(&desc, message).map_err(|error| *error)?;
    match reader.wrong_value {
        Some(wrong) => Err(DecodeError::Value(wrong)),
        None => Ok(reader.scan.pos),
    }
}

/// As [`read_within`], of a document that is applied: nulls that a decoder drops are values as others are.
pub fn read_applied(json: &[u8], message: &mut dyn Reflect, budget: &Budget) -> Result<(), DecodeError> {
    let desc = message.handle().clone();
    let mut reader = Reader::new(json, Style::Decode, budget);
    reader.is_applied = true;
    reader.prunes = desc.unknown != Unknown::Kept;
    let outcome = reader.run(&desc, message);
    reader.finish(json, outcome).map(drop)
}

/// Where the original tells of a problem in a tree: of what stands twice first, of unknown metadata, then of whatever
/// else is unknown, in alphabetical order, and of the metadata of objects within at last.
fn place_in_tree(problem: &StrictProblem) -> (u8, String) {
    match (problem.kind, problem.path.as_str()) {
        (StrictKind::DuplicateField, _) => (0, String::new()),
        (StrictKind::UnknownField, path) if path.starts_with("metadata.") => (1, String::new()),
        (StrictKind::UnknownField, path) if path.contains(".metadata.") => (3, String::new()),
        (StrictKind::UnknownField, path) => (2, path.to_owned()),
    }
}

/// Reads what a strategic merge patch has made, as kube-apiserver does it: there the patch works on a tree of values,
/// which is turned into an object by other rules than the decoder's. Whole numbers may be written as fractions and
/// lose what does not fit into 32 bits, errors have other words and name no field, raw JSON gets sorted keys, and
/// unknown fields are told in alphabetical order. [`DecodeError::TooLarge`] where it is more than a request may make.
pub fn restore(json: &[u8], message: &mut dyn Reflect) -> Result<Vec<StrictProblem>, DecodeError> {
    let (desc, budget) = (message.handle().clone(), Budget::of_request());
    let mut reader = Reader::new(json, Style::Restore, &budget);
    let outcome = reader.run(&desc, message);
    let mut problems = reader.finish(json, outcome)?;
    problems.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(problems)
}

/// Reads one JSON value into the slot of a field.
pub(crate) fn read_value(json: &[u8], field: &FieldDesc, slot: Slot<'_>) -> Result<Vec<StrictProblem>, DecodeError> {
    read_value_within(json, field, slot, &Budget::unlimited())
}

/// As [`read_value`], within a budget.
pub(crate) fn read_value_within(
    json: &[u8],
    field: &FieldDesc,
    slot: Slot<'_>,
    budget: &Budget,
) -> Result<Vec<StrictProblem>, DecodeError> {
    let mut reader = Reader::new(json, Style::Decode, budget);
    let outcome = reader.value(&field.ty, slot).and_then(|()| reader.scan.end());
    reader.finish(json, outcome)
}

/// By whose rules values become fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Decode,
    Restore,
}

/// A step from the top to the value at hand.
enum Segment<'a> {
    /// A field, and the message that has it.
    Field(&'a str, &'a MessageDesc),
    /// A message whose fields stand in its parent's object, and that parent.
    Inline(&'a MessageDesc, &'a MessageDesc),
    /// The struct that holds `apiVersion` and `kind` of a kind, and that kind.
    TypeMeta(&'a MessageDesc),
    Key(Text<'a>),
    Index(usize),
}

struct Reader<'a> {
    scan: Scanner<'a>,
    style: Style,
    depth: u32,
    path: Vec<Segment<'a>>,
    problems: Vec<StrictProblem>,
    /// The first value of a wrong type.
    wrong_value: Option<String>,
    budget: &'a Budget,
    /// See [`read_applied`].
    is_applied: bool,
    /// See [`read_stored`].
    is_stored: bool,
    /// Of an object where none is declared nothing stays.
    prunes: bool,
}

type Outcome = Result<(), Failure>;

impl<'a> Reader<'a> {
    fn new(json: &'a [u8], style: Style, budget: &'a Budget) -> Self {
        Reader {
            scan: Scanner::new(json),
            style,
            depth: 0,
            path: Vec::with_capacity(16),
            problems: Vec::new(),
            wrong_value: None,
            budget,
            is_applied: false,
            is_stored: false,
            prunes: false,
        }
    }

    fn finish(self, json: &[u8], outcome: Outcome) -> Result<Vec<StrictProblem>, DecodeError> {
        match outcome.map_err(|e| *e) {
            Ok(()) => self
                .wrong_value
                .map_or(Ok(self.problems), |text| Err(DecodeError::Value(text))),
            Err(error @ (DecodeError::Syntax { .. } | DecodeError::TooLarge)) => Err(error),
            // The rest has not been looked at yet.
            Err(error) => Err(validate(json).err().unwrap_or(match self.wrong_value {
                Some(text) if self.style == Style::Restore => DecodeError::Value(text),
                _ => error,
            })),
        }
    }

    fn run(&mut self, desc: &'a MessageDesc, message: &mut dyn Reflect) -> Outcome {
        match self.scan.peek() {
            Some(b'{') => self.object(desc, message)?,
            Some(b'n') => self.scan.literal("null")?,
            _ => self.no_message(desc)?,
        }
        self.scan.end()
    }

    /// Takes what a value becomes in memory out of the budget.
    #[inline]
    fn spend(&self, bytes: usize) -> Outcome {
        match self.budget.take(bytes) {
            true => Ok(()),
            false => Err(Box::new(DecodeError::TooLarge)),
        }
    }

    /// An object whose brace is at hand.
    fn object(&mut self, desc: &'a MessageDesc, message: &mut dyn Reflect) -> Outcome {
        if self.depth == MAX_MESSAGE_DEPTH {
            return Err(self.scan.too_deep());
        }
        self.spend(desc.size)?;
        self.depth += 1;
        self.scan.pos += 1;
        if self.scan.peek() == Some(b'}') {
            self.scan.pos += 1;
        } else {
            self.members(desc, message)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn members(&mut self, desc: &'a MessageDesc, message: &mut dyn Reflect) -> Outcome {
        let (mut seen, mut type_meta) = (Seen::default(), [false; 2]);
        let mut next = 0;
        loop {
            let key = self.scan.key()?;
            let name = key.bytes();
            let mut route = Route::default();
            if find(desc, &name, next, &mut route) {
                if seen.insert(&route) {
                    self.problem(StrictKind::DuplicateField, key);
                    if desc.is_dynamic() {
                        // Of a tree of maps the last member counts; of a struct what is said again adds to it.
                        message.get_mut(route.next() - 1).into_iter().for_each(copy::clear);
                    }
                }
                next = route.next();
                self.member(desc, message, route.steps())?;
            } else {
                self.unknown(desc, message, key, &mut type_meta)?;
            }
            match self.scan.peek() {
                Some(b',') => self.scan.pos += 1,
                Some(b'}') => {
                    self.scan.pos += 1;
                    return Ok(());
                }
                _ => return Err(self.scan.fail(AFTER_PAIR)),
            }
        }
    }

    /// A key that is no field of the message: the type of a kind, what is kept beside the fields, or nobody's.
    fn unknown(
        &mut self,
        desc: &'a MessageDesc,
        message: &mut dyn Reflect,
        key: Text<'a>,
        type_meta: &mut [bool; 2],
    ) -> Outcome {
        let place = match &*key.bytes() {
            _ if self.depth > 1 && desc.gvk.is_none() => None,
            b"apiVersion" => Some((0, "apiVersion")),
            b"kind" => Some((1, "kind")),
            _ => None,
        };
        let Some((index, field)) = place else {
            if let Some(rest) = message.rest_mut() {
                return self.entry(key, FieldDesc::ANY, rest, None);
            }
            self.problem(StrictKind::UnknownField, key);
            return self.scan.skip_value().map(drop);
        };
        if std::mem::replace(&mut type_meta[index], true) {
            self.problem(StrictKind::DuplicateField, key);
        }
        if self.depth == 1 && self.style == Style::Decode {
            // Who asked for the type of the document has looked at them.
            return self.scan.skip_value().map(drop);
        }
        self.path.push(Segment::TypeMeta(desc));
        self.path.push(Segment::Field(field, desc));
        self.string(&mut String::new())?;
        self.path.truncate(self.path.len() - 2);
        Ok(())
    }

    /// The value of the field that `steps` lead to.
    fn member(&mut self, desc: &'a MessageDesc, message: &mut dyn Reflect, steps: &[u16]) -> Outcome {
        let [first, rest @ ..] = steps else { return Ok(()) };
        let index = usize::from(*first);
        let (Some(field), Some(slot)) = (desc.fields.get(index), message.get_mut(index)) else {
            return self.scan.skip_value().map(drop);
        };
        if rest.is_empty() {
            if self.drops_null(field) {
                self.scan.literal("null")?;
                copy::clear(slot);
                return Ok(());
            }
            self.path.push(Segment::Field(&field.json, desc));
            self.value(&field.ty, slot)?;
        } else {
            let (Slot::Message(inlined), Type::Message(inner)) = (slot.filled(), &field.ty) else {
                return self.scan.skip_value().map(drop);
            };
            self.path.push(Segment::Inline(inner, desc));
            self.member(inner, inlined, rest)?;
        }
        self.path.pop();
        Ok(())
    }

    /// Whether a null is at hand that counts as no value.
    #[inline]
    fn drops_null(&mut self, field: &FieldDesc) -> bool {
        field.flags.has(Flags::DROPS_NULL) && !self.is_applied && self.scan.peek() == Some(b'n')
    }

    /// A value of a declared type. The type leads: its messages are those of the slots.
    fn value(&mut self, ty: &'a Type, slot: Slot<'_>) -> Outcome {
        match (slot, ty) {
            (Slot::Optional(OptionalSlot::Typed(o)), ty) => {
                if self.scan.peek() == Some(b'n') {
                    self.scan.literal("null")?;
                    o.clear();
                    Ok(())
                } else {
                    self.value(ty, o.fill())
                }
            }
            (Slot::Str(s), _) => self.string(s),
            (Slot::Message(m), Type::Message(desc)) => match self.scan.peek() {
                Some(b'{') => match m.shared_mut().filter(|_| self.is_stored) {
                    Some(lazy) => {
                        lazy.set_text(Bytes::copy_from_slice(self.scan.skip_value()?));
                        Ok(())
                    }
                    None => self.object(desc, m),
                },
                Some(b'n') => self.scan.literal("null"),
                _ => self.no_message(desc),
            },
            (Slot::Leaf(l), _) => self.leaf(l),
            (Slot::List(l), Type::List(element)) => self.list(element, l),
            (Slot::Map(m), Type::Map(element)) => self.map(element, m),
            (Slot::Bool(b), _) => self.boolean(b),
            (Slot::Int32(n), _) => self.number("int32", n),
            (Slot::Int64(n), _) => self.number("int64", n),
            (Slot::Double(n), _) => self.double(n),
            (Slot::Bytes(b), _) => self.bytes(b),
            (Slot::Optional(OptionalSlot::Dynamic(slot)), ty) => self.dynamic(ty, slot),
            // No message has slots of other types than its table says.
            (Slot::Message(_) | Slot::List(_) | Slot::Map(_), _) => self.scan.skip_value().map(drop),
        }
    }
}
