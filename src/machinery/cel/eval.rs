//! Programs, and computing them.

use std::rc::Rc;
use std::sync::Arc;

use regex::Regex;

use super::error::Fault;
use super::library;
use super::messages::{self, Written};
use super::moment::Moment;
use super::signature::{Cost, Function, Overload};
use super::types::{Inference, Type};
use super::value::{Map, Text, Value};
use crate::reflect::time::Duration;

type Result<T, E = Fault> = std::result::Result<T, E>;

/// What a new list costs.
const LIST_COST: u64 = 10;
/// What a new map costs.
const MAP_COST: u64 = 30;
/// What a new message costs.
pub(super) const MESSAGE_COST: u64 = 40;

/// What a named format's pattern costs for ten characters.
const VALIDATE_COST: u64 = 15;

/// One part of a program.
#[derive(Debug)]
pub(super) struct Node {
    pub kind: Kind,
    /// What it evaluates to.
    pub ty: Type,
}

/// A pattern as it is written, and what looks for it.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub source: Box<str>,
    regex: Regex,
}

#[derive(Debug)]
pub(super) enum Kind {
    Literal(Literal),
    Variable(Arc<str>),
    Select(Box<Node>, Arc<str>),
    /// `operand.?field`
    OptionalSelect(Box<Node>, Arc<str>),
    /// `has(operand.field)`
    Has(Box<Node>, Arc<str>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Conditional(Box<[Node; 3]>),
    Call(Call, Vec<Node>),
    /// With a pattern that was known when the program was made; the flag: written as `text.matches(pattern)`.
    Matches(Box<Node>, Pattern, bool),
    /// Elements, and which of them are optional.
    List(Vec<Node>, Vec<bool>),
    /// Keys, values, and whether these are optional.
    Map(Vec<(Node, Node, bool)>),
    Loop(Box<Loop>),
    /// A value with a name, for what an optional value holds; the flag: what comes out is optional itself.
    WithOptional(Box<[Node; 2]>, Arc<str>, bool),
    /// A value with a name, and what is made of it.
    Bind(Box<[Node; 2]>, Arc<str>),
    Message(Written),
}

/// A function of the library, and how it is called.
pub(super) struct Call {
    pub function: Arc<Function>,
    /// The first argument is the target.
    pub member: bool,
    /// Those of the function's overloads that fit the types of the arguments.
    pub overloads: Box<[u8]>,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.function.name)
    }
}

impl Call {
    /// The overloads that fit.
    pub fn fitting(&self) -> impl Iterator<Item = &Overload> {
        let all = &self.function.overloads;
        self.overloads.iter().filter_map(|n| all.get(usize::from(*n)))
    }
}

/// How a call fits a function.
pub(super) struct Fits {
    pub member: bool,
    pub overloads: Vec<u8>,
}

/// What macros become: a fold over a list or the keys of a map.
#[derive(Debug)]
pub(super) struct Loop {
    pub range: Node,
    /// The element, or the key; with `second` the index, or the key.
    pub item: Arc<str>,
    /// The element, or the value.
    pub second: Option<Arc<str>>,
    pub accumulator: Arc<str>,
    pub initial: Node,
    /// The fold ends where this is false.
    pub condition: Node,
    pub step: Node,
    pub result: Node,
}

#[derive(Clone, Debug)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    Type(String),
    Duration(Duration),
    Timestamp(Moment),
}

impl Literal {
    /// A value that a program may have; `None` for others.
    fn of(value: &Value<'_>) -> Option<Literal> {
        Some(match value {
            Value::Null => Literal::Null,
            Value::Bool(b) => Literal::Bool(*b),
            Value::Int(n) => Literal::Int(*n),
            Value::Uint(n) => Literal::Uint(*n),
            Value::Double(n) => Literal::Double(*n),
            Value::String(text) => Literal::String(text.as_str().into()),
            Value::Bytes(bytes) => Literal::Bytes((&**bytes).into()),
            Value::Duration(span) => Literal::Duration(*span),
            Value::Timestamp(time) => Literal::Timestamp(*time),
            _ => return None,
        })
    }

    fn value<'a>(&self) -> Value<'a> {
        match self {
            Literal::Null => Value::Null,
            Literal::Bool(b) => Value::Bool(*b),
            Literal::Int(n) => Value::Int(*n),
            Literal::Uint(n) => Value::Uint(*n),
            Literal::Double(n) => Value::Double(*n),
            Literal::String(text) => Value::String(Text::Written(text.clone())),
            Literal::Bytes(bytes) => Value::Bytes(Rc::from(&**bytes)),
            Literal::Type(name) => Value::Type(Rc::from(name.split('(').next().unwrap_or(name))),
            Literal::Duration(span) => Value::Duration(*span),
            Literal::Timestamp(time) => Value::Timestamp(*time),
        }
    }
}

impl Node {
    pub fn of(kind: Kind) -> Node {
        Node { kind, ty: Type::Dyn }
    }

    /// One of a known type.
    pub fn typed(kind: Kind, ty: Type) -> Node {
        Node { kind, ty }
    }

    /// Lets all that was found out about types count.
    pub fn settle(&mut self, inference: &Inference) {
        self.ty = inference.finish(&self.ty);
        self.children_mut()
            .into_iter()
            .for_each(|child| child.settle(inference));
    }

    /// A call; some functions are parts of their own.
    pub fn call(function: &Arc<Function>, mut arguments: Vec<Node>, fits: Fits) -> Node {
        if function.name == "_?_:_" {
            return match <[Node; 3]>::try_from(arguments) {
                Ok(three) => Node::of(Kind::Conditional(Box::new(three))),
                Err(_) => Node::of(Kind::Literal(Literal::Null)),
            };
        }
        let known = match arguments.as_slice() {
            [_, pattern] if function.name == "matches" => pattern.as_pattern(),
            _ => None,
        };
        if let Some(pattern) = known {
            arguments.truncate(1);
            return Node::of(Kind::Matches(Box::new(arguments.remove(0)), pattern, fits.member));
        }
        let call = Call {
            function: function.clone(),
            member: fits.member,
            overloads: fits.overloads.into(),
        };
        Node::of(Kind::Call(call, arguments))
    }

    /// Computes conversions of what is written out, and reads patterns. A mistake there is one of the program.
    pub fn fold(&mut self) -> Result<()> {
        for child in self.children_mut() {
            child.fold()?;
        }
        let Kind::Call(call, arguments) = &self.kind else {
            return Ok(());
        };
        match (call.function.name, arguments.as_slice()) {
            (
                "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "uint",
                [
                    Node {
                        kind: Kind::Literal(literal),
                        ..
                    },
                ],
            ) if !matches!(literal, Literal::Type(_)) => {
                let value = (call.function.code)(&[literal.value()])?;
                if let Some(literal) = Literal::of(&value) {
                    self.kind = Kind::Literal(literal);
                }
            }
            ("find" | "findAll", [_, pattern, ..]) => {
                if let Kind::Literal(Literal::String(pattern)) = &pattern.kind {
                    library::regex(pattern)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The whole number that this part is, if it is written.
    pub fn as_int(&self) -> Option<i64> {
        match &self.kind {
            Kind::Literal(Literal::Int(n)) => Some(*n),
            _ => None,
        }
    }

    /// The pattern that this part is, if it is one that is known.
    fn as_pattern(&self) -> Option<Pattern> {
        let Kind::Literal(Literal::String(source)) = &self.kind else {
            return None;
        };
        let regex = library::regex(source).ok()?;
        let source = source.to_string().into();
        Some(Pattern { source, regex })
    }

    fn children(&self) -> Vec<&Node> {
        match &self.kind {
            Kind::Literal(_) | Kind::Variable(_) => Vec::new(),
            Kind::Select(node, _) | Kind::OptionalSelect(node, _) | Kind::Has(node, _) | Kind::Matches(node, ..) => {
                vec![node]
            }
            Kind::And(two) | Kind::Or(two) | Kind::WithOptional(two, ..) | Kind::Bind(two, _) => two.iter().collect(),
            Kind::Conditional(three) => three.iter().collect(),
            Kind::Call(_, nodes) | Kind::List(nodes, _) => nodes.iter().collect(),
            Kind::Map(entries) => entries.iter().flat_map(|(key, value, _)| [key, value]).collect(),
            Kind::Message((_, fields)) => fields.iter().map(|(_, value, _)| value).collect(),
            Kind::Loop(fold) => vec![&fold.range, &fold.initial, &fold.condition, &fold.step, &fold.result],
        }
    }

    fn children_mut(&mut self) -> Vec<&mut Node> {
        match &mut self.kind {
            Kind::Literal(_) | Kind::Variable(_) => Vec::new(),
            Kind::Select(node, _) | Kind::OptionalSelect(node, _) | Kind::Has(node, _) | Kind::Matches(node, ..) => {
                vec![node]
            }
            Kind::And(two) | Kind::Or(two) | Kind::WithOptional(two, ..) | Kind::Bind(two, _) => {
                two.iter_mut().collect()
            }
            Kind::Conditional(three) => three.iter_mut().collect(),
            Kind::Call(_, nodes) | Kind::List(nodes, _) => nodes.iter_mut().collect(),
            Kind::Message((_, fields)) => fields.iter_mut().map(|(_, value, _)| value).collect(),
            Kind::Map(entries) => {
                let pairs = entries.iter_mut();
                pairs.flat_map(|(key, value, _)| [key, value]).collect()
            }
            Kind::Loop(fold) => {
                let Loop {
                    range,
                    initial,
                    condition,
                    step,
                    result,
                    ..
                } = &mut **fold;
                vec![range, initial, condition, step, result]
            }
        }
    }

    /// Whether this part reads the variable.
    pub fn refers_to(&self, variable: &str) -> bool {
        match &self.kind {
            Kind::Variable(name) => **name == *variable,
            _ => self.children().iter().any(|child| child.refers_to(variable)),
        }
    }

    /// Whether this part reads the path.
    pub fn selects(&self, path: &[&str]) -> bool {
        self.is_path(path) || self.children().iter().any(|child| child.selects(path))
    }

    fn is_path(&self, path: &[&str]) -> bool {
        match (&self.kind, path) {
            (Kind::Variable(name), [one]) => **name == **one,
            (
                Kind::Select(node, field) | Kind::OptionalSelect(node, field) | Kind::Has(node, field),
                [first @ .., last],
            ) => **field == **last && node.is_path(first),
            _ => false,
        }
    }
}

/// A value and what it cost.
#[derive(Debug)]
pub struct Evaluated<'a> {
    pub value: Value<'a>,
    pub cost: u64,
}

/// The value, or why there is none, and the cost of either.
pub(super) fn evaluate<'a>(root: &Node, bindings: &[(&str, Value<'a>)], budget: u64) -> (Result<Value<'a>>, u64) {
    let mut run = Run {
        scope: Vec::new(),
        bindings,
        budget,
        cost: 0,
    };
    (run.node(root), run.cost)
}

struct Run<'a, 'b> {
    /// Variables of macros, the innermost last.
    scope: Vec<(Arc<str>, Result<Value<'a>>)>,
    bindings: &'b [(&'b str, Value<'a>)],
    budget: u64,
    cost: u64,
}

impl<'a> Run<'a, '_> {
    fn charge(&mut self, cost: u64) -> Result<()> {
        self.cost = self.cost.saturating_add(cost);
        match self.cost > self.budget {
            true => Err(Fault::Budget),
            false => Ok(()),
        }
    }

    fn node(&mut self, node: &Node) -> Result<Value<'a>> {
        match self.part(node)? {
            Value::Invalid(why) => Err(Fault::Function(why.to_string())),
            value => Ok(value),
        }
    }

    fn part(&mut self, node: &Node) -> Result<Value<'a>> {
        match &node.kind {
            Kind::Literal(literal) => Ok(literal.value()),
            Kind::Variable(name) => {
                self.charge(1)?;
                self.variable(name)
            }
            Kind::Select(operand, field) => {
                self.charge(1)?;
                let operand = self.node(operand)?;
                select(&operand, field)
            }
            Kind::OptionalSelect(operand, field) => {
                self.charge(1)?;
                let operand = self.node(operand)?;
                Ok(optional_select(&operand, field))
            }
            // A test of presence costs nothing.
            Kind::Has(operand, field) => {
                let operand = self.node(operand)?;
                has(&operand, field)
            }
            Kind::And(two) => self.logical(two, false),
            Kind::Or(two) => self.logical(two, true),
            Kind::Conditional(three) => {
                let [condition, yes, no] = &**three;
                match self.node(condition)? {
                    Value::Bool(true) => self.node(yes),
                    Value::Bool(false) => self.node(no),
                    _ => Err(Fault::NoSuchOverload),
                }
            }
            Kind::Call(call, arguments) => self.call(call, arguments),
            Kind::Matches(text, pattern, _) => {
                let text = self.node(text)?;
                let text = text.as_str().ok_or(Fault::NoSuchOverload)?;
                let steps = (text.len() as u64 + 1).div_ceil(10);
                self.charge(steps.saturating_mul((pattern.source.len() as u64).div_ceil(4).max(1)))?;
                Ok(Value::Bool(pattern.regex.is_match(text)))
            }
            Kind::List(nodes, optional) => self.list(nodes, optional),
            Kind::Map(entries) => self.map(entries),
            Kind::Loop(fold) => self.fold(fold),
            Kind::WithOptional(two, name, flat) => self.with_optional(two, name, *flat),
            Kind::Message(written) => self.message(written),
            Kind::Bind(two, name) => {
                let [bound, body] = &**two;
                self.charge(LIST_COST)?;
                let bound = self.node(bound);
                self.scope.push((name.clone(), bound));
                let value = self.node(body);
                self.scope.pop();
                value
            }
        }
    }

    fn variable(&self, name: &str) -> Result<Value<'a>> {
        if let Some((_, value)) = self.scope.iter().rev().find(|(known, _)| **known == *name) {
            return value.clone();
        }
        match self.bindings.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => Ok(value.clone()),
            None => Err(Fault::NoSuchVariable(name.to_owned())),
        }
    }

    /// The operand that decides does so even if the other one has no value.
    fn logical(&mut self, two: &[Node; 2], decides: bool) -> Result<Value<'a>> {
        let [left, right] = two;
        let left = match self.node(left) {
            Ok(Value::Bool(b)) if b == decides => return Ok(Value::Bool(decides)),
            Err(Fault::Budget) => return Err(Fault::Budget),
            other => other,
        };
        match (left, self.node(right)) {
            (_, Ok(Value::Bool(b))) if b == decides => Ok(Value::Bool(decides)),
            (_, Err(Fault::Budget)) => Err(Fault::Budget),
            (Ok(Value::Bool(_)), Ok(Value::Bool(b))) => Ok(Value::Bool(b)),
            (Err(fault), _) => Err(fault),
            (Ok(Value::Bool(_)), Err(fault)) => Err(fault),
            _ => Err(Fault::NoSuchOverload),
        }
    }

    fn call(&mut self, call: &Call, arguments: &[Node]) -> Result<Value<'a>> {
        let function = &call.function;
        // Whether a condition of a macro is false counts even where it has no value.
        if function.name == "@not_strictly_false" {
            let [condition] = arguments else {
                return Err(Fault::NoSuchOverload);
            };
            return match self.node(condition) {
                Ok(Value::Bool(false)) => Ok(Value::Bool(false)),
                Err(Fault::Budget) => Err(Fault::Budget),
                _ => Ok(Value::Bool(true)),
            };
        }
        if let ("or" | "orValue", [target, other]) = (function.name, arguments) {
            return self.alternative(target, other, function.name == "orValue");
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.node(argument)?);
        }
        self.charge(cost(function.cost, &values))?;
        match (function.code)(&values) {
            Err(Fault::NoSuchOverload) => Err(no_overload(function.name, &values)),
            result => result,
        }
    }

    /// An optional value, or what it holds; where it holds nothing the other one, which is looked at only then. That
    /// costs nothing.
    fn alternative(&mut self, target: &Node, other: &Node, unwraps: bool) -> Result<Value<'a>> {
        match self.node(target)? {
            Value::Optional(Some(inner)) if unwraps => Ok(Value::clone(&inner)),
            held @ Value::Optional(Some(_)) => Ok(held),
            Value::Optional(None) => self.node(other),
            _ => Err(Fault::NoSuchOverload),
        }
    }

    fn list(&mut self, nodes: &[Node], optional: &[bool]) -> Result<Value<'a>> {
        // A list that is written out is made once.
        if !nodes.iter().all(|node| matches!(node.kind, Kind::Literal(_))) {
            self.charge(LIST_COST)?;
        }
        let mut elements = Vec::with_capacity(nodes.len());
        for (node, optional) in nodes.iter().zip(optional) {
            match (self.node(node)?, optional) {
                (Value::Optional(inner), true) => elements.extend(inner.map(|inner| Value::clone(&inner))),
                (value, _) => elements.push(value),
            }
        }
        Ok(Value::list(elements))
    }

    fn map(&mut self, entries: &[(Node, Node, bool)]) -> Result<Value<'a>> {
        self.charge(MAP_COST)?;
        let mut pairs: Vec<(Value<'a>, Value<'a>)> = Vec::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key = self.node(key)?;
            let value = match (self.node(value)?, optional) {
                (Value::Optional(None), true) => continue,
                (Value::Optional(Some(inner)), true) => Value::clone(&inner),
                (value, _) => value,
            };
            // Of entries with the same key the last one counts.
            match pairs.iter_mut().find(|(known, _)| known.equals(&key)) {
                Some(known) => known.1 = value,
                None => pairs.push((key, value)),
            }
        }
        Ok(Value::Map(Map::Own(Rc::new(pairs))))
    }

    fn message(&mut self, (name, fields): &Written) -> Result<Value<'a>> {
        self.charge(MESSAGE_COST)?;
        let mut values = Vec::with_capacity(fields.len());
        for (field, node, optional) in fields {
            match (self.node(node)?, optional) {
                (Value::Optional(None), true) => {}
                (Value::Optional(Some(inner)), true) => values.push((field.clone(), Value::clone(&inner))),
                (value, _) => values.push((field.clone(), value)),
            }
        }
        messages::made(name, values)
    }

    fn fold(&mut self, fold: &Loop) -> Result<Value<'a>> {
        let items = items(self.node(&fold.range)?, fold.second.is_some())?;
        let initial = self.node(&fold.initial);
        let place = self.scope.len();
        self.scope.push((fold.accumulator.clone(), initial));
        let ended = self.iterate(fold, items, place);
        self.scope.truncate(place + 1);
        let result = ended.and_then(|()| self.node(&fold.result));
        self.scope.truncate(place);
        result
    }

    /// Lets every item change the accumulator. A step without a value leaves a fault there, which a later step of `all`
    /// or `exists` may decide about.
    fn iterate(&mut self, fold: &Loop, items: Vec<Item<'a>>, place: usize) -> Result<()> {
        for (item, second) in items {
            self.scope.truncate(place + 1);
            self.scope.push((fold.item.clone(), Ok(item)));
            let named = fold.second.clone().zip(second);
            self.scope.extend(named.map(|(name, second)| (name, Ok(second))));
            if let Value::Bool(false) = self.node(&fold.condition)? {
                return Ok(());
            }
            let accumulated = self.step(&fold.accumulator, &fold.step, place);
            if let Err(Fault::Budget) = accumulated {
                return Err(Fault::Budget);
            }
            if let Some((_, accumulator)) = self.scope.get_mut(place) {
                *accumulator = accumulated;
            }
        }
        Ok(())
    }

    /// The new value of the accumulator. A list that grows is taken out of its place, so that it is not copied.
    fn step(&mut self, accumulator: &str, node: &Node, place: usize) -> Result<Value<'a>> {
        let is_accumulator = |node: &Node| matches!(&node.kind, Kind::Variable(name) if **name == *accumulator);
        match &node.kind {
            Kind::Variable(_) if is_accumulator(node) => {
                self.charge(1)?;
                self.take(place)
            }
            Kind::Conditional(three) => match self.node(&three[0])? {
                Value::Bool(true) => self.step(accumulator, &three[1], place),
                Value::Bool(false) => self.step(accumulator, &three[2], place),
                _ => Err(Fault::NoSuchOverload),
            },
            Kind::Call(call, arguments) => match (call.function.name, arguments.as_slice()) {
                ("_+_", [left, right]) if is_accumulator(left) => {
                    self.charge(2)?;
                    let added = self.node(right)?;
                    match (self.take(place)?, added) {
                        (Value::List(list), Value::List(added)) => Ok(Value::List(list.concat(added))),
                        (accumulated, added) => (call.function.code)(&[accumulated, added]),
                    }
                }
                (library::MAP_INSERT, [map, added @ ..]) if is_accumulator(map) => {
                    self.charge(2)?;
                    let mut values = vec![Value::Null];
                    for node in added {
                        values.push(self.node(node)?);
                    }
                    if let Some(first) = values.first_mut() {
                        *first = self.take(place)?;
                    }
                    library::map_insert(values)
                }
                _ => self.node(node),
            },
            _ => self.node(node),
        }
    }

    /// What comes of the value under its name, if there is one.
    fn with_optional(&mut self, two: &[Node; 2], name: &Arc<str>, flat: bool) -> Result<Value<'a>> {
        let [target, body] = two;
        let inner = match self.node(target)? {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => Value::clone(&inner),
            _ => return Err(Fault::NoSuchOverload),
        };
        self.scope.push((name.clone(), Ok(inner)));
        let value = self.node(body);
        self.scope.pop();
        match (value?, flat) {
            (value, false) => Ok(Value::Optional(Some(Rc::new(value)))),
            (value @ Value::Optional(_), true) => Ok(value),
            (_, true) => Err(Fault::NoSuchOverload),
        }
    }

    fn take(&mut self, place: usize) -> Result<Value<'a>> {
        match self.scope.get_mut(place) {
            Some((_, accumulator)) => std::mem::replace(accumulator, Ok(Value::Null)),
            None => Err(Fault::NoSuchOverload),
        }
    }
}

/// What the variables of a macro stand for in turn.
type Item<'a> = (Value<'a>, Option<Value<'a>>);

fn items<'a>(range: Value<'a>, two: bool) -> Result<Vec<Item<'a>>> {
    Ok(match (range, two) {
        (Value::List(list), false) => list.into_vec().into_iter().map(|item| (item, None)).collect(),
        (Value::Map(map), false) => map.keys().into_iter().map(|key| (key, None)).collect(),
        (Value::List(list), true) => {
            let numbered = (0..).map(Value::Int).zip(list.into_vec());
            numbered.map(|(n, item)| (n, Some(item))).collect()
        }
        (Value::Map(map), true) => {
            let keys = map.keys().into_iter();
            keys.map(|key| {
                let value = map.get(&key);
                (key, value)
            })
            .collect()
        }
        (other, _) => {
            let found = match other {
                Value::Null => "Null",
                Value::Bool(_) => "Bool",
                Value::Int(_) => "Int",
                Value::Uint(_) => "Uint",
                Value::Double(_) => "Double",
                Value::String(_) => "String",
                Value::Bytes(_) => "Bytes",
                Value::Duration(_) => "Duration",
                Value::Timestamp(_) => "Timestamp",
                _ => return Err(Fault::NoSuchOverload),
            };
            return Err(Fault::function(format!("got 'types.{found}', expected iterable type")));
        }
    })
}

/// That a function does not take values of these types. Operators and searches in texts say no more than that.
fn no_overload(name: &str, values: &[Value<'_>]) -> Fault {
    let operator = !name.starts_with(|c: char| c.is_ascii_alphabetic());
    match name {
        "contains" | "startsWith" | "endsWith" | "matches" | "find" | "findAll" => Fault::NoSuchOverload,
        "containsIP" | "containsCIDR" if matches!(values.first(), Some(Value::Opaque(_))) => Fault::NoSuchOverload,
        "size" => Fault::function("no such overload: size"),
        "_<_" | "_<=_" | "_>_" | "_>=_"
            if matches!(values.first(), Some(Value::Null | Value::List(_) | Value::Map(_))) =>
        {
            Fault::function(format!("no such overload: {name}"))
        }
        "flatten" => {
            let of = values.first().map_or("", Value::type_name);
            Fault::function(format!("no such overload: {of}.flatten()"))
        }
        _ if operator => Fault::NoSuchOverload,
        _ => {
            let types: Vec<&str> = values.iter().map(Value::type_name).collect();
            Fault::function(format!("no such overload: {name}({})", types.join(", ")))
        }
    }
}

fn cost(cost: Cost, values: &[Value<'_>]) -> u64 {
    let tenth = |size: u64| size.div_ceil(10);
    let size = |n: usize| values.get(n).map_or(0, Value::size);
    match cost {
        Cost::One => 1,
        Cost::Fixed(cost) => cost.into(),
        Cost::Traverse => tenth(size(0)),
        Cost::Make => values.iter().map(|value| tenth(value.size())).sum(),
        Cost::Search => tenth(size(0)).saturating_mul(tenth(size(1)).max(1)),
        Cost::Member => size(values.len().saturating_sub(1)),
        Cost::Compare => tenth(size(0).min(size(1))),
        Cost::Validate => tenth(size(1) + 1).saturating_mul(VALIDATE_COST),
        // Also of a list whose length is said.
        Cost::Copy => match values.first() {
            Some(Value::Int(length)) => u64::try_from(*length).unwrap_or_default(),
            _ => size(0),
        }
        .saturating_add(LIST_COST + 1),
        Cost::Square => size(0)
            .saturating_mul(size(0))
            .saturating_mul(2)
            .saturating_add(LIST_COST + 1),
        Cost::Pairs(times) => size(0)
            .saturating_mul(size(1))
            .saturating_mul(times.into())
            .saturating_add(1),
    }
    .max(1)
}

fn select<'a>(operand: &Value<'a>, field: &str) -> Result<Value<'a>> {
    match operand {
        Value::Map(map) => map.field(field).ok_or_else(|| Fault::NoSuchKey(field.to_owned())),
        Value::Optional(None) => Ok(Value::Optional(None)),
        Value::Optional(Some(inner)) => Ok(optional_select(inner, field)),
        _ => Err(Fault::NoSuchKey(field.to_owned())),
    }
}

fn optional_select<'a>(operand: &Value<'a>, field: &str) -> Value<'a> {
    match operand {
        Value::Optional(Some(inner)) => optional_select(inner, field),
        Value::Map(map) => Value::Optional(map.field(field).map(Rc::new)),
        _ => Value::Optional(None),
    }
}

fn has<'a>(operand: &Value<'a>, field: &str) -> Result<Value<'a>> {
    match operand {
        Value::Map(map) => Ok(Value::Bool(map.field(field).is_some())),
        Value::Optional(None) => Ok(Value::Bool(false)),
        Value::Optional(Some(inner)) => has(inner, field),
        _ => Ok(Value::Bool(false)),
    }
}
