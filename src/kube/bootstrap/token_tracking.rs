//! Since when the use of service account tokens without an end is tracked.

use keelson_api::core::v1::ConfigMap;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_server::server::{HookContext, HookError};

use super::MANAGER;
use super::maker::{Maker, Wanted, leave};

const NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";

pub(super) async fn run(context: HookContext) -> Result<(), HookError> {
    // `2026-11-21T…`
    let today = context.backend.clock.now().to_string().chars().take(10).collect();
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: NAME.to_owned(),
            namespace: "kube-system".to_owned(),
            ..ObjectMeta::default()
        },
        data: [("since".to_owned(), today)].into(),
        ..ConfigMap::default()
    };
    let wanted = Wanted {
        group: "",
        plural: "configmaps",
        object: Box::new(map),
        reconcile: leave,
    };
    let maker = Maker {
        context: &context,
        manager: MANAGER,
    };
    maker.make_all(&[wanted]).await
}
