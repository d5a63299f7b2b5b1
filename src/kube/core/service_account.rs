//! Service accounts.

use keelson_machinery::object::Object;
use keelson_server::registry::Strategy;

/// Keeps pods of the account to the secrets that it names.
const ENFORCE_ANNOTATION: &str = "kubernetes.io/enforce-mountable-secrets";

/// The rules of service accounts: those of their metadata.
pub struct ServiceAccountStrategy;

impl Strategy for ServiceAccountStrategy {
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
