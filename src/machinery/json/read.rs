//! JSON text to messages, in one pass led by the field tables.
//!
//! The rules are those of the decoder that kube-apiserver uses: keys match in their case, `null` leaves plain scalars
//! and messages alone and empties everything else, of a repeated key the last one wins. Unknown and repeated keys are
//! collected. A value of a wrong type is an error, but one in the syntax further on goes before it.

mod collection;
mod fault;
mod scalar;

use super::route::{Route, Seen, find};
use super::scan::{AFTER_PAIR, Failure, Scanner, Text};
use super::validate;
use crate::budget::Budget;
use crate::decode::{DecodeError, StrictKind, StrictProblem};
use crate::reflect::{MessageDesc, Reflect, Slot};

/// The most strict problems that are kept of one document.
const MAX_PROBLEMS: usize = 100;
/// How deep messages may nest. Only those that contain themselves get deeper than twenty.
const MAX_MESSAGE_DEPTH: u32 = 200;

/// Reads a JSON object into `message`, over what it holds. `apiVersion` and `kind` of the top level are passed over,
/// and those of messages within that are kinds themselves.
/// `null` reads like `{}`.
///
/// Returns what a strict decoder objects to, in the order of the document.
pub fn read(json: &[u8], message: &mut dyn Reflect) -> Result<Vec<StrictProblem>, DecodeError> {
    read_within(json, message, &Budget::unlimited())
}

/// As [`read`], of a document that somebody sent: [`DecodeError::TooLarge`] as soon as it becomes more than the budget.
pub fn read_within(json: &[u8], message: &mut dyn Reflect, budget: &Budget) -> Result<Vec<StrictProblem>, DecodeError> {
    let mut reader = Reader::new(json, Style::Decode, budget);
    let outcome = reader.run(message.desc(), message);
    reader.finish(json, outcome)
}

/// Reads what a strategic merge patch has made, as kube-apiserver does it: there the patch works on a tree of values,
/// which is turned into an object by other rules than the decoder's. Whole numbers may be written as fractions and
/// lose what does not fit into 32 bits, errors have other words and name no field, raw JSON gets sorted keys, and
/// unknown fields are told in alphabetical order. [`DecodeError::TooLarge`] where it is more than a request may make.
pub fn restore(json: &[u8], message: &mut dyn Reflect) -> Result<Vec<StrictProblem>, DecodeError> {
    let budget = Budget::of_request();
    let mut reader = Reader::new(json, Style::Restore, &budget);
    let outcome = reader.run(message.desc(), message);
    let mut problems = reader.finish(json, outcome)?;
    problems.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(problems)
}

/// Reads one JSON value into a field of any type.
pub(crate) fn read_value(json: &[u8], slot: Slot<'_>) -> Result<Vec<StrictProblem>, DecodeError> {
    read_value_within(json, slot, &Budget::unlimited())
}

/// As [`read_value`], within a budget.
pub(crate) fn read_value_within(
    json: &[u8],
    slot: Slot<'_>,
    budget: &Budget,
) -> Result<Vec<StrictProblem>, DecodeError> {
    let mut reader = Reader::new(json, Style::Decode, budget);
    let outcome = reader.value(slot).and_then(|()| reader.scan.end());
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
    Field(&'static str, &'static MessageDesc),
    /// A message whose fields stand in its parent's object, and that parent.
    Inline(&'static MessageDesc, &'static MessageDesc),
    /// The struct that holds `apiVersion` and `kind` of a kind, and that kind.
    TypeMeta(&'static MessageDesc),
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

    fn run(&mut self, desc: &'static MessageDesc, message: &mut dyn Reflect) -> Outcome {
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
    fn object(&mut self, desc: &'static MessageDesc, message: &mut dyn Reflect) -> Outcome {
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

    fn members(&mut self, desc: &'static MessageDesc, message: &mut dyn Reflect) -> Outcome {
        let (mut seen, mut type_meta) = (Seen::default(), [false; 2]);
        let mut next = 0;
        loop {
            let key = self.scan.key()?;
            let name = key.bytes();
            let mut route = Route::default();
            if find(desc, &name, next, &mut route) {
                if seen.insert(&route) {
                    self.problem(StrictKind::DuplicateField, key);
                }
                next = route.next();
                self.member(message, route.steps())?;
            } else {
                self.unknown(desc, key, &name, &mut type_meta)?;
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

    /// A key that is no field of the message: the type of a kind, or nobody's.
    fn unknown(
        &mut self,
        desc: &'static MessageDesc,
        key: Text<'a>,
        name: &[u8],
        type_meta: &mut [bool; 2],
    ) -> Outcome {
        let place = match name {
            _ if self.depth > 1 && desc.gvk.is_none() => None,
            b"apiVersion" => Some((0, "apiVersion")),
            b"kind" => Some((1, "kind")),
            _ => None,
        };
        let Some((index, field)) = place else {
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
    fn member(&mut self, message: &mut dyn Reflect, steps: &[u16]) -> Outcome {
        let [first, rest @ ..] = steps else { return Ok(()) };
        let (index, desc) = (usize::from(*first), message.desc());
        let (Some(field), Some(slot)) = (desc.fields.get(index), message.get_mut(index)) else {
            return self.scan.skip_value().map(drop);
        };
        if rest.is_empty() {
            self.path.push(Segment::Field(field.json, desc));
            self.value(slot)?;
        } else {
            let slot = match slot {
                Slot::Optional(o) => o.fill(),
                other => other,
            };
            let Slot::Message(inlined) = slot else {
                return self.scan.skip_value().map(drop);
            };
            self.path.push(Segment::Inline(inlined.desc(), desc));
            self.member(inlined, rest)?;
        }
        self.path.pop();
        Ok(())
    }

    fn value(&mut self, slot: Slot<'_>) -> Outcome {
        match slot {
            Slot::Optional(o) => {
                if self.scan.peek() == Some(b'n') {
                    self.scan.literal("null")?;
                    o.clear();
                    Ok(())
                } else {
                    self.value(o.fill())
                }
            }
            Slot::Str(s) => self.string(s),
            Slot::Message(m) => match self.scan.peek() {
                Some(b'{') => self.object(m.desc(), m),
                Some(b'n') => self.scan.literal("null"),
                _ => self.no_message(m.desc()),
            },
            Slot::Leaf(l) => self.leaf(l),
            Slot::List(l) => self.list(l),
            Slot::Map(m) => self.map(m),
            Slot::Bool(b) => self.boolean(b),
            Slot::Int32(n) => self.number("int32", n),
            Slot::Int64(n) => self.number("int64", n),
            Slot::Double(n) => self.double(n),
            Slot::Bytes(b) => self.bytes(b),
        }
    }
}
