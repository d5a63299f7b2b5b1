//! NamespaceAutoProvision: a namespace is made for the first object in it.

use std::sync::{Arc, OnceLock, Weak};

use keelson_access::lister::Listers;
use keelson_api::core::v1::Namespace;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::later;
use keelson_registry::{Client, Outcome, Verbs};

use super::lookup;

/// Who owns the fields of such a namespace.
const MANAGER: &str = "kube-apiserver";

#[derive(Default)]
pub struct NamespaceAutoProvision {
    verbs: OnceLock<Weak<Verbs>>,
}

impl Plugin for NamespaceAutoProvision {
    fn name(&self) -> &'static str {
        "NamespaceAutoProvision"
    }

    fn enabled_by_default(&self) -> bool {
        false
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        Handles::MUTATES.when(scope.operation == Operation::Create && scope.namespaced)
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[("", "namespaces")]
    }

    fn attach(&self, _listers: &dyn Listers, verbs: &Arc<Verbs>) {
        self.verbs.get_or_init(|| Arc::downgrade(verbs));
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        later(self.provide(attributes))
    }
}

impl NamespaceAutoProvision {
    async fn provide(&self, attributes: &Attributes<'_>) -> Result<(), StatusError> {
        if attributes.dry_run() {
            return Ok(());
        }
        let name = attributes.namespace();
        let found = lookup::find::<Namespace>(attributes, ("", "namespaces"), "", name).await;
        let missing = found.map_err(|error| attributes.forbidden(error.message))?.is_none();
        let verbs = self.verbs.get().and_then(Weak::upgrade).filter(|_| missing);
        let Some(verbs) = verbs else { return Ok(()) };
        let mut namespace = Namespace::default();
        name.clone_into(&mut namespace.metadata.name);
        let client = Client::of_server(verbs, MANAGER);
        // Its writes are those of a client: they have plug-ins of their own, and that is what it waits for.
        let created = Box::pin(client.of::<Namespace>("")?.create(namespace)).await;
        match created {
            Err(error) if error.code != 409 => Err(attributes.forbidden(error.message)),
            _ => Ok(()),
        }
    }
}
