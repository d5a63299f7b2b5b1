//! Parameters of policies: a policy shows in its refusals what its parameters hold, so whoever writes it must be
//! allowed to read them.

use keelson_access::request_info::RequestInfo;
use keelson_access::user::GROUP_MASTERS;
use keelson_machinery::field::{FieldError, Path};
use keelson_registry::Context;

/// Of all groups, versions, resources or names.
const ALL: &str = "*";

/// A kind that a policy names.
pub struct ParameterKind<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
}

/// What a binding names.
pub struct Reference<'a> {
    pub policy: &'a str,
    /// Empty: all that a selector selects.
    pub name: &'a str,
    /// Empty: in all namespaces.
    pub namespace: &'a str,
    /// Of a policy that mutates: its refusals have words of their own.
    pub mutates: bool,
}

/// What must be readable, as far as it is known; and why it is not, in the words of the refusal.
struct Target {
    group: String,
    version: String,
    resource: String,
    unknown: Option<String>,
}

impl Target {
    fn everything() -> Target {
        let all = || ALL.to_owned();
        Target {
            group: all(),
            version: all(),
            resource: all(),
            unknown: None,
        }
    }

    fn of(context: &Context, kind: &ParameterKind<'_>) -> Target {
        let mut target = Target::everything();
        let (group, version) = match kind.api_version.split_once('/') {
            Some((_, version)) if version.contains('/') => {
                target.unknown = Some("parse".to_owned());
                return target;
            }
            Some(parts) => parts,
            None => ("", kind.api_version),
        };
        target.group = group.to_owned();
        target.version = version.to_owned();
        let registry = context.registry();
        match registry.and_then(|registry| registry.plural_of(group, version, kind.kind)) {
            Some(plural) => target.resource = plural.to_string(),
            None => target.unknown = Some("resolve".to_owned()),
        }
        target
    }

    fn info(self, verb: &str, namespace: &str, name: &str) -> RequestInfo {
        RequestInfo {
            is_resource: true,
            verb: verb.to_owned(),
            group: self.group,
            version: self.version,
            resource: self.resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..RequestInfo::default()
        }
    }
}

fn is_trusted(context: &Context) -> bool {
    context.user.in_group(GROUP_MASTERS)
}

/// A fault unless the sender may read all objects of the kind that a policy names.
pub async fn of_policy(context: &Context, kind: &ParameterKind<'_>) -> Option<FieldError> {
    if is_trusted(context) {
        return None;
    }
    let info = Target::of(context, kind).info("get", ALL, ALL);
    let verdict = context.authorization.decide(&context.user, &info).await;
    let text = match verdict.error {
        _ if verdict.allowed => return None,
        Some(error) => error,
        None => format!(
            "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
            context.user.described(),
            kind.kind,
            kind.api_version
        ),
    };
    Some(FieldError::forbidden(&Path::new("spec").child("paramKind"), text))
}

/// A fault unless the sender may read what a binding names. `kind`: that of its policy; an error if there is no policy;
/// `None` if it has no parameters.
pub async fn of_binding(
    context: &Context,
    reference: &Reference<'_>,
    kind: Result<Option<ParameterKind<'_>>, ()>,
) -> Option<FieldError> {
    if is_trusted(context) {
        return None;
    }
    let target = match &kind {
        Ok(Some(kind)) => Target::of(context, kind),
        _ => Target::everything(),
    };
    let verb = if reference.name.is_empty() { "list" } else { "get" };
    let unknown = target.unknown.clone();
    let info = target.info(verb, reference.namespace, reference.name);
    let verdict = context.authorization.decide(&context.user, &info).await;
    let user = context.user.described();
    let minimum = |what: String| {
        format!(
            "unable to {what} to determine minimum required permissions and user {user} does not have \"{verb}\" \
             permission for all groups, versions and resources"
        )
    };
    let text = match (verdict.error, &kind, unknown) {
        _ if verdict.allowed => return None,
        (Some(error), ..) if reference.mutates => error,
        (Some(error), ..) => format!("failed to authorize request: {error}"),
        (None, Err(()), _) => minimum(format!("get policy {}", reference.policy)),
        (None, Ok(Some(kind)), Some(what)) => minimum(format!(
            "{what} paramKind &ParamKind{{APIVersion:{},Kind:{},}}",
            kind.api_version, kind.kind
        )),
        // So kube-apiserver says it.
        (None, ..) if reference.mutates => {
            format!("user {verb} does not have \"{user}\" permission on the object referenced by paramRef")
        }
        (None, ..) => format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef"),
    };
    Some(FieldError::forbidden(&Path::new("spec").child("paramRef"), text))
}
