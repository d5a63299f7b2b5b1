//! Evaluation: expressions over the objects of a request, within a budget that they share.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use keelson_api::core::v1::Namespace;
use keelson_machinery::cel::{CALL_LIMIT, Fault, Program, ResourceTarget, Value};
use keelson_machinery::object::Kind;
use keelson_machinery::scheme::KindDesc;
use keelson_registry::admission::Attributes;

use super::access::{Decisions, request_resource};
use super::environment::{AUTHORIZER, NAMESPACE, OBJECT, OLD_OBJECT, REQUEST, REQUEST_RESOURCE};
use super::request::RequestView;
use crate::versions::{Shown, Versioned};

/// Why nothing more is evaluated.
pub(crate) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What the variables stand for.
pub(crate) type Bindings<'a> = Vec<(&'static str, Value<'a>)>;

fn object<'a>(shown: Option<&'a Shown<'_>>) -> Value<'a> {
    shown.map_or(Value::Null, |shown| Value::object(Kind::as_reflect(shown.kind())))
}

/// What expressions see of a request.
pub(crate) struct Inputs<'a> {
    versioned: &'a Versioned<'a>,
    request: RequestView<'a>,
    /// What the request itself is about.
    resource: ResourceTarget,
    decisions: Rc<Decisions>,
}

impl<'a> Inputs<'a> {
    /// Of a request whose objects are shown as those of a kind of its resource.
    pub fn new(attributes: &'a Attributes<'_>, versioned: &'a Versioned<'a>, target: &'a KindDesc) -> Inputs<'a> {
        Inputs {
            versioned,
            request: RequestView::new(attributes, &versioned.gvk, target),
            resource: request_resource(attributes),
            decisions: Decisions::new(),
        }
    }

    /// The variables of a request in this namespace, if it is known.
    pub fn bindings(&'a self, namespace: Option<&'a Namespace>) -> Bindings<'a> {
        let (decisions, resource) = (&self.decisions, &self.resource);
        let mut bindings = self.plain_bindings(namespace);
        bindings.push((AUTHORIZER, Value::authorizer(decisions.clone())));
        let resource = Value::resource_authorizer(decisions.clone(), resource.clone());
        bindings.push((REQUEST_RESOURCE, resource));
        bindings
    }

    /// The same without questions to the authorizer.
    pub fn plain_bindings(&'a self, namespace: Option<&'a Namespace>) -> Bindings<'a> {
        vec![
            (OBJECT, object(self.versioned.object.as_ref())),
            (OLD_OBJECT, object(self.versioned.old.as_ref())),
            (REQUEST, self.request.value()),
            (
                NAMESPACE,
                namespace.map_or(Value::Null, |namespace| Value::object(namespace)),
            ),
        ]
    }

    /// The object as it is shown; `None`: there is none.
    pub fn object(&self) -> Option<&'a dyn Kind> {
        self.versioned.object.as_ref().map(Shown::kind)
    }

    /// Finds out what expressions asked of the authorizer, and was not known. `false`: nothing was; else what has
    /// failed is evaluated again.
    pub async fn complete(&self, attributes: &Attributes<'_>) -> bool {
        self.decisions.complete(attributes).await
    }
}

/// Why an expression is no program, in the words of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// It says something that has no meaning, or not the meaning that it should have.
    Invalid(String),
    /// It has one, and what is written out in it can't be computed.
    Internal(String),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mistake::Invalid(why) | Mistake::Internal(why) => f.write_str(why),
        }
    }
}

/// An expression; or why it does not compile.
pub(crate) type Compiled = Result<Program, Mistake>;

/// What expressions of one configuration are evaluated in.
pub(crate) struct Scope<'a> {
    pub variables: Bindings<'a>,
    /// What the configuration's own variables cost when they were looked at first, and nobody has paid for yet.
    pub spent: Rc<Cell<u64>>,
    /// The values of these, which live as long as this.
    #[expect(dead_code, reason = "variables hold it weakly; here it is kept alive")]
    pub own: Option<Rc<dyn Owned + 'a>>,
}

/// What a scope keeps alive.
pub(crate) trait Owned {}

/// The budget is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OutOfBudget;

/// What comes of an expression. The error is what is said of one without a value, which nobody tells apart.
pub(crate) type Evaluated<T> = Result<T, String>;

impl<'a> Scope<'a> {
    /// Without variables of a configuration's own.
    pub fn plain(variables: Bindings<'a>) -> Scope<'a> {
        Scope {
            variables,
            spent: Rc::default(),
            own: None,
        }
    }

    /// What an expression evaluates to; what it costs is taken off the budget.
    ///
    /// # Errors
    /// The outer one: nothing more is evaluated. The inner one: what is said of an expression without a value.
    pub fn evaluate(&self, compiled: &Compiled, budget: &mut u64) -> Result<Evaluated<Value<'a>>, OutOfBudget> {
        let program = match compiled {
            Ok(program) => program,
            Err(why) => return Ok(Err(format!("compilation error: {why}"))),
        };
        let (value, cost) = program.evaluate_counted(&self.variables, CALL_LIMIT);
        let cost = cost.saturating_add(self.spent.take());
        *budget = budget.checked_sub(cost).ok_or(OutOfBudget)?;
        let explained = |fault: Fault| format!("expression '{}' resulted in error: {fault}", program.source());
        Ok(value.map_err(explained))
    }
}
