//! The environment of expressions: the variables that they may name, with their types.

use std::sync::OnceLock;

use keelson_machinery::cel::{Environment, Program, Type};

use super::evaluation::{Compiled, Mistake};

/// What an expression is about, `object`, as variables name it.
pub(crate) const OBJECT: &str = "object";
pub(crate) const OLD_OBJECT: &str = "oldObject";
pub(crate) const REQUEST: &str = "request";
pub(crate) const NAMESPACE: &str = "namespaceObject";
pub(crate) const AUTHORIZER: &str = "authorizer";
pub(crate) const REQUEST_RESOURCE: &str = "authorizer.requestResource";

fn texts(names: &[&'static str]) -> Vec<(&'static str, Type)> {
    names.iter().map(|name| (*name, Type::String)).collect()
}

/// The type of `request`.
pub(crate) fn request_type() -> Type {
    let kind = Type::object("kubernetes.GroupVersionKind", texts(&["group", "version", "kind"]));
    let resource = Type::object(
        "kubernetes.GroupVersionResource",
        texts(&["group", "version", "resource"]),
    );
    let groups = Type::list(Type::String);
    let extra = Type::map(Type::String, groups.clone());
    let mut user = texts(&["username", "uid"]);
    user.extend([("groups", groups), ("extra", extra)]);
    let mut fields = texts(&["subResource", "requestSubResource", "name", "namespace", "operation"]);
    fields.extend([
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("requestKind", kind),
        ("requestResource", resource),
        ("userInfo", Type::object("kubernetes.UserInfo", user)),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ]);
    Type::object("kubernetes.AdmissionRequest", fields)
}

/// The type of `namespaceObject`.
pub(crate) fn namespace_type() -> Type {
    let list = || Type::list(Type::String);
    let mut condition = texts(&["status", "type", "message", "reason"]);
    condition.push(("lastTransitionTime", Type::Timestamp));
    let conditions = Type::list(Type::object("kubernetes.NamespaceCondition", condition));
    let status = [("conditions", conditions), ("phase", Type::String)];
    let pairs = Type::map(Type::String, Type::String);
    let mut metadata = texts(&["name", "generateName", "namespace", "UID", "resourceVersion"]);
    metadata.extend([
        ("labels", pairs.clone()),
        ("annotations", pairs),
        ("creationTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("deletionTimestamp", Type::Timestamp),
        ("generation", Type::Int),
        ("finalizers", list()),
    ]);
    Type::object(
        "kubernetes.Namespace",
        [
            ("metadata", Type::object("kubernetes.NamespaceMetadata", metadata)),
            (
                "spec",
                Type::object("kubernetes.NamespaceSpec", [("finalizers", list())]),
            ),
            ("status", Type::object("kubernetes.NamespaceStatus", status)),
        ],
    )
}

/// What every expression may name.
pub(crate) fn base() -> Environment {
    static BASE: OnceLock<Environment> = OnceLock::new();
    let make = || {
        Environment::new()
            .variable(OBJECT, Type::Dyn)
            .variable(OLD_OBJECT, Type::Dyn)
            .variable(NAMESPACE, namespace_type())
            .variable(REQUEST, request_type())
    };
    BASE.get_or_init(make).clone()
}

/// With questions to the authorizer.
pub(crate) fn authorizing() -> Environment {
    base()
        .variable(AUTHORIZER, Type::Opaque("kubernetes.authorization.Authorizer"))
        .variable(REQUEST_RESOURCE, Type::Opaque("kubernetes.authorization.ResourceCheck"))
}

/// What expressions may name where they are checked with objects of a type. Of the authorizer there is no more than
/// itself, as in kube-controller-manager.
pub(crate) fn checking(object: &Type) -> Environment {
    base()
        .variable(OBJECT, object.clone())
        .variable(OLD_OBJECT, object.clone())
        .variable(AUTHORIZER, Type::Opaque("kubernetes.authorization.Authorizer"))
}

/// Compiles an expression that may evaluate to anything.
///
/// # Errors
/// What kube-apiserver says of it.
pub(crate) fn compile_any(environment: &Environment, source: &str) -> Compiled {
    folded(checked(environment, source)?)
}

/// Compiles an expression that has to evaluate to one of some types.
///
/// # Errors
/// What kube-apiserver says of it.
pub(crate) fn compile(environment: &Environment, source: &str, types: &[Type]) -> Compiled {
    let program = checked(environment, source)?;
    let found = program.result_type();
    match types {
        types if types.contains(found) => folded(program),
        [one] => Err(Mistake::Invalid(format!("must evaluate to {one} but got {found}"))),
        several => {
            let shown: Vec<String> = several.iter().map(ToString::to_string).collect();
            let shown = shown.join(" ");
            Err(Mistake::Invalid(format!(
                "must evaluate to one of [{shown}] but got {found}"
            )))
        }
    }
}

fn checked(environment: &Environment, source: &str) -> Compiled {
    let program = environment.compile(source);
    program.map_err(|error| Mistake::Invalid(format!("compilation failed: {error}")))
}

/// With conversions of what is written out done.
fn folded(mut program: Program) -> Compiled {
    match program.fold() {
        Ok(()) => Ok(program),
        Err(fault) => Err(Mistake::Internal(format!("program instantiation failed: {fault}"))),
    }
}
