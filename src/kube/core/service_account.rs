//! Service accounts.

use keelson_api::core::v1::{ObjectReference, ServiceAccount};
use keelson_registry::{Context, KindCode, Strategy};

use super::subresources::token;

/// Keeps pods of the account to the secrets that it names.
const ENFORCE_ANNOTATION: &str = "kubernetes.io/enforce-mountable-secrets";

/// Registers the rules of service accounts.
pub fn register(code: &mut KindCode) {
    code.kind::<ServiceAccount>()
        .strategy(ServiceAccountStrategy)
        .subresource("token", token::Issue);
}

/// The rules of service accounts: those of their metadata, and that secrets are named and nothing else is said of them.
struct ServiceAccountStrategy;

impl Strategy for ServiceAccountStrategy {
    type Object = ServiceAccount;

    fn prepare_for_create(&self, _context: &Context, object: &mut ServiceAccount) {
        name_secrets(object);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut ServiceAccount, _old: &ServiceAccount) {
        name_secrets(new);
    }

    fn warnings(&self, new: &ServiceAccount, old: Option<&ServiceAccount>) -> Vec<String> {
        let has = |o: &ServiceAccount| o.metadata.annotations.contains_key(ENFORCE_ANNOTATION);
        if !has(new) || old.is_some_and(has) {
            return Vec::new();
        }
        vec![format!(
            "metadata.annotations[{ENFORCE_ANNOTATION}]: deprecated in v1.32+; prefer separate namespaces to isolate \
             access to mounted secrets"
        )]
    }
}

fn name_secrets(account: &mut ServiceAccount) {
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
    use crate::testing::{context, read, text};

    #[test]
    fn secrets_are_names() {
        let mut account: ServiceAccount = read(r#"{"secrets":[{"name":"a","kind":"Secret","uid":"u"}]}"#);
        ServiceAccountStrategy.prepare_for_create(&context(), &mut account);
        assert_eq!(text(&account.secrets[0]), r#"{"name":"a"}"#);
    }
}
