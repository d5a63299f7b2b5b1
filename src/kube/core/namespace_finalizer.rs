//! Finalizer of namespaces, for servers of other kinds, beside which no controller manager of Kubernetes runs: deletes
//! what is in a namespace that is being deleted, and then lets it go.

use std::time::Duration;

use keelson_api::core::v1::Namespace;
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_registry::NamespacedName;
use keelson_registry::controller::{Controller, ControllerContext, Failure, GroupResource, Next};

use super::namespace::FINALIZER;

const NAMESPACES: GroupResource = GroupResource::new("", "namespaces");
/// How often to look whether objects have gone that wait for their finalizers.
const POLL: Duration = Duration::from_secs(1);

/// Empties namespaces that go.
pub struct NamespaceFinalizer;

impl Controller for NamespaceFinalizer {
    fn name(&self) -> &'static str {
        "namespace_finalizer"
    }

    fn reconciles(&self) -> GroupResource {
        NAMESPACES
    }

    async fn reconcile(&self, key: &NamespacedName, context: &ControllerContext) -> Result<Next, Failure> {
        let namespaces = context.typed_lister::<Namespace>()?;
        let Some(namespace) = namespaces.get(key).await? else {
            return Ok(Next::Done);
        };
        let held = namespace.spec.finalizers.iter().any(|finalizer| finalizer == FINALIZER);
        if namespace.metadata.deletion_timestamp.is_none() || !held {
            return Ok(Next::Done);
        }
        if !empty(&key.name, context).await? {
            return Ok(Next::After(POLL));
        }
        let finalize = context.client().of::<Namespace>("")?.subresource("finalize")?;
        let let_go = |namespace: &mut Namespace| namespace.spec.finalizers.retain(|finalizer| finalizer != FINALIZER);
        match finalize.update(&key.name, let_go).await {
            Err(error) if error.code != 404 => Err(error.into()),
            _ => Ok(Next::Done),
        }
    }
}

/// Deletes the objects of a namespace; whether there are none any more. Nobody else is asked: who deletes a namespace
/// deletes what is in it.
async fn empty(namespace: &str, context: &ControllerContext) -> Result<bool, Failure> {
    let client = context.client().clone().nested();
    let mut gone = true;
    for resource in client.registry().resources() {
        if !resource.hub.namespaced || resource.hub.unstored {
            continue;
        }
        let Some(objects) = client.objects(&resource.group, &resource.plural, namespace) else {
            continue;
        };
        for name in objects.names().await? {
            match objects.delete(&name.name, &DeleteOptions::default()).await {
                Ok(deleted) => gone &= deleted.gone,
                Err(error) if error.code == 404 => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(gone)
}
