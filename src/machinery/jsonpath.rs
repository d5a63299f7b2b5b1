//! Paths into objects: the JSONPath of printer columns, the dotted paths of field selectors and scale subresources.
//!
//! A path reads what JSON shows: a plain field that is zero and not always written is absent.

use std::borrow::Cow;

use crate::reflect::{self, FieldDesc, Flags, LeafKind, Reflect, Slot, Type, Value, member};

pub mod nested;
mod parse;

pub use parse::{MAX_STEPS, PathError};

/// A parsed path, such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Clone, PartialEq, Debug)]
pub struct JsonPath {
    steps: Vec<Step>,
}

/// Values of one step that the next one goes on from. Only descending more than once leads to more than there are.
const MAX_VALUES: usize = 10_000;

#[derive(Clone, PartialEq, Debug)]
enum Step {
    Child(String),
    /// Negative ones count from the end.
    Index(i64),
    Slice(Part),
    /// Every element of a list, or value of a map or an object.
    All,
    /// What is there and all that it holds, at any depth, but for scalars and what is empty.
    Descend,
    /// What each of some steps leads to.
    Union(Vec<Step>),
    /// The elements of a list for which a path has a value that compares so.
    Filter(Filter),
}

/// A part of a list: from one place up to another, in steps. Negative places count from the end.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Part {
    start: Option<i64>,
    end: Option<i64>,
    step: Option<i64>,
}

#[derive(Clone, PartialEq, Debug)]
struct Filter {
    path: JsonPath,
    /// `None`: the path need only have a value.
    compare: Option<(Comparison, Literal)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Clone, PartialEq, Debug)]
enum Literal {
    Text(String),
    Number(f64),
    Bool(bool),
}

impl JsonPath {
    /// Reads `.a.b`, `['a.b']`, `[0]`, `[-1]`, `[1:3]`, `[*]`, `['a','b']`, `..a`, `[?(@.a=="b")]`; braces around it
    /// and a `$` before it are fine.
    pub fn parse(text: &str) -> Result<JsonPath, PathError> {
        parse::parse(text)
    }

    /// Whether the path leads past the field at `other`, dotted names, whatever object it is used with.
    pub fn avoids(&self, other: &str) -> bool {
        let mut names = other.split('.');
        for step in &self.steps {
            match (step, names.next()) {
                (Step::Child(name), Some(other)) if name != other => return true,
                (Step::Child(_), Some(_)) => {}
                _ => return false,
            }
        }
        false
    }

    /// The values that the path leads to, in order; a bounded number of them.
    pub fn find<'a>(&self, root: &'a dyn Reflect) -> Vec<Value<'a>> {
        self.walk(Value::Message(root))
    }

    /// The first value that the path leads to.
    pub fn first<'a>(&self, root: &'a dyn Reflect) -> Option<Value<'a>> {
        self.find(root).into_iter().next()
    }

    fn walk<'a>(&self, root: Value<'a>) -> Vec<Value<'a>> {
        let mut values = vec![root];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in values {
                if next.len() < MAX_VALUES {
                    step.walk(value, &mut next);
                }
            }
            values = next;
        }
        values
    }

    /// Writes a number of 32 bits into the field that the path names, making the messages on the way. Only fields and
    /// keys may stand in the path.
    pub fn set_int32(&self, root: &mut dyn Reflect, value: i32) -> Result<(), PathError> {
        let names: Option<Vec<&str>> = self
            .steps
            .iter()
            .map(|step| match step {
                Step::Child(name) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let names = names.ok_or(PathError::NotWritable)?;
        let (last, parents) = names.split_last().ok_or(PathError::NotWritable)?;
        let mut message = root;
        for name in parents {
            message = match field_slot(message, name).ok_or(PathError::NotWritable)?.filled() {
                Slot::Message(below) => below,
                _ => return Err(PathError::NotWritable),
            };
        }
        match field_slot(message, last).ok_or(PathError::NotWritable)?.filled() {
            Slot::Int32(slot) => *slot = value,
            Slot::Int64(slot) => *slot = i64::from(value),
            _ => return Err(PathError::NotWritable),
        }
        Ok(())
    }
}

impl Step {
    fn walk<'a>(&self, value: Value<'a>, out: &mut Vec<Value<'a>>) {
        match (self, value) {
            (Step::Child(name), Value::Message(message)) => out.extend(field(message, name)),
            (Step::Child(name), Value::Map(map)) => out.extend(map.get(name)),
            (Step::Index(index), Value::List(list)) => {
                let from_end = if *index < 0 {
                    i64::try_from(list.len()).unwrap_or(i64::MAX)
                } else {
                    0
                };
                let index = usize::try_from(index.saturating_add(from_end)).ok();
                out.extend(index.filter(|i| *i < list.len()).map(|i| list.get(i)));
            }
            (Step::Slice(part), Value::List(list)) => {
                out.extend(part.places(list.len()).into_iter().flatten().map(|i| list.get(i)));
            }
            (Step::All, Value::List(list)) => out.extend((0..list.len()).map(|i| list.get(i))),
            (Step::All, Value::Map(map)) => map.for_each(&mut |_, value| out.push(value)),
            (Step::All, Value::Message(message)) => out.extend(members(message)),
            (Step::Descend, value) => descend(value, out),
            (Step::Union(steps), value) => steps.iter().for_each(|step| step.walk(value, out)),
            (Step::Filter(filter), Value::List(list)) => {
                out.extend((0..list.len()).map(|i| list.get(i)).filter(|v| filter.holds(*v)));
            }
            _ => {}
        }
    }
}

/// A value and all that it holds, each before what it holds itself.
fn descend<'a>(value: Value<'a>, out: &mut Vec<Value<'a>>) {
    let mut below = Vec::new();
    Step::All.walk(value, &mut below);
    if !below.is_empty() {
        out.push(value);
        below.into_iter().for_each(|value| descend(value, out));
    }
}

/// The values of a message's fields, and of what it holds beside them.
fn members(message: &dyn Reflect) -> Vec<Value<'_>> {
    let mut found = Vec::new();
    for (_, field, value) in reflect::fields(message) {
        match value {
            Value::Message(inlined) if field.flags.has(Flags::INLINE) => found.extend(members(inlined)),
            value if hidden(field, value) => {}
            value => found.push(value),
        }
    }
    if let Some(rest) = message.rest() {
        rest.for_each(&mut |_, value| found.push(value));
    }
    found
}

impl Part {
    /// The places in a list of this length; `None`: some of them are not in it.
    fn places(self, length: usize) -> Option<impl Iterator<Item = usize>> {
        let all = i64::try_from(length).ok()?;
        let from_start = |place: i64| if place < 0 { place.saturating_add(all) } else { place };
        let start = from_start(self.start.unwrap_or(0));
        let end = from_start(self.end.unwrap_or(all));
        let step = usize::try_from(self.step.unwrap_or(1)).ok().filter(|step| *step > 0)?;
        let is_inside = start == end || (0..all).contains(&start) && (start..=all).contains(&end);
        let (start, end) = match is_inside {
            true if start == end => (0, 0),
            true => (usize::try_from(start).ok()?, usize::try_from(end).ok()?),
            false => return None,
        };
        Some((start..end).step_by(step))
    }
}

impl Filter {
    fn holds(&self, element: Value<'_>) -> bool {
        let found = self.path.walk(element);
        let Some(value) = found.first() else { return false };
        match &self.compare {
            None => true,
            Some((comparison, literal)) => literal.order(*value).is_some_and(|order| comparison.holds(order)),
        }
    }
}

impl Comparison {
    fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterEqual => order.is_ge(),
        }
    }
}

impl Literal {
    /// How the value stands to this literal, if they can be compared.
    fn order(&self, value: Value<'_>) -> Option<std::cmp::Ordering> {
        match (self, value) {
            (Literal::Text(text), value) => Some(scalar_text(value)?.as_ref().cmp(text)),
            (Literal::Bool(b), Value::Bool(v)) => Some(v.cmp(b)),
            (Literal::Number(n), value) => number(value)?.partial_cmp(n),
            _ => None,
        }
    }
}

/// The value of a field as JSON shows it, looked up by its JSON name, also within inlined messages.
pub fn field<'a>(message: &'a dyn Reflect, name: &str) -> Option<Value<'a>> {
    let (field, value) = member(message, name)?;
    (!hidden(field, value)).then_some(value)
}

/// Whether JSON leaves the value out.
fn hidden(field: &FieldDesc, value: Value<'_>) -> bool {
    let zero = match value {
        Value::Absent => return true,
        Value::Null => return false,
        Value::Bool(v) => !v,
        Value::Int32(v) => v == 0,
        Value::Int64(v) => v == 0,
        Value::Double(v) => v == 0.0,
        Value::Str(v) => v.is_empty(),
        Value::Bytes(v) => v.is_empty(),
        Value::List(v) => v.is_empty(),
        Value::Map(v) => v.is_empty(),
        Value::Leaf(v) => return field.flags.has(Flags::OMIT_ZERO) && v.is_zero(),
        Value::Message(_) => false,
    };
    zero && !field.flags.has(Flags::ALWAYS) && !field.flags.has(Flags::OPTIONAL)
}

/// The slot of a field by its JSON name, also within inlined messages.
fn field_slot<'a>(message: &'a mut dyn Reflect, name: &str) -> Option<Slot<'a>> {
    let desc = message.desc();
    let direct = desc.position(name.as_bytes());
    let inlined = || desc.inlined().find(|(_, inlined)| inlined.declared(name).is_some());
    let index = direct.or_else(|| inlined().map(|(index, _)| index));
    match (direct, index) {
        (Some(index), _) => message.get_mut(index),
        (None, Some(index)) => match message.get_mut(index)?.filled() {
            Slot::Message(inline) => field_slot(inline, name),
            _ => None,
        },
        (None, None) => None,
    }
}

/// The text that a field selector compares with: the value at a dotted path such as `spec.nodeName`. Absent numbers are
/// `0`, absent booleans `false`, anything else that is absent, and lists, maps and messages, the empty string.
pub fn lookup_text<'a>(root: &'a dyn Reflect, dotted: &str) -> Cow<'a, str> {
    let mut message = root;
    let mut rest = dotted;
    while let Some((name, below)) = rest.split_once('.') {
        match field(message, name) {
            Some(Value::Message(next)) => (message, rest) = (next, below),
            Some(Value::Map(map)) => return map.get(below).and_then(scalar_text).unwrap_or_default(),
            _ => return zero_text(declared(message, rest)),
        }
    }
    match field(message, rest) {
        Some(value) => scalar_text(value).unwrap_or_default(),
        None => zero_text(declared(message, rest)),
    }
}

/// The declared type of the field at a dotted path.
fn declared<'a>(message: &'a dyn Reflect, dotted: &str) -> Option<&'a Type> {
    let mut desc = message.desc();
    let mut names = dotted.split('.').peekable();
    while let Some(name) = names.next() {
        let ty = &desc.declared(name)?.ty;
        match (names.peek(), ty) {
            // Of a tree of maps nothing is known that is not there.
            (None, ty) => return (!desc.is_dynamic()).then_some(ty),
            (Some(_), Type::Message(next)) => desc = next,
            _ => return None,
        }
    }
    None
}

fn zero_text(ty: Option<&Type>) -> Cow<'static, str> {
    Cow::Borrowed(match ty {
        Some(Type::Bool) => "false",
        Some(Type::Int32 | Type::Int64 | Type::Double) => "0",
        _ => "",
    })
}

/// A scalar as text; `None` for lists, maps and messages.
pub fn scalar_text(value: Value<'_>) -> Option<Cow<'_, str>> {
    Some(match value {
        Value::Str(text) => Cow::Borrowed(text),
        Value::Bool(v) => Cow::Borrowed(if v { "true" } else { "false" }),
        Value::Int32(v) => Cow::Owned(v.to_string()),
        Value::Int64(v) => Cow::Owned(v.to_string()),
        Value::Double(v) => Cow::Owned(crate::field::text::float(v)),
        Value::Leaf(leaf) if !matches!(leaf.kind(), LeafKind::Raw | LeafKind::Union) => {
            let mut json = Vec::new();
            leaf.write_json(&mut json);
            let text = String::from_utf8(json).ok()?;
            match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
                Some(inner) => Cow::Owned(inner.to_owned()),
                None if text == "null" => Cow::Borrowed(""),
                None => Cow::Owned(text),
            }
        }
        _ => return None,
    })
}

/// A value as a number, if it is one.
pub(crate) fn number(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Int32(v) => Some(f64::from(v)),
        Value::Int64(v) => Some(v as f64),
        Value::Double(v) => Some(v),
        Value::Leaf(leaf) if leaf.kind() == LeafKind::IntOrString => {
            let mut json = Vec::new();
            leaf.write_json(&mut json);
            std::str::from_utf8(&json).ok()?.parse().ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
