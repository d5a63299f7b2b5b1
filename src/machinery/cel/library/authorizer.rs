//! Authorization checks: `authorizer.group('apps').resource('deployments').namespace('a').check('create').allowed()`.
//!
//! Whoever evaluates an expression says what is allowed ([`Authorizer`]). An answer that is not known yet is a fault;
//! the expression is evaluated again when it is.

use std::any::Any;
use std::fmt::Debug;
use std::rc::Rc;

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::{Opaque, Value};
use super::Result;
use crate::content::names;

/// What a check costs; it may have to ask another server.
const CHECK_COST: u32 = 350_000;

/// Decides what expressions ask about.
pub trait Authorizer: Debug {
    /// The decision; `None`: it is not known yet.
    fn decide(&self, check: &AccessCheck) -> Option<AccessDecision>;
}

/// A question to an authorizer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccessCheck {
    /// Namespace and name of the service account that it is about; `None`: it is about whoever sent the request.
    pub service_account: Option<(String, String)>,
    /// What is to be done.
    pub verb: String,
    /// Done with what.
    pub target: AccessTarget,
}

/// What a check is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AccessTarget {
    /// A path that is no resource.
    Path(String),
    /// Objects of a resource.
    Resource(ResourceTarget),
}

impl Default for AccessTarget {
    fn default() -> Self {
        AccessTarget::Path(String::new())
    }
}

/// Objects of a resource; what is empty is not said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ResourceTarget {
    /// "": the legacy group.
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// As a query has it.
    pub field_selector: String,
    /// As a query has it.
    pub label_selector: String,
}

/// The answer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccessDecision {
    pub allowed: bool,
    pub reason: String,
    /// What went wrong while it was made.
    pub error: Option<String>,
}

impl Opaque for AccessDecision {
    fn name(&self) -> &'static str {
        "kubernetes.authorization.Decision"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<AccessDecision>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// How far a question is put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Authorizer,
    Path,
    Group,
    Resource,
}

/// A question that is being put together, and who will answer it.
#[derive(Clone, Debug)]
struct Question {
    authorizer: Rc<dyn Authorizer>,
    stage: Stage,
    check: AccessCheck,
}

impl Opaque for Question {
    fn name(&self) -> &'static str {
        match self.stage {
            Stage::Authorizer => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => "kubernetes.authorization.ResourceCheck",
        }
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        let other = other.as_any().downcast_ref::<Question>();
        other.is_some_and(|other| self.stage == other.stage && self.check == other.check)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<'a> Value<'a> {
    /// The variable `authorizer`.
    pub fn authorizer(authorizer: Rc<dyn Authorizer>) -> Value<'a> {
        Value::opaque(Question {
            authorizer,
            stage: Stage::Authorizer,
            check: AccessCheck::default(),
        })
    }

    /// The variable `authorizer.requestResource`.
    pub fn resource_authorizer(authorizer: Rc<dyn Authorizer>, target: ResourceTarget) -> Value<'a> {
        let target = AccessTarget::Resource(target);
        Value::opaque(Question {
            authorizer,
            stage: Stage::Resource,
            check: AccessCheck {
                target,
                ..AccessCheck::default()
            },
        })
    }
}

pub(super) fn define(to: &mut Functions) {
    add(to, "path", Cost::One, path, &["authorizer.(string) pathCheck"]);
    add(to, "group", Cost::One, group, &["authorizer.(string) groupCheck"]);
    add(
        to,
        "serviceAccount",
        Cost::One,
        service_account,
        &["authorizer.(string, string) authorizer"],
    );
    add(
        to,
        "resource",
        Cost::One,
        resource,
        &["groupCheck.(string) resourceCheck"],
    );
    let narrowed = ["resourceCheck.(string) resourceCheck"];
    add(
        to,
        "subresource",
        Cost::One,
        |v| narrow(v, |t| &mut t.subresource),
        &narrowed,
    );
    add(
        to,
        "namespace",
        Cost::One,
        |v| narrow(v, |t| &mut t.namespace),
        &narrowed,
    );
    add(to, "name", Cost::One, |v| narrow(v, |t| &mut t.name), &narrowed);
    add(
        to,
        "fieldSelector",
        Cost::One,
        |v| narrow(v, |t| &mut t.field_selector),
        &narrowed,
    );
    add(
        to,
        "labelSelector",
        Cost::One,
        |v| narrow(v, |t| &mut t.label_selector),
        &narrowed,
    );
    add(
        to,
        "check",
        Cost::Fixed(CHECK_COST),
        check,
        &["pathCheck.(string) decision", "resourceCheck.(string) decision"],
    );
    let flag = ["decision.() bool"];
    add(to, "allowed", Cost::One, |v| told(v, |d| Value::Bool(d.allowed)), &flag);
    add(
        to,
        "errored",
        Cost::One,
        |v| told(v, |d| Value::Bool(d.error.is_some())),
        &flag,
    );
    let text = ["decision.() string"];
    add(
        to,
        "reason",
        Cost::One,
        |v| told(v, |d| Value::text(d.reason.clone())),
        &text,
    );
    add(
        to,
        "error",
        Cost::One,
        |v| told(v, |d| Value::text(d.error.clone().unwrap_or_default())),
        &text,
    );
}

/// The question that is called, and the texts it is called with.
fn question<'v>(values: &'v [Value<'_>], stage: Stage) -> std::result::Result<(&'v Question, Vec<&'v str>), Fault> {
    let (Some(Value::Opaque(target)), rest) = (values.first(), values.get(1..).unwrap_or_default()) else {
        return Err(Fault::NoSuchOverload);
    };
    let question = target.as_any().downcast_ref::<Question>();
    let question = question.filter(|question| question.stage == stage);
    let texts = rest.iter().map(|value| value.as_str().ok_or(Fault::NoSuchOverload));
    Ok((
        question.ok_or(Fault::NoSuchOverload)?,
        texts.collect::<std::result::Result<_, _>>()?,
    ))
}

/// The same question, further put together.
fn next<'a>(question: &Question, stage: Stage, change: impl FnOnce(&mut AccessCheck)) -> Result<'a> {
    let mut next = question.clone();
    next.stage = stage;
    change(&mut next.check);
    Ok(Value::opaque(next))
}

fn path<'a>(values: &[Value<'a>]) -> Result<'a> {
    let (question, texts) = question(values, Stage::Authorizer)?;
    match texts.as_slice() {
        [path] if path.trim().is_empty() => Err(Fault::function("path must not be empty")),
        [path] => next(question, Stage::Path, |check| {
            check.target = AccessTarget::Path((*path).to_owned())
        }),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn group<'a>(values: &[Value<'a>]) -> Result<'a> {
    let (question, texts) = question(values, Stage::Authorizer)?;
    let [group] = texts.as_slice() else {
        return Err(Fault::NoSuchOverload);
    };
    let target = ResourceTarget {
        group: (*group).to_owned(),
        ..ResourceTarget::default()
    };
    next(question, Stage::Group, |check| {
        check.target = AccessTarget::Resource(target)
    })
}

fn service_account<'a>(values: &[Value<'a>]) -> Result<'a> {
    let (question, texts) = question(values, Stage::Authorizer)?;
    let [namespace, name] = texts.as_slice() else {
        return Err(Fault::NoSuchOverload);
    };
    if !names::dns_subdomain(name).is_empty() {
        return Err(Fault::function("Invalid service account name"));
    }
    if !names::dns_label(namespace).is_empty() {
        return Err(Fault::function("Invalid service account namespace"));
    }
    let account = ((*namespace).to_owned(), (*name).to_owned());
    next(question, Stage::Authorizer, |check| {
        check.service_account = Some(account)
    })
}

fn resource<'a>(values: &[Value<'a>]) -> Result<'a> {
    let (question, texts) = question(values, Stage::Group)?;
    match texts.as_slice() {
        [resource] if resource.trim().is_empty() => Err(Fault::function("resource must not be empty")),
        [resource] => next(question, Stage::Resource, |check| {
            if let AccessTarget::Resource(target) = &mut check.target {
                (*resource).clone_into(&mut target.resource);
            }
        }),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn narrow<'a>(values: &[Value<'a>], field: fn(&mut ResourceTarget) -> &mut String) -> Result<'a> {
    let (question, texts) = question(values, Stage::Resource)?;
    let [text] = texts.as_slice() else {
        return Err(Fault::NoSuchOverload);
    };
    next(question, Stage::Resource, |check| {
        if let AccessTarget::Resource(target) = &mut check.target {
            (*text).clone_into(field(target));
        }
    })
}

fn check<'a>(values: &[Value<'a>]) -> Result<'a> {
    let of_path = question(values, Stage::Path);
    let (question, texts) = of_path.or_else(|_| question(values, Stage::Resource))?;
    let [verb] = texts.as_slice() else {
        return Err(Fault::NoSuchOverload);
    };
    let check = AccessCheck {
        verb: (*verb).to_owned(),
        ..question.check.clone()
    };
    let unknown = || Fault::function("the decision is not known yet");
    question
        .authorizer
        .decide(&check)
        .map(Value::opaque)
        .ok_or_else(unknown)
}

fn told<'a>(values: &[Value<'a>], of: impl Fn(&AccessDecision) -> Value<'a>) -> Result<'a> {
    match values {
        [Value::Opaque(decision)] => {
            let decision = decision.as_any().downcast_ref::<AccessDecision>();
            decision.map(of).ok_or(Fault::NoSuchOverload)
        }
        _ => Err(Fault::NoSuchOverload),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::super::super::{CALL_LIMIT, Environment, Type};
    use super::*;

    /// Allows `get` and knows nothing of `later`.
    #[derive(Debug, Default)]
    struct Gets(RefCell<Vec<AccessCheck>>);

    impl Authorizer for Gets {
        fn decide(&self, check: &AccessCheck) -> Option<AccessDecision> {
            self.0.borrow_mut().push(check.clone());
            (check.verb != "later").then(|| AccessDecision {
                allowed: check.verb == "get",
                reason: format!("verb {}", check.verb),
                error: (check.verb == "fail").then(|| "broken".to_owned()),
            })
        }
    }

    fn evaluate(source: &str) -> (std::result::Result<String, String>, Vec<AccessCheck>) {
        let environment = Environment::new()
            .variable("authorizer", Type::Opaque("kubernetes.authorization.Authorizer"))
            .variable(
                "authorizer.requestResource",
                Type::Opaque("kubernetes.authorization.ResourceCheck"),
            );
        let authorizer = Rc::new(Gets::default());
        let program = match environment.compile(source) {
            Ok(program) => program,
            Err(error) => {
                return (
                    Err(error.to_string().lines().next().unwrap_or_default().to_owned()),
                    Vec::new(),
                );
            }
        };
        let target = ResourceTarget {
            resource: "pods".to_owned(),
            ..ResourceTarget::default()
        };
        let bindings = [
            ("authorizer", Value::authorizer(authorizer.clone())),
            (
                "authorizer.requestResource",
                Value::resource_authorizer(authorizer.clone(), target),
            ),
        ];
        let value = program.evaluate(&bindings, CALL_LIMIT);
        let value = value
            .map(|done| format!("{:?}", done.value))
            .map_err(|fault| fault.to_string());
        (value, authorizer.0.take())
    }

    #[test]
    fn questions_are_put_together_and_answered() {
        for (source, want) in [
            (
                "authorizer.group('').resource('pods').check('get').allowed()",
                Ok("true"),
            ),
            (
                "authorizer.group('').resource('pods').check('list').allowed()",
                Ok("false"),
            ),
            ("authorizer.path('/healthz').check('get').reason()", Ok("\"verb get\"")),
            ("authorizer.path('/healthz').check('fail').error()", Ok("\"broken\"")),
            ("authorizer.path('/healthz').check('fail').errored()", Ok("true")),
            (
                "authorizer.path(' ').check('get').allowed()",
                Err("path must not be empty"),
            ),
            (
                "authorizer.group('').resource('').check('get').allowed()",
                Err("resource must not be empty"),
            ),
            (
                "authorizer.serviceAccount('A', 'b').path('/a').check('get').allowed()",
                Err("Invalid service account namespace"),
            ),
            (
                "authorizer.serviceAccount('a', '').path('/a').check('get').allowed()",
                Err("Invalid service account name"),
            ),
            (
                "authorizer.path('/a').check('later').allowed()",
                Err("the decision is not known yet"),
            ),
            ("authorizer.path('/a').check('later').allowed() || true", Ok("true")),
            ("authorizer.requestResource.check('get').allowed()", Ok("true")),
            (
                "authorizer.group('').check('get')",
                Err(
                    "ERROR: <input>:1:27: found no matching overload for 'check' applied to \
                     'kubernetes.authorization.GroupCheck.(string)'",
                ),
            ),
        ] {
            let (value, _) = evaluate(source);
            assert_eq!(value.as_deref().map_err(String::as_str), want, "{source}");
        }
    }

    #[test]
    fn questions_say_what_the_expression_says() {
        let source = "authorizer.serviceAccount('a', 'b').group('apps').resource('deployments').subresource('scale')\
                      .namespace('n').name('m').fieldSelector('x=1').labelSelector('y').check('get').allowed()";
        let (_, checks) = evaluate(source);
        let text = str::to_owned;
        let target = ResourceTarget {
            group: text("apps"),
            resource: text("deployments"),
            subresource: text("scale"),
            namespace: text("n"),
            name: text("m"),
            field_selector: text("x=1"),
            label_selector: text("y"),
        };
        let want = AccessCheck {
            service_account: Some((text("a"), text("b"))),
            verb: text("get"),
            target: AccessTarget::Resource(target),
        };
        assert_eq!(checks, [want]);
    }

    #[test]
    fn checks_are_dear() {
        let three = ["authorizer.path('/a').check('get').allowed()"; 3].join(" && ");
        let (value, _) = evaluate(&three);
        assert_eq!(value, Err("operation cancelled: actual cost limit exceeded".to_owned()));
    }
}
