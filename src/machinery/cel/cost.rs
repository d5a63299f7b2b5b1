//! Estimates of cost: what an expression may cost at most, and at least, before anything is known but its types.
//!
//! The numbers decide which rules a definition may have, so they are those of kube-apiserver to the last, with their
//! oddities: a value that no variable leads to, when a field of it is selected, counts as large as the variable itself.

mod calls;

use super::eval::{Kind, Literal, Loop, MESSAGE_COST, Node};
use super::types::Type;

/// Bounds of a cost or size. Sums and products that are too large stay at the largest number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Range {
    pub min: u64,
    pub max: u64,
}

impl Range {
    /// What nothing is known of.
    pub const UNKNOWN: Range = Range { min: 0, max: u64::MAX };

    pub const fn exactly(n: u64) -> Range {
        Range { min: n, max: n }
    }

    fn plus(self, other: Range) -> Range {
        Range {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    fn times(self, other: Range) -> Range {
        Range {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// Times a factor, rounded up.
    fn scaled(self, factor: f64) -> Range {
        let scale = |n: u64| (n as f64 * factor).ceil() as u64;
        Range {
            min: scale(self.min),
            max: scale(self.max),
        }
    }

    fn or(self, other: Range) -> Range {
        Range {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// A step from a value to a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step<'a> {
    /// By the identifier of a field.
    Field(&'a str),
    Items,
    Values,
    Keys,
    /// The numbers of items.
    Indices,
}

/// A declared type, of which it is known how large its values may be.
pub trait Declared: Copy {
    /// The type of a part; `None`: there is none.
    fn step(self, step: Step<'_>) -> Option<Self>;
    /// Characters, bytes, items or entries of a value at most.
    fn max_elements(self) -> u64;
}

/// What a literal, a variable and others cost.
const IDENTIFIER: Range = Range::exactly(1);
const NEW_LIST: Range = Range::exactly(10);
const NEW_MAP: Range = Range::exactly(30);

/// The cost of a program whose variables are of the declared type.
pub(super) fn estimate<D: Declared>(root: &Node, declared: D) -> Range {
    let mut estimator = Estimator {
        declared,
        locals: Vec::new(),
    };
    estimator.node(root).cost
}

/// Where a value comes from.
#[derive(Clone, Copy)]
enum Place<D> {
    /// From no variable.
    None,
    /// From one, by steps that its type does not know.
    Lost,
    At(D),
}

/// Sizes of the keys and values of a list or map.
#[derive(Clone, Copy)]
struct Entry {
    list: bool,
    key: Range,
    value: Range,
}

/// What is known of a part of the program.
#[derive(Clone, Copy)]
struct Estimate<D> {
    cost: Range,
    place: Place<D>,
    size: Option<Range>,
    entry: Option<Entry>,
}

/// A variable of a macro.
struct Local<D> {
    name: std::sync::Arc<str>,
    place: Place<D>,
    size: Option<Range>,
    entry: Option<Entry>,
}

struct Estimator<D> {
    declared: D,
    /// The innermost last.
    locals: Vec<Local<D>>,
}

impl<D: Declared> Estimate<D> {
    fn size_or_unknown(&self) -> Range {
        self.size.unwrap_or(Range::UNKNOWN)
    }
}

impl<D: Declared> Estimator<D> {
    fn node(&mut self, node: &Node) -> Estimate<D> {
        let mut estimate = self.parts(node);
        if estimate.size.is_none() {
            estimate.size = self.known_size(node, estimate.place);
        }
        estimate
    }

    /// The cost of a part, and what else is known of it but a size that its place or type tells.
    fn parts(&mut self, node: &Node) -> Estimate<D> {
        match &node.kind {
            Kind::Literal(Literal::Type(_)) => self.of(IDENTIFIER, Place::At(self.declared)),
            Kind::Literal(_) => self.of(Range::default(), Place::None),
            Kind::Variable(name) => self.variable(name),
            Kind::Select(operand, field) => {
                let of = self.node(operand);
                let counts = matches!(operand.ty, Type::Map(_) | Type::Object(_) | Type::Variable(_));
                let own = if counts { IDENTIFIER } else { Range::default() };
                self.of(of.cost.plus(own), self.step(of.place, Step::Field(field)))
            }
            // A test of presence costs nothing.
            Kind::Has(operand, _) => {
                let cost = self.node(operand).cost;
                self.of(cost, Place::None)
            }
            Kind::OptionalSelect(operand, _) => {
                let cost = self.node(operand).cost.plus(Range::exactly(1));
                self.of(cost, Place::None)
            }
            Kind::And(two) | Kind::Or(two) => {
                let [left, right] = &**two;
                let (left, right) = (self.node(left).cost, self.node(right).cost);
                let cost = Range {
                    min: left.min,
                    max: left.plus(right).max,
                };
                self.of(cost, Place::None)
            }
            Kind::Conditional(three) => self.conditional(three),
            Kind::Call(call, arguments) => self.call(call, arguments),
            Kind::Matches(text, pattern, member) => self.matches(text, &pattern.source, *member),
            Kind::List(nodes, _) => self.list(nodes),
            Kind::Map(entries) => self.map(entries),
            Kind::Message((_, fields)) => {
                let new = Range::exactly(MESSAGE_COST);
                let costs = fields.iter().map(|(_, value, _)| self.node(value).cost);
                let cost = costs.fold(new, Range::plus);
                self.of(cost, Place::None)
            }
            Kind::Loop(fold) => self.fold(fold),
            Kind::WithOptional(two, name, flat) => self.with_optional(two, name, *flat),
            Kind::Bind(two, name) => {
                let [bound, body] = &**two;
                let bound = self.node(bound);
                self.locals.push(Local {
                    name: name.clone(),
                    place: bound.place,
                    size: bound.size,
                    entry: bound.entry,
                });
                let body = self.node(body);
                self.locals.pop();
                Estimate {
                    size: body.size,
                    entry: body.entry,
                    ..self.of(NEW_LIST.plus(bound.cost).plus(body.cost), Place::None)
                }
            }
        }
    }

    fn of(&self, cost: Range, place: Place<D>) -> Estimate<D> {
        Estimate {
            cost,
            place,
            size: None,
            entry: None,
        }
    }

    fn step(&self, place: Place<D>, step: Step<'_>) -> Place<D> {
        match place {
            Place::None => Place::At(self.declared),
            Place::Lost => Place::Lost,
            Place::At(declared) => declared.step(step).map_or(Place::Lost, Place::At),
        }
    }

    /// The size of what is written out, declared, of one size by its type, or known of a variable.
    fn known_size(&self, node: &Node, place: Place<D>) -> Option<Range> {
        let written = match &node.kind {
            Kind::Literal(Literal::String(text)) => Some(text.chars().count() as u64),
            Kind::Literal(Literal::Bytes(bytes)) => Some(bytes.len() as u64),
            Kind::Literal(Literal::Type(_)) => None,
            Kind::Literal(_) => Some(1),
            Kind::List(nodes, _) => Some(nodes.len() as u64),
            Kind::Map(entries) => Some(entries.len() as u64),
            _ => None,
        };
        if let Some(size) = written {
            return Some(Range::exactly(size));
        }
        if let Place::At(declared) = place {
            return Some(Range {
                min: 0,
                max: declared.max_elements(),
            });
        }
        if is_scalar(&node.ty) {
            return Some(Range::exactly(1));
        }
        match &node.kind {
            Kind::Variable(name) => self.local(name)?.size,
            _ => None,
        }
    }

    fn local(&self, name: &str) -> Option<&Local<D>> {
        self.locals.iter().rev().find(|local| *local.name == *name)
    }

    fn variable(&self, name: &str) -> Estimate<D> {
        match self.local(name) {
            Some(local) => Estimate {
                entry: local.entry,
                ..self.of(IDENTIFIER, local.place)
            },
            None => self.of(IDENTIFIER, Place::At(self.declared)),
        }
    }

    fn conditional(&mut self, three: &[Node; 3]) -> Estimate<D> {
        let [condition, yes, no] = three;
        let (condition, yes, no) = (self.node(condition), self.node(yes), self.node(no));
        Estimate {
            cost: condition.cost.plus(yes.cost.or(no.cost)),
            place: Place::None,
            size: Some(yes.size_or_unknown().or(no.size_or_unknown())),
            entry: both(yes.entry, no.entry),
        }
    }

    fn list(&mut self, nodes: &[Node]) -> Estimate<D> {
        let (mut cost, mut item) = (NEW_LIST, nothing_yet(nodes.is_empty()));
        for node in nodes {
            let one = self.node(node);
            cost = cost.plus(one.cost);
            item = item.or(one.size_or_unknown());
        }
        Estimate {
            entry: Some(Entry {
                list: true,
                key: Range::exactly(1),
                value: item,
            }),
            ..self.of(cost, Place::None)
        }
    }

    fn map(&mut self, entries: &[(Node, Node, bool)]) -> Estimate<D> {
        let mut cost = NEW_MAP;
        let (mut key_size, mut value_size) = (nothing_yet(entries.is_empty()), nothing_yet(entries.is_empty()));
        for (key, value, _) in entries {
            let (key, value) = (self.node(key), self.node(value));
            cost = cost.plus(key.cost).plus(value.cost);
            key_size = key_size.or(key.size_or_unknown());
            value_size = value_size.or(value.size_or_unknown());
        }
        Estimate {
            entry: Some(Entry {
                list: false,
                key: key_size,
                value: value_size,
            }),
            ..self.of(cost, Place::None)
        }
    }

    fn fold(&mut self, fold: &Loop) -> Estimate<D> {
        let range = self.node(&fold.range);
        let initial = self.node(&fold.initial);
        let outside = self.locals.len();
        self.locals.push(Local {
            name: fold.accumulator.clone(),
            place: initial.place,
            size: initial.size,
            entry: initial.entry,
        });
        self.items(fold, &range);
        let condition = self.node(&fold.condition).cost;
        let step = self.node(&fold.step);
        self.locals.truncate(outside + 1);
        let result = self.node(&fold.result).cost;
        self.locals.truncate(outside);
        let count = range.size_or_unknown();
        let cost = range.cost.plus(initial.cost).plus(result);
        let cost = cost.plus(count.times(step.cost.plus(condition)));
        let (size, entry) = match fold.initial.kind {
            Kind::Literal(_) => (initial.size, None),
            Kind::List(..) | Kind::Map(_) => (Some(count), step.entry),
            _ => (None, None),
        };
        Estimate {
            size,
            entry,
            ..self.of(cost, Place::None)
        }
    }

    /// Brings the variables of a fold into scope.
    fn items(&mut self, fold: &Loop, range: &Estimate<D>) {
        let list = match range.entry {
            Some(entry) => entry.list,
            None => matches!(fold.range.ty, Type::List(_)),
        };
        let (key, value) = match list {
            true => (Step::Indices, Step::Items),
            false => (Step::Keys, Step::Values),
        };
        let (key_size, value_size) = (range.entry.map(|entry| entry.key), range.entry.map(|entry| entry.value));
        let mut push = |name: &std::sync::Arc<str>, step: Step<'_>, size: Option<Range>| {
            let place = self.step(range.place, step);
            self.locals.push(Local {
                name: name.clone(),
                place,
                size,
                entry: None,
            });
        };
        match &fold.second {
            Some(second) => {
                push(&fold.item, key, key_size);
                push(second, value, value_size);
            }
            None if list => push(&fold.item, value, value_size),
            None => push(&fold.item, key, key_size),
        }
    }

    /// `target.optMap(name, body)`: a condition, a variable that is bound, and an optional value of what comes of it.
    fn with_optional(&mut self, two: &[Node; 2], name: &std::sync::Arc<str>, flat: bool) -> Estimate<D> {
        let [target, body] = two;
        let target = self.node(target);
        let call = target.cost.plus(Range::exactly(1));
        self.locals.push(Local {
            name: name.clone(),
            place: Place::None,
            size: None,
            entry: None,
        });
        let body = self.node(body);
        self.locals.pop();
        let bound = NEW_LIST.plus(call).plus(body.cost);
        let yes = match flat {
            true => bound,
            false => bound.plus(Range::exactly(1)),
        };
        self.of(call.plus(yes.or(Range::exactly(1))), Place::None)
    }
}

/// The size of elements of which none was looked at.
fn nothing_yet(empty: bool) -> Range {
    match empty {
        true => Range::default(),
        false => Range { min: u64::MAX, max: 0 },
    }
}

fn both(a: Option<Entry>, b: Option<Entry>) -> Option<Entry> {
    let (a, b) = (a?, b?);
    Some(Entry {
        list: a.list,
        key: a.key.or(b.key),
        value: a.value.or(b.value),
    })
}

/// Whether values of the type are of one size.
fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Optional(of) => is_scalar(of),
        _ => false,
    }
}
