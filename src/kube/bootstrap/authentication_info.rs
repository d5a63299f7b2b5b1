//! What other servers need to know in order to believe the same clients: a ConfigMap that they read.

use std::rc::Rc;

use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::Object;
use keelson_server::server::HookContext;

use super::maker::{Maker, Wanted};
use super::{MANAGER, Setting};
use crate::api::core::v1::ConfigMap;
use crate::kube::typed::typed;

const NAME: &str = "extension-apiserver-authentication";

pub(super) async fn run(context: HookContext, setting: Rc<Setting>) -> Result<(), String> {
    if setting.client_ca_pem.is_empty() {
        return Ok(());
    }
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: NAME.to_owned(),
            namespace: "kube-system".to_owned(),
            ..ObjectMeta::default()
        },
        data: [("client-ca-file".to_owned(), setting.client_ca_pem.clone())].into(),
        ..ConfigMap::default()
    };
    let wanted = Wanted {
        group: "",
        plural: "configmaps",
        object: Box::new(map),
        reconcile: add_authorities,
    };
    let maker = Maker {
        context: &context,
        manager: MANAGER,
    };
    maker.make_all(&[wanted]).await
}

/// Several servers may believe different authorities: each adds its own.
fn add_authorities(stored: &dyn Object, wanted: &dyn Object) -> Option<Box<dyn Object>> {
    let mut new = typed::<ConfigMap>(stored)?.clone();
    for (key, value) in &typed::<ConfigMap>(wanted)?.data {
        let known = new.data.entry(key.clone()).or_default();
        if known.contains(value.trim()) {
            return None;
        }
        if !known.is_empty() && !known.ends_with('\n') {
            known.push('\n');
        }
        known.push_str(value);
    }
    Some(Box::new(new))
}
