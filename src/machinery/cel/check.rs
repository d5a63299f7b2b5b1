//! From a syntax tree to a program: names are looked up and types are checked.

use std::collections::HashMap;
use std::sync::Arc;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators};

use super::Environment;
use super::error::{FunctionResult, Misplaced};
use super::eval::{Fits, Kind, Literal, Loop, Node};
use super::library::{Clause, FormatPart, Library, format_parts, literal_argument};
use super::messages::field_type;
use super::schema::is_reserved;
use super::signature::Function;
use super::syntax::Parsed;
use super::types::{Inference, Type};

/// Levels of a program.
const MAX_DEPTH: usize = 500;

/// Checks an expression and turns it into a program. Errors are all mistakes that were found.
pub(super) fn check(environment: &Environment, parsed: &Parsed<'_>) -> Result<(Node, Type), Vec<Misplaced>> {
    let mut checker = Checker {
        library: &environment.library,
        scopes: environment.variables.clone(),
        inference: Inference::default(),
        faults: Vec::new(),
        literals: Vec::new(),
        aggregates: Vec::new(),
        formats: Vec::new(),
        in_format: false,
        types: HashMap::new(),
        depth: 0,
        messages: environment.messages,
        parsed,
    };
    let (mut node, ty) = checker.node(parsed.expression);
    node.settle(&checker.inference);
    if checker.faults.is_empty() {
        let mut late = std::mem::take(&mut checker.literals);
        late.extend(checker.mixed().chain(checker.unfit()));
        late.sort_by_key(|fault| (fault.line, fault.column));
        checker.faults = late;
    }
    match checker.faults.is_empty() {
        true => Ok((node, checker.inference.finish(&ty))),
        false => Err(checker.faults),
    }
}

/// A text with places.
struct Format {
    /// Of the call.
    id: u64,
    text: String,
    values: Vec<Filling>,
}

/// What fills a place: a part, and where it is a list or a map that is written out, its parts.
struct Filling {
    id: u64,
    within: Vec<Filling>,
}

impl Filling {
    fn of(part: &IdedExpr) -> Filling {
        let within = match &part.expr {
            Expr::List(list) => list.elements.iter().map(Filling::of).collect(),
            Expr::Map(map) => {
                let entries = map.entries.iter().filter_map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => Some([&entry.key, &entry.value]),
                    EntryExpr::StructField(_) => None,
                });
                entries.flatten().map(Filling::of).collect()
            }
            _ => Vec::new(),
        };
        Filling { id: part.id, within }
    }

    /// The first part that does not fit, and why.
    fn fault(&self, clause: Clause, types: &HashMap<u64, Type>) -> Option<(u64, String)> {
        let own = types.get(&self.id).and_then(|ty| clause.accepts(ty).err());
        let own = own.map(|text| (self.id, text));
        own.or_else(|| match clause.looks_within() {
            true => self.within.iter().find_map(|part| part.fault(clause, types)),
            false => None,
        })
    }
}

impl Format {
    /// The first thing that is wrong, and where.
    fn fault(&self, types: &HashMap<u64, Type>) -> Option<(u64, String)> {
        let mut values = self.values.iter();
        let mut places = 0;
        for part in format_parts(&self.text, self.values.len()) {
            let clause = match part {
                Ok(FormatPart::Text(_)) => continue,
                Ok(FormatPart::Place(clause)) => clause,
                Err(text) => return Some((self.id, text)),
            };
            places += 1;
            if let Some(fault) = values.next()?.fault(clause, types) {
                return Some(fault);
            }
        }
        let given = self.values.len();
        let text = format!("too many arguments supplied to string.format (expected {places}, got {given})");
        (given > places).then_some((self.id, text))
    }
}

pub(super) struct Checker<'a> {
    pub(super) library: &'a Arc<Library>,
    /// Names in scope, the innermost last.
    pub(super) scopes: Vec<(String, Type)>,
    pub(super) inference: Inference,
    faults: Vec<Misplaced>,
    /// Literals that can't be read. They are looked at when there are no other mistakes.
    literals: Vec<Misplaced>,
    /// Types of the parts of lists and maps that are written out, which have to be the same. They are compared when
    /// there are no other mistakes.
    aggregates: Vec<Vec<(u64, Type)>>,
    /// Texts with places, if these and what fills them are written out. They are looked at then too.
    formats: Vec<Format>,
    /// Within a text whose places take values of all types.
    in_format: bool,
    /// The types of parts there.
    types: HashMap<u64, Type>,
    depth: usize,
    /// Objects and patches may be written.
    pub(super) messages: bool,
    parsed: &'a Parsed<'a>,
}

/// A part and its type.
pub(super) type Checked = (Node, Type);

impl Checker<'_> {
    /// Notes a mistake. The type that stands for it fits everywhere, so that it is told once.
    pub(super) fn fault(&mut self, id: u64, text: String) -> Checked {
        let (line, column) = self.parsed.place(id);
        self.faults.push(Misplaced { line, column, text });
        (Node::of(Kind::Literal(Literal::Null)), Type::Error)
    }

    pub(super) fn node(&mut self, node: &IdedExpr) -> Checked {
        self.depth += 1;
        let (mut checked, ty) = match self.depth > MAX_DEPTH {
            true => self.fault(node.id, format!("expression is nested deeper than {MAX_DEPTH} levels")),
            false => self.shallow(node),
        };
        self.depth -= 1;
        if self.in_format {
            self.types.insert(node.id, ty.clone());
        }
        checked.ty = ty.clone();
        (checked, ty)
    }

    fn shallow(&mut self, node: &IdedExpr) -> Checked {
        match &node.expr {
            Expr::Literal(value) => literal(value),
            Expr::Ident(name) => self.identifier(node.id, name),
            Expr::Select(select) => self.select(node, select),
            Expr::Call(call) => self.call(node.id, call),
            Expr::List(list) => {
                let optional = &list.optional_indices;
                let (nodes, types, ty) = self.elements(&list.elements, optional);
                self.same(types);
                let optional = nodes.iter().enumerate().map(|(n, _)| optional.contains(&n)).collect();
                (Node::of(Kind::List(nodes, optional)), Type::list(ty))
            }
            Expr::Map(map) => self.map(&map.entries),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(message) => self.message(node.id, message),
            Expr::Unspecified => self.fault(node.id, "unexpected expression".to_owned()),
        }
    }

    pub(super) fn undeclared(&mut self, id: u64, name: &str) -> Checked {
        self.fault(id, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn variable(&self, name: &str) -> Option<Type> {
        let found = self.scopes.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, ty)| ty.clone())
    }

    fn identifier(&mut self, id: u64, name: &str) -> Checked {
        // A name that begins with a dot is that of no variable of a macro; of others it says nothing.
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some(ty) = self.variable(name) {
            return (Node::of(Kind::Variable(name.into())), ty);
        }
        match type_named(name) {
            Some(ty) => {
                let literal = Literal::Type(ty.to_string());
                (Node::of(Kind::Literal(literal)), Type::Type(Arc::new(ty)))
            }
            None => self.undeclared(id, name),
        }
    }

    fn select(&mut self, node: &IdedExpr, select: &SelectExpr) -> Checked {
        if let Some(ty) = qualified_name(node)
            .filter(|_| !select.test)
            .and_then(|name| type_named(&name))
        {
            let literal = Literal::Type(ty.to_string());
            return (Node::of(Kind::Literal(literal)), Type::Type(Arc::new(ty)));
        }
        // `authorizer.requestResource` is one name.
        let declared = qualified_name(node).filter(|_| !select.test);
        if let Some((name, ty)) = declared.and_then(|name| self.variable(&name).map(|ty| (name, ty))) {
            return (Node::of(Kind::Variable(name.into())), ty);
        }
        let (operand, ty) = self.node(&select.operand);
        let field: Arc<str> = select.field.as_str().into();
        let found = match self.field(&ty, &field) {
            Ok(found) => found,
            Err(text) => return self.fault(node.id, text),
        };
        match select.test {
            true => (Node::of(Kind::Has(Box::new(operand), field)), Type::Bool),
            false => (Node::of(Kind::Select(Box::new(operand), field)), found),
        }
    }

    /// The type of a field.
    fn field(&mut self, ty: &Type, field: &str) -> FunctionResult<Type> {
        match self.inference.resolve(ty) {
            Type::Error => Ok(Type::Error),
            Type::Dyn | Type::Variable(_) => Ok(Type::Dyn),
            Type::Map(of) => Ok(of.1.clone()),
            Type::Object(of) => {
                let known = of.fields.get(field);
                // A word of the language is known by itself, too.
                let word = || is_reserved(field).then(|| of.fields.get(&format!("__{field}__")))?;
                let ty = known.or_else(word).cloned();
                let ty = ty.or_else(|| field_type(&of.name, field));
                ty.ok_or_else(|| format!("undefined field '{field}'"))
            }
            Type::Optional(of) => Ok(match self.field(&of, field)? {
                Type::Optional(of) => Type::Optional(of),
                ty => Type::optional(ty),
            }),
            // Kubernetes' own types are objects whose fields nobody knows.
            Type::Opaque(name) if name.starts_with("kubernetes.") => {
                Err(format!("unexpected failed resolution of '{name}'"))
            }
            other => Err(format!("type '{}' does not support field selection", other.shown())),
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Checked {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, [left, right]) => {
                // What one finds out about unknown types the other one is measured by.
                let [(one, one_type), (other, other_type)] = [self.node(left), self.node(right)];
                let one = self.expected(left, (one, one_type), &Type::Bool).0;
                let other = self.expected(right, (other, other_type), &Type::Bool).0;
                let pair = Box::new([one, other]);
                let kind = match call.func_name == operators::LOGICAL_AND {
                    true => Kind::And(pair),
                    false => Kind::Or(pair),
                };
                return (Node::of(kind), Type::Bool);
            }
            (operators::OPT_SELECT, [operand, field]) => return self.optional_select(id, operand, field),
            _ => {}
        }
        let library = self.library.clone();
        if let Some(target) = &call.target {
            if let Some(expanded) = self.macro_call(id, target, &call.func_name, &call.args) {
                return expanded;
            }
            let qualified = qualified_name(target)
                .filter(|name| self.variable(name.split('.').next().unwrap_or_default()).is_none())
                .and_then(|name| library.functions.get(format!("{name}.{}", call.func_name).as_str()));
            if let Some(function) = qualified {
                let arguments: Vec<Checked> = call.args.iter().map(|argument| self.node(argument)).collect();
                return self.resolved(id, function, false, arguments, &call.args);
            }
        }
        let outside = self.in_format;
        self.in_format |= call.func_name == "format";
        let target = call.target.as_deref().map(|target| self.node(target));
        let member = target.is_some();
        let own: Vec<Checked> = match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
            ("format", Some(target), [argument]) => vec![self.filled(id, target, argument)],
            (_, _, arguments) => arguments.iter().map(|argument| self.node(argument)).collect(),
        };
        self.in_format = outside;
        let arguments: Vec<Checked> = target.into_iter().chain(own).collect();
        match library.functions.get(call.func_name.as_str()) {
            Some(function) => self.resolved(id, function, member, arguments, &call.args),
            None => self.undeclared(id, &call.func_name),
        }
    }

    /// `operand.?field`.
    fn optional_select(&mut self, id: u64, operand: &IdedExpr, field: &IdedExpr) -> Checked {
        let Expr::Literal(LiteralValue::String(field)) = &field.expr else {
            return self.fault(field.id, "unsupported optional field selection".to_owned());
        };
        let field: Arc<str> = field.inner().into();
        let (operand, ty) = self.node(operand);
        match self.field(&ty, &field) {
            Ok(Type::Optional(of)) => (
                Node::of(Kind::OptionalSelect(Box::new(operand), field)),
                Type::Optional(of),
            ),
            Ok(ty) => (
                Node::of(Kind::OptionalSelect(Box::new(operand), field)),
                Type::optional(ty),
            ),
            Err(text) => {
                let (node, ty) = self.fault(id, text);
                (node, Type::optional(ty))
            }
        }
    }

    /// A call of one of the library's functions that macros need.
    pub(super) fn library_call(&mut self, id: u64, name: &str, arguments: Vec<Checked>) -> Checked {
        let library = self.library.clone();
        match library.functions.get(name) {
            Some(function) => self.resolved(id, function, false, arguments, &[]),
            None => self.undeclared(id, name),
        }
    }

    /// A call whose function is known.
    pub(super) fn resolved(
        &mut self,
        id: u64,
        function: &Arc<Function>,
        member: bool,
        arguments: Vec<Checked>,
        written: &[IdedExpr],
    ) -> Checked {
        let (nodes, types): (Vec<Node>, Vec<Type>) = arguments.into_iter().unzip();
        let mut result: Option<Type> = None;
        // What one overload finds out about unknown types holds for those behind it.
        let mut known = self.inference.clone();
        let mut overloads = Vec::new();
        for (n, overload) in (0u8..).zip(&function.overloads) {
            if overload.member != member || overload.arity() != types.len() {
                continue;
            }
            let mut inference = known.clone();
            let Some(ty) = overload.apply(&mut inference, &types) else {
                continue;
            };
            result = Some(match result {
                Some(other) if other != ty => Type::Dyn,
                _ => ty,
            });
            known = inference;
            overloads.push(n);
        }
        let Some(ty) = result else {
            let shown = self.shown(&types, member);
            return self.fault(
                id,
                format!(
                    "found no matching overload for '{}' applied to '{shown}'",
                    function.name
                ),
            );
        };
        self.inference = known;
        if let Some((argument, text)) = literal_argument(function.name, member, written) {
            let (line, column) = self.parsed.place(argument);
            self.literals.push(Misplaced { line, column, text });
        }
        let mut node = Node::call(function, nodes, Fits { member, overloads });
        node.ty = ty.clone();
        (node, ty)
    }

    fn shown(&self, types: &[Type], member: bool) -> String {
        let mut shown: Vec<String> = types.iter().map(|ty| self.inference.finish(ty).shown()).collect();
        match member {
            true => {
                let target = shown.remove(0);
                format!("{target}.({})", shown.join(", "))
            }
            false => format!("({})", shown.join(", ")),
        }
    }

    /// A part that has to be a boolean.
    pub(super) fn boolean(&mut self, node: &IdedExpr) -> Node {
        self.expect(node, &Type::Bool).0
    }

    /// A part that has to be of this type.
    fn expect(&mut self, node: &IdedExpr, wanted: &Type) -> Checked {
        let checked = self.node(node);
        self.expected(node, checked, wanted)
    }

    /// As [`Checker::expect`], of a part that was looked at.
    fn expected(&mut self, node: &IdedExpr, (checked, ty): Checked, wanted: &Type) -> Checked {
        if !self.inference.accept(wanted, &ty) {
            let (wanted, found) = (self.inference.finish(wanted).shown(), ty.shown());
            return self.fault(node.id, format!("expected type '{wanted}' but found '{found}'"));
        }
        (checked, ty)
    }

    /// Parts of a list. Where they are of several types, the list is one of anything.
    fn elements(&mut self, nodes: &[IdedExpr], optional: &[usize]) -> (Vec<Node>, Vec<(u64, Type)>, Type) {
        let mut common = None;
        let (mut checked, mut types) = (Vec::new(), Vec::new());
        for (n, node) in nodes.iter().enumerate() {
            let (one, ty) = match optional.contains(&n) {
                true => self.optional(node),
                false => self.node(node),
            };
            self.join(common.get_or_insert_with(|| ty.clone()), &ty);
            types.push((node.id, ty));
            checked.push(one);
        }
        let common = common.unwrap_or_else(|| self.inference.fresh());
        (checked, types, common)
    }

    /// What fills the places of a text.
    fn filled(&mut self, id: u64, text: &IdedExpr, values: &IdedExpr) -> Checked {
        let (Expr::Literal(LiteralValue::String(text)), Expr::List(list)) = (&text.expr, &values.expr) else {
            return self.node(values);
        };
        let (nodes, _, _) = self.elements(&list.elements, &[]);
        self.formats.push(Format {
            id,
            text: text.inner().to_owned(),
            values: list.elements.iter().map(Filling::of).collect(),
        });
        let optional = vec![false; nodes.len()];
        (Node::of(Kind::List(nodes, optional)), Type::list(Type::Dyn))
    }

    /// What is wrong with the places of texts, and with what fills them.
    fn unfit(&self) -> impl Iterator<Item = Misplaced> {
        let finished = self.types.iter().map(|(id, ty)| (*id, self.inference.finish(ty)));
        let types: HashMap<u64, Type> = finished.collect();
        self.formats.iter().filter_map(move |format| {
            let (id, text) = format.fault(&types)?;
            let (line, column) = self.parsed.place(id);
            Some(Misplaced { line, column, text })
        })
    }

    /// A part that is there if its optional value is; its type is that of the value.
    fn optional(&mut self, node: &IdedExpr) -> Checked {
        let inner = self.inference.fresh();
        let (checked, ty) = self.node(node);
        if !self.inference.accept(&Type::optional(inner.clone()), &ty) {
            let found = self.inference.finish(&ty).shown();
            return self.fault(
                node.id,
                format!("expected type 'optional_type({found})' but found '{found}'"),
            );
        }
        (checked, inner)
    }

    /// Widens the type of parts by that of one more.
    fn join(&mut self, common: &mut Type, ty: &Type) {
        let anything = matches!(self.inference.resolve(ty), Type::Dyn | Type::Error);
        if anything || !self.inference.accept(common, ty) {
            *common = Type::Dyn;
        }
    }

    /// Notes that types have to be the same.
    fn same(&mut self, types: Vec<(u64, Type)>) {
        if types.len() > 1 && !self.in_format {
            self.aggregates.push(types);
        }
    }

    /// The first part of each list and map that is of another type than those before.
    fn mixed(&self) -> impl Iterator<Item = Misplaced> {
        self.aggregates.iter().filter_map(|types| {
            let mut types = types.iter().map(|(id, ty)| (*id, self.inference.finish(ty)));
            let (_, first) = types.next()?;
            let (id, other) = types.find(|(_, ty)| *ty != first)?;
            let (line, column) = self.parsed.place(id);
            let text = format!("expected type '{}' but found '{}'", first.shown(), other.shown());
            Some(Misplaced { line, column, text })
        })
    }

    fn map(&mut self, entries: &[cel::common::ast::IdedEntryExpr]) -> Checked {
        let (mut key_type, mut value_type) = (None, None);
        let (mut nodes, mut keys, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return self.fault(entry.id, "unexpected field".to_owned());
            };
            let (key, ty) = self.node(&entry.key);
            self.join(key_type.get_or_insert_with(|| ty.clone()), &ty);
            keys.push((entry.key.id, ty));
            let (value, ty) = match entry.optional {
                true => self.optional(&entry.value),
                false => self.node(&entry.value),
            };
            self.join(value_type.get_or_insert_with(|| ty.clone()), &ty);
            values.push((entry.value.id, ty));
            nodes.push((key, value, entry.optional));
        }
        self.same(keys);
        self.same(values);
        let [key, value] = [key_type, value_type].map(|ty| ty.unwrap_or_else(|| self.inference.fresh()));
        (Node::of(Kind::Map(nodes)), Type::map(key, value))
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Checked {
        let (range, ty) = self.node(&comprehension.iter_range);
        let item = match self.inference.resolve(&ty) {
            Type::List(of) => Type::clone(&of),
            Type::Map(of) => of.0.clone(),
            Type::Dyn | Type::Error | Type::Variable(_) => Type::Dyn,
            other => {
                let shown = other.shown();
                let text = format!(
                    "expression of type '{shown}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.fault(comprehension.iter_range.id, text).1
            }
        };
        let (initial, accumulated) = self.node(&comprehension.accu_init);
        let outside = self.scopes.len();
        self.scopes.push((comprehension.accu_var.clone(), accumulated.clone()));
        self.scopes.push((comprehension.iter_var.clone(), item));
        let condition = self.boolean(&comprehension.loop_cond);
        let step = self.expect(&comprehension.loop_step, &accumulated).0;
        self.scopes.truncate(outside + 1);
        let (result, ty) = self.node(&comprehension.result);
        self.scopes.truncate(outside);
        let node = Node::of(Kind::Loop(Box::new(Loop {
            range,
            item: comprehension.iter_var.as_str().into(),
            second: None,
            accumulator: comprehension.accu_var.as_str().into(),
            initial,
            condition,
            step,
            result,
        })));
        (node, ty)
    }
}

fn literal(value: &LiteralValue) -> Checked {
    let (literal, ty) = match value {
        LiteralValue::Null => (Literal::Null, Type::Null),
        LiteralValue::Boolean(b) => (Literal::Bool(*b.inner()), Type::Bool),
        LiteralValue::Int(n) => (Literal::Int(*n.inner()), Type::Int),
        LiteralValue::UInt(n) => (Literal::Uint(*n.inner()), Type::Uint),
        LiteralValue::Double(n) => (Literal::Double(*n.inner()), Type::Double),
        LiteralValue::String(text) => (Literal::String(text.inner().into()), Type::String),
        LiteralValue::Bytes(bytes) => (Literal::Bytes(bytes.inner().into()), Type::Bytes),
    };
    (Node::of(Kind::Literal(literal)), ty)
}

/// `a.b.c` of plain selections.
fn qualified_name(node: &IdedExpr) -> Option<String> {
    match &node.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => Some(format!("{}.{}", qualified_name(&select.operand)?, select.field)),
        _ => None,
    }
}

/// Types as values.
fn type_named(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "type" => Type::Type(Arc::new(Type::Dyn)),
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "net.IP" => Type::Opaque("net.IP"),
        "net.CIDR" => Type::Opaque("net.CIDR"),
        _ => return None,
    })
}
