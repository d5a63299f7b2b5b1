//! Macros that the parser leaves as calls: those over lists and maps with two variables, and those of optional values.

use std::sync::Arc;

use cel::common::ast::{Expr, IdedExpr};

use super::check::{Checked, Checker};
use super::eval::{Kind, Literal, Loop, Node};
use super::library::{MAP_INSERT, SORT_BY_KEYS};
use super::types::Type;

/// The accumulator. No text can name it.
const ACCUMULATOR: &str = "@result";

/// A macro of two variables after its range and variables were read.
struct Fold {
    id: u64,
    range: Node,
    /// Their names.
    variables: [Arc<str>; 2],
}

impl Checker<'_> {
    /// The call as a macro, if it is one.
    pub(super) fn macro_call(
        &mut self,
        id: u64,
        target: &IdedExpr,
        name: &str,
        arguments: &[IdedExpr],
    ) -> Option<Checked> {
        Some(match (name, arguments) {
            ("optMap", [variable, body]) => self.of_optional(id, target, variable, body, false),
            ("optFlatMap", [variable, body]) => self.of_optional(id, target, variable, body, true),
            ("sortBy", [variable, body]) => self.sorted_by(id, target, variable, body),
            ("all" | "exists" | "existsOne" | "exists_one", [first, second, test]) => {
                self.over_two(id, target, [first, second], |checker, fold| {
                    checker.quantified(name, fold, test)
                })
            }
            ("transformList" | "transformMap" | "transformMapEntry", [first, second, body]) => {
                self.over_two(id, target, [first, second], |checker, fold| {
                    checker.transformed(name, fold, None, body)
                })
            }
            ("transformList" | "transformMap" | "transformMapEntry", [first, second, test, body]) => {
                self.over_two(id, target, [first, second], |checker, fold| {
                    checker.transformed(name, fold, Some(test), body)
                })
            }
            _ => return None,
        })
    }

    /// The name that a variable is written as.
    fn variable_name(&mut self, written: &IdedExpr) -> Option<Arc<str>> {
        match &written.expr {
            Expr::Ident(name) => Some(name.as_str().into()),
            _ => {
                self.fault(written.id, "argument must be a simple name".to_owned());
                None
            }
        }
    }

    fn nothing() -> Checked {
        (Node::of(Kind::Literal(Literal::Null)), Type::Error)
    }

    /// `optional.optMap(x, body)`: the body of what is there.
    fn of_optional(&mut self, id: u64, target: &IdedExpr, variable: &IdedExpr, body: &IdedExpr, flat: bool) -> Checked {
        let (target_node, ty) = self.node(target);
        let inner = match self.inference.resolve(&ty) {
            Type::Optional(of) => Type::clone(&of),
            Type::Dyn | Type::Error | Type::Variable(_) => Type::Dyn,
            other => {
                let shown = other.shown();
                // What the macro stands for asks for both.
                for function in ["hasValue", "value"] {
                    let text = format!("found no matching overload for '{function}' applied to '{shown}.()'");
                    self.fault(id, text);
                }
                return Self::nothing();
            }
        };
        let Some(name) = self.variable_name(variable) else {
            return Self::nothing();
        };
        self.scopes.push((name.to_string(), inner));
        let (body_node, made) = self.node(body);
        self.scopes.pop();
        let made = self.inference.resolve(&made);
        let ty = match (flat, made) {
            (false, made) => Type::optional(made),
            (true, made @ Type::Optional(_)) => made,
            (true, Type::Dyn | Type::Error | Type::Variable(_)) => Type::optional(Type::Dyn),
            (true, other) => {
                let shown = other.shown();
                let applied = format!("(bool, {shown}, optional_type(dyn))");
                let text = format!("found no matching overload for '_?_:_' applied to '{applied}'");
                return self.fault(id, text);
            }
        };
        let two = Box::new([target_node, body_node]);
        (Node::of(Kind::WithOptional(two, name, flat)), ty)
    }

    /// `list.sortBy(x, body)`: the elements in the order of what the body makes of them.
    fn sorted_by(&mut self, id: u64, target: &IdedExpr, variable: &IdedExpr, body: &IdedExpr) -> Checked {
        const INPUT: &str = "@__sortBy_input__";
        let (target_node, ty) = self.node(target);
        let element = match self.inference.resolve(&ty) {
            Type::List(of) => Type::clone(&of),
            Type::Map(of) => of.0.clone(),
            _ => Type::Dyn,
        };
        let Some(name) = self.variable_name(variable) else {
            return Self::nothing();
        };
        self.scopes.push((name.to_string(), element));
        let (made, key) = self.node(body);
        self.scopes.pop();
        let keys = Type::list(key);
        let one = Node::typed(Kind::List(vec![made], vec![false]), keys.clone());
        let step = self.library_call(id, "_+_", vec![accumulated(keys.clone()), (one, keys.clone())]);
        let input = || (Node::typed(Kind::Variable(INPUT.into()), ty.clone()), ty.clone());
        let made = Node::typed(
            Kind::Loop(Box::new(Loop {
                range: input().0,
                item: name,
                second: None,
                accumulator: ACCUMULATOR.into(),
                initial: Node::typed(Kind::List(Vec::new(), Vec::new()), keys.clone()),
                condition: Node::typed(Kind::Literal(Literal::Bool(true)), Type::Bool),
                step: step.0,
                result: accumulated(keys.clone()).0,
            })),
            keys.clone(),
        );
        let library = self.library.clone();
        let Some(function) = library.functions.get(SORT_BY_KEYS) else {
            return Self::nothing();
        };
        let (sorted, ty) = self.resolved(id, function, true, vec![input(), (made, keys)], &[]);
        let node = Node::of(Kind::Bind(Box::new([target_node, sorted]), INPUT.into()));
        (node, ty)
    }

    /// Reads the range and brings both variables into scope, beside the accumulator's place.
    fn over_two(
        &mut self,
        id: u64,
        range: &IdedExpr,
        written: [&IdedExpr; 2],
        then: impl FnOnce(&mut Self, Fold) -> Checked,
    ) -> Checked {
        let (range_node, ty) = self.node(range);
        let (first, second) = match self.inference.resolve(&ty) {
            Type::List(of) => (Type::Int, Type::clone(&of)),
            Type::Map(of) => (of.0.clone(), of.1.clone()),
            Type::Dyn | Type::Error | Type::Variable(_) => (Type::Dyn, Type::Dyn),
            other => {
                let shown = other.shown();
                let text = format!(
                    "expression of type '{shown}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                let ty = self.fault(range.id, text).1;
                (ty.clone(), ty)
            }
        };
        let [Some(a), Some(b)] = written.map(|one| self.variable_name(one)) else {
            return Self::nothing();
        };
        let outside = self.scopes.len();
        self.scopes.push((a.to_string(), first));
        self.scopes.push((b.to_string(), second));
        let checked = then(
            self,
            Fold {
                id,
                range: range_node,
                variables: [a, b],
            },
        );
        self.scopes.truncate(outside);
        checked
    }

    /// Whether the test is true of all, some, or one.
    fn quantified(&mut self, name: &str, fold: Fold, test: &IdedExpr) -> Checked {
        let test = self.boolean(test);
        let id = fold.id;
        let truth = |b| Node::typed(Kind::Literal(Literal::Bool(b)), Type::Bool);
        let number = |n| (Node::typed(Kind::Literal(Literal::Int(n)), Type::Int), Type::Int);
        match name {
            "all" => {
                let condition = self
                    .library_call(id, "@not_strictly_false", vec![accumulated(Type::Bool)])
                    .0;
                let step = Node::typed(Kind::And(Box::new([accumulated(Type::Bool).0, test])), Type::Bool);
                fold.finish(truth(true), condition, step, accumulated(Type::Bool))
            }
            "exists" => {
                let not = self.library_call(id, "!_", vec![accumulated(Type::Bool)]);
                let condition = self.library_call(id, "@not_strictly_false", vec![not]).0;
                let step = Node::typed(Kind::Or(Box::new([accumulated(Type::Bool).0, test])), Type::Bool);
                fold.finish(truth(false), condition, step, accumulated(Type::Bool))
            }
            _ => {
                let more = self.library_call(id, "_+_", vec![accumulated(Type::Int), number(1)]).0;
                let step = conditional(test, more, accumulated(Type::Int).0);
                let one = self.library_call(id, "_==_", vec![accumulated(Type::Int), number(1)]);
                fold.finish(number(0).0, truth(true), step, one)
            }
        }
    }

    /// A list or map of what is made of each, or of those of which the test is true.
    fn transformed(&mut self, name: &str, fold: Fold, test: Option<&IdedExpr>, body: &IdedExpr) -> Checked {
        let test = test.map(|test| self.boolean(test));
        let (made, ty) = self.node(body);
        let id = fold.id;
        let (initial, ty, step) = match name {
            "transformList" => {
                let ty = Type::list(ty);
                let one = Node::typed(Kind::List(vec![made], vec![false]), ty.clone());
                let one = (one, ty.clone());
                let step = self.library_call(id, "_+_", vec![accumulated(ty.clone()), one]).0;
                (Node::typed(Kind::List(Vec::new(), Vec::new()), ty.clone()), ty, step)
            }
            "transformMap" => {
                let [key, _] = &fold.variables;
                let key_type = self.scopes.iter().rev().find(|(known, _)| **known == **key);
                let key_type = key_type.map_or(Type::Dyn, |(_, ty)| ty.clone());
                let map = Type::map(key_type.clone(), ty.clone());
                let key = (Node::typed(Kind::Variable(key.clone()), key_type.clone()), key_type);
                let step = self
                    .library_call(id, MAP_INSERT, vec![accumulated(map.clone()), key, (made, ty)])
                    .0;
                (Node::typed(Kind::Map(Vec::new()), map.clone()), map, step)
            }
            _ => {
                let map = match self.inference.resolve(&ty) {
                    map @ Type::Map(_) => map,
                    _ => Type::map(Type::Dyn, Type::Dyn),
                };
                let step = self
                    .library_call(id, MAP_INSERT, vec![accumulated(map.clone()), (made, ty)])
                    .0;
                (Node::typed(Kind::Map(Vec::new()), map.clone()), map, step)
            }
        };
        let step = match test {
            Some(test) => conditional(test, step, accumulated(ty.clone()).0),
            None => step,
        };
        let truth = Node::typed(Kind::Literal(Literal::Bool(true)), Type::Bool);
        fold.finish(initial, truth, step, accumulated(ty))
    }
}

impl Fold {
    fn finish(self, initial: Node, condition: Node, step: Node, (result, ty): Checked) -> Checked {
        let [item, second] = self.variables;
        let node = Node::of(Kind::Loop(Box::new(Loop {
            range: self.range,
            item,
            second: Some(second),
            accumulator: ACCUMULATOR.into(),
            initial,
            condition,
            step,
            result,
        })));
        (node, ty)
    }
}

fn accumulated(ty: Type) -> Checked {
    (Node::typed(Kind::Variable(ACCUMULATOR.into()), ty.clone()), ty)
}

fn conditional(condition: Node, yes: Node, no: Node) -> Node {
    let ty = yes.ty.clone();
    Node::typed(Kind::Conditional(Box::new([condition, yes, no])), ty)
}
