//! The authentication ConfigMap `extension-apiserver-authentication`, which other servers read.

use std::collections::BTreeMap;
use std::rc::Rc;

use keelson_api::core::v1::ConfigMap;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::Object;
use keelson_net::tls::unexpired;
use keelson_server::server::{HookContext, HookError};

use super::maker::{Maker, Wanted};
use super::{MANAGER, Setting};
use crate::typed::typed;

const NAME: &str = "extension-apiserver-authentication";
/// What the keys about a proxy in front begin with.
const PROXY: &str = "requestheader-";

pub(super) async fn run(context: HookContext, setting: Rc<Setting>) -> Result<(), HookError> {
    let now = context.backend.clock.now().unix_seconds();
    let data = data(&setting, now);
    if data.is_empty() {
        return Ok(());
    }
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: NAME.to_owned(),
            namespace: "kube-system".to_owned(),
            ..ObjectMeta::default()
        },
        data,
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

/// Authorities whose time has ended are not told of. `now`: seconds since 1970.
fn data(setting: &Setting, now: i64) -> BTreeMap<String, String> {
    let mut data = BTreeMap::new();
    if !setting.client_ca_pem.is_empty() {
        data.insert("client-ca-file".to_owned(), unexpired(&setting.client_ca_pem, now));
    }
    let Some(proxy) = &setting.front_proxy else {
        return data;
    };
    data.insert(format!("{PROXY}client-ca-file"), unexpired(&proxy.client_ca_pem, now));
    for (key, names) in [
        ("allowed-names", &proxy.allowed_names),
        ("username-headers", &proxy.headers.usernames),
        ("uid-headers", &proxy.headers.uids),
        ("group-headers", &proxy.headers.groups),
        ("extra-headers-prefix", &proxy.headers.extra_prefixes),
    ] {
        data.insert(format!("{PROXY}{key}"), serde_json::json!(names).to_string());
    }
    data
}

/// Several servers may believe different authorities and names: each adds its own.
fn add_authorities(stored: &dyn Object, wanted: &dyn Object) -> Option<Box<dyn Object>> {
    let stored = typed::<ConfigMap>(stored)?;
    let mut new = stored.clone();
    for (key, value) in &typed::<ConfigMap>(wanted)?.data {
        let known = new.data.entry(key.clone()).or_default();
        match key.ends_with("client-ca-file") {
            true => add_certificates(known, value),
            false => add_names(known, value),
        }
    }
    (new.data != stored.data).then(|| Box::new(new) as Box<dyn Object>)
}

fn add_certificates(known: &mut String, own: &str) {
    if known.contains(own.trim()) {
        return;
    }
    if !known.is_empty() && !known.ends_with('\n') {
        known.push('\n');
    }
    known.push_str(own);
}

fn add_names(known: &mut String, own: &str) {
    let list = |text: &str| serde_json::from_str::<Vec<String>>(text).unwrap_or_default();
    let mut names = list(known);
    for name in list(own) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    *known = serde_json::json!(names).to_string();
}
