//! Ingress classes.

use keelson_api::networking_k8s_io::v1::{IngressClass, IngressClassParametersReference};
use keelson_machinery::field::ErrorList;
use keelson_registry::{Context, Kept, KindCode, Strategy};

use crate::cells;
use crate::faults::{self, Faults};

const CONTROLLER_MAX: usize = 250;

/// Registers the rules of ingress classes.
pub fn register(code: &mut KindCode) {
    code.kind::<IngressClass>()
        .strategy(IngressClassStrategy)
        .cells(cells::networking::INGRESS_CLASS);
}

/// The rules of ingress classes.
struct IngressClassStrategy;

impl Strategy for IngressClassStrategy {
    type Object = IngressClass;

    fn validate(&self, _context: &Context, new: &IngressClass, old: Option<&IngressClass>) -> ErrorList {
        faults::of_object(|f| {
            f.extend(old.and_then(|old| Kept::at("spec.controller").fault(new, old)));
            let mut f = f.at("spec");
            f.at("controller").max_bytes(&new.spec.controller, CONTROLLER_MAX);
            f.at("controller").domain_path(&new.spec.controller);
            f.some("parameters", new.spec.parameters.as_deref(), parameters);
        })
    }
}

/// The object that has the parameters: one of the cluster, or of a namespace that is named.
fn parameters(f: &mut Faults<'_>, object: &IngressClassParametersReference) {
    f.at("apiGroup").subdomain(object.api_group.as_deref());
    f.at("kind").filled_segment(&object.kind);
    f.at("name").filled_segment(&object.name);
    let namespace = object.namespace.as_deref();
    match (object.scope.as_deref(), namespace) {
        (None, _) => f.at("scope").required(""),
        (Some("Namespace"), None) => f.at("namespace").required("`parameters.scope` is set to 'Namespace'"),
        (Some("Namespace"), Some(name)) => f.at("namespace").label(name),
        (Some("Cluster"), Some(_)) => f.at("namespace").forbidden("`parameters.scope` is set to 'Cluster'"),
        (Some(scope), _) => f.at("scope").one_of(scope, &["Cluster", "Namespace"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn parameters_are_of_a_scope() {
        for (parameters, expected) in [
            (r#"{"kind":"K","name":"n","scope":"Cluster"}"#, ""),
            (r#"{"kind":"K","name":"n","scope":"Namespace","namespace":"a"}"#, ""),
            (
                r#"{"kind":"K","name":"n","scope":"Namespace"}"#,
                "namespace: Required value",
            ),
            (
                r#"{"kind":"K","name":"n","scope":"Cluster","namespace":"a"}"#,
                "namespace: Forbidden",
            ),
            (r#"{"kind":"K","name":"n","scope":"x"}"#, "scope: Unsupported value"),
            (
                r#"{"kind":"","name":"a/b","apiGroup":"A","scope":"Cluster"}"#,
                "apiGroup: Invalid value kind: Required value name: Invalid value",
            ),
        ] {
            let class: IngressClass = read(&format!(
                r#"{{"spec":{{"controller":"a.b/c","parameters":{parameters}}}}}"#
            ));
            let found = lines(&IngressClassStrategy.validate(&context(), &class, None)).replace("spec.parameters.", "");
            let found = found
                .lines()
                .map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(": "));
            assert_eq!(found.collect::<Vec<_>>().join(" "), expected, "{parameters}");
        }
    }
}
