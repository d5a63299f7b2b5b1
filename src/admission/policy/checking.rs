//! Checks of expressions while what has them is written: its writer is told which of them do not compile.

use std::cell::Cell;

use keelson_api::admissionregistration_k8s_io::v1::Variable;
use keelson_machinery::cel::{Environment, Type};

use super::composition::Variables;
use super::definition::{Environments, with_params};
use super::{applied_type, patches_type};
use crate::expressions::{Mistake, authorizing, base, compile};

/// What expressions of one policy, or of one webhook, may name. What is wrong with one is said in the words of
/// kube-apiserver: `compilation failed: …`, or `must evaluate to …`.
pub struct Expressions {
    has_params: bool,
    variables: Variables,
    environments: Environments,
    /// How many more are compiled.
    left: Cell<usize>,
}

/// Whether an expression may stand where it stands.
pub type Checked = Result<(), Mistake>;

/// Expressions of one object that are compiled: each takes time while a request waits, and three bytes make one.
const MOST: usize = 512;

fn too_many() -> Mistake {
    Mistake::Invalid(format!("compilation failed: more than {MOST} expressions"))
}

impl Expressions {
    /// Those of a webhook, which has conditions alone.
    pub fn of_webhook() -> Expressions {
        Expressions::new(false, None)
    }

    /// Those of a policy with these variables of its own; `None`: the word `variables` is unknown. `has_params`: it
    /// names a kind of parameters.
    pub fn new(has_params: bool, variables: Option<&[Variable]>) -> Expressions {
        let authorizing = with_params(authorizing(), has_params);
        let plain = with_params(base(), has_params);
        let all = variables.unwrap_or_default();
        let first = all.get(..MOST).unwrap_or(all);
        let compiled = Variables::new(first, &authorizing);
        let environments = match variables {
            None => Environments { authorizing, plain },
            Some(_) => Environments {
                authorizing: compiled.declare(authorizing),
                plain: compiled.declare(plain),
            },
        };
        Expressions {
            has_params,
            variables: compiled,
            environments,
            left: Cell::new(MOST - first.len()),
        }
    }

    fn check(&self, environment: &Environment, source: &str, types: &[Type]) -> Checked {
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err(too_many());
        };
        self.left.set(left);
        compile(environment, source, types).map(drop)
    }

    /// A condition, which knows no variables.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn condition(&self, source: &str) -> Checked {
        self.check(&with_params(authorizing(), self.has_params), source, &[Type::Bool])
    }

    /// The variable of this number.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn variable(&self, number: usize) -> Checked {
        match self.variables.compiled(number) {
            Some(Ok(_)) => Ok(()),
            Some(Err(why)) => Err(why.clone()),
            None if number < MOST => Ok(()),
            None => Err(too_many()),
        }
    }

    /// What has to be true.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn validation(&self, source: &str) -> Checked {
        self.check(&self.environments.authorizing, source, &[Type::Bool])
    }

    /// What makes up a message. It may not ask the authorizer.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn message(&self, source: &str) -> Checked {
        self.check(&self.environments.plain, source, &[Type::String])
    }

    /// The value of an audit annotation.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn annotation(&self, source: &str) -> Checked {
        self.check(&self.environments.authorizing, source, &[Type::String, Type::Null])
    }

    /// What is applied to an object.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn apply_configuration(&self, source: &str) -> Checked {
        let environment = self.environments.authorizing.clone().with_patches();
        self.check(&environment, source, &[applied_type()])
    }

    /// A JSON patch.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn json_patch(&self, source: &str) -> Checked {
        let environment = self.environments.authorizing.clone().with_patches();
        self.check(&environment, source, &[patches_type()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(checked: Checked, want: &str) {
        let got = checked.err().map(|mistake| mistake.to_string()).unwrap_or_default();
        assert!(
            got.starts_with(want) && got.is_empty() == want.is_empty(),
            "{got}: {want}"
        );
    }

    const TOO_MANY: &str = "compilation failed: more than 512 expressions";

    #[test]
    fn so_many_expressions_of_an_object_are_compiled() {
        let one = |n| Variable {
            name: format!("v{n}"),
            expression: "1".to_owned(),
        };
        let all: Vec<Variable> = (0..=MOST).map(one).collect();
        let full = Expressions::new(false, Some(&all));
        assert_eq!(full.variable(MOST - 1), Ok(()));
        begins(full.variable(MOST), TOO_MANY);
        begins(full.validation("true"), TOO_MANY);
        let few = Expressions::new(false, Some(&all[..MOST - 1]));
        assert_eq!(few.validation("true"), Ok(()));
        begins(few.validation("true"), TOO_MANY);
    }

    #[test]
    fn expressions_are_of_the_types_of_their_places() {
        let plain = Expressions::new(false, None);
        for (checked, want) in [
            (plain.validation("object.a == 1"), ""),
            (plain.validation("'x'"), "must evaluate to bool but got string"),
            (
                plain.validation("1 +"),
                "compilation failed: ERROR: <input>:1:4: Syntax error",
            ),
            (
                plain.validation("params == null"),
                "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params'",
            ),
            (
                plain.validation("variables.a"),
                "compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables'",
            ),
            (plain.validation("authorizer.path('/a').check('get').allowed()"), ""),
            (
                plain.validation("int('x') == 1"),
                "program instantiation failed: type conversion error from 'string' to 'int'",
            ),
            (plain.message("'a'"), ""),
            (plain.message("object.a"), "must evaluate to string but got dyn"),
            (
                plain.message("authorizer.path('/a')"),
                "compilation failed: ERROR: <input>:1:1: undeclared reference",
            ),
            (plain.annotation("null"), ""),
            (
                plain.annotation("1"),
                "must evaluate to one of [string null_type] but got int",
            ),
            (plain.apply_configuration("Object{a: 1}"), ""),
            (
                plain.apply_configuration("true"),
                "must evaluate to Object but got bool",
            ),
            (plain.json_patch("[JSONPatch{op: 'remove', path: '/a'}]"), ""),
            (plain.validation("Object{} == Object{}"), "compilation failed"),
        ] {
            begins(checked, want);
        }
    }

    #[test]
    fn variables_are_known_to_all_but_conditions() {
        let variables = [("a", "1"), ("b", "variables.a + 'x'")].map(|(name, expression)| Variable {
            name: name.to_owned(),
            expression: expression.to_owned(),
        });
        let composed = Expressions::new(true, Some(&variables));
        begins(composed.variable(0), "");
        begins(
            composed.variable(1),
            "compilation failed: ERROR: <input>:1:13: found no matching overload",
        );
        begins(composed.variable(2), "");
        begins(composed.validation("variables.a == 1 && params.b == 2"), "");
        begins(composed.message("string(variables.a)"), "");
        begins(composed.condition("params.b == 2"), "");
        begins(composed.condition("variables.a == 1"), "compilation failed");
        begins(
            Expressions::of_webhook().condition("params.b == 2"),
            "compilation failed",
        );
    }
}
