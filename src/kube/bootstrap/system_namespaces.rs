//! The namespaces that a server cannot be without.

use std::time::Duration;

use keelson_api::core::v1::Namespace;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_server::server::{HookContext, HookError};

use super::MANAGER;
use super::maker::{Maker, Wanted, leave};

pub(super) const NAMES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// How often a namespace that has gone meanwhile is made again.
const INTERVAL: Duration = Duration::from_secs(60);

/// Makes the namespaces that are absent when the server starts, and looks after them from then on.
pub(super) async fn run(context: HookContext) -> Result<(), HookError> {
    make_absent(&context).await?;
    tokio::task::spawn_local(keep(context));
    Ok(())
}

/// Ends with the worker that it runs on.
async fn keep(context: HookContext) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        if let Err(error) = make_absent(&context).await {
            tracing::warn!(%error, "a namespace of the system could not be made");
        }
    }
}

pub(super) async fn make_absent(context: &HookContext) -> Result<(), HookError> {
    let wanted = NAMES.map(|name| Wanted {
        group: "",
        plural: "namespaces",
        object: Box::new(Namespace {
            metadata: ObjectMeta {
                name: name.to_owned(),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        }),
        reconcile: leave,
    });
    let maker = Maker {
        context,
        manager: MANAGER,
    };
    maker.make_all(&wanted).await
}
