//! Composition: the variables of a policy, each evaluated when an expression looks at it first.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use keelson_api::admissionregistration_k8s_io::v1::Variable;
use keelson_machinery::cel::{CALL_LIMIT, Entries, Environment, Map, Text, Type, Value};

use crate::expressions::{Bindings, Compiled, Owned, Scope, compile_any};

/// The variable that holds the policy's own.
const VARIABLES: &str = "variables";
/// The name of its type.
const TYPE: &str = "kubernetes.variables";

/// The variables of a policy.
pub(super) struct Variables {
    all: Vec<(String, Compiled)>,
}

/// What is known of a variable's value. Of most objects nothing is.
fn declared(ty: &Type) -> Type {
    match ty {
        Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => ty.clone(),
        Type::List(of) => Type::list(declared(of)),
        Type::Map(of) => Type::map(declared(&of.0), declared(&of.1)),
        _ => Type::Dyn,
    }
}

impl Variables {
    /// Compiles them; each may name those before it.
    pub fn new(variables: &[Variable], environment: &Environment) -> Variables {
        let mut compiled = Variables { all: Vec::new() };
        for variable in variables {
            let environment = compiled.declare(environment.clone());
            let one = compile_any(&environment, &variable.expression);
            compiled.all.push((variable.name.clone(), one));
        }
        compiled
    }

    /// What was made of the one of this number.
    pub fn compiled(&self, number: usize) -> Option<&Compiled> {
        self.all.get(number).map(|(_, compiled)| compiled)
    }

    /// An environment in which expressions may name them.
    pub fn declare(&self, environment: Environment) -> Environment {
        let fields = self.all.iter().map(|(name, compiled)| {
            let ty = compiled
                .as_ref()
                .map_or(Type::Dyn, |program| declared(program.result_type()));
            (name.as_str(), ty)
        });
        environment.variable(VARIABLES, Type::object(TYPE, fields))
    }

    /// What expressions are evaluated in, with these variables beside others.
    pub fn scope<'a>(&'a self, mut others: Bindings<'a>) -> Scope<'a> {
        if self.all.is_empty() {
            others.push((VARIABLES, Value::Map(Map::Own(Rc::default()))));
            return Scope::plain(others);
        }
        let spent = Rc::new(Cell::new(0));
        let values = Rc::new_cyclic(|own| Values {
            own: own.clone(),
            variables: &self.all,
            others: others.clone(),
            known: RefCell::new(vec![None; self.all.len()]),
            spent: spent.clone(),
        });
        others.push((VARIABLES, values.value()));
        Scope {
            variables: others,
            spent,
            own: Some(values),
        }
    }
}

/// The values of the variables at one evaluation.
struct Values<'a> {
    own: Weak<Values<'a>>,
    variables: &'a [(String, Compiled)],
    others: Bindings<'a>,
    known: RefCell<Vec<Option<Value<'a>>>>,
    spent: Rc<Cell<u64>>,
}

impl Owned for Values<'_> {}

/// The same as a value. A variable may hold all of them, so they are not kept alive by it.
struct Shown<'a>(Weak<Values<'a>>);

impl<'a> Values<'a> {
    fn value(&self) -> Value<'a> {
        Value::Map(Map::Borrowed(Rc::new(Shown(self.own.clone()))))
    }

    fn get(&self, name: &str) -> Option<Value<'a>> {
        let place = self.variables.iter().rposition(|(known, _)| known == name)?;
        let known = self.known.borrow().get(place).cloned().flatten();
        if let Some(value) = known {
            return Some(value);
        }
        let (_, compiled) = self.variables.get(place)?;
        let value = self.evaluate(name, compiled);
        if let Some(slot) = self.known.borrow_mut().get_mut(place) {
            *slot = Some(value.clone());
        }
        Some(value)
    }

    fn evaluate(&self, name: &str, compiled: &Compiled) -> Value<'a> {
        let program = match compiled {
            Ok(program) => program,
            Err(why) => return invalid(format!("composited variable {name:?} fails to compile: {why}")),
        };
        let mut bindings = self.others.clone();
        bindings.push((VARIABLES, self.value()));
        let (value, cost) = program.evaluate_counted(&bindings, CALL_LIMIT);
        self.spent.set(self.spent.get().saturating_add(cost));
        value.unwrap_or_else(|fault| invalid(format!("composited variable {name:?} fails to evaluate: {fault}")))
    }
}

fn invalid<'a>(why: String) -> Value<'a> {
    Value::Invalid(why.into())
}

impl<'a> Entries<'a> for Shown<'a> {
    fn count(&self) -> usize {
        self.0.upgrade().map_or(0, |values| values.variables.len())
    }

    fn get(&self, key: &str) -> Option<Value<'a>> {
        self.0.upgrade()?.get(key)
    }

    fn keys(&self) -> Vec<Text<'a>> {
        let values = self.0.upgrade();
        let names = values.iter().flat_map(|values| values.variables);
        names.map(|(name, _)| Text::Borrowed(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expressions::{OutOfBudget, base, compile};

    fn variables(variables: &[(&str, &str)]) -> Variables {
        let variables: Vec<Variable> = variables
            .iter()
            .map(|(name, expression)| Variable {
                name: (*name).to_owned(),
                expression: (*expression).to_owned(),
            })
            .collect();
        Variables::new(&variables, &base())
    }

    fn evaluate(variables: &Variables, source: &str, budget: &mut u64) -> Result<String, String> {
        let environment = variables.declare(base());
        let compiled = compile(&environment, source, &[Type::Int, Type::Bool, Type::String, Type::Dyn]);
        let object = serde_json::json!({"a": 1});
        let scope = variables.scope(vec![("object", Value::from(&object))]);
        match scope.evaluate(&compiled, budget) {
            Ok(value) => value.map(|value| format!("{value:?}")),
            Err(OutOfBudget) => Err("out of budget".to_owned()),
        }
    }

    #[test]
    fn variables_name_those_before_them() {
        let variables = variables(&[
            ("a", "object.a + 1"),
            ("b", "variables.a * 2"),
            ("c", "object.c"),
            ("d", "1 +"),
        ]);
        let result = |source: &str| evaluate(&variables, source, &mut 1_000_000);
        assert_eq!(result("variables.b").as_deref(), Ok("4"));
        assert_eq!(
            result("variables.c").unwrap_err(),
            "expression 'variables.c' resulted in error: composited variable \"c\" fails to evaluate: no such key: c"
        );
        assert!(
            result("variables.d")
                .unwrap_err()
                .contains("composited variable \"d\" fails to compile: compilation failed")
        );
        assert!(result("variables.e").unwrap_err().contains("undefined field 'e'"));
        assert_eq!(result("has(variables.c)").as_deref(), Ok("true"));
    }

    #[test]
    fn a_variable_costs_once() {
        let variables = variables(&[("a", "[1, 2, 3].map(x, x * 2).size()")]);
        let cost = |source: &str| {
            let mut budget = 1_000_000;
            evaluate(&variables, source, &mut budget).unwrap();
            1_000_000 - budget
        };
        let (once, twice) = (cost("variables.a"), cost("variables.a + variables.a"));
        assert!(once > 20 && twice < once + 5, "{once} {twice}");
        assert_eq!(
            evaluate(&variables, "variables.a", &mut 10),
            Err("out of budget".to_owned())
        );
    }

    #[test]
    fn variables_may_hold_all_of_them() {
        let variables = variables(&[("a", "1"), ("all", "variables")]);
        assert_eq!(evaluate(&variables, "variables.all.a", &mut 1_000).as_deref(), Ok("1"));
    }
}
