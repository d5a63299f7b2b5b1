//! The controllers of definitions: [`names`] accepts their names and establishes them, [`finalizer`] deletes the
//! objects of those that go, [`serving`] has each server serve what is established.

mod finalizer;
mod names;
mod serving;
mod status;

use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use keelson_api::apiextensions_k8s_io::v1::CustomResourceDefinition;
use keelson_net::client::{Dialer, WebhookWays};
use keelson_registry::controller::{ControllerContext, Failure};
use keelson_registry::{Lister, NamespacedName, Resource};
use keelson_server::server::{Hook, HookContext, HookError};
use keelson_server::services::ClusterServices;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{mpsc, oneshot};

use crate::DEFINITIONS;
use crate::conversion::{ConversionMetrics, Outside};
use crate::definition::into_definition;
use crate::serving::Serving;

/// Who owns what controllers write.
const MANAGER: &str = "kube-apiserver";

/// The hooks of the API extensions server. It is ready when everything that was defined before is served. `dialer`: for
/// webhooks, whose calls `metrics` show.
pub fn hooks(dialer: Dialer, metrics: ConversionMetrics) -> Vec<Hook> {
    let (tell, synced) = oneshot::channel();
    vec![
        hook("start-apiextensions-informers", |_| Box::pin(async { Ok(()) })),
        hook("start-apiextensions-controllers", |context| {
            Box::pin(async move {
                start(&context, dialer, metrics).await.map_err(HookError::other)?;
                // Nobody may wait for it.
                let _ = tell.send(());
                Ok(())
            })
        }),
        hook("crd-informer-synced", |_| {
            Box::pin(async {
                synced
                    .await
                    .map_err(|_| HookError::other("definitions could not be read"))
            })
        }),
    ]
}

fn hook(
    name: &'static str,
    run: impl FnOnce(HookContext) -> LocalBoxFuture<'static, Result<(), HookError>> + 'static,
) -> Hook {
    Hook {
        name,
        run: Box::new(run),
    }
}

/// Serves what is defined already, then follows the definitions.
async fn start(context: &HookContext, dialer: Dialer, metrics: ConversionMetrics) -> Result<(), Failure> {
    let outside = Outside {
        ways: WebhookWays {
            dialer,
            services: Arc::new(ClusterServices::new(&context.registry)),
        },
        entropy: context.backend.entropy.clone(),
        metrics,
    };
    let (ahead, resources) = mpsc::unbounded_channel();
    convert_ahead(resources);
    let serving = Arc::new(Serving::new(context.registry.clone(), outside, ahead));
    let definitions = context.client(MANAGER).of::<CustomResourceDefinition>("")?;
    let lister = Lister::new(definitions.objects.resource.clone());
    for key in definitions.objects.names().await? {
        serving.follow(&key, &lister).await?;
        tokio::task::yield_now().await;
    }
    context.run(serving::DefinitionServing::new(serving.clone()))?;
    context.run(names::DefinitionNames::new(serving.clone()))?;
    context.run(finalizer::DefinitionFinalizer::new(serving))?;
    Ok(())
}

/// Has objects converted before anybody asks for them, for as long as this thread's `LocalSet` runs.
fn convert_ahead(mut resources: UnboundedReceiver<Arc<Resource>>) {
    tokio::task::spawn_local(async move {
        while let Some(resource) = resources.recv().await {
            tokio::task::spawn_local(resource.convert_ahead());
        }
    });
}

/// A definition as it is now; `None`: there is none.
async fn read(context: &ControllerContext, key: &NamespacedName) -> Result<Option<CustomResourceDefinition>, Failure> {
    let lister = context.lister(&DEFINITIONS).ok_or("the server has no definitions")?;
    let found = lister.get(key).await?;
    found.map(into_definition).transpose().map_err(Failure::from)
}
