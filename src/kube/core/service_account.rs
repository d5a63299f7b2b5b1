//! Service accounts.

use keelson_machinery::object::Object;
use keelson_server::registry::{Context, Strategy};

use crate::api::core::v1::{ObjectReference, ServiceAccount};
use crate::kube::typed::typed_mut;

/// Keeps pods of the account to the secrets that it names.
const ENFORCE_ANNOTATION: &str = "kubernetes.io/enforce-mountable-secrets";

/// The rules of service accounts: those of their metadata, and that secrets are named and nothing else is said of them.
pub struct ServiceAccountStrategy;

impl Strategy for ServiceAccountStrategy {
    fn prepare_for_create(&self, _context: &Context, object: &mut dyn Object) {
        name_secrets(object);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut dyn Object, _old: &dyn Object) {
        name_secrets(new);
    }

    fn warnings(&self, new: &dyn Object, old: Option<&dyn Object>) -> Vec<String> {
        let has = |o: &dyn Object| o.meta().annotations.contains_key(ENFORCE_ANNOTATION);
        if !has(new) || old.is_some_and(has) {
            return Vec::new();
        }
        vec![format!(
            "metadata.annotations[{ENFORCE_ANNOTATION}]: deprecated in v1.32+; prefer separate namespaces to isolate \
             access to mounted secrets"
        )]
    }
}

fn name_secrets(object: &mut dyn Object) {
    let Some(account) = typed_mut::<ServiceAccount>(object) else {
        return;
    };
    for secret in &mut account.secrets {
        *secret = ObjectReference {
            name: std::mem::take(&mut secret.name),
            ..ObjectReference::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube::testing::{context, read, text};

    #[test]
    fn secrets_are_names() {
        let mut account: ServiceAccount = read(r#"{"secrets":[{"name":"a","kind":"Secret","uid":"u"}]}"#);
        ServiceAccountStrategy.prepare_for_create(&context(), &mut account);
        assert_eq!(text(&account.secrets[0]), r#"{"name":"a"}"#);
    }
}
